//! OLMo 2: Llama with its norms moved. Attention and feed-forward read the residual stream as it is, and what they add is normed; queries
//! and keys are normed over all heads together.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;

use super::llama::{Like, like_in_folder, like_in_gguf};
use super::{Dialect, Family, Layout, Must, Proof, Reading, TensorRow, gemma3};
use crate::ModelError;
use crate::blueprint::{Attention, Blueprint, NormPlaces, QueryKeyNorm};
use crate::slot::Slot;

pub(super) const OLMO2: Family = Family {
    name: "olmo2",
    model_types: &["olmo2"],
    architectures: &["olmo2"],
    huggingface: Dialect { must: &[], ignore: &[], blueprint: from_config, bodies: &["model.", ""], tensors: FOLDER_TENSORS, spare: &[] },
    gguf: Some(Dialect {
        must: &[Must { key: "olmo2.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: gemma3::GGUF_TENSORS, // its names of norms; those before a part find no slot here
        spare: &[],
    }),
    proof: Proof { fixtures: &["olmo2-gqa", "olmo2-mha"], source: "models/olmo2/modeling_olmo2.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    like_in_folder(file, &Like { family: OLMO2.name, heads, activation, context: 2048, tied: false }).map(with_norms_after)
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    like_in_gguf(file, OLMO2.name, "olmo2", Activation::Silu).map(with_norms_after)
}

fn with_norms_after(like: Blueprint) -> Blueprint {
    let attention = Attention { query_key_norm: QueryKeyNorm::AllHeads, ..like.attention };
    Blueprint { norm_places: NormPlaces::After, attention, ..like }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embed_tokens.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_norm.weight", &[Slot::QueryNormGain], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_norm.weight", &[Slot::KeyNormGain], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::AfterAttentionGain], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.gate_proj.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.up_proj.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_feedforward_layernorm.weight", &[Slot::AfterFeedForwardGain], AS_IS),
    TensorRow::new("{body}norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];
