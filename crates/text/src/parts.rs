//! A tokenizer taken apart: what both file formats are read into before it is assembled.

use serde_json::{Map, Value};
use tokenizers::models::bpe::Merges;
use tokenizers::{AddedToken, NormalizerWrapper};

use crate::alphabet::Alphabet;
use crate::split::SplitStep;
use crate::vocabulary::{Entry, MergeOptions};

pub(crate) struct Parts {
    /// File and key, for messages.
    pub(crate) place: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) merges: Merges,
    pub(crate) options: MergeOptions,
    pub(crate) added: Vec<(u32, AddedToken)>,
    pub(crate) normalizer: Option<NormalizerWrapper>,
    pub(crate) steps: Vec<SplitStep>,
    pub(crate) alphabet: Alphabet,
    /// Whether decoding drops one space that encoding put in front.
    pub(crate) strips_first_space: bool,
    pub(crate) framing: Framing,
}

/// The ids around a text, and the texts of special tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Framing {
    /// Ids that the tokenizer puts before a text; `[BOS]` or nothing in nearly all models.
    pub(crate) prefix: Vec<u32>,
    /// Ids that the tokenizer puts after a text; a prompt is to be continued, so they are never added.
    pub(crate) suffix: Vec<u32>,
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    /// All ids that end a generated text.
    pub(crate) ends: Vec<u32>,
    /// `bos_token`, `eos_token`, …: what templates see.
    pub(crate) texts: Map<String, Value>,
}
