//! What an endpoint can do, found out by a few tiny requests.

use std::collections::BTreeMap;

use glassbox_record::FailureClass;
use serde_json::json;

use crate::ask::{Api, Ask, Features, MaxTokensField, Prompt};
use crate::client::Client;
use crate::failed::{Failed, Trouble, clip};
use crate::field::{Field, parse};

/// What was found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// The model that is asked.
    pub model: String,
    /// What requests may hold.
    pub features: Features,
    /// The facts, for people and for the record: what they name may change an answer.
    pub facts: BTreeMap<String, String>,
    /// Whether the likeliest first tokens come along.
    pub shows_first_token: bool,
    /// Tokens that prompt and answer may have, where the endpoint tells.
    pub context: Option<usize>,
}

/// What `/models` tells.
#[derive(Debug, Default)]
struct Listed {
    models: Vec<String>,
    context: Option<usize>,
    server: Option<String>,
}

impl Client {
    /// Finds out which model is asked and what the endpoint takes and gives: `/models`, one to a few requests for a single token, `/tokenize`.
    ///
    /// Errors: no model named where there are none or several; an endpoint that answers no request at all.
    pub fn probe(&self, api: Api) -> Result<Probed, Failed> {
        let listed = self.listed()?;
        let model = match (self.address().model(), listed.models.as_slice()) {
            (Some(model), _) => model.to_owned(),
            (None, [only]) => only.clone(),
            (None, models) => {
                let found = match models {
                    [] => "the endpoint lists none".to_owned(),
                    models => {
                        format!("the endpoint has {}", models.iter().take(20).map(|model| clip(model)).collect::<Vec<_>>().join(", "))
                    }
                };
                let message = format!("wanted a model, as in `{}#MODEL`; {found}", self.address());
                return Err(self.failed(&Trouble::finally(FailureClass::Rejected, message), Vec::new()));
            }
        };
        let (features, reply) = self.try_features(&model, api)?;
        let mut facts = BTreeMap::new();
        let mut fact = |name: &str, value: String| facts.insert(name.to_owned(), self.redacted(&value));
        let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        fact("endpoint", self.address().base().to_owned());
        fact("model", model.clone());
        fact("api", api.name().to_owned());
        fact("server", reply.server.or(listed.server).as_deref().map_or_else(|| "not told".to_owned(), clip));
        fact("served model", reply.model.as_deref().map_or_else(|| "not told".to_owned(), clip));
        fact("system_fingerprint", reply.system_fingerprint.as_deref().map_or_else(|| "not told".to_owned(), clip));
        fact("listed in /models", yes_no(listed.models.contains(&model)));
        fact("streaming", yes_no(features.stream && reply.streamed));
        fact("usage", yes_no(reply.usage.prompt_tokens.is_some()));
        let shows_first_token = !reply.first_token.is_empty();
        fact("log probabilities", yes_no(shows_first_token));
        fact("seed", if features.seed { "accepted" } else { "refused" }.to_owned());
        fact("limit", features.max_tokens.name().to_owned());
        fact("/tokenize", yes_no(self.tokenizes(&model)));
        fact("context", listed.context.map_or_else(|| "not told".to_owned(), |context| context.to_string()));
        Ok(Probed { model, features, facts, shows_first_token, context: listed.context })
    }

    /// `/models`. An endpoint without it is still an endpoint; one that cannot be reached is none.
    fn listed(&self) -> Result<Listed, Failed> {
        let (server, body) = match self.get("/models") {
            Ok(found) => found,
            Err(failed) if matches!(failed.class, FailureClass::Connection | FailureClass::Interrupted | FailureClass::Budget) => {
                return Err(failed);
            }
            Err(_) => return Ok(Listed::default()),
        };
        // Some give a list of another shape; then nothing is known of the models, and the model that was named is asked.
        let models = || -> Result<Vec<(String, Option<usize>)>, Trouble> {
            let value = parse(&body)?;
            let mut found = Vec::new();
            for entry in Field::document(&value).need("data")?.list()? {
                // vLLM says `max_model_len`, llama.cpp `meta.n_ctx`, others `context_length`.
                let meta = entry.get("meta")?.map_or(Ok(None), |meta| meta.count_of("n_ctx"))?;
                let context = entry.count_of("max_model_len")?.or(meta).or(entry.count_of("context_length")?);
                found.push((entry.need("id")?.text()?.to_owned(), context));
            }
            Ok(found)
        };
        let models = models().unwrap_or_default();
        let wanted = self.address().model();
        let own = models.iter().find(|(id, _)| wanted.is_none_or(|wanted| wanted == id));
        let context = own.and_then(|(_, context)| *context);
        Ok(Listed { context, models: models.into_iter().map(|(id, _)| id).collect(), server })
    }

