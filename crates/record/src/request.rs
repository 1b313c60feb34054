use serde::{Deserialize, Serialize};

/// What a subject is asked: everything that can change its answer, and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The conversation, oldest message first.
    pub messages: Vec<Message>,
    /// The answer ends after so many tokens.
    pub max_tokens: usize,
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// The answer ends before the first of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Seed of the choice where sampling is random.
    pub seed: u64,
}

/// One message, cut into named pieces so that each can be found again among the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text, in pieces without gaps.
    pub pieces: Vec<Piece>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Name of the span, such as `system`, `document 3`, `question`; none for the text between spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// The text.
    pub text: String,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The one who asks.
    User,
    /// The model itself, in an earlier turn.
    Assistant,
}

/// How the next token is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Always the most likely token; of equals the one with the lowest id.
    #[default]
    Greedy,
    /// At random from the distribution at this temperature.
    Temperature(f64),
}

impl Request {
    /// The conversation as plain text, message after message, without a template.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let messages: Vec<String> = self.messages.iter().map(Message::text).collect();
        messages.join("\n")
    }
}

impl Message {
    /// The whole text of the message.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

impl Role {
    /// The name that chat templates use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}
