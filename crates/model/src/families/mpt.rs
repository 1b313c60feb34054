//! MPT: ALiBi for positions, no bias anywhere, not even in norms; some models bound queries, keys and values.

use glassbox_checkpoint::Expected::{Absent, Bool, Integer, Text};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::gpt2::{GGUF_TENSORS, QUERY_KEY_VALUE};
use super::llama::attention;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, Attention, AttentionBias, Bias, Blueprint, Clamp, Distance, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm,
    NormPlaces, Pooler, Residual, Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const MPT: Family = Family {
    name: "mpt",
    model_types: &["mpt"],
    architectures: &["mpt"],
    huggingface: Dialect {
        must: &[
            Must { key: "no_bias", allowed: &[Bool(true)], why: "the definition has no biases" },
            Must { key: "expansion_ratio", allowed: &[Integer(4)], why: "the definition has 4 times d_model, whatever it says" },
            Must { key: "logit_scale", allowed: &[Absent], why: "the definition does not scale logits" },
            Must {
                key: "norm_type",
                allowed: &[Text("low_precision_layernorm"), Text("layernorm")],
                why: "the definition has a layer norm, whatever it says",
            },
            Must {
                key: "attn_config.alibi_bias_max",
                allowed: &[Integer(8)],
                why: "`transformers` computes with 8 whatever it says, other programs do not; a GGUF file of the model says it without doubt",
            },
            Must { key: "attn_config.alibi", allowed: &[Bool(true)], why: "learned positions of this family are not implemented" },
            Must {
                key: "attn_config.attn_type",
                allowed: &[Text("multihead_attention")],
                why: "shared kv heads are not in the definition",
            },
            Must { key: "attn_config.qk_ln", allowed: &[Bool(false)], why: "norms of queries and keys are not in the definition" },
            Must { key: "attn_config.prefix_lm", allowed: &[Bool(false)], why: "only causal attention is implemented" },
        ],
        ignore: &[
            Ignored { name: "learned_pos_emb", reason: "with ALiBi there are none, whatever it says" },
            Ignored { name: "embedding_fraction", reason: "scales gradients" },
            Ignored { name: "emb_pdrop", reason: "for training" },
            Ignored { name: "init_device", reason: "for training" },
            Ignored { name: "init_config", reason: "for training" },
            Ignored { name: "auto_map", reason: "names the same program, which `transformers` has built in by now" },
            Ignored { name: "verbose", reason: "prints" },
            Ignored { name: "tokenizer_name", reason: "for training; the folder has its tokenizer" },
            Ignored { name: "attn_config.attn_impl", reason: "names a program for the same formula" },
            Ignored { name: "attn_config.model_type", reason: "empty" },
            Ignored { name: "attn_config.attn_uses_sequence_id", reason: "for packed training texts" },
        ],
        blueprint: from_config,
        bodies: &["transformer.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[],
    },
    gguf: Some(Dialect { must: &[], ignore: &[], blueprint: from_gguf, bodies: &[""], tensors: GGUF_TENSORS, spare: &[] }),
    proof: Proof { fixtures: &["mpt", "mpt-clip"], source: "models/mpt/modeling_mpt.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let d_model = settings.usize("d_model")?;
    let attention = |name: &str| format!("attn_config.{name}");
    let scale = match settings.optional_f64(&attention("softmax_scale"))? {
        Some(scale) => Some(file.positive(&attention("softmax_scale"), scale)? as f32),
        None => None,
    };
    Ok(blueprint(&Sizes {
        vocab: settings.usize("vocab_size")?,
        d_model,
        context: settings.optional_usize("max_seq_len")?.unwrap_or(2048),
        hidden: d_model.saturating_mul(4),
        heads: file.heads("n_heads", "attn_config.kv_n_heads", "attn_config.head_dim", "d_model")?,
        layers: file.layers("n_layers")?,
        eps: file.eps_or("layer_norm_epsilon", 1e-5)?,
        scale,
        clamp: clamp(file, &attention("clip_qkv"))?,
        max_bias: 8.0,
        head: file.head_by_setting(true)?,
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    Ok(blueprint(&Sizes {
        vocab: file.gguf_vocab("mpt")?,
        d_model: settings.usize("mpt.embedding_length")?,
        context: settings.usize("mpt.context_length")?,
        hidden: settings.usize("mpt.feed_forward_length")?,
        heads: file.gguf_heads("mpt")?,
        layers: file.layers("mpt.block_count")?,
        eps: file.eps("mpt.attention.layer_norm_epsilon")?,
        scale: None,
        clamp: clamp(file, "mpt.attention.clamp_kqv")?,
        max_bias: settings.f64("mpt.attention.max_alibi_bias")?,
        head: file.head_by_tensor(),
    }))
}

/// A bound on queries, keys and values; absent or 0 means none.
fn clamp(file: &Reading<'_>, key: &str) -> Result<Clamp, ModelError> {
    match file.settings.optional_f64(key)? {
        None | Some(0.0) => Ok(Clamp::None),
        Some(bound) => Ok(Clamp::At(file.positive(key, bound)? as f32)),
    }
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
    /// Where it is not 1 / √d_head.
    scale: Option<f32>,
    clamp: Clamp,
    max_bias: f64,
    head: HeadMatrix,
}

fn blueprint(sizes: &Sizes) -> Blueprint {
    let usual = attention(sizes.heads, AttentionBias::None);
    Blueprint {
        family: MPT.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.context,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::LayerWithoutBias { eps: sizes.eps },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: Attention {
            scale: sizes.scale.unwrap_or(usual.scale),
            distance: Distance::Alibi { max_bias: sizes.max_bias },
            clamp: sizes.clamp,
            ..usual
        },
        feed_forward: FeedForward::Plain { hidden: sizes.hidden, activation: Activation::GeluErf, bias: Bias::None },
        layers: vec![Layer { window: Window::Whole, rotation: Rotation::None }; sizes.layers],
        unembedding: Unembedding { head: sizes.head, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}wte.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}blocks.{layer}.norm_1.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}blocks.{layer}.attn.Wqkv.weight", QUERY_KEY_VALUE, AS_IS),
    TensorRow::new("{body}blocks.{layer}.attn.out_proj.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}blocks.{layer}.norm_2.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}blocks.{layer}.ffn.up_proj.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}blocks.{layer}.ffn.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}norm_f.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];
