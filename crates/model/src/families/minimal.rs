//! The smallest decoder with all parts of a modern one: the hundred lines of a course, whose positions are sinusoids added once. A model of this
//! project's own; its settings use the names of this project.

use glassbox_checkpoint::Expected::Text;
use glassbox_mechanisms::feed_forward::Activation;

use super::llama::attention;
use super::{Dialect, Family, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm, NormPlaces, Pooler, Residual,
    Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const MINIMAL: Family = Family {
    name: "minimal",
    model_types: &["minimal"],
    architectures: &[],
    huggingface: Dialect {
        must: &[Must { key: "positions", allowed: &[Text("sinusoidal")], why: "this family has no others" }],
        ignore: &[],
        blueprint: from_config,
        bodies: &[""],
        tensors: TENSORS,
        spare: &[],
    },
    gguf: None,
    proof: Proof { fixtures: &["minimal"], source: "fixtures/tiny/minimal.py of this project" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let heads = file.heads("heads", "heads", "d_head", "d_model")?;
    Ok(Blueprint {
        family: MINIMAL.name,
        vocab: settings.usize("vocab_size")?,
        d_model: settings.usize("d_model")?,
        context: settings.usize("context")?,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::Sinusoidal,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Rms { eps: file.eps("norm_eps")? },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: attention(heads, AttentionBias::None),
        feed_forward: FeedForward::Gated { hidden: settings.usize("hidden")?, activation: Activation::Silu, bias: Bias::None },
        layers: vec![Layer { window: Window::Whole, rotation: Rotation::None }; file.layers("layers")?],
        unembedding: Unembedding { head: HeadMatrix::TiedToEmbedding, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    })
}

/// Names of the text; its linear maps are stored [in, out].
const TENSORS: &[TensorRow] = &[
    TensorRow::new("embed", &[Slot::Embedding], Layout::AsIs),
    TensorRow::new("blocks.{layer}.norm1_g", &[Slot::Norm1Gain], Layout::AsIs),
    TensorRow::new("blocks.{layer}.wq", &[Slot::WQuery], Layout::Transposed),
    TensorRow::new("blocks.{layer}.wk", &[Slot::WKey], Layout::Transposed),
    TensorRow::new("blocks.{layer}.wv", &[Slot::WValue], Layout::Transposed),
    TensorRow::new("blocks.{layer}.wo", &[Slot::WOut], Layout::Transposed),
    TensorRow::new("blocks.{layer}.norm2_g", &[Slot::Norm2Gain], Layout::AsIs),
    TensorRow::new("blocks.{layer}.w1", &[Slot::WUp], Layout::Transposed),
    TensorRow::new("blocks.{layer}.w_gate", &[Slot::WGate], Layout::Transposed),
    TensorRow::new("blocks.{layer}.w2", &[Slot::WDown], Layout::Transposed),
    TensorRow::new("final_norm_g", &[Slot::NormGain], Layout::AsIs),
];
