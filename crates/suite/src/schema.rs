//! The suite file as people write it. Unknown keys are refused with their place; nothing is guessed.

use std::collections::BTreeMap;

use glassbox_record::Role;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{DeserializeError, Spanned};

use crate::{Place, SuiteError};

/// The only version of the suite format so far.
pub const SUITE_VERSION: u32 = 1;

/// A suite file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuiteFile {
    /// Version of the format: 1.
    #[schemars(with = "u32")]
    pub version: Spanned<u32>,
    /// Name of the suite.
    pub name: String,
    /// What the suite is for, in a sentence.
    #[serde(default)]
    pub description: Option<String>,
    /// What holds for every test unless it says otherwise.
    #[serde(default)]
    pub defaults: Defaults,
    /// Data files by name.
    pub data: BTreeMap<String, DataSource>,
    /// Prompts by name, and then by language.
    pub prompts: BTreeMap<String, BTreeMap<String, PromptSet>>,
    /// The tests.
    pub tests: Vec<TestSpec>,
}

/// What holds for every test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Seed of every random choice of the plan and of the statistics.
    pub seed: u64,
    /// How answers are generated.
    pub sampling: SamplingSpec,
    /// How the noise floor is measured.
    pub floor: FloorSpec,
    /// How intervals are made.
    pub stats: StatsSpec,
    /// Share of trials that may fail before the run counts as broken.
    pub max_error_rate: f64,
    /// How many answers are watched on a subject that can be watched.
    pub looks: LookSpec,
}

/// How answers are generated.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingSpec {
    /// 0 takes the most likely token; above 0 draws at random.
    pub temperature: f64,
    /// An answer ends after so many tokens.
    pub max_tokens: usize,
    /// An answer ends before the first of these texts.
    pub stop: Vec<String>,
}

/// How the noise floor is measured: the same request again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FloorSpec {
    /// How often the same request is sent to learn how much answers vary by themselves; at least 2.
    pub replicates: u32,
    /// On how many items; all where absent. `order_sensitivity` always takes all.
    pub items: Option<usize>,
}

/// How intervals are made.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatsSpec {
    /// Nominal coverage of intervals.
    pub level: f64,
    /// Draws of bootstraps and permutations.
    pub resamples: usize,
}

/// How many answers are watched.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LookSpec {
    /// Wrong answers a test, at most.
    pub failing: usize,
    /// Right answers a test, at most, to hold the wrong ones against.
    pub contrast: usize,
    /// Heads of each watched answer whose attention is kept in full.
    pub heads_in_full: usize,
}

/// A data file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    /// Path of a file of JSON lines, from the folder of the suite.
    #[schemars(with = "String")]
    pub file: Spanned<String>,
}

/// The prompts of one language.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSet {
    /// Asks from documents.
    pub ask: Vec<MessageSpec>,
    /// Asks from documents without demanding a citation; needed for the arm `no_citation`.
    #[serde(default)]
    pub ask_without_citation: Option<Vec<MessageSpec>>,
    /// memory_decay: neutral turns that come between the documents and the last message; used in this order, each item beginning elsewhere.
    #[serde(default)]
    pub between: Vec<TurnSpec>,
    /// minimal_rewrite: other wordings of the question, by name; each holds `{question}` and adds nothing to what is asked.
    #[serde(default)]
    pub rewrites: BTreeMap<String, String>,
    /// Asks without documents; needed for the arm `closed`.
    #[serde(default)]
    pub closed_book: Option<Vec<MessageSpec>>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// `system`, `user` or `assistant`.
    #[schemars(with = "RoleSchema")]
    pub role: Role,
    /// Its parts, one after the other.
    pub parts: Vec<PartSpec>,
}

/// A turn that has nothing to do with the question.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnSpec {
    /// What the user says.
    pub user: String,
    /// What the assistant answers.
    pub assistant: String,
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PartSpec {
    /// Text as it stands.
    Text(String),
    /// The documents of the item.
    Documents(DocumentsSpec),
    /// The question of the item.
    Question,
}

