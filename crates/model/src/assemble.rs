//! Where the parts of the forward pass take their weights, each from the slots that the blueprint gives it.

use std::sync::OnceLock;

use glassbox_mechanisms::MechanismError;
use glassbox_mechanisms::attention::Rule;
use glassbox_mechanisms::mask::KeyRange;
use glassbox_mechanisms::position::{Alibi, Pairing, Rotary};

use crate::attention::Attention;
use crate::block::Block;
use crate::blueprint::{
    self, AddedPositions, AttentionBias, Bias, Blueprint, Clamp, Direction, Distance, Divisors, EmbeddingNorm, HeadMatrix, Norm,
    NormPlaces, QueryKeyNorm, Rotation, SoftCap, TokenTypes, Window,
};
use crate::decoder::{Body, Decoder, Positions};
use crate::feed_forward::FeedForward;
use crate::linear::Linear;
use crate::norm::NormWeights;
use crate::slot::Slot;
use crate::weights::Weights;

impl Decoder {
    pub(crate) fn new(blueprint: &Blueprint, mut weights: Weights) -> Result<Self, MechanismError> {
        let body = Body::new(blueprint, &mut weights)?;
        Ok(Self {
            norm: NormWeights::new(&mut weights, 0, blueprint.norm, Slot::NormGain, Slot::NormBias),
            unembedding: match blueprint.unembedding.head {
                HeadMatrix::TiedToEmbedding => body.embedding.clone(),
                HeadMatrix::Own => weights.take(Slot::WUnembedding, 0),
                HeadMatrix::None => unreachable!("an encoder is turned away before its weights are read"),
            },
            soft_cap: blueprint.unembedding.soft_cap,
            body,
        })
    }
}

impl Body {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights) -> Result<Self, MechanismError> {
        let (rotaries, of_layer) = rotaries(blueprint)?;
        let alibi = match blueprint.attention.distance {
            Distance::Free => None,
            Distance::Alibi { max_bias } => Some(Alibi::new(max_bias)?),
        };
        let normed = blueprint.embedding_norm == EmbeddingNorm::AsInBlocks;
        let blocks = of_layer.into_iter().enumerate();
        Ok(Self {
            embedding: weights.take(Slot::Embedding, 0),
            embedding_scale: blueprint.embedding_scale,
            token_types: (blueprint.token_types != TokenTypes::None).then(|| weights.take(Slot::TokenTypes, 0)),
            positions: match blueprint.added_positions {
                AddedPositions::None => Positions::None,
                AddedPositions::Sinusoidal => Positions::Sinusoidal,
                AddedPositions::Learned { .. } => Positions::Learned(weights.take_vector(Slot::Positions, 0)),
            },
            embedding_norm: normed.then(|| NormWeights::new(weights, 0, blueprint.norm, Slot::EmbedNormGain, Slot::EmbedNormBias)),
            rotaries,
            blocks: blocks.map(|(layer, rotary)| Block::new(blueprint, weights, layer, rotary, alibi)).collect(),
        })
    }
}

impl Block {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights, layer: usize, rotary: Option<usize>, alibi: Option<Alibi>) -> Self {
        let norm = blueprint.norm;
        let places = blueprint.norm_places;
        let norm_at = |weights: &mut Weights, at: &[NormPlaces], gain, bias| {
            at.contains(&places).then(|| NormWeights::new(weights, layer, norm, gain, bias))
        };
        let before = [NormPlaces::Before, NormPlaces::BeforeAndAfter];
        let after = |weights: &mut Weights, gain| {
            matches!(places, NormPlaces::After | NormPlaces::BeforeAndAfter).then(|| NormWeights::without_bias(weights, layer, norm, gain))
        };
        let on_stream = [NormPlaces::OnStream];
        Self {
            layer,
            d_model: blueprint.d_model,
            residual: blueprint.residual,
            norm_1: norm_at(weights, &before, Slot::Norm1Gain, Slot::Norm1Bias),
            attention: Attention::new(blueprint, weights, layer, rotary, alibi),
            after_attention: after(weights, Slot::AfterAttentionGain),
            stream_1: norm_at(weights, &on_stream, Slot::AfterAttentionGain, Slot::AfterAttentionBias),
            norm_2: norm_at(weights, &before, Slot::Norm2Gain, Slot::Norm2Bias),
            feed_forward: FeedForward::new(blueprint, weights, layer),
            after_feed_forward: after(weights, Slot::AfterFeedForwardGain),
            stream_2: norm_at(weights, &on_stream, Slot::AfterFeedForwardGain, Slot::AfterFeedForwardBias),
        }
    }
}

