//! The places that weights go to, with their sizes, derived from the blueprint.

use crate::blueprint::{
    AddedPositions, AttentionBias, Bias, Blueprint, EmbeddingNorm, FeedForward, HeadMatrix, Norm, NormPlaces, Pooler, QueryKeyNorm,
    TokenTypes,
};

/// A size with the name of its axis, as in `kv_head*d_head=512`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
}

macro_rules! slots {
    ($($variant:ident, $scope:ident, $name:literal;)+) => {
        /// A place for one weight. `w_` is a matrix [out, in], `b_` its bias, `gain` and `bias` belong to norms.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Slot { $($variant),+ }

        impl Slot {
            /// The name in messages.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Slot::$variant => $name),+ }
            }

            /// Whether every layer has one.
            pub(crate) const fn is_of_a_block(self) -> bool {
                match self { $(Slot::$variant => slots!(@scope $scope)),+ }
            }
        }
    };
    (@scope Block) => { true };
    (@scope Pass) => { false };
}

slots! {
    Embedding,         Pass,  "embed.w";
    TokenTypes,        Pass,  "embed.token_types";
    Positions,         Pass,  "embed.positions";
    EmbedNormGain,     Pass,  "embed.norm.gain";
    EmbedNormBias,     Pass,  "embed.norm.bias";
    Norm1Gain,         Block, "norm_1.gain";
    Norm1Bias,         Block, "norm_1.bias";
    WQuery,            Block, "attn.w_q";
    BQuery,            Block, "attn.b_q";
    WKey,              Block, "attn.w_k";
    BKey,              Block, "attn.b_k";
    WValue,            Block, "attn.w_v";
    BValue,            Block, "attn.b_v";
    QueryNormGain,     Block, "attn.q_norm.gain";
    KeyNormGain,       Block, "attn.k_norm.gain";
    WOut,              Block, "attn.w_out";
    BOut,              Block, "attn.b_out";
    AfterAttentionGain, Block, "attn.after_norm.gain";
    AfterAttentionBias, Block, "attn.after_norm.bias";
    Norm2Gain,         Block, "norm_2.gain";
    Norm2Bias,         Block, "norm_2.bias";
    WGate,             Block, "ffn.w_gate";
    BGate,             Block, "ffn.b_gate";
    WUp,               Block, "ffn.w_up";
    BUp,               Block, "ffn.b_up";
    WDown,             Block, "ffn.w_down";
    BDown,             Block, "ffn.b_down";
    AfterFeedForwardGain, Block, "ffn.after_norm.gain";
    AfterFeedForwardBias, Block, "ffn.after_norm.bias";
    NormGain,          Pass,  "norm.gain";
    NormBias,          Pass,  "norm.bias";
    WUnembedding,      Pass,  "unembed.w";
    WPooler,           Pass,  "pooler.w";
    BPooler,           Pass,  "pooler.b";
}

impl Slot {
    /// Whether tokens are multiplied with it.
    pub(crate) fn is_a_factor(self, blueprint: &Blueprint) -> bool {
        match self {
            Self::WQuery | Self::WKey | Self::WValue | Self::WOut | Self::WGate | Self::WUp | Self::WDown => true,
            Self::WUnembedding | Self::WPooler => true,
            Self::Embedding => blueprint.unembedding.head == HeadMatrix::TiedToEmbedding,
            _ => false,
        }
    }

    /// Its axes, slowest first; `None` where this blueprint has no such slot.
    pub(crate) fn axes(self, blueprint: &Blueprint) -> Option<Vec<Axis>> {
        let heads = blueprint.attention.heads;
        let axis = |name, size| Axis { name, size };
        let vocab = axis("vocab", blueprint.vocab);
        let d_model = axis("d_model", blueprint.d_model);
        let d_head = axis("d_head", heads.d_head());
        let query = axis("head*d_head", heads.query_width());
        let key = axis("kv_head*d_head", heads.kv_width());
        let hidden = axis("hidden", blueprint.feed_forward.hidden());
        let layer_norm = matches!(blueprint.norm, Norm::Layer { .. });
        let embedding_norm = blueprint.embedding_norm == EmbeddingNorm::AsInBlocks;
        let before = matches!(blueprint.norm_places, NormPlaces::Before | NormPlaces::BeforeAndAfter);
        let on_stream = blueprint.norm_places == NormPlaces::OnStream;
        let pooled = blueprint.pooler == Pooler::FirstToken;
        let after = blueprint.norm_places != NormPlaces::Before;
        let input_bias = blueprint.attention.bias != AttentionBias::None;
        let (gated, ffn_bias) = match blueprint.feed_forward {
            FeedForward::Plain { bias, .. } => (false, bias == Bias::Added),
            FeedForward::Gated { bias, .. } => (true, bias == Bias::Added),
        };
        let only_if = |condition: bool, axes: &[Axis]| condition.then(|| axes.to_vec());
        match self {
            Self::Embedding => Some(vec![vocab, d_model]),
            Self::Positions => match blueprint.added_positions {
                AddedPositions::None | AddedPositions::Sinusoidal => None,
                AddedPositions::Learned { positions } => Some(vec![axis("position", positions), d_model]),
            },
            Self::TokenTypes => match blueprint.token_types {
                TokenTypes::None => None,
                TokenTypes::Table { types } => Some(vec![axis("type", types), d_model]),
            },
            Self::EmbedNormGain => only_if(embedding_norm, &[d_model]),
            Self::EmbedNormBias => only_if(embedding_norm && layer_norm, &[d_model]),
            Self::NormGain => only_if(!on_stream, &[d_model]),
            Self::NormBias => only_if(!on_stream && layer_norm, &[d_model]),
            Self::AfterAttentionBias | Self::AfterFeedForwardBias => only_if(on_stream && layer_norm, &[d_model]),
            Self::WPooler => only_if(pooled, &[d_model, d_model]),
            Self::BPooler => only_if(pooled, &[d_model]),
            Self::Norm1Gain | Self::Norm2Gain => only_if(before, &[d_model]),
            Self::Norm1Bias | Self::Norm2Bias => only_if(before && layer_norm, &[d_model]),
            Self::WQuery => Some(vec![query, d_model]),
            Self::WKey | Self::WValue => Some(vec![key, d_model]),
            Self::BQuery => only_if(input_bias, &[query]),
            Self::BKey | Self::BValue => only_if(input_bias, &[key]),
            Self::QueryNormGain | Self::KeyNormGain => match blueprint.attention.query_key_norm {
                QueryKeyNorm::None => None,
                QueryKeyNorm::EachHead => Some(vec![d_head]),
                QueryKeyNorm::AllHeads => Some(vec![if self == Self::QueryNormGain { query } else { key }]),
            },
            Self::WOut => Some(vec![d_model, query]),
            Self::BOut => only_if(blueprint.attention.bias == AttentionBias::All, &[d_model]),
            Self::AfterAttentionGain | Self::AfterFeedForwardGain => only_if(after, &[d_model]),
            Self::WGate => only_if(gated, &[hidden, d_model]),
            Self::BGate => only_if(gated && ffn_bias, &[hidden]),
            Self::WUp => Some(vec![hidden, d_model]),
            Self::BUp => only_if(ffn_bias, &[hidden]),
            Self::WDown => Some(vec![d_model, hidden]),
            Self::BDown => only_if(ffn_bias, &[d_model]),
            Self::WUnembedding => only_if(blueprint.unembedding.head == HeadMatrix::Own, &[vocab, d_model]),
        }
    }
}
