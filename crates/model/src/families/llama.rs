//! Llama 1 to 3.x and the many models that call themselves so. The other families with a gate share its tensor names.

use glassbox_checkpoint::Expected::{Bool, Float, Integer};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow, rotary};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, Attention, AttentionBias, Bias, Blueprint, Clamp, Direction, Distance, EmbeddingNorm, FeedForward, Layer, Norm,
    NormPlaces, Pooler, QueryKeyNorm, Residual, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const LLAMA: Family = Family {
    name: "llama",
    model_types: &["llama"],
    architectures: &["llama", STRETCHED],
    huggingface: Dialect {
        must: &[
            Must { key: "partial_rotary_factor", allowed: &[Float(1.0)], why: "only rotation of the whole head is implemented" },
            Must {
                key: "rope_interleaved",
                allowed: &[Bool(false)],
                why: "only weights whose rotation pairs halves are read from a folder",
            },
        ],
        ignore: &[
            Ignored { name: "pretraining_tp", reason: "splits the same products over devices" },
            Ignored { name: "is_llama_config", reason: "says what `model_type` says" },
            Ignored { name: "max_sequence_length", reason: "an older name of `max_position_embeddings`" },
        ],
        blueprint: from_config,
        bodies: &["model.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[Ignored { name: "{body}layers.{layer}.self_attn.rotary_emb.inv_freq", reason: "computed from the base of the rotation" }],
    },
    gguf: Some(Dialect {
        must: GGUF_MUST,
        ignore: &[Ignored { name: "llama.tensor_data_layout", reason: "names the layout that all files have today" }],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[
            Ignored { name: rotary::DIVISORS, reason: "read with the rotation" },
            Ignored { name: rotary::LONG_DIVISORS, reason: "read with the rotation" },
            Ignored { name: rotary::SHORT_DIVISORS, reason: "read with the rotation" },
        ],
    }),
    proof: Proof {
        fixtures: &["llama-mha", "llama-gqa", "llama-mqa", "llama-scaled", "llama-dynamic", "llama-biased"],
        source: "models/llama/modeling_llama.py",
    },
};

/// The name under which GGUF files of newer Mistral models hold a Llama: the one of these for which llama.cpp reads YaRN's betas.
pub(super) const STRETCHED: &str = "mistral3";

const GGUF_MUST: &[Must] = &[
    Must { key: "llama.expert_count", allowed: &[Integer(0)], why: NO_EXPERTS },
    Must { key: "llama.expert_used_count", allowed: &[Integer(0)], why: NO_EXPERTS },
    Must { key: "llama.attention.causal", allowed: &[Bool(true)], why: "only causal attention is implemented" },
    Must { key: "mistral3.expert_count", allowed: &[Integer(0)], why: NO_EXPERTS },
    Must { key: "mistral3.expert_used_count", allowed: &[Integer(0)], why: NO_EXPERTS },
    Must {
        key: "mistral3.attention.temperature_scale",
        allowed: &[Float(0.0)],
        why: "queries that grow with their position are not implemented",
    },
];

const NO_EXPERTS: &str = "mixtures of experts are not implemented";

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let heads = file.heads("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")?;
    let activation = file.activation("hidden_act", Activation::Silu)?;
    like_in_folder(file, &Like { family: LLAMA.name, heads, activation, context: 2048, tied: false })
}

/// What other families, whose folders otherwise read like Llama's, answer for themselves.
pub(super) struct Like {
    pub(super) family: &'static str,
    pub(super) heads: Heads,
    pub(super) activation: Activation,
    /// What `transformers` documents for files that do not say `max_position_embeddings`.
    pub(super) context: usize,
    /// What it documents for files that do not say `tie_word_embeddings`.
    pub(super) tied: bool,
}

/// The blueprint of a folder that reads like Llama's.
pub(super) fn like_in_folder(file: &Reading<'_>, like: &Like) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let layers = file.layers("num_hidden_layers")?;
    let context = settings.optional_usize("max_position_embeddings")?.unwrap_or(like.context);
    let rotation = rotary::from_config(settings, like.heads.d_head(), 10_000.0, context)?;
    let bias = |key| settings.optional_bool(key).map(|bias| bias.unwrap_or(false));
    Ok(Blueprint {
        family: like.family,
        vocab: settings.usize("vocab_size")?,
        d_model: settings.usize("hidden_size")?,
        context,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Rms { eps: file.eps("rms_norm_eps")? },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: attention(like.heads, if bias("attention_bias")? { AttentionBias::All } else { AttentionBias::None }),
        feed_forward: FeedForward::Gated {
            hidden: settings.usize("intermediate_size")?,
            activation: like.activation,
            bias: if bias("mlp_bias")? { Bias::Added } else { Bias::None },
        },
        layers: vec![Layer { window: Window::Whole, rotation }; layers],
        unembedding: Unembedding { head: file.head_by_setting(like.tied)?, soft_cap: SoftCap::None },
        pooler: Pooler::None,
    })
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    like_in_gguf(file, LLAMA.name, file.settings.str("general.architecture")?, Activation::Silu)
}