/// How documents are written.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentsSpec {
    /// Each document; `{n}` stands for its number, `{text}` for its text.
    #[schemars(with = "String")]
    pub each: Spanned<String>,
    /// What stands after each of them.
    #[serde(default)]
    pub after_each: String,
}

/// A test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestSpec {
    /// Name of the test, unique in the suite.
    #[schemars(with = "String")]
    pub id: Spanned<String>,
    /// What is tested.
    #[serde(rename = "type")]
    pub kind: TestKind,
    /// Names of data files under `data`.
    #[schemars(with = "Vec<String>")]
    pub data: Vec<Spanned<String>>,
    /// How many items are asked, shared evenly among the data files; all where absent.
    #[serde(default)]
    pub items: Option<usize>,
    /// Name of a prompt under `prompts`.
    #[schemars(with = "String")]
    pub prompt: Spanned<String>,
    /// How the items are varied.
    #[schemars(with = "DesignSpec")]
    pub design: Spanned<DesignSpec>,
    /// How answers are judged.
    #[serde(default)]
    pub check: CheckSpec,
    /// How the prompt asks for a citation; absent where it does not.
    #[serde(default)]
    pub cite: Option<CiteSpec>,
    /// Thresholds.
    #[serde(default)]
    pub gate: Vec<GateSpec>,
}

/// What is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// k documents, one of them right, its place varied.
    EvidencePosition,
    /// The same documents in several orders.
    OrderSensitivity,
    /// What was told, asked again after neutral turns or text.
    MemoryDecay,
    /// A document that says otherwise than what is known by heart, or than another document.
    FactConflict,
    /// The same question in words that mean the same.
    MinimalRewrite,
}

/// How items are varied. Which keys apply depends on the type of the test.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignSpec {
    /// Documents in a prompt, the gold one included.
    pub passages: usize,
    /// Where the other documents come from.
    #[serde(default)]
    pub distractors: DistractorSource,
    /// How many of the other documents contradict the gold one.
    #[serde(default)]
    pub contradictory: usize,
    /// evidence_position: places of the gold document.
    #[serde(default)]
    pub positions: Option<Positions>,
    /// evidence_position, memory_decay (`closed` only): arms beside the positions or distances.
    #[serde(default)]
    pub arms: Option<Vec<Arm>>,
    /// memory_decay: neutral turns between what is told and the question; rising.
    #[serde(default)]
    pub turns: Option<Vec<usize>>,
    /// memory_decay: characters of neutral text in one turn between them, instead of turns; rising.
    #[serde(default)]
    pub characters: Option<Vec<usize>>,
    /// order_sensitivity: how many orders, `identity` and `reverse` included.
    #[serde(default)]
    pub orders: Option<usize>,
    /// order_sensitivity: documents may refer to each other ("above", "step 2") though that changes their meaning when reordered.
    #[serde(default)]
    pub allow_references: bool,
}

/// Where documents beside the gold one come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DistractorSource {
    /// The `distractors` of the item: about the same kind of thing, hard.
    #[default]
    Own,
    /// Gold documents of other items of the same language, easy.
    Random,
}

/// Places of the gold document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// Every place.
    All,
    /// These places, counted from 1.
    Only(Vec<usize>),
}

/// An arm beside the positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// No documents: what the subject knows by heart.
    Closed,
    /// Only the gold document: what it can do at best.
    Oracle,
    /// Only other documents: it should say that it does not know.
    NoGold,
    /// One place an item, no citation demanded: what the demand costs.
    NoCitation,
}

/// How answers are judged.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckSpec {
    /// The loosest comparison that counts.
    pub accept: Accept,
    /// More phrases that mean "I do not know"; the usual English and Chinese ones are built in.
    pub abstain: Vec<String>,
}

