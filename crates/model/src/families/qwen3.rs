//! Qwen3: Llama with norms on queries and keys, and a width of heads that the file says.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;

use super::llama::{FOLDER_TENSORS, Like, like_in_folder, like_in_gguf};
use super::qwen2::{self, with_windows};
use super::{Dialect, Family, Must, Proof, Reading};
use crate::ModelError;
use crate::blueprint::{Attention, Blueprint, QueryKeyNorm};

pub(super) const QWEN3: Family = Family {
    name: "qwen3",
    model_types: &["qwen3"],
    architectures: &["qwen3"],
    huggingface: Dialect { must: &[], ignore: &[], blueprint: from_config, bodies: &["model.", ""], tensors: FOLDER_TENSORS, spare: &[] },
    gguf: Some(Dialect {
        must: &[Must { key: "qwen3.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: qwen2::GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["qwen3-gqa", "qwen3-window"], source: "models/qwen3/modeling_qwen3.py" },
};

/// Width of a head where a file does not say; never d_model / heads.
const D_HEAD: usize = 128;

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads_of_width("num_attention_heads", "num_key_value_heads", "head_dim", D_HEAD)?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    let like = like_in_folder(file, &Like { family: QWEN3.name, heads, activation, context: 32_768, tied: false })?;
    let windows = qwen2::windows(file, like.layers.len())?;
    Ok(with_windows(with_norms(like), windows))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    like_in_gguf(file, QWEN3.name, "qwen3", Activation::Silu).map(with_norms)
}

fn with_norms(like: Blueprint) -> Blueprint {
    Blueprint { attention: Attention { query_key_norm: QueryKeyNorm::EachHead, ..like.attention }, ..like }
}