    /// Asks for one token with everything, and leaves out what is refused, one after the other.
    fn try_features(&self, model: &str, api: Api) -> Result<(Features, crate::reply::Reply), Failed> {
        let prompt = match api {
            Api::Chat => Prompt::Chat(vec![("user".to_owned(), "Say yes.".to_owned())]),
            Api::Completions => Prompt::Text("One, two,".to_owned()),
        };
        let ask = Ask { prompt, max_tokens: 1, temperature: 0.0, top_p: None, stop: Vec::new(), seed: 1 };
        let mut features = Features::all();
        loop {
            let failed = match self.ask_with(model, &features, &ask, &mut |_| {}) {
                Ok(reply) => return Ok((features, reply)),
                Err(failed) => failed,
            };
            // What is wrong with every request is not mended by leaving something out.
            let hopeless = ["(status 401)", "(status 403)", "(status 404)"].iter().any(|status| failed.message.contains(status));
            let may_mend = matches!(failed.class, FailureClass::Rejected | FailureClass::Internal) && !hopeless;
            match without_refused(&features, &failed.message).filter(|_| may_mend) {
                Some(fewer) => features = fewer,
                None => return Err(failed),
            }
        }
    }

    /// Whether `/tokenize` gives ids. The forms of vLLM (`prompt`) and llama.cpp (`content`) are asked at once.
    fn tokenizes(&self, model: &str) -> bool {
        let body = json!({"model": model, "prompt": "yes", "content": "yes"}).to_string();
        let tokens = |body: Vec<u8>| -> Result<bool, Trouble> {
            let value = parse(&body)?;
            let tokens = Field::document(&value).need("tokens")?.list()?;
            Ok(!tokens.is_empty() && tokens.iter().all(|token| token.count().is_ok()))
        };
        self.post_beside("/tokenize", &body).and_then(tokens).unwrap_or(false)
    }
}

/// The same without what the message names, or else without the next in a fixed order; `None` where nothing is left to leave out.
fn without_refused(features: &Features, message: &str) -> Option<Features> {
    let plain = Features::plain();
    // In this order, since what stands first is refused most often.
    let steps = [
        ("max_completion_tokens", Features { max_tokens: MaxTokensField::MaxCompletionTokens, ..*features }),
        ("stream_options", Features { stream_usage: false, ..*features }),
        ("logprobs", Features { log_probabilities: None, ..*features }),
        ("seed", Features { seed: false, ..*features }),
        ("stream", Features { stream: false, stream_usage: false, ..*features }),
    ];
    let named = steps.iter().find(|(name, fewer)| message.contains(name) && fewer != features);
    // The name of the limit is not left out for nothing.
    let next = || steps.iter().skip(1).find(|(_, fewer)| fewer != features);
    let plain_already = Features { max_tokens: features.max_tokens, ..plain } == *features;
    named.or_else(|| if plain_already { None } else { next() }).map(|(_, fewer)| *fewer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_by_name_goes_first_and_the_search_ends() {
        let all = Features::all();
        let check = |message: &str, fewer: Features| assert_eq!(without_refused(&all, message), Some(fewer), "{message}");
        check("unknown field `seed`", Features { seed: false, ..all });
        check("logprobs are not supported", Features { log_probabilities: None, ..all });
        check("use max_completion_tokens instead", Features { max_tokens: MaxTokensField::MaxCompletionTokens, ..all });
        check("no", Features { stream_usage: false, ..all });
        let mut features = all;
        let mut steps = 0;
        while let Some(fewer) = without_refused(&features, "no max_completion_tokens") {
            features = fewer;
            steps += 1;
        }
        assert_eq!((features.stream, features.seed, features.log_probabilities, steps), (false, false, None, 5));
    }
}