/// The loosest comparison that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// The same characters.
    Exact,
    /// The same after evening out width, case, punctuation and articles; numbers and aliases too.
    Normalised,
    /// The value stands in a short answer that names no other document's value.
    #[default]
    Contained,
}

/// How a citation looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum CiteSpec {
    /// Numbers in square brackets.
    #[serde(rename = "[n]")]
    Brackets,
}

/// A threshold on a metric.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateSpec {
    /// Name of the metric.
    #[schemars(with = "String")]
    pub metric: Spanned<String>,
    /// The metric must not be above this.
    #[serde(default)]
    pub max: Option<f64>,
    /// The metric must not be below this.
    #[serde(default)]
    pub min: Option<f64>,
    /// Beyond this the report warns, though the gate may pass.
    #[serde(default)]
    pub warn: Option<f64>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its JSON schema is used: the record's own type does not depend on schemars")]
enum RoleSchema {
    System,
    User,
    Assistant,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            seed: 1,
            sampling: SamplingSpec::default(),
            floor: FloorSpec::default(),
            stats: StatsSpec::default(),
            max_error_rate: 0.01,
            looks: LookSpec::default(),
        }
    }
}

impl Default for SamplingSpec {
    fn default() -> Self {
        Self { temperature: 0.0, max_tokens: 32, stop: Vec::new() }
    }
}

impl Default for FloorSpec {
    fn default() -> Self {
        Self { replicates: 3, items: None }
    }
}

impl Default for StatsSpec {
    fn default() -> Self {
        Self { level: 0.95, resamples: 9_999 }
    }
}

impl Default for LookSpec {
    fn default() -> Self {
        Self { failing: 8, contrast: 4, heads_in_full: 4 }
    }
}

impl TestKind {
    /// The name in the suite file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EvidencePosition => "evidence_position",
            Self::OrderSensitivity => "order_sensitivity",
            Self::MemoryDecay => "memory_decay",
            Self::FactConflict => "fact_conflict",
            Self::MinimalRewrite => "minimal_rewrite",
        }
    }
}

/// The JSON schema of suite files, for editors.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(SuiteFile).to_value()
}

impl SuiteFile {
    /// Reads a suite file.
    ///
    /// - `path`  only for messages
    /// - `text`  the YAML
    ///
    /// Errors: anything but a suite, with line, column and the nearest known key.
    pub fn parse(path: &str, text: &str) -> Result<Self, SuiteError> {
        let file: Self = serde_saphyr::from_str(text).map_err(|error| from_yaml(path, &error))?;
        if file.version.value != SUITE_VERSION {
            let place = place_of(path, &file.version);
            let message = format!("suite version {}; this glassbox reads version {SUITE_VERSION}", file.version.value);
            return Err(SuiteError::refused(place, message));
        }
        Ok(file)
    }
}

pub(crate) fn place_of<T>(path: &str, spanned: &Spanned<T>) -> Place {
    Place::new(path, spanned.referenced.line(), spanned.referenced.column())
}

fn from_yaml(path: &str, error: &DeserializeError) -> SuiteError {
    let error = error.without_snippet();
    let place = error.location().map_or_else(|| Place::new(path, 0, 0), |at| Place::new(path, at.line(), at.column()));
    match error {
        DeserializeError::SerdeUnknownField { field, expected, .. } => {
            SuiteError::refused(place, format!("unknown key `{field}`")).with_nearest(field, expected.iter().copied())
        }
        DeserializeError::SerdeUnknownVariant { variant, expected, .. } => {
            SuiteError::refused(place, format!("unknown value `{variant}`")).with_nearest(variant, expected.iter().copied())
        }
        DeserializeError::SerdeMissingField { field, .. } => SuiteError::refused(place, format!("the key `{field}` is missing")),
        other => SuiteError::refused(place, first_line(&other.to_string())),
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or("unreadable").trim().to_owned()
}
