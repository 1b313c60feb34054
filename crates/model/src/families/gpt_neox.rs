//! GPT-NeoX and Pythia: attention and feed-forward side by side, a part of each head rotated, layer norms and biases, one matrix for q, k
//! and v, head by head.

use glassbox_checkpoint::Expected::Bool;
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::gpt2::{GGUF_TENSORS, QUERY_KEY_VALUE, QUERY_KEY_VALUE_BIAS};
use super::llama::attention;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow, rotary};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm, NormPlaces, Pooler, Residual,
    Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const GPT_NEOX: Family = Family {
    name: "gpt_neox",
    model_types: &["gpt_neox"],
    architectures: &["gptneox"],
    huggingface: Dialect {
        must: &[],
        ignore: &[],
        blueprint: from_config,
        bodies: &["gpt_neox.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[
            Ignored { name: "{body}layers.{layer}.attention.bias", reason: "the causal mask, written out" },
            Ignored { name: "{body}layers.{layer}.attention.masked_bias", reason: "the value of masked scores" },
            Ignored { name: "{body}layers.{layer}.attention.rotary_emb.inv_freq", reason: "computed from the base of the rotation" },
        ],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "gptneox.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[Ignored { name: "gptneox.tensor_data_layout", reason: "names the layout that all files have today" }],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["gpt_neox-parallel", "gpt_neox-serial"], source: "models/gpt_neox/modeling_gpt_neox.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let heads = file.heads("num_attention_heads", "num_attention_heads", "head_dim", "hidden_size")?;
    let context = settings.optional_usize("max_position_embeddings")?.unwrap_or(2048);
    let base = settings.optional_f64("rotary_emb_base")?;
    let width = rotary::width(settings, heads.d_head(), "rotary_pct", 0.25)?;
    let rotation = rotary::from_config(settings, width, base.unwrap_or(10_000.0), context)?;
    if let (Some(base), Rotation::Rotary { theta, .. }) = (base, &rotation)
        && base != *theta
    {
        let wanted = format!("{theta}, as in the section of the rotation");
        return Err(settings.refuse("rotary_emb_base", &wanted, &base.to_string(), "correct one of the two").into());
    }
    let or_true = |key| settings.optional_bool(key).map(|value| value.unwrap_or(true));
    Ok(blueprint(Sizes {
        vocab: settings.usize("vocab_size")?,
        d_model: settings.usize("hidden_size")?,
        hidden: settings.usize("intermediate_size")?,
        context,
        heads,
        bias: if or_true("attention_bias")? { AttentionBias::All } else { AttentionBias::None },
        eps: file.eps_or("layer_norm_eps", 1e-5)?,
        side_by_side: or_true("use_parallel_residual")?,
        activation: file.activation("hidden_act", Activation::GeluErf)?,
        layers: file.layers("num_hidden_layers")?,
        rotation,
        head: file.head_by_setting(false)?,
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let (heads, width) = file.gguf_heads_and_rotary_width("gptneox")?;
    Ok(blueprint(Sizes {
        vocab: file.gguf_vocab("gptneox")?,
        d_model: settings.usize("gptneox.embedding_length")?,
        hidden: settings.usize("gptneox.feed_forward_length")?,
        context: settings.usize("gptneox.context_length")?,
        heads,
        bias: AttentionBias::All,
        eps: file.eps("gptneox.attention.layer_norm_epsilon")?,
        side_by_side: settings.optional_bool("gptneox.use_parallel_residual")?.unwrap_or(true),
        // The file does not say. All published models but the 20B have GELU by erf; llama.cpp runs all by tanh.
        activation: Activation::GeluErf,
        layers: file.layers("gptneox.block_count")?,
        rotation: rotary::from_gguf(file, "gptneox", width)?,
        head: file.head_by_tensor(),
    }))
}

/// What differs between two models of this family.
struct Sizes {
    vocab: usize,
    d_model: usize,
    hidden: usize,
    context: usize,
    heads: Heads,
    bias: AttentionBias,
    eps: f32,
    side_by_side: bool,
    activation: Activation,
    layers: usize,
    rotation: Rotation,
    head: HeadMatrix,
}

fn blueprint(sizes: Sizes) -> Blueprint {
    Blueprint {
        family: GPT_NEOX.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.context,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Layer { eps: sizes.eps },
        norm_places: NormPlaces::Before,
        residual: if sizes.side_by_side { Residual::SideBySide } else { Residual::OneAfterAnother },
        attention: attention(sizes.heads, sizes.bias),
        feed_forward: FeedForward::Plain { hidden: sizes.hidden, activation: sizes.activation, bias: Bias::Added },
        layers: vec![Layer { window: Window::Whole, rotation: sizes.rotation }; sizes.layers],
        unembedding: Unembedding { head: sizes.head, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embed_in.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}layers.{layer}.input_layernorm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.input_layernorm.bias", &[Slot::Norm1Bias], AS_IS),
    TensorRow::new("{body}layers.{layer}.attention.query_key_value.weight", QUERY_KEY_VALUE, Layout::HeadByHead),
    TensorRow::new("{body}layers.{layer}.attention.query_key_value.bias", QUERY_KEY_VALUE_BIAS, Layout::HeadByHead),
    TensorRow::new("{body}layers.{layer}.attention.dense.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.attention.dense.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.bias", &[Slot::Norm2Bias], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.dense_h_to_4h.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.dense_h_to_4h.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.dense_4h_to_h.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.dense_4h_to_h.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("{body}final_layer_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("{body}final_layer_norm.bias", &[Slot::NormBias], AS_IS),
    TensorRow::new("embed_out.weight", &[Slot::WUnembedding], AS_IS),
];
