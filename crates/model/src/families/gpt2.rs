//! GPT-2: learned positions, layer norms, biases everywhere, no gate, one matrix for queries, keys and values.

use glassbox_checkpoint::Expected::{Bool, Integer};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::llama::attention;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm, NormPlaces, Pooler, Residual,
    Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const GPT2: Family = Family {
    name: "gpt2",
    model_types: &["gpt2"],
    architectures: &["gpt2"],
    huggingface: Dialect {
        must: &[
            Must { key: "scale_attn_weights", allowed: &[Bool(true)], why: "scores without a scale are not implemented" },
            Must {
                key: "scale_attn_by_inverse_layer_idx",
                allowed: &[Bool(false)],
                why: "a scale that differs by layer is not implemented",
            },
            Must { key: "n_special", allowed: &[Integer(0)], why: "token ids beyond `vocab_size` are not implemented" },
        ],
        ignore: &[
            Ignored { name: "reorder_and_upcast_attn", reason: "the same formula; it changes rounding in half precision only" },
            Ignored { name: "n_ctx", reason: "an older name of `n_positions`" },
            Ignored {
                name: "predict_special_tokens",
                reason: "of an older program, for token ids beyond `vocab_size`, of which there are none",
            },
            Ignored { name: "summary_type", reason: "for heads that are not run" },
            Ignored { name: "summary_use_proj", reason: "for heads that are not run" },
            Ignored { name: "summary_activation", reason: "for heads that are not run" },
            Ignored { name: "summary_proj_to_labels", reason: "for heads that are not run" },
            Ignored { name: "summary_first_dropout", reason: "for heads that are not run" },
        ],
        blueprint: from_config,
        bodies: &["transformer.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[
            Ignored { name: "{body}h.{layer}.attn.bias", reason: "the causal mask, written out" },
            Ignored { name: "{body}h.{layer}.attn.masked_bias", reason: "the value of masked scores" },
        ],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "gpt2.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["gpt2"], source: "models/gpt2/modeling_gpt2.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let d_model = settings.usize("n_embd")?;
    Ok(blueprint(&Sizes {
        vocab: settings.usize("vocab_size")?,
        d_model,
        positions: settings.usize("n_positions")?,
        hidden: settings.optional_usize("n_inner")?.unwrap_or(d_model.saturating_mul(4)),
        heads: file.heads("n_head", "n_head_kv", "head_dim", "n_embd")?,
        layers: file.layers("n_layer")?,
        activation: file.activation("activation_function", Activation::GeluTanh)?,
        eps: file.eps("layer_norm_epsilon")?,
        head: file.head_by_setting(true)?,
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    Ok(blueprint(&Sizes {
        vocab: file.gguf_vocab("gpt2")?,
        d_model: settings.usize("gpt2.embedding_length")?,
        positions: settings.usize("gpt2.context_length")?,
        hidden: settings.usize("gpt2.feed_forward_length")?,
        heads: file.gguf_heads("gpt2")?,
        layers: file.layers("gpt2.block_count")?,
        activation: Activation::GeluTanh,
        eps: file.eps("gpt2.attention.layer_norm_epsilon")?,
        head: file.head_by_tensor(),
    }))
}

/// What differs between two models of this family.
struct Sizes {
    vocab: usize,
    d_model: usize,
    positions: usize,
    hidden: usize,
    heads: Heads,
    layers: usize,
    activation: Activation,
    eps: f32,
    head: HeadMatrix,
}

fn blueprint(sizes: &Sizes) -> Blueprint {
    Blueprint {
        family: GPT2.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.positions,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::Learned { positions: sizes.positions },
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Layer { eps: sizes.eps },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: attention(sizes.heads, AttentionBias::All),
        feed_forward: FeedForward::Plain { hidden: sizes.hidden, activation: sizes.activation, bias: Bias::Added },
        layers: vec![Layer { window: Window::Whole, rotation: Rotation::None }; sizes.layers],
        unembedding: Unembedding { head: sizes.head, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    }
}

const AS_IS: Layout = Layout::AsIs;
/// One matrix for all three: all queries before all keys before all values.
pub(super) const QUERY_KEY_VALUE: &[Slot] = &[Slot::WQuery, Slot::WKey, Slot::WValue];
pub(super) const QUERY_KEY_VALUE_BIAS: &[Slot] = &[Slot::BQuery, Slot::BKey, Slot::BValue];

/// Names of a folder; its linear maps are stored [in, out].
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}wte.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}wpe.weight", &[Slot::Positions], AS_IS),
    TensorRow::new("{body}h.{layer}.ln_1.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}h.{layer}.ln_1.bias", &[Slot::Norm1Bias], AS_IS),
    TensorRow::new("{body}h.{layer}.attn.c_attn.weight", QUERY_KEY_VALUE, Layout::Transposed),
    TensorRow::new("{body}h.{layer}.attn.c_attn.bias", QUERY_KEY_VALUE_BIAS, AS_IS),
    TensorRow::new("{body}h.{layer}.attn.c_proj.weight", &[Slot::WOut], Layout::Transposed),
    TensorRow::new("{body}h.{layer}.attn.c_proj.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}h.{layer}.ln_2.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}h.{layer}.ln_2.bias", &[Slot::Norm2Bias], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.c_fc.weight", &[Slot::WUp], Layout::Transposed),
    TensorRow::new("{body}h.{layer}.mlp.c_fc.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.c_proj.weight", &[Slot::WDown], Layout::Transposed),
    TensorRow::new("{body}h.{layer}.mlp.c_proj.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("{body}ln_f.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("{body}ln_f.bias", &[Slot::NormBias], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];

/// Names of a GGUF file; its linear maps are stored [out, in]. Shared by the families with one matrix for queries, keys and values.
pub(super) const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("token_embd_norm.weight", &[Slot::EmbedNormGain], AS_IS),
    TensorRow::new("token_embd_norm.bias", &[Slot::EmbedNormBias], AS_IS),
    TensorRow::new("position_embd.weight", &[Slot::Positions], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.bias", &[Slot::Norm1Bias], AS_IS),
    TensorRow::new("blk.{layer}.attn_qkv.weight", QUERY_KEY_VALUE, AS_IS),
    TensorRow::new("blk.{layer}.attn_qkv.bias", QUERY_KEY_VALUE_BIAS, AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.bias", &[Slot::Norm2Bias], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("output_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("output_norm.bias", &[Slot::NormBias], AS_IS),
    TensorRow::new("output.weight", &[Slot::WUnembedding], AS_IS),
];
