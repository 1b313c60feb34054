use serde_json::{Map, Value, json};

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked.
    pub prompt: Prompt,
    /// The answer ends after so many tokens.
    pub max_tokens: usize,
    /// Divides the logits; 0 always takes the most probable token.
    pub temperature: f64,
    /// Keep the most probable tokens that together reach this; `None` leaves it to the endpoint.
    pub top_p: Option<f64>,
    /// The answer ends before the first of these texts.
    pub stop: Vec<String>,
    /// Seed of the choice. Endpoints take 31 bits at least, so that many are sent.
    pub seed: u64,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Messages of a chat, as role and text, for `/chat/completions`.
    Chat(Vec<(String, String)>),
    /// A text to continue, for `/completions`.
    Text(String),
}

/// Which of the two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `/chat/completions`.
    Chat,
    /// `/completions`.
    Completions,
}

impl Api {
    /// Its name, as it is typed and recorded.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Completions => "/completions",
        }
    }
}

impl Prompt {
    /// The interface for it.
    #[must_use]
    pub const fn api(&self) -> Api {
        match self {
            Self::Chat(_) => Api::Chat,
            Self::Text(_) => Api::Completions,
        }
    }
}

/// What an endpoint takes and gives beside the question and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Answers come as they are made.
    pub stream: bool,
    /// The stream ends with the numbers of tokens.
    pub stream_usage: bool,
    /// The likeliest tokens come along: how many. `None` asks for none.
    pub log_probabilities: Option<u8>,
    /// A seed is taken. Whether it is heeded is another question.
    pub seed: bool,
    /// What the limit of the answer is called.
    pub max_tokens: MaxTokensField,
}

/// What the limit of an answer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`, by which most know it.
    MaxTokens,
    /// `max_completion_tokens`, which some demand.
    MaxCompletionTokens,
}

impl MaxTokensField {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

impl Features {
    /// Nothing but question and answer.
    #[must_use]
    pub const fn plain() -> Self {
        Self { stream: false, stream_usage: false, log_probabilities: None, seed: false, max_tokens: MaxTokensField::MaxTokens }
    }

    /// Everything that an endpoint may offer.
    #[must_use]
    pub const fn all() -> Self {
        Self { stream: true, stream_usage: true, log_probabilities: Some(5), seed: true, max_tokens: MaxTokensField::MaxTokens }
    }

    /// The body of the request.
    pub(crate) fn body(&self, model: &str, ask: &Ask) -> String {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", json!(model));
        match &ask.prompt {
            Prompt::Chat(messages) => {
                let messages: Vec<Value> = messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
                put("messages", Value::Array(messages));
            }
            Prompt::Text(text) => {
                put("prompt", json!(text));
            }
        }
        let limit = match ask.prompt.api() {
            Api::Chat => self.max_tokens,
            Api::Completions => MaxTokensField::MaxTokens,
        };
        put(limit.name(), json!(ask.max_tokens));
        put("temperature", json!(ask.temperature));
        if let Some(top_p) = ask.top_p {
            put("top_p", json!(top_p));
        }
        if !ask.stop.is_empty() {
            put("stop", json!(ask.stop));
        }
        if self.seed {
            put("seed", json!(ask.seed & 0x7FFF_FFFF));
        }
        match (self.log_probabilities, ask.prompt.api()) {
            (Some(top), Api::Chat) => {
                put("logprobs", json!(true));
                put("top_logprobs", json!(top));
            }
            (Some(top), Api::Completions) => {
                put("logprobs", json!(top));
            }
            (None, _) => {}
        }
        put("stream", json!(self.stream));
        if self.stream && self.stream_usage {
            put("stream_options", json!({"include_usage": true}));
        }
        Value::Object(body).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_was_asked_and_nothing_that_the_endpoint_does_not_take() {
        let chat = Ask {
            prompt: Prompt::Chat(vec![("user".to_owned(), "Hi \"é\"".to_owned())]),
            max_tokens: 3,
            temperature: 0.0,
            top_p: None,
            stop: vec!["\n".to_owned()],
            seed: (7 << 31) + 5,
        };
        let text = Ask { prompt: Prompt::Text("Once".to_owned()), top_p: Some(0.5), stop: vec![], ..chat.clone() };
        let check = |features: Features, ask: &Ask, body: &str| assert_eq!(features.body("m", ask), body);
        check(
            Features::all(),
            &chat,
            r#"{"model":"m","messages":[{"role":"user","content":"Hi \"é\""}],"max_tokens":3,"temperature":0.0,"stop":["\n"],"seed":5,"logprobs":true,"top_logprobs":5,"stream":true,"stream_options":{"include_usage":true}}"#,
        );
        let renamed = Features { max_tokens: MaxTokensField::MaxCompletionTokens, ..Features::plain() };
        check(
            renamed,
            &chat,
            r#"{"model":"m","messages":[{"role":"user","content":"Hi \"é\""}],"max_completion_tokens":3,"temperature":0.0,"stop":["\n"],"stream":false}"#,
        );
        check(
            Features { log_probabilities: Some(2), ..renamed },
            &text,
            r#"{"model":"m","prompt":"Once","max_tokens":3,"temperature":0.0,"top_p":0.5,"logprobs":2,"stream":false}"#,
        );
    }
}
