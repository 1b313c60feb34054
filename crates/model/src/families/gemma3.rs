//! Gemma 3, its language model: most layers see a window and rotate faster, every sixth sees everything; norms on both sides of each
//! part, and on queries and keys.

use glassbox_checkpoint::Expected::{Absent, Bool};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::reading::{one_over_root, window};
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow, rotary};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, Attention, AttentionBias, Bias, Blueprint, Clamp, Direction, Distance, EmbeddingNorm, FeedForward, HeadMatrix, Layer,
    Norm, NormPlaces, Pooler, QueryKeyNorm, Residual, Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const GEMMA3: Family = Family {
    name: "gemma3",
    model_types: &["gemma3_text", "gemma3"],
    architectures: &["gemma3"],
    huggingface: Dialect {
        must: &[
            Must { key: "use_bidirectional_attention", allowed: &[Bool(false)], why: "only causal attention is implemented" },
            Must {
                key: "attn_logit_softcapping",
                allowed: &[Absent],
                why: "the definition of Gemma 3 does not say where such a cap belongs",
            },
        ],
        ignore: &[
            Ignored { name: "hidden_act", reason: "an older key; the original program reads `hidden_activation`" },
            Ignored { name: "_sliding_window_pattern", reason: "the original program reads `layer_types` or `sliding_window_pattern`" },
        ],
        blueprint: from_config,
        bodies: &["model.", "model.language_model.", "language_model.model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[
            Ignored { name: "model.vision_tower.*", reason: "sees pictures; the language model is run alone" },
            Ignored { name: "vision_tower.*", reason: "sees pictures; the language model is run alone" },
            Ignored { name: "model.multi_modal_projector.*", reason: "brings pictures in; the language model is run alone" },
            Ignored { name: "multi_modal_projector.*", reason: "brings pictures in; the language model is run alone" },
        ],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "gemma3.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["gemma3-gqa", "gemma3-mqa"], source: "models/gemma3/modeling_gemma3.py" },
};

/// Rotary base of layers that see everything, and of those that see a window, where a file does not say.
const THETA_GLOBAL: f64 = 1_000_000.0;
const THETA_LOCAL: f64 = 10_000.0;
/// One layer in so many sees everything, where a file does not say.
const PATTERN: usize = 6;

/// Published folders leave out what equals the defaults of `transformers`' `Gemma3TextConfig`; they are repeated here.
fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let or = |key, default| settings.optional_usize(key).map(|value| value.unwrap_or(default));
    let layers = file.layers("num_hidden_layers")?;
    let context = or("max_position_embeddings", 131_072)?;
    let pattern = or("sliding_window_pattern", PATTERN)?;
    let local = match file.local_layers(layers)? {
        Some(local) => local,
        None => locals(file, "sliding_window_pattern", layers, pattern)?,
    };
    let (heads, kv_heads, d_head) = (or("num_attention_heads", 8)?, or("num_key_value_heads", 4)?, or("head_dim", 256)?);
    let (global_rotation, local_rotation) = rotary::from_config_by_layer_type(settings, d_head, THETA_GLOBAL, THETA_LOCAL, context)?;
    let bias = if settings.optional_bool("attention_bias")?.unwrap_or(false) { AttentionBias::All } else { AttentionBias::None };
    let cap = settings.optional_f64("final_logit_softcapping")?;
    Ok(blueprint(Sizes {
        vocab: or("vocab_size", 262_208)?,
        d_model: or("hidden_size", 2304)?,
        hidden: or("intermediate_size", 9216)?,
        context,
        heads: file.checked_heads("num_attention_heads", heads, kv_heads, d_head)?,
        scale: one_over_root(file.positive("query_pre_attn_scalar", settings.optional_f64("query_pre_attn_scalar")?.unwrap_or(256.0))?),
        bias,
        eps: file.eps_or("rms_norm_eps", 1e-6)?,
        layers: alternate(&local, &file.window_of_layers("sliding_window", 4096, &local)?, &local_rotation, &global_rotation),
        head: file.head_by_setting(true)?,
        activation: file.activation("hidden_activation", Activation::GeluTanh)?,
        soft_cap: file.soft_cap("final_logit_softcapping", cap)?,
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let layers = file.layers("gemma3.block_count")?;
    let heads = file.gguf_heads("gemma3")?;
    let d_model = settings.usize("gemma3.embedding_length")?;
    let pattern_key = "gemma3.attention.sliding_window_pattern";
    let pattern = settings.optional_usize(pattern_key)?.unwrap_or(PATTERN);
    let global_rotation = rotary::from_gguf(file, "gemma3", heads.d_head())?;
    let theta = settings.optional_f64("gemma3.rope.freq_base_swa")?.unwrap_or(THETA_LOCAL);
    let local_rotation = rotary::plain(heads.d_head(), theta);
    let cap = settings.optional_f64("gemma3.final_logit_softcapping")?;
    // The converter writes no scale. The 27B model, told by its 62 layers, divides by d_model / heads; all others by d_head.
    let by_size = if layers == 62 { d_model as f64 / heads.heads() as f64 } else { heads.d_head() as f64 };
    let scale = match settings.optional_f64("gemma3.attention.scale")? {
        Some(scale) => file.positive("gemma3.attention.scale", scale)? as f32,
        None => one_over_root(by_size),
    };
    Ok(blueprint(Sizes {
        vocab: file.gguf_vocab("gemma3")?,
        d_model,
        hidden: settings.usize("gemma3.feed_forward_length")?,
        context: settings.usize("gemma3.context_length")?,
        heads,
        scale,
        bias: AttentionBias::None,
        eps: file.eps("gemma3.attention.layer_norm_rms_epsilon")?,
        layers: alternate(
            &locals(file, pattern_key, layers, pattern)?,
            &window(settings.optional_usize("gemma3.attention.sliding_window")?),
            &local_rotation,
            &global_rotation,
        ),
        head: file.head_by_tensor(),
        activation: Activation::GeluTanh,
        soft_cap: file.soft_cap("gemma3.final_logit_softcapping", cap)?,
    }))
}

/// Which layers see a window: all but every `pattern`-th.
pub(super) fn locals(file: &Reading<'_>, key: &str, layers: usize, pattern: usize) -> Result<Vec<bool>, ModelError> {
    if pattern == 0 {
        return Err(file.settings.refuse(key, "a number above 0", "0", "correct the value in the file").into());
    }
    Ok((1..=layers).map(|count| !count.is_multiple_of(pattern)).collect())
}

pub(super) fn alternate(local: &[bool], window: &Window, local_rotation: &Rotation, global_rotation: &Rotation) -> Vec<Layer> {
    let layer = |local: &bool| match local {
        true => Layer { window: *window, rotation: local_rotation.clone() },
        false => Layer { window: Window::Whole, rotation: global_rotation.clone() },
    };
    local.iter().map(layer).collect()
}

/// What differs between two models of this family.
pub(super) struct Sizes {
    pub(super) vocab: usize,
    pub(super) d_model: usize,
    pub(super) hidden: usize,
    pub(super) context: usize,
    pub(super) heads: Heads,
    pub(super) scale: f32,
    pub(super) bias: AttentionBias,
    pub(super) eps: f32,
    pub(super) layers: Vec<Layer>,
    pub(super) head: HeadMatrix,
    pub(super) activation: Activation,
    pub(super) soft_cap: SoftCap,
}

pub(super) fn blueprint(sizes: Sizes) -> Blueprint {
    Blueprint {
        family: GEMMA3.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.context,
        embedding_scale: embedding_scale(sizes.d_model),
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Rms { eps: sizes.eps },
        norm_places: NormPlaces::BeforeAndAfter,
        residual: Residual::OneAfterAnother,
        attention: Attention {
            heads: sizes.heads,
            scale: sizes.scale,
            soft_cap: SoftCap::None,
            distance: Distance::Free,
            clamp: Clamp::None,
            bias: sizes.bias,
            query_key_norm: QueryKeyNorm::EachHead,
            direction: Direction::Backward,
        },
        feed_forward: FeedForward::Gated { hidden: sizes.hidden, activation: sizes.activation, bias: Bias::None },
        layers: sizes.layers,
        unembedding: Unembedding { head: sizes.head, soft_cap: sizes.soft_cap },
        pooler: Pooler::None,
    }
}

/// √d_model, rounded to the dtype of the run, which is f32; a bf16 run rounds √3072 to 55.5.
pub(super) fn embedding_scale(d_model: usize) -> f32 {
    (d_model as f64).sqrt() as f32
}

const AS_IS: Layout = Layout::AsIs;
const GAIN: Layout = Layout::GainMinusOne;

/// Names of a folder; norms are stored as their gain minus one.
pub(super) const FOLDER_TENSORS: &[TensorRow] = &[
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
    TensorRow::new("{body}layers.{layer}.self_attn.q_norm.weight", &[Slot::QueryNormGain], GAIN),
    TensorRow::new("{body}layers.{layer}.self_attn.k_norm.weight", &[Slot::KeyNormGain], GAIN),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::AfterAttentionGain], GAIN),
    TensorRow::new("{body}layers.{layer}.pre_feedforward_layernorm.weight", &[Slot::Norm2Gain], GAIN),
    TensorRow::new("{body}layers.{layer}.mlp.gate_proj.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.up_proj.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_feedforward_layernorm.weight", &[Slot::AfterFeedForwardGain], GAIN),
    TensorRow::new("{body}norm.weight", &[Slot::NormGain], GAIN),
    TensorRow::new("{outside}lm_head.weight", &[Slot::WUnembedding], AS_IS),
];

/// Names of a GGUF file; the converter has added the one to every gain.
pub(super) const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("blk.{layer}.attn_k.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_q_norm.weight", &[Slot::QueryNormGain], AS_IS),
    TensorRow::new("blk.{layer}.attn_k_norm.weight", &[Slot::KeyNormGain], AS_IS),
    TensorRow::new("blk.{layer}.post_attention_norm.weight", &[Slot::AfterAttentionGain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_gate.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("blk.{layer}.post_ffw_norm.weight", &[Slot::AfterFeedForwardGain], AS_IS),
    TensorRow::new("output_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("output.weight", &[Slot::WUnembedding], AS_IS),
];
