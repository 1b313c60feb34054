//! Gemma, the first: Llama with a scaled embedding, norms stored as their gain minus one, GELU by tanh, and wide heads.

use glassbox_checkpoint::Expected::{Bool, Text};
use glassbox_mechanisms::feed_forward::Activation;

use super::gemma3::embedding_scale;
use super::llama::{Like, like_in_folder, like_in_gguf};
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow, qwen2};
use crate::ModelError;
use crate::blueprint::Blueprint;
use crate::slot::Slot;

pub(super) const GEMMA: Family = Family {
    name: "gemma",
    model_types: &["gemma"],
    architectures: &["gemma"],
    huggingface: Dialect {
        must: &[
            Must {
                key: "hidden_activation",
                allowed: &[Text("gelu_pytorch_tanh")],
                why: "the original program reads `hidden_act`, and the published files name GELU by tanh here",
            },
            Must { key: "use_bidirectional_attention", allowed: &[Bool(false)], why: "only causal attention is implemented" },
        ],
        ignore: &[],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[Ignored { name: "{body}layers.{layer}.self_attn.rotary_emb.inv_freq", reason: "computed from the base of the rotation" }],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "gemma.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: qwen2::GGUF_TENSORS, // the converter has added the one to every gain
        spare: &[],
    }),
    proof: Proof { fixtures: &["gemma-mqa", "gemma-mha"], source: "models/gemma/modeling_gemma.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads_of_width("num_attention_heads", "num_key_value_heads", "head_dim", 256)?;
    // `gelu` in the published files means GELU by tanh.
    let activation = match file.activation("hidden_act", Activation::GeluTanh)? {
        Activation::GeluErf => Activation::GeluTanh,
        other => other,
    };
    like_in_folder(file, &Like { family: GEMMA.name, heads, activation, context: 8192, tied: true }).map(with_scaled_embedding)
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    like_in_gguf(file, GEMMA.name, "gemma", Activation::GeluTanh).map(with_scaled_embedding)
}

fn with_scaled_embedding(like: Blueprint) -> Blueprint {
    Blueprint { embedding_scale: embedding_scale(like.d_model), ..like }
}

const AS_IS: Layout = Layout::AsIs;
const GAIN: Layout = Layout::GainMinusOne;

/// Names of a folder; norms are stored as their gain minus one.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embed_tokens.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}layers.{layer}.input_layernorm.weight", &[Slot::Norm1Gain], GAIN),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::Norm2Gain], GAIN),
    TensorRow::new("{body}layers.{layer}.mlp.gate_proj.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.up_proj.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}norm.weight", &[Slot::NormGain], GAIN),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];
