//! Observers: what happened inside a forward pass, in numbers and pictures.
//!
//! - [`Capture`]: keeps the values of chosen sites and writes them as safetensors
//! - [`AttentionRows`]: exact rows of the attention of chosen heads
//! - [`AttentionStatistics`]: per layer and head, how much of the attention of chosen rows each span of the prompt got, and how spread it was
//! - [`HeadMaps`]: the attention matrix of chosen heads, pooled to a size that fits a page
//! - [`choose_heads`]: which heads are worth showing, and why
//! - [`FirstNotFinite`]: where a pass first gave a number that is none
//! - [`Knockout`]: keeps some tokens from reading others, an edit
//! - [`LastRow`]: what sites hold for the last token
//! - [`LayerAnswer`]: what a layer would answer, and how far that is from the model's answer
//! - [`NextTokens`]: the most probable next tokens of a row of logits
//! - [`ValueWeightedMass`]: how much of what attention carried to a row came from each span
//!
//! Invariant: an observer works on anything that has sites; nothing here knows a model.

mod attention_rows;
mod attention_statistics;
mod capture;
mod choice;
mod first_not_finite;
mod head_maps;
mod knockout;
mod last_row;
mod layer_answer;
mod next_tokens;
mod panel;
mod value_weighted;

pub use attention_rows::AttentionRows;
pub use attention_statistics::{AttentionStatistics, HeadStatistics, uniform_mass, visible_keys};
pub use capture::{Capture, CaptureError};
pub use choice::choose_heads;
pub use first_not_finite::{FirstNotFinite, NotFinite};
pub use head_maps::{HeadMap, HeadMaps, HeadRef};
pub use knockout::Knockout;
pub use last_row::LastRow;
pub use layer_answer::LayerAnswer;
pub use next_tokens::{NextToken, NextTokens};
pub use panel::Panel;
pub use value_weighted::ValueWeightedMass;
