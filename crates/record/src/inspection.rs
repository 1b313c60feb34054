use serde::{Deserialize, Serialize};

use crate::{PromptSpan, TokenText};

/// What one forward pass over one prompt showed: the document behind `inspect`, complete enough to draw every picture from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// Always `glassbox-inspection`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// What ran.
    pub model: InspectedModel,
    /// The prompt as text, template included; empty where only token ids were given.
    pub text: String,
    /// Every token of the prompt, in order.
    pub tokens: Vec<TokenText>,
    /// Named parts of the prompt; empty where there are none.
    pub spans: Vec<PromptSpan>,
    /// The most probable next tokens after the prompt, best first; empty for an encoder, which has none.
    pub next: Vec<NextTokenRow>,
    /// Entropy of the whole next-token distribution in nats; none for an encoder.
    pub next_entropy_nats: Option<f64>,
    /// Every head, by layer and head.
    pub heads: Vec<HeadSummary>,
    /// Attention matrices of the heads chosen to be shown.
    pub maps: Vec<PooledMap>,
}

/// The model of an inspection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedModel {
    /// As the user named it.
    pub name: String,
    /// Architecture and size in a few words.
    pub description: String,
    /// Number of layers.
    pub layers: usize,
    /// Query heads a layer.
    pub heads: usize,
    /// Key/value heads a layer.
    pub kv_heads: usize,
}

/// One candidate for the next token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextTokenRow {
    /// Token id.
    pub id: u32,
    /// The text it would add.
    pub text: String,
    /// Raw score.
    pub logit: f32,
    /// Probability at temperature 1; 0 to 1.
    pub probability: f64,
}

/// Where one head looked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadSummary {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Query head, counted from 0.
    pub head: usize,
    /// Entropy as a share of `ln(visible keys)`, mean over the rows that see more than one key: 0 looks at one token, 1 at all alike. The
    /// first row sees only itself and is left out; none where no other is there.
    pub normalised_entropy: Option<f64>,
    /// Share of attention on the first token, mean over all rows.
    pub sink_mass: f64,
    /// Mean distance from query to key in tokens, mean over all rows.
    pub mean_distance_tokens: f64,
    /// [span] share of the last row's attention that each span of the prompt got.
    pub last_row_span_mass: Vec<f64>,
}

/// The attention matrix of one head, pooled by maximum so that it fits a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledMap {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Query head, counted from 0.
    pub head: usize,
    /// Why this head is shown, in words.
    pub why: String,
    /// Tokens along each edge of a cell; 1 where nothing was pooled.
    pub cell_tokens: usize,
    /// Cells along each edge.
    pub edge: usize,
    /// [query cell × key cell] largest weight in the cell, in row order.
    pub weights: Vec<f32>,
    /// [key] exact weights of the last row.
    pub last_row: Vec<f32>,
}

impl Inspection {
    /// The value of [`Inspection::format`].
    pub const FORMAT: &'static str = "glassbox-inspection";
}
