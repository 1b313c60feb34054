//! What each family's files mean: tables, one a family, and the registry that chooses among them.
//!
//! A family has two dialects, the Hugging Face folder and the GGUF file. Each dialect says which settings must have which value, which
//! do not matter and why, how the blueprint's questions are answered, and which tensor goes to which slot in which layout. A setting or
//! a tensor that no table mentions is refused: a guess would give wrong numbers silently. Layouts move numbers, they never change them; the
//! one exception is a norm stored as its gain minus one.

mod bert;
mod bloom;
mod gemma;
mod gemma2;
mod gemma3;
mod gpt2;
mod gpt_neox;
mod llama;
mod llama_cpp;
mod minimal;
mod mistral;
mod mpt;
mod olmo2;
mod phi3;
mod qwen2;
mod qwen3;
mod reading;
mod rotary;
pub(crate) mod sentence;
mod writing;

use glassbox_checkpoint::{Checkpoint, CheckpointKind, Expected, Settings};

use crate::ModelError;
use crate::blueprint::Blueprint;
use crate::slot::Slot;
pub use writing::{GgufModel, GgufTensor};

/// Every family, in the order of error messages.
pub(crate) const FAMILIES: &[&Family] = &[
    &llama::LLAMA,
    &mistral::MISTRAL,
    &qwen2::QWEN2,
    &qwen3::QWEN3,
    &phi3::PHI3,
    &gemma::GEMMA,
    &gemma2::GEMMA2,
    &gemma3::GEMMA3,
    &olmo2::OLMO2,
    &bloom::BLOOM,
    &mpt::MPT,
    &gpt2::GPT2,
    &gpt_neox::GPT_NEOX,
    &bert::BERT,
    &minimal::MINIMAL,
];

/// A family of models.
pub(crate) struct Family {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// What `config.json` calls it, in `model_type`.
    pub(crate) model_types: &'static [&'static str],
    /// What a GGUF file calls it, in `general.architecture`.
    pub(crate) architectures: &'static [&'static str],
    pub(crate) huggingface: Dialect,
    /// `None` where GGUF files call it by another family's name.
    pub(crate) gguf: Option<Dialect>,
    /// Where the proof is that all this is right.
    pub(crate) proof: Proof,
}

/// How one file format writes a family down.
pub(crate) struct Dialect {
    /// Settings that may have these values only.
    pub(crate) must: &'static [Must],
    /// Settings that do not matter.
    pub(crate) ignore: &'static [Ignored],
    /// Answers the blueprint's questions.
    pub(crate) blueprint: fn(&Reading<'_>) -> Result<Blueprint, ModelError>,
    /// What stands before a tensor's name, `{body}` in the table: the first for which the file has the embedding. `{outside}` is what it
    /// leaves without its own last `model.`.
    pub(crate) bodies: &'static [&'static str],
    /// Which tensor goes where. `{layer}` stands for the layer's index.
    pub(crate) tensors: &'static [TensorRow],
    /// Tensors that a file may have and nobody needs. A name may end in `*`.
    pub(crate) spare: &'static [Ignored],
}

/// A setting that may have certain values only.
pub(crate) struct Must {
    pub(crate) key: &'static str,
    pub(crate) allowed: &'static [Expected],
    /// Why, and what to do; the end of the message.
    pub(crate) why: &'static str,
}

/// A setting or tensor that does not matter.
pub(crate) struct Ignored {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
}

/// Which tensor goes to which slots.
pub(crate) struct TensorRow {
    /// Its name in the file; where older files end it otherwise, that end follows a `|`.
    pub(crate) name: &'static str,
    /// The slots whose rows it holds, one after another.
    pub(crate) slots: &'static [Slot],
    pub(crate) layout: Layout,
}

/// How the numbers of a tensor lie, compared with its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The same: [out, in].
    AsIs,
    /// [in, out].
    Transposed,
    /// Rows reordered inside each head: the file's row `2i` is row `i` of the first half, `2i + 1` of the second.
    PairsAsNeighbours,
    /// A norm's gain minus one.
    GainMinusOne,
    /// Rows of q, k and v one head after another: each head's q, then its k, then its v.
    HeadByHead,
}

/// Where the proof is that a family is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Folders of `fixtures/tiny` whose golden activations it meets at every site.
    pub fixtures: &'static [&'static str],
    /// The source file of `transformers` that defines it.
    pub source: &'static str,
}

/// The families that can be read, by name, each with its proof.
pub fn proofs() -> impl Iterator<Item = (&'static str, Proof)> {
    FAMILIES.iter().map(|family| (family.name, family.proof))
}

/// What a dialect reads from: the settings of the language model, and the tensors' names.
pub(crate) struct Reading<'a> {
    pub(crate) settings: &'a Settings,
    /// The settings outside them, in a model of several parts; else the same.
    pub(crate) whole: &'a Settings,
    pub(crate) checkpoint: &'a Checkpoint,
}

/// The family of a checkpoint, its dialect, and its blueprint, with every setting accounted for.
pub(crate) fn read(checkpoint: &Checkpoint) -> Result<(&'static Family, &'static Dialect, Blueprint), ModelError> {
    let settings = checkpoint.settings();
    let (family, dialect) = match settings.kind() {
        CheckpointKind::Gguf => {
            let name = settings.str("general.architecture")?;
            let family = find(name, "general.architecture", settings.file(), |family| family.architectures)?;
            (family, family.gguf.as_ref().expect("a family with a name in GGUF files has a dialect for them"))
        }
        _ => {
            let name = settings.str("model_type")?;
            let family = find(name, "model_type", settings.file(), |family| family.model_types)?;
            (family, &family.huggingface)
        }
    };
    let blueprint = reading::blueprint(family, dialect, &settings, checkpoint)?;
    settings.finish()?;
    Ok((family, dialect, blueprint))
}

fn find(name: &str, key: &'static str, file: &str, names: fn(&Family) -> &'static [&'static str]) -> Result<&'static Family, ModelError> {
    let family = FAMILIES.iter().find(|family| names(family).contains(&name));
    family.copied().ok_or_else(|| ModelError::UnknownFamily {
        file: file.to_owned(),
        key,
        found: name.to_owned(),
        known: FAMILIES.iter().flat_map(|family| names(family)).copied().collect(),
    })
}

impl TensorRow {
    pub(crate) const fn new(name: &'static str, slots: &'static [Slot], layout: Layout) -> Self {
        Self { name, slots, layout }
    }
}
