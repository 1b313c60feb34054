//! From a request to its choices: template, tokenizer, limits of the model.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use glassbox_generate::{Sampling, Settings};
use glassbox_text::{CivilTime, Prompt, RenderOptions, Specials};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Served;
use crate::asked::{Asked, Given, Prompts};
use crate::engine::{Engine, Job, Rejected, Told};
use crate::refusal::Refusal;

/// Where requests are prepared and handed to the engine.
pub(crate) struct Desk {
    pub(crate) served: Arc<Served>,
    pub(crate) engine: Engine,
    /// Length of the queue, for messages.
    pub(crate) waiting: usize,
}

/// A prompt as the model reads it.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// For `echo`.
    pub(crate) text: String,
    pub(crate) ids: Arc<[u32]>,
}

/// The choices of a request, on their way.
pub(crate) struct Underway {
    pub(crate) told: UnboundedReceiver<(usize, Told)>,
    pub(crate) choices: usize,
}

impl Desk {
    /// Renders and tokenises the prompts of a request, and holds them against the context.
    pub(crate) fn prepare(&self, asked: &Asked) -> Result<Vec<Ready>, Refusal> {
        if let Some(model) = asked.model.as_ref().filter(|model| **model != self.served.name) {
            let plain = model.len() <= 200 && !model.contains(|letter: char| letter.is_control());
            let found = if plain { format!("`{model}`") } else { "something else".to_owned() };
            let message = format!("`model`: wanted `{}`, which is what is served here, found {found}", self.served.name);
            return Err(Refusal::status(StatusCode::NOT_FOUND, message));
        }
        let ready = match &asked.prompts {
            Prompts::Chat(messages) => {
                let template = self.served.template.as_ref().ok_or_else(|| {
                    Refusal::request("this model has no chat template; ask it at /v1/completions, with the text to continue as `prompt`")
                })?;
                let options = RenderOptions { now: Some(civil_now()), ..RenderOptions::default() };
                let prompt = Prompt::chat(&self.served.tokenizer, template, messages, &options);
                let prompt = prompt.map_err(|error| Refusal::field("messages", error))?;
                vec![Ready { text: prompt.text, ids: prompt.ids.into() }]
            }
            Prompts::Texts(texts) => texts.iter().map(|text| self.given(text)).collect::<Result<_, _>>()?,
        };
        for Ready { ids, .. } in &ready {
            self.check_room(ids.len(), asked.max_tokens)?;
        }
        Ok(ready)
    }

    fn given(&self, given: &Given) -> Result<Ready, Refusal> {
        let tokenizer = &self.served.tokenizer;
        match given {
            Given::Text(text) => {
                let ids = tokenizer.encode_prompt(text, Specials::Parse).map_err(|error| Refusal::field("prompt", error))?;
                Ok(Ready { text: text.clone(), ids: ids.into() })
            }
            Given::Ids(ids) => {
                tokenizer.check_ids(ids).map_err(|error| Refusal::field("prompt", error))?;
                Ok(Ready { text: tokenizer.decode(ids), ids: ids.as_slice().into() })
            }
        }
    }

    fn check_room(&self, prompt_tokens: usize, max_tokens: Option<usize>) -> Result<(), Refusal> {
        let context = self.served.context;
        if prompt_tokens == 0 {
            return Err(Refusal::field("prompt", "it has no tokens; wanted at least one"));
        }
        // Without a limit the answer has room for one token at least.
        let answer = max_tokens.unwrap_or(1);
        if prompt_tokens.saturating_add(answer) > context {
            return Err(Refusal::field(
                "max_tokens",
                format!(
                    "the prompt has {prompt_tokens} tokens, and {answer} more are asked for; wanted at most {context} together: shorten the prompt, ask for fewer tokens, or start the server with a larger --context"
                ),
            ));
        }
        Ok(())
    }

    /// Hands the choices of a request to the engine: prompt after prompt, `n` of each.
    pub(crate) fn admit(&self, asked: &Asked, ready: &[Ready]) -> Result<Underway, Refusal> {
        let (teller, told) = unbounded_channel();
        let choices = ready.len() * asked.n;
        let job = |choice: usize| {
            let prompt = Arc::clone(&ready[choice / asked.n].ids);
            let room = self.served.context - prompt.len();
            let seed = asked.sampling.seed.wrapping_add((choice % asked.n) as u64);
            let settings = Settings {
                max_tokens: asked.max_tokens.unwrap_or(room),
                sampling: Sampling { seed, ..asked.sampling.clone() },
                stop: asked.stop.clone(),
                end_ids: self.served.tokenizer.end_ids().to_vec(),
            };
            Job { prompt, settings, top: asked.top, choice, teller: teller.clone() }
        };
        self.engine.admit((0..choices).map(job).collect()).map_err(|rejected| match rejected {
            Rejected::Full => Refusal::busy(self.waiting),
            Rejected::Ended => Refusal::fault("the thread that computes has ended; start the server again"),
        })?;
        Ok(Underway { told, choices })
    }
}

fn civil_now() -> CivilTime {
    CivilTime::from_unix_seconds(unix_seconds())
}

/// Seconds since 1970; 0 for a clock that stands before.
pub(crate) fn unix_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}
