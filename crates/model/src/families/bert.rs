//! BERT, the encoder: every token sees every other, token types and learned positions are added, norms stand on the stream itself.

use glassbox_checkpoint::Expected::{Bool, Text};
use glassbox_mechanisms::feed_forward::Activation;
use glassbox_mechanisms::heads::Heads;

use super::llama::attention;
use super::{Dialect, Family, Ignored, Layout, Must, Proof, Reading, TensorRow};
use crate::ModelError;
use crate::blueprint::{
    AddedPositions, Attention, AttentionBias, Bias, Blueprint, Direction, EmbeddingNorm, FeedForward, HeadMatrix, Layer, Norm, NormPlaces,
    Pooler, Residual, Rotation, SoftCap, TokenTypes, Unembedding, Window,
};
use crate::slot::Slot;

pub(super) const BERT: Family = Family {
    name: "bert",
    model_types: &["bert"],
    architectures: &["bert"],
    huggingface: Dialect {
        must: &[
            Must {
                key: "position_embedding_type",
                allowed: &[Text("absolute")],
                why: "positions relative to one another are not implemented",
            },
            Must { key: "is_decoder", allowed: &[Bool(false)], why: "as a decoder this family is not implemented" },
        ],
        ignore: &[
            Ignored { name: "tie_word_embeddings", reason: "an encoder has no output matrix" },
            Ignored { name: "pooler_type", reason: "of an older program" },
        ],
        blueprint: from_config,
        bodies: &["bert.", ""],
        tensors: FOLDER_TENSORS,
        spare: &[
            Ignored { name: "{body}embeddings.position_ids", reason: "0, 1, 2, written out" },
            Ignored { name: "cls.*", reason: "heads of the training tasks; the encoder is run alone" },
            Ignored { name: "classifier.*", reason: "a head of another task; the encoder is run alone" },
            Ignored { name: "qa_outputs.*", reason: "a head of another task; the encoder is run alone" },
        ],
    },
    gguf: Some(Dialect {
        must: &[Must { key: "bert.attention.causal", allowed: &[Bool(false)], why: "as a decoder this family is not implemented" }],
        ignore: &[Ignored {
            name: "bert.pooling_type",
            reason: "how one vector is made of all tokens' vectors, which whoever runs the encoder decides",
        }],
        blueprint: from_gguf,
        bodies: &[""],
        tensors: GGUF_TENSORS,
        spare: &[],
    }),
    proof: Proof { fixtures: &["bert", "bert-relu"], source: "models/bert/modeling_bert.py" },
};

fn from_config(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    let has = |name| file.checkpoint.contains_tensor(name);
    Ok(blueprint(&Sizes {
        vocab: settings.usize("vocab_size")?,
        types: settings.optional_usize("type_vocab_size")?.unwrap_or(2),
        positions: settings.optional_usize("max_position_embeddings")?.unwrap_or(512),
        d_model: settings.usize("hidden_size")?,
        hidden: settings.usize("intermediate_size")?,
        heads: file.heads("num_attention_heads", "num_attention_heads", "head_dim", "hidden_size")?,
        layers: file.layers("num_hidden_layers")?,
        activation: file.activation("hidden_act", Activation::GeluErf)?,
        eps: file.eps_or("layer_norm_eps", 1e-12)?,
        pooler: if has("bert.pooler.dense.weight") || has("pooler.dense.weight") { Pooler::FirstToken } else { Pooler::None },
    }))
}

fn from_gguf(file: &Reading<'_>) -> Result<Blueprint, ModelError> {
    let settings = file.settings;
    Ok(blueprint(&Sizes {
        vocab: file.gguf_vocab("bert")?,
        // The file does not say how many; its table has a row for each.
        types: file.checkpoint.shape("token_types.weight").and_then(|shape| shape.first()).copied().unwrap_or(2),
        positions: settings.usize("bert.context_length")?,
        d_model: settings.usize("bert.embedding_length")?,
        hidden: settings.usize("bert.feed_forward_length")?,
        heads: file.gguf_heads("bert")?,
        layers: file.layers("bert.block_count")?,
        activation: Activation::GeluErf, // the file does not say; all published models have it
        eps: file.eps("bert.attention.layer_norm_epsilon")?,
        pooler: Pooler::None, // the converter leaves it out
    }))
}

/// What differs between two models of this family.
struct Sizes {
    vocab: usize,
    types: usize,
    positions: usize,
    d_model: usize,
    hidden: usize,
    heads: Heads,
    layers: usize,
    activation: Activation,
    eps: f32,
    pooler: Pooler,
}

