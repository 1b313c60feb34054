use serde::{Deserialize, Serialize};

use crate::{Digest, RecordError, Request};

/// One line of `plan.jsonl`: a question that will be asked once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Hash of `content`: the same trial has the same id in every run, whatever else the suite holds.
    pub id: Digest,
    /// What will be asked, and how the answer is to be judged.
    pub content: TrialContent,
}

/// Everything that makes a trial the trial it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialContent {
    /// Id of the test in the suite.
    pub test: String,
    /// Id of the item: the independent unit. All conditions of one item stay together.
    pub item: String,
    /// Language of the item, such as `en`.
    pub lang: String,
    /// Which variation of the item this is.
    pub condition: Condition,
    /// 0 for the measurement; 1, 2, … for the same request again, to see how much answers vary by themselves.
    pub replicate: u32,
    /// What the subject is asked.
    pub request: Request,
    /// What a right answer is.
    pub expected: Expected,
}

/// Which variation of an item a trial is. Fields that a check does not vary are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Arm of the design: `position`, `closed`, `oracle`, `no_gold`, `order`, `told`.
    pub arm: String,
    /// Place of the gold document, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Whether a citation was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cite: Option<bool>,
    /// Order of the blocks: `order[place]` is the block's number in the item, both counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<usize>>,
    /// Neutral turns between what was told and the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<usize>,
    /// Characters of neutral text between what was told and the question, in one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
    /// Name of the order: `identity`, `reverse`, `order 3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_name: Option<String>,
}

/// What a right answer is, and what stood in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The question, for reports.
    pub question: String,
    /// The right value.
    pub answer: String,
    /// Other ways to say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The documents of the prompt in their order; number 1 is the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Passage>,
}

/// A document of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// What it is to the question.
    pub role: PassageRole,
    /// The text without its number.
    pub text: String,
    /// The value that it states, where known: answering with it means having read this document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a document is to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassageRole {
    /// It holds the answer.
    Gold,
    /// It is about something else.
    Distractor,
    /// It answers the question differently.
    Contradictory,
}

impl PlannedTrial {
    /// A trial with the id of its content.
    pub fn new(content: TrialContent) -> Result<Self, RecordError> {
        Ok(Self { id: Digest::of_content(&content)?, content })
    }
}

impl Condition {
    /// A condition that varies nothing but the arm.
    #[must_use]
    pub fn of_arm(arm: impl Into<String>) -> Self {
        Self { arm: arm.into(), position: None, cite: None, turns: None, characters: None, order: None, order_name: None }
    }

    /// The condition in words, such as `position 3, no citation asked`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = match (&self.order_name, self.position) {
            (Some(name), _) => name.clone(),
            (None, Some(position)) => format!("{} {position}", self.arm),
            (None, None) => self.arm.clone(),
        };
        if let Some(turns) = self.turns {
            label.push_str(&format!(", {turns} turns later"));
        }
        if let Some(characters) = self.characters {
            label.push_str(&format!(", {characters} characters later"));
        }
        if self.cite == Some(false) {
            label.push_str(", no citation asked");
        }
        label
    }
}

impl Expected {
    /// Number of the gold document, counted from 1; none when the prompt holds none.
    #[must_use]
    pub fn gold_number(&self) -> Option<usize> {
        self.passages.iter().position(|passage| passage.role == PassageRole::Gold).map(|index| index + 1)
    }
}
