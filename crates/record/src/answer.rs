use serde::{Deserialize, Serialize};

use crate::{Digest, Timestamp};

/// One line of `trials.jsonl`: a request was sent, and this came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The trial of the plan.
    pub trial: Digest,
    /// 1 for the first attempt; failed attempts stay in the record and are followed by another.
    pub attempt: u32,
    /// When the request was sent.
    pub started: Timestamp,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt. An error is a result too, never dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The subject answered, rightly or wrongly.
    Answered(Answer),
    /// The subject gave no answer.
    Failed(Failure),
}

/// An answer with what is needed to know how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The text, special tokens and stop text not included.
    pub text: String,
    /// Why it ended.
    pub finish: FinishReason,
    /// What the subject really read.
    pub prompt: PromptIntegrity,
    /// Length of the answer in tokens, where the subject tells it; what it thought before it answered is counted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens: Option<usize>,
    /// The likeliest first tokens of the answer in the raw distribution, best first; empty where the subject cannot show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_token: Vec<TokenProbability>,
    /// How long it took.
    pub timing: Timing,
    /// What an endpoint told beside the answer; none where the subject is no endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<RemoteAnswer>>,
}

/// What an endpoint told beside its answer, and how often it was asked. What it did not tell is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RemoteAnswer {
    /// The model that answered, by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `system_fingerprint`: changes with the server's weights, software or settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// `finish_reason`, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// What the model thought before it answered; never part of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tokens of that thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<usize>,
    /// Tokens of the prompt that the server took from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_prompt_tokens: Option<usize>,
    /// What failed before this answer came, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
}

/// A request that failed and was sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The kind of trouble.
    pub class: FailureClass,
    /// What happened, in words.
    pub message: String,
    /// Milliseconds waited before the next request.
    pub waited_ms: u64,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended its turn.
    EndOfTurn,
    /// A stop text appeared.
    StopText,
    /// `max_tokens` was reached.
    Length,
    /// The context was full.
    ContextFull,
    /// A filter of the endpoint cut it off or left it out.
    ContentFilter,
    /// The model wanted to call a tool.
    ToolCalls,
    /// The endpoint did not say, or used a word of its own.
    Unknown,
}

/// What the subject really read: a changed template or a lost first token changes answers and looks like a changed model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptIntegrity {
    /// Hash of the rendered text, template included, where the subject shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// Hash of the request as it was sent, where it is the subject that renders it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Digest>,
    /// Hash of the token ids (each as 4 little-endian bytes), where the subject shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Digest>,
    /// Length of the prompt in tokens, where the subject tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// How often the beginning-of-sequence token occurs at the start; 0 where the model has none, above 1 is a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bos_count: Option<usize>,
    /// Whether a part of the prompt was cut away; none where that cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// A token and how likely it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenProbability {
    /// Id in the vocabulary, where the subject shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// The text that it covers; bytes that are no text of their own are shown as the tokenizer shows them.
    pub text: String,
    /// Natural logarithm of its probability.
    pub log_probability: f64,
}

/// How long an answer took. Never part of a verdict of this record's first checks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Milliseconds until the first token was known; none where the answer came in one piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
    /// Milliseconds until the answer ended.
    pub total_ms: f64,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of trouble.
    pub class: FailureClass,
    /// What happened, in words.
    pub message: String,
    /// What failed before, in order, where the same was asked again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
}

/// Kinds of trouble, apart by who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureClass {
    /// The prompt and the answer do not fit the context: a smaller suite or a larger model is needed.
    ContextTooLong,
    /// The prompt cannot be rendered or turned into tokens.
    Prompt,
    /// The subject cannot do what was asked, such as showing attention.
    Unsupported,
    /// The forward pass gave a number that is no number, or an impossible one.
    Numeric,
    /// Time ran out.
    Timeout,
    /// The subject could not be reached.
    Connection,
    /// The subject refused because of too many requests.
    RateLimited,
    /// The subject refused the request itself.
    Rejected,
    /// Not enough memory for the cache.
    Memory,
    /// A fault inside the subject; an endpoint whose answer is none of its interface has one too.
    Internal,
    /// An earlier record does not hold this request.
    NotRecorded,
    /// The budget was spent before this was asked.
    Budget,
    /// Somebody stopped the run before an answer came.
    Interrupted,
}

impl Outcome {
    /// The answer, if there is one.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Failed(_) => None,
        }
    }
}

impl FailureClass {
    /// The name in the record and on the screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContextTooLong => "context_too_long",
            Self::Prompt => "prompt",
            Self::Unsupported => "unsupported",
            Self::Numeric => "numeric",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::Memory => "memory",
            Self::Internal => "internal",
            Self::NotRecorded => "not_recorded",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
        }
    }
}