fn blueprint(sizes: &Sizes) -> Blueprint {
    Blueprint {
        family: BERT.name,
        vocab: sizes.vocab,
        d_model: sizes.d_model,
        context: sizes.positions,
        embedding_scale: 1.0,
        token_types: TokenTypes::Table { types: sizes.types },
        added_positions: AddedPositions::Learned { positions: sizes.positions },
        embedding_norm: EmbeddingNorm::AsInBlocks,
        norm: Norm::Layer { eps: sizes.eps },
        norm_places: NormPlaces::OnStream,
        residual: Residual::OneAfterAnother,
        attention: Attention { direction: Direction::Both, ..attention(sizes.heads, AttentionBias::All) },
        feed_forward: FeedForward::Plain { hidden: sizes.hidden, activation: sizes.activation, bias: Bias::Added },
        layers: vec![Layer { window: Window::Whole, rotation: Rotation::None }; sizes.layers],
        unembedding: Unembedding { head: HeadMatrix::None, soft_cap: SoftCap::None },
        pooler: sizes.pooler,
    }
}

const AS_IS: Layout = Layout::AsIs;

/// Names of a folder; the oldest call gain and bias of a norm gamma and beta.
const FOLDER_TENSORS: &[TensorRow] = &[
    TensorRow::new("{body}embeddings.word_embeddings.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("{body}embeddings.token_type_embeddings.weight", &[Slot::TokenTypes], AS_IS),
    TensorRow::new("{body}embeddings.position_embeddings.weight", &[Slot::Positions], AS_IS),
    TensorRow::new("{body}embeddings.LayerNorm.weight|gamma", &[Slot::EmbedNormGain], AS_IS),
    TensorRow::new("{body}embeddings.LayerNorm.bias|beta", &[Slot::EmbedNormBias], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.query.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.query.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.key.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.key.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.value.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.self.value.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.output.dense.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.output.dense.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.output.LayerNorm.weight|gamma", &[Slot::AfterAttentionGain], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.attention.output.LayerNorm.bias|beta", &[Slot::AfterAttentionBias], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.intermediate.dense.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.intermediate.dense.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.output.dense.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.output.dense.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.output.LayerNorm.weight|gamma", &[Slot::AfterFeedForwardGain], AS_IS),
    TensorRow::new("{body}encoder.layer.{layer}.output.LayerNorm.bias|beta", &[Slot::AfterFeedForwardBias], AS_IS),
    TensorRow::new("{body}pooler.dense.weight", &[Slot::WPooler], AS_IS),
    TensorRow::new("{body}pooler.dense.bias", &[Slot::BPooler], AS_IS),
];

/// Names of a GGUF file.
const GGUF_TENSORS: &[TensorRow] = &[
    TensorRow::new("token_embd.weight", &[Slot::Embedding], AS_IS),
    TensorRow::new("token_types.weight", &[Slot::TokenTypes], AS_IS),
    TensorRow::new("position_embd.weight", &[Slot::Positions], AS_IS),
    TensorRow::new("token_embd_norm.weight", &[Slot::EmbedNormGain], AS_IS),
    TensorRow::new("token_embd_norm.bias", &[Slot::EmbedNormBias], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.weight", &[Slot::WQuery], AS_IS),
    TensorRow::new("blk.{layer}.attn_q.bias", &[Slot::BQuery], AS_IS),
    TensorRow::new("blk.{layer}.attn_k.weight", &[Slot::WKey], AS_IS),
    TensorRow::new("blk.{layer}.attn_k.bias", &[Slot::BKey], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.weight", &[Slot::WValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_v.bias", &[Slot::BValue], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.weight", &[Slot::WOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_output.bias", &[Slot::BOut], AS_IS),
    TensorRow::new("blk.{layer}.attn_output_norm.weight", &[Slot::AfterAttentionGain], AS_IS),
    TensorRow::new("blk.{layer}.attn_output_norm.bias", &[Slot::AfterAttentionBias], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.weight", &[Slot::WUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_up.bias", &[Slot::BUp], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.weight", &[Slot::WDown], AS_IS),
    TensorRow::new("blk.{layer}.ffn_down.bias", &[Slot::BDown], AS_IS),
    TensorRow::new("blk.{layer}.layer_output_norm.weight", &[Slot::AfterFeedForwardGain], AS_IS),
    TensorRow::new("blk.{layer}.layer_output_norm.bias", &[Slot::AfterFeedForwardBias], AS_IS),
];
