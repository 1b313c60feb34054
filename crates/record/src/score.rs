use serde::{Deserialize, Serialize};

use crate::Digest;

/// One line of `scores.jsonl`: how one trial's answer was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The trial of the plan.
    pub trial: Digest,
    /// What the answer is worth.
    pub judgement: Judgement,
    /// Which comparison decided; none when nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// The value read out of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted: Option<String>,
    /// Numbers cited, in the order of the answer, counted from 1; may name documents that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cited: Vec<usize>,
    /// Number of the document whose value was answered though it is not the gold one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_by: Option<usize>,
    /// Whether the answered value stands in the cited document; none when nothing was cited or answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounded: Option<bool>,
    /// Why, in words, where the judgement is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The right value.
    Right,
    /// Another value.
    Wrong,
    /// The subject said that it does not know.
    Abstained,
    /// No value could be read out of the answer: neither right nor wrong by the comparison, counted as not right.
    Unparsed,
    /// There is no answer: the last attempt failed.
    Error,
}

/// The comparisons, cheapest and surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The same characters.
    Exact,
    /// The same after width, case, punctuation and articles are evened out.
    Normalised,
    /// The same number.
    Number,
    /// The same letter of a choice.
    Choice,
    /// An alias, normalised.
    Alias,
    /// The normalised value is contained in the normalised answer.
    Contained,
}
