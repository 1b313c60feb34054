//! An answer, put together from one document or from the events of a stream.

use glassbox_record::{Digest, Retry};

use crate::ask::Api;
use crate::failed::{Again, Trouble};
use crate::field::Field;
use glassbox_record::FailureClass;

/// What an endpoint answered. What it did not tell is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// The text of the answer.
    pub text: String,
    /// What the model thought before it answered: `reasoning_content` or `reasoning`.
    pub reasoning: Option<String>,
    /// `finish_reason`, word for word.
    pub finish_reason: Option<String>,
    /// The numbers of tokens.
    pub usage: Usage,
    /// The likeliest first tokens, best first.
    pub first_token: Vec<Candidate>,
    /// The model that answered, by its own name.
    pub model: Option<String>,
    /// `system_fingerprint`.
    pub system_fingerprint: Option<String>,
    /// Milliseconds from the request to the first token of a stream.
    pub first_token_ms: Option<f64>,
    /// Milliseconds from the request to the end of the answer.
    pub total_ms: f64,
    /// Hash of the body of the request.
    pub request: Option<Digest>,
    /// What failed before this answer came.
    pub retries: Vec<Retry>,
    /// `Server`.
    pub server: Option<String>,
    /// Whether it came as a stream.
    pub streamed: bool,
}

/// Numbers of tokens, where the endpoint tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the prompt.
    pub prompt_tokens: Option<usize>,
    /// Of the answer, thought included.
    pub answer_tokens: Option<usize>,
    /// Of the prompt, taken from a cache.
    pub cached_prompt_tokens: Option<usize>,
    /// Of the thought.
    pub reasoning_tokens: Option<usize>,
}

/// A token that could have been the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its text as the endpoint shows it.
    pub text: String,
    /// Natural logarithm of its probability.
    pub log_probability: f64,
}

/// Puts a reply together.
#[derive(Debug)]
pub(crate) struct Assembly {
    api: Api,
    reply: Reply,
    /// How often something of the answer came: text, thought, a call of a tool, its end.
    pieces: usize,
}

impl Assembly {
    pub(crate) fn new(api: Api) -> Self {
        Self { api, reply: Reply::default(), pieces: 0 }
    }

    pub(crate) fn finish(self) -> Reply {
        self.reply
    }

    /// Whether an end of the answer was told.
    pub(crate) fn has_finish(&self) -> bool {
        self.reply.finish_reason.is_some()
    }

    /// How often something of the answer has come so far.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Takes an answer in one piece.
    pub(crate) fn whole(&mut self, document: &Field<'_>) -> Result<(), Trouble> {
        self.about(document)?;
        let choices = document.need("choices")?.list()?;
        let choice = choices.first().ok_or_else(|| Trouble::malformed("the field `choices` of the answer is empty"))?;
        self.choice(choice, "message")?;
        Ok(())
    }

    /// Takes an event of a stream, and gives the text that it adds.
    pub(crate) fn chunk(&mut self, document: &Field<'_>) -> Result<String, Trouble> {
        self.about(document)?;
        let mut added = String::new();
        // The event with the numbers of tokens has no choice.
        let choices = document.get("choices")?.map(|choices| choices.list()).transpose()?.unwrap_or_default();
        for choice in &choices {
            if choice.count_of("index")?.unwrap_or(0) == 0 {
                added.push_str(&self.choice(choice, "delta")?);
            }
        }
        Ok(added)
    }

