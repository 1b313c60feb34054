use serde::{Deserialize, Serialize};

use crate::Digest;

/// One line of `looks.jsonl`: what one trial's answer read, layer by layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The trial of the plan.
    pub trial: Digest,
    /// Why this trial was watched.
    pub reason: LookReason,
    /// What was seen.
    pub looked: Looked,
}

/// Why a trial was watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookReason {
    /// Its answer was wrong.
    Failing,
    /// Its answer was right: something to hold the failing ones against.
    Contrast,
}

/// What the rows that produce the answer read of the prompt.
///
/// An *answer row* is a position whose output chooses an answer token: the last prompt token and every answer token but the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// The answer that was watched; the same as the unwatched one, bit for bit.
    pub answer: String,
    /// How many answer rows were averaged.
    pub answer_rows: usize,
    /// Named parts of the prompt and of the answer, in order and without overlap; what lies between is not listed.
    pub spans: Vec<PromptSpan>,
    /// The masses, one entry a layer.
    pub layers: Vec<LayerLook>,
    /// Every token of prompt and answer, in order; empty unless a heat map was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenText>,
    /// Full attention rows of chosen heads; empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<HeadMap>,
}

/// A named part of the prompt among the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSpan {
    /// Name, such as `system`, `document 3`, `question`, `answer`, `template`.
    pub name: String,
    /// Absolute position of its first token.
    pub first_token: usize,
    /// Its length in tokens.
    pub tokens: usize,
}

/// Attention mass of each span in one layer. Arrays over spans are in the order of [`Looked::spans`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerLook {
    /// Layer, counted from 0.
    pub layer: usize,
    /// [span] share of attention, mean over answer rows and heads; at most 1 in total.
    pub mass: Vec<f64>,
    /// [span] share that the span would get if every visible key got the same weight, mean over answer rows.
    pub uniform: Vec<f64>,
    /// [span] `mass / uniform`; none where the span is out of sight in this layer.
    pub lift: Vec<Option<f64>>,
    /// [head][span] share of attention of each head, mean over answer rows.
    pub heads: Vec<Vec<f64>>,
}

/// A token as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenText {
    /// Id in the vocabulary.
    pub id: u32,
    /// The text that it covers.
    pub text: String,
}

/// Attention rows of one head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadMap {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Query head, counted from 0.
    pub head: usize,
    /// Why this head is shown, in words.
    pub why: String,
    /// [row] absolute positions of the queries.
    pub queries: Vec<usize>,
    /// [row][key] weights over the keys from position 0 to the query's own; each row sums to 1.
    pub weights: Vec<Vec<f32>>,
}
