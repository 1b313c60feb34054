//! Bloom: ALiBi instead of vectors for positions, a norm on the embedding, biases everywhere, no gate, one matrix for queries, keys and values.

use glassbox_checkpoint::Expected::{Bool, Float};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::gpt2::{GGUF_TENSORS, QUERY_KEY_VALUE, QUERY_KEY_VALUE_BIAS};
use super::llama::attention;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, Attention, AttentionBias, Bias, Blueprint, Distance, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm, NormPlaces,
    Pooler, Residual, Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const BLOOM: Family = Family {
    name: "bloom",
    model_types: &["bloom"],
    architectures: &["bloom"],
    huggingface: Dialect {
        must: &[Must {
            key: "apply_residual_connection_post_layernorm",
            allowed: &[Bool(false)],
            why: "a residual stream of normed vectors is not implemented",
        }],
        ignore: &[
            Ignored { name: "slow_but_exact", reason: "splits the same products over devices" },
            Ignored { name: "pretraining_tp", reason: "splits the same products over devices" },
            Ignored { name: "attention_softmax_in_fp32", reason: "all softmax is in f32 here" },
            Ignored { name: "masked_softmax_fusion", reason: "of the training program" },
            Ignored { name: "bias_dropout_fusion", reason: "of the training program" },
            Ignored { name: "skip_bias_add", reason: "of the training program" },
            Ignored { name: "skip_bias_add_qkv", reason: "of the training program" },
            Ignored { name: "offset_alibi", reason: "of the training program; a constant in each row of scores" },
            Ignored { name: "n_inner", reason: "the definition has 4 times d_model, whatever it says" },
        ],
        blueprint: from_config,
        bodies: &["transformer.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[],
    },
    gguf: Some(Dialect {
        must: &[Must {
            key: "bloom.attention.max_alibi_bias",
            allowed: &[Float(MAX_BIAS)],
            why: "llama.cpp knows no other of this family",
        }],
        ignore: &[],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["bloom"], source: "models/bloom/modeling_bloom.py" },
};

/// The last slope is `2^-8`, in the definition as in llama.cpp.
const MAX_BIAS: f64 = 8.0;

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let d_model_key = file.either("hidden_size", "n_embed");
    let heads_key = file.either("n_head", "num_attention_heads");
    let d_model = settings.usize(d_model_key)?;
    Ok(blueprint(&Sizes {
        vocab: settings.usize("vocab_size")?,
        d_model,
        context: settings.optional_usize("seq_length")?.unwrap_or(2048),
        hidden: d_model.saturating_mul(4),
        heads: file.heads(heads_key, heads_key, "head_dim", d_model_key)?, // a kv head for each: q, k and v lie head by head
        layers: file.layers(file.either("n_layer", "num_hidden_layers"))?,
        eps: file.eps_or("layer_norm_epsilon", 1e-5)?,
        head: file.head_by_setting(true)?,
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    Ok(blueprint(&Sizes {
        vocab: file.gguf_vocab("bloom")?,
        d_model: settings.usize("bloom.embedding_length")?,
        context: settings.usize("bloom.context_length")?,
        hidden: settings.usize("bloom.feed_forward_length")?,
        heads: file.gguf_heads("bloom")?,
        layers: file.layers("bloom.block_count")?,
        eps: file.eps("bloom.attention.layer_norm_epsilon")?,
        head: file.head_by_tensor(),
    }))
}

/// What differs between two models of this family.
struct Sizes {
    vocab: usize,
    d_model: usize,
    context: usize,
    hidden: usize,
    heads: Heads,
    layers: usize,
    eps: f32,
    head: HeadMatrix,
}

fn blueprint(sizes: &Sizes) -> Blueprint {
    Blueprint {
        family: BLOOM.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.context,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::AsInBlocks,
        norm: Norm::Layer { eps: sizes.eps },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: Attention { distance: Distance::Alibi { max_bias: MAX_BIAS }, ..attention(sizes.heads, AttentionBias::All) },
        feed_forward: FeedForward::Plain { hidden: sizes.hidden, activation: Activation::GeluTanh, bias: Bias::Added },
        layers: vec![Layer { window: Window::Whole, rotation: Rotation::None }; sizes.layers],
        unembedding: Unembedding { head: sizes.head, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}word_embeddings.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}word_embeddings_layernorm.weight", &[Slot::EmbedNormGain], AS_IS),
    TensorRow::new("{body}word_embeddings_layernorm.bias", &[Slot::EmbedNormBias], AS_IS),
    TensorRow::new("{body}h.{layer}.input_layernorm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}h.{layer}.input_layernorm.bias", &[Slot::Norm1Bias], AS_IS),
    TensorRow::new("{body}h.{layer}.self_attention.query_key_value.weight", QUERY_KEY_VALUE, Layout::HeadByHead),
    TensorRow::new("{body}h.{layer}.self_attention.query_key_value.bias", QUERY_KEY_VALUE_BIAS, Layout::HeadByHead),
    TensorRow::new("{body}h.{layer}.self_attention.dense.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}h.{layer}.self_attention.dense.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}h.{layer}.post_attention_layernorm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}h.{layer}.post_attention_layernorm.bias", &[Slot::Norm2Bias], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.dense_h_to_4h.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.dense_h_to_4h.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.dense_4h_to_h.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}h.{layer}.mlp.dense_4h_to_h.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("{body}ln_f.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("{body}ln_f.bias", &[Slot::NormBias], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];
