//! The documents of the interface, and the chunks of its streams.

use std::sync::atomic::{AtomicU64, Ordering};

use glassbox_generate::FinishReason;
use glassbox_text::Tokenizer;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Served;
use crate::desk::unix_seconds;
use crate::engine::Token;

/// Which of the two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
}

/// What all documents of one answer say alike.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    id: String,
    created: i64,
    model: String,
    fingerprint: String,
    api: Api,
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: usize,
    /// Of all choices, end tokens not counted.
    pub(crate) answer_tokens: usize,
    /// Of the prompts, taken from the cache.
    pub(crate) cached_tokens: usize,
}

impl Usage {
    fn document(self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.answer_tokens,
            "total_tokens": self.prompt_tokens + self.answer_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        })
    }
}

impl Heading {
    pub(crate) fn new(served: &Served, api: Api) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let prefix = if api == Api::Chat { "chatcmpl" } else { "cmpl" };
        let created = unix_seconds();
        let id = format!("{prefix}-{created}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Self { id, created, model: served.name.clone(), fingerprint: served.fingerprint.clone(), api }
    }

    fn object(&self, choices: &Value, whole: bool) -> Map<String, Value> {
        let object = match (self.api, whole) {
            (Api::Chat, true) => "chat.completion",
            (Api::Chat, false) => "chat.completion.chunk",
            (Api::Completions, _) => "text_completion",
        };
        let value = json!({
            "id": self.id, "object": object, "created": self.created, "model": self.model,
            "system_fingerprint": self.fingerprint, "choices": choices,
        });
        match value {
            Value::Object(object) => object,
            _ => Map::new(),
        }
    }

    /// The answer in one piece.
    pub(crate) fn whole(&self, choices: &[Whole], usage: Usage) -> Value {
        let choice = |(index, choice): (usize, &Whole)| {
            let finish = finish_name(choice.reason);
            match self.api {
                Api::Chat => json!({
                    "index": index, "message": {"role": "assistant", "content": choice.text, "refusal": null},
                    "logprobs": choice.scores.as_ref().map(Scored::document), "finish_reason": finish,
                }),
                Api::Completions => json!({
                    "index": index, "text": choice.text,
                    "logprobs": choice.scores.as_ref().map(Scored::document), "finish_reason": finish,
                }),
            }
        };
        let mut object = self.object(&choices.iter().enumerate().map(choice).collect(), true);
        object.insert("usage".to_owned(), usage.document());
        Value::Object(object)
    }

    /// The first chunk of a choice of a chat: who speaks.
    pub(crate) fn opening(&self, choice: usize) -> Value {
        self.chunk(choice, &json!({"role": "assistant", "content": ""}), None, None)
    }

    /// A piece of an answer.
    pub(crate) fn piece(&self, choice: usize, text: &str, scores: Option<&Scored>) -> Value {
        let body = match self.api {
            Api::Chat => json!({"content": text}),
            Api::Completions => json!(text),
        };
        self.chunk(choice, &body, scores, None)
    }

    /// The end of a choice.
    pub(crate) fn ending(&self, choice: usize, reason: FinishReason) -> Value {
        let body = match self.api {
            Api::Chat => json!({}),
            Api::Completions => json!(""),
        };
        self.chunk(choice, &body, None, Some(reason))
    }

    /// The numbers of tokens, in a chunk without choices.
    pub(crate) fn usage(&self, usage: Usage) -> Value {
        let mut object = self.object(&json!([]), false);
        object.insert("usage".to_owned(), usage.document());
        Value::Object(object)
    }

    fn chunk(&self, choice: usize, body: &Value, scores: Option<&Scored>, reason: Option<FinishReason>) -> Value {
        let name = if self.api == Api::Chat { "delta" } else { "text" };
        let choice = json!({
            "index": choice, name: body, "logprobs": scores.map(Scored::document), "finish_reason": reason.map(finish_name),
        });
        Value::Object(self.object(&json!([choice]), false))
    }
}

/// A finished choice.
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) scores: Option<Scored>,
    pub(crate) reason: FinishReason,
}

/// The log-probabilities of tokens, in the form of one of the interfaces.
pub(crate) enum Scored {
    Chat(Vec<ScoredToken>),
    Completions { tokens: Vec<String>, token_logprobs: Vec<f64>, top_logprobs: Vec<Map<String, Value>>, text_offset: Vec<usize> },
}

/// A token of a chat.
#[derive(Serialize)]
pub(crate) struct ScoredToken {
    #[serde(flatten)]
    chosen: Candidate,
    top_logprobs: Vec<Candidate>,
}

#[derive(Serialize)]
struct Candidate {
    /// Its text; U+FFFD where it is a part of a character.
    token: String,
    logprob: f64,
    /// Its exact bytes.
    bytes: Vec<u8>,
}

impl Scored {
    pub(crate) fn new(api: Api) -> Self {
        match api {
            Api::Chat => Self::Chat(Vec::new()),
            Api::Completions => {
                Self::Completions { tokens: Vec::new(), token_logprobs: Vec::new(), top_logprobs: Vec::new(), text_offset: Vec::new() }
            }
        }
    }

    /// Adds a token; `before` characters of the text stand before the answer.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, token: &Token, before: usize) {
        let Some(scores) = &token.scores else { return };
        match self {
            Self::Chat(tokens) => {
                let candidate = |id: u32, logprob: f64| {
                    let bytes = tokenizer.token_bytes(id).to_vec();
                    Candidate { token: String::from_utf8_lossy(&bytes).into_owned(), logprob, bytes }
                };
                let top_logprobs = scores.top.iter().map(|(id, logprob)| candidate(*id, *logprob)).collect();
                tokens.push(ScoredToken { chosen: candidate(token.id, scores.chosen), top_logprobs });
            }
            Self::Completions { tokens, token_logprobs, top_logprobs, text_offset } => {
                let text = |id: u32| String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned();
                // Parts of characters may look alike: the likeliest one stands for them. The chosen token is always among them.
                let mut top = Map::new();
                for (id, logprob) in scores.top.iter().copied().chain([(token.id, scores.chosen)]) {
                    top.entry(text(id)).or_insert_with(|| json!(logprob));
                }
                tokens.push(text(token.id));
                token_logprobs.push(scores.chosen);
                top_logprobs.push(top);
                text_offset.push(before + token.start);
            }
        }
    }

    fn document(&self) -> Value {
        match self {
            Self::Chat(tokens) => json!({"content": tokens, "refusal": null}),
            Self::Completions { tokens, token_logprobs, top_logprobs, text_offset } => json!({
                "tokens": tokens, "token_logprobs": token_logprobs, "top_logprobs": top_logprobs, "text_offset": text_offset,
            }),
        }
    }
}

fn finish_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::EndToken | FinishReason::StopString => "stop",
        FinishReason::MaxTokens | FinishReason::ContextFull => "length",
    }
}