impl Attention {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights, layer: usize, rotary: Option<usize>, alibi: Option<Alibi>) -> Self {
        let parts = &blueprint.attention;
        let input_bias = |slot| (parts.bias != AttentionBias::None).then_some(slot);
        let (Norm::Layer { eps } | Norm::LayerWithoutBias { eps } | Norm::Rms { eps }) = blueprint.norm;
        let mut norm = |gain| NormWeights::without_bias(weights, layer, Norm::Rms { eps }, gain);
        let query_key_norm = match parts.query_key_norm {
            QueryKeyNorm::None => None,
            // As many numbers are normed together as the gain is wide.
            QueryKeyNorm::EachHead | QueryKeyNorm::AllHeads => Some((norm(Slot::QueryNormGain), norm(Slot::KeyNormGain))),
        };
        Self {
            layer,
            d_model: blueprint.d_model,
            heads: parts.heads,
            query: Linear::new(weights, layer, Slot::WQuery, input_bias(Slot::BQuery)),
            key: Linear::new(weights, layer, Slot::WKey, input_bias(Slot::BKey)),
            value: Linear::new(weights, layer, Slot::WValue, input_bias(Slot::BValue)),
            out: Linear::new(weights, layer, Slot::WOut, (parts.bias == AttentionBias::All).then_some(Slot::BOut)),
            clamp: match parts.clamp {
                Clamp::None => None,
                Clamp::At(bound) => Some(bound),
            },
            query_key_norm,
            rotary,
            triangles: OnceLock::new(),
            rule: Rule {
                keys: match (parts.direction, blueprint.layers[layer].window) {
                    (Direction::Backward, Window::Whole) => KeyRange::causal(),
                    (Direction::Backward, Window::Last(tokens)) => KeyRange::causal_window(tokens),
                    (Direction::Both, Window::Whole) => KeyRange::everything(),
                    (Direction::Both, Window::Last(tokens)) => KeyRange { causal: false, ..KeyRange::causal_window(tokens) },
                },
                scale: parts.scale,
                soft_cap: match parts.soft_cap {
                    SoftCap::None => None,
                    SoftCap::At(cap) => Some(cap),
                },
                alibi,
            },
        }
    }
}

impl FeedForward {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights, layer: usize) -> Self {
        let (gated, activation, bias) = match blueprint.feed_forward {
            blueprint::FeedForward::Plain { activation, bias, .. } => (false, activation, bias),
            blueprint::FeedForward::Gated { activation, bias, .. } => (true, activation, bias),
        };
        let mut linear = |weight, slot| Linear::new(weights, layer, weight, (bias == Bias::Added).then_some(slot));
        Self {
            d_model: blueprint.d_model,
            hidden: blueprint.feed_forward.hidden(),
            activation,
            gate: gated.then(|| linear(Slot::WGate, Slot::BGate)),
            up: linear(Slot::WUp, Slot::BUp),
            down: linear(Slot::WDown, Slot::BDown),
        }
    }
}

/// The different rotations of the model, and for each layer which of them it has.
fn rotaries(blueprint: &Blueprint) -> Result<(Vec<Rotary>, Vec<Option<usize>>), MechanismError> {
    let d_head = blueprint.attention.heads.d_head();
    let (mut rotaries, mut of_layer) = (Vec::new(), Vec::new());
    for layer in &blueprint.layers {
        let Rotation::Rotary { width, theta, scaling, divisors } = &layer.rotation else {
            of_layer.push(None);
            continue;
        };
        let mut rotary = Rotary::in_single_precision(d_head, *width, *theta, scaling.clone(), Pairing::Halves)?;
        if let Divisors::EachPair(divisors) = divisors {
            rotary = rotary.divided_by(divisors)?;
        }
        let known = rotaries.iter().position(|known| *known == rotary);
        of_layer.push(Some(known.unwrap_or(rotaries.len())));
        if known.is_none() {
            rotaries.push(rotary);
        }
    }
    Ok((rotaries, of_layer))
}