/// The blueprint of a GGUF file that reads like Llama's, under the keys of `arch`.
pub(super) fn like_in_gguf(file: &Reading<'_>, family: &'static str, arch: &str, activation: Activation) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let key = |name: &str| format!("{arch}.{name}");
    let layers = file.layers(&key("block_count"))?;
    let heads = file.gguf_heads(arch)?;
    let rotation = rotary::from_gguf(file, arch, heads.d_head())?;
    let has = |name| file.checkpoint.contains_tensor(name);
    Ok(Blueprint {
        family,
        vocab: file.gguf_vocab(arch)?,
        d_model: settings.usize(&key("embedding_length"))?,
        context: settings.usize(&key("context_length"))?,
        embedding_scale: 1.0,
        token_types: TokenTypes::None,
        added_positions: AddedPositions::None,
        embedding_norm: EmbeddingNorm::None,
        norm: Norm::Rms { eps: file.eps(&key("attention.layer_norm_rms_epsilon"))? },
        norm_places: NormPlaces::Before,
        residual: Residual::OneAfterAnother,
        attention: attention(
            heads,
            match (has("blk.0.attn_q.bias"), has("blk.0.attn_output.bias")) {
                (false, _) => AttentionBias::None,
                (true, false) => AttentionBias::QueryKeyValue,
                (true, true) => AttentionBias::All,
            },
        ),
        feed_forward: FeedForward::Gated {
            hidden: settings.usize(&key("feed_forward_length"))?,
            activation,
            bias: if has("blk.0.ffn_gate.bias") { Bias::Added } else { Bias::None },
        },
        layers: vec![Layer { window: Window::Whole, rotation }; layers],
        unembedding: Unembedding { head: file.head_by_tensor(), soft_cap: SoftCap::None },
        pooler: Pooler::None,
    })
}

pub(super) fn attention(heads: Heads, bias: AttentionBias) -> Attention {
    let scale = super::reading::one_over_root(heads.d_head() as f64);
    Attention {
        heads,
        scale,
        soft_cap: SoftCap::None,
        distance: Distance::Free,
        bias,
        clamp: Clamp::None,
        query_key_norm: QueryKeyNorm::None,
        direction: Direction::Backward,
    }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder. A family that has fewer slots uses fewer rows.
pub(super) const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embed_tokens.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}layers.{layer}.input_layernorm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_proj.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_proj.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.v_proj.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.q_norm.weight", &[Slot::QueryNormGain], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.k_norm.weight", &[Slot::KeyNormGain], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.self_attn.o_proj.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}layers.{layer}.post_attention_layernorm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.gate_proj.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.gate_proj.bias", &[Slot::BGate], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.up_proj.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.up_proj.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}layers.{layer}.mlp.down_proj.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("{body}norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("lm_head.weight", &[Slot::WUnembedding], AS_IS),
];

/// Names of a GGUF file, where the converter reorders the rows of q and k.
const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("blk.{layer}.attn_norm.weight", &[Slot::Norm1Gain], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.weight", &[Slot::WQuery], Layout::PairsAsNeighbours),
    TensorRow::new("blk.{layer}.attn_q.bias", &[Slot::BQuery], Layout::PairsAsNeighbours),
    TensorRow::new("blk.{layer}.attn_k.weight", &[Slot::WKey], Layout::PairsAsNeighbours),
    TensorRow::new("blk.{layer}.attn_k.bias", &[Slot::BKey], Layout::PairsAsNeighbours),
    TensorRow::new("blk.{layer}.attn_v.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("blk.{layer}.ffn_norm.weight", &[Slot::Norm2Gain], AS_IS),
    TensorRow::new("blk.{layer}.ffn_gate.weight", &[Slot::WGate], AS_IS),
    TensorRow::new("blk.{layer}.ffn_gate.bias", &[Slot::BGate], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("output_norm.weight", &[Slot::NormGain], AS_IS),
    TensorRow::new("output.weight", &[Slot::WUnembedding], AS_IS),
];
