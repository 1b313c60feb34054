//! Phi-3, Phi-3.5 and Phi-4 mini: Llama with one matrix for queries, keys and values and one for gate and up; long contexts by LongRoPE; in Phi-4 mini a
//! part of a head turns.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;

use super::gpt2::QUERY_KEY_VALUE;
use super::llama::{Like, attention, like_in_folder};
use super::reading::window;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow, rotary};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, EmbeddingNorm, FeedForward, Layer, Norm, NormPlaces, Pooler, Residual, SoftCap,
    TokenTypes, Unembedding,
};
use crate::slot::Slot;

const NO_BIAS: &str = "the definition has no biases";

pub(super) const PHI3: Family = Family {
    name: "phi3",
    model_types: &["phi3"],
    architectures: &["phi3"],
    huggingface: Dialect {
        must: &[
            Must { key: "attention_bias", allowed: &[Bool(false)], why: NO_BIAS },
            Must { key: "mlp_bias", allowed: &[Bool(false)], why: NO_BIAS },
            Must { key: "lm_head_bias", allowed: &[Bool(false)], why: NO_BIAS },
        ],
        ignore: &[
            Ignored { name: "auto_map", reason: "names the same program, which `transformers` has built in by now" },
            Ignored { name: "interpolate_factor", reason: "of the training program" },
            Ignored { name: "full_attn_mod", reason: "of the training program" },
        ],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[],
    },
    gguf: Some(Dialect {
        must: &[],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[
            Ignored { name: rotary::LONG_DIVISORS, reason: "read with the rotation" },
            Ignored { name: rotary::SHORT_DIVISORS, reason: "read with the rotation" },
        ],
    }),
    proof: Proof { fixtures: &["phi3-long", "phi3-short"], source: "models/phi3/modeling_phi3.py" },
};

/// Tokens of context before the stretching, where a folder does not say.
const ORIGINAL_CONTEXT: f64 = 4096.0;

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let heads = file.heads("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    let like = like_in_folder(file, &Like { family: PHI3.name, heads, activation, context: 4096, tied: false })?;
    let width = rotary::width(settings, heads.d_head(), "partial_rotary_factor", 1.0)?;
    let rotation = rotary::from_config_with_original(settings, width, 10_000.0, like.context, ORIGINAL_CONTEXT)?;
    let window = window(settings.optional_usize("sliding_window")?);
    Ok(Blueprint { layers: vec![Layer { window, rotation }; like.layers.len()], ..like })
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let layers = file.layers("phi3.block_count")?;
    let (heads, width) = file.gguf_heads_and_rotary_width("phi3")?;
    let rotation = rotary::from_gguf(file, "phi3", width)?;
    // llama.cpp reads this and sees everything all the same; the definition does not.
    let window = window(settings.optional_usize("phi3.attention.sliding_window")?);
    Ok(Blueprint {
        family: PHI3.name,
        vocab: file.gguf_vocab("phi3")?,
        d_model: settings.usize("phi3.embedding_length")?,
        context: settings.usize("phi3.context_length")?,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Rms { eps: file.eps("phi3.attention.layer_norm_rms_epsilon")? },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: attention(heads, AttentionBias::None),
        feed_forward: FeedForward::Gated {
            hidden: settings.usize("phi3.feed_forward_length")?,
            activation: Activation::Silu,
            bias: Bias::None,
        },
        layers: vec![Layer { window, rotation }; layers],
        unembedding: Unembedding { head: file.head_by_tensor(), soft_cap: SoftCap::None },
        pooler: Pooler::None,
    })
}

const AS_IS: Layout = Layout::AsIs;
const GATE_UP: &[Slot] = &[Slot::WGate, Slot::WUp];

/// Names of a folder.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embed_tokens.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}layers.{layer}.input_layernorm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.qkv_proj.weight", QUERY_KEY_VALUE, AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.gate_up_proj.weight", GATE_UP, AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];

/// Names of a GGUF file, whose `ffn_up` holds gate and up.
const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("blk.{layer}.attn_qkv.weight", QUERY_KEY_VALUE, AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", GATE_UP, AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("output_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("output.weight", &[Slot::WUnembedding], AS_IS),
];