    /// What stands beside the choices.
    fn about(&mut self, document: &Field<'_>) -> Result<(), Trouble> {
        if let Some(model) = document.text_of("model")?.filter(|model| !model.is_empty()) {
            self.reply.model = Some(model.to_owned());
        }
        if let Some(fingerprint) = document.text_of("system_fingerprint")?.filter(|fingerprint| !fingerprint.is_empty()) {
            self.reply.system_fingerprint = Some(fingerprint.to_owned());
        }
        if let Some(usage) = document.get("usage")? {
            let inner = |object: &str, name: &str| usage.get(object)?.map_or(Ok(None), |details| details.count_of(name));
            self.reply.usage = Usage {
                prompt_tokens: usage.count_of("prompt_tokens")?,
                answer_tokens: usage.count_of("completion_tokens")?,
                cached_prompt_tokens: inner("prompt_tokens_details", "cached_tokens")?,
                reasoning_tokens: inner("completion_tokens_details", "reasoning_tokens")?,
            };
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Field<'_>, holder: &str) -> Result<String, Trouble> {
        let text = match self.api {
            Api::Completions => choice.text_of("text")?.unwrap_or_default().to_owned(),
            Api::Chat => match choice.get(holder)? {
                Some(message) => self.message(&message)?,
                None => String::new(),
            },
        };
        if let Some(logprobs) = choice.get("logprobs")? {
            self.log_probabilities(&logprobs)?;
        }
        // An empty word is what some send with every event but the last.
        if let Some(reason) = choice.text_of("finish_reason")?.filter(|reason| !reason.is_empty()) {
            self.reply.finish_reason = Some(reason.to_owned());
            self.pieces += 1;
        }
        self.pieces += usize::from(!text.is_empty());
        self.reply.text.push_str(&text);
        Ok(text)
    }

    fn message(&mut self, message: &Field<'_>) -> Result<String, Trouble> {
        for name in ["reasoning_content", "reasoning"] {
            if let Some(thought) = message.text_of(name)?.filter(|thought| !thought.is_empty()) {
                self.reply.reasoning.get_or_insert_default().push_str(thought);
                self.pieces += 1;
                break;
            }
        }
        // Calls of tools are not carried out; that there were any shows in the reason of the end.
        self.pieces += usize::from(message.get("tool_calls")?.is_some());
        let text = message.text_of("content")?;
        let text = if text.is_none() { message.text_of("refusal")? } else { text };
        Ok(text.unwrap_or_default().to_owned())
    }

    /// Keeps the likeliest tokens at the first place of the answer.
    fn log_probabilities(&mut self, logprobs: &Field<'_>) -> Result<(), Trouble> {
        if !self.reply.first_token.is_empty() {
            return Ok(());
        }
        let mut found: Vec<Candidate> = Vec::new();
        let mut add = |text: &str, log_probability: f64| {
            if !found.iter().any(|candidate| candidate.text == text) {
                found.push(Candidate { text: text.to_owned(), log_probability });
            }
        };
        match self.api {
            Api::Chat => {
                let content = logprobs.get("content")?.map(|content| content.list()).transpose()?.unwrap_or_default();
                let Some(first) = content.first() else { return Ok(()) };
                for token in first.get("top_logprobs")?.map(|top| top.list()).transpose()?.unwrap_or_default() {
                    add(token.need("token")?.text()?, token.need("logprob")?.number()?);
                }
                // The token that was chosen may stand outside of the likeliest.
                add(first.need("token")?.text()?, first.need("logprob")?.number()?);
            }
            Api::Completions => {
                let list = |name: &str| logprobs.get(name)?.map(|list| list.list()).transpose().map(Option::unwrap_or_default);
                if let Some(top) = list("top_logprobs")?.first().filter(|top| !top.is_null()) {
                    for (text, log_probability) in top.entries()? {
                        add(text, log_probability.number()?);
                    }
                }
                if let (Some(token), Some(number)) =
                    (list("tokens")?.first(), list("token_logprobs")?.first().filter(|number| !number.is_null()))
                {
                    add(token.text()?, number.number()?);
                }
            }
        }
        found.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        self.reply.first_token = found;
        Ok(())
    }
}

/// A document that is an error in spite of its status, or an event of a stream that is one.
pub(crate) fn error_in(document: &Field<'_>, bytes: &[u8]) -> Result<(), Trouble> {
    // Only an object can hold one; what is none is refused with its name later.
    match document.get("error") {
        Ok(Some(_)) => {
            let said = crate::transport::said_in_error(bytes);
            Err(Trouble {
                again: Again::Soon,
                ..Trouble::finally(FailureClass::Internal, format!("the endpoint answered with an error: {said}"))
            })
        }
        _ => Ok(()),
    }
}
