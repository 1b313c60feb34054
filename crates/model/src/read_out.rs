//! Reading the residual stream out: what any layer's stream would answer, and how each part of it moved one logit.

use glassbox_anatomy::{Off, Tap};
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::attention::measures::value_products;
use glassbox_mechanisms::cache::Cache;

use crate::blueprint::SoftCap;
use crate::decoder::Run;
use crate::{Model, ModelError};

/// One logit of one token as a linear function of the parts of its residual stream.
///
/// The last norm is held at what it does to this stream: it divides by a number, which is now a constant. So a logit is
/// `constant + Σ direction · part` over everything that was added to the stream: the embedding, and what the attention and the
/// feed-forward of each layer add. (Direct logit attribution; of a soft-capped model, the logit before the cap.)
#[derive(Debug, Clone)]
pub struct LogitDirection {
    /// [d_model]
    direction: Vec<f64>,
    /// What the bias of the last norm gives; no part of the stream.
    constant: f64,
}

/// What the heads of one layer added to one logit.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadParts {
    /// [head]
    pub heads: Vec<f64>,
    /// What the biases of the output projection and of a norm after it give.
    pub bias: f64,
}

/// A direction of the stream in the values of a layer.
struct ValueDirection {
    /// [head, d_head]
    of_values: Vec<f64>,
    /// What is added whatever the values hold.
    bias: f64,
}

impl LogitDirection {
    /// What a part [d_model] of the stream adds to the logit.
    ///
    /// # Panics
    ///
    /// Where the part is not as wide as the stream.
    #[must_use]
    pub fn of(&self, part: &[f32]) -> f64 {
        assert_eq!(part.len(), self.direction.len(), "a part is as wide as the stream");
        self.direction.iter().zip(part).map(|(direction, part)| direction * f64::from(*part)).sum()
    }

    /// What is added to the logit whatever the stream holds.
    #[must_use]
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// The direction of the difference of two logits of the same stream: this one less `other`.
    ///
    /// # Panics
    ///
    /// Where the two belong to models of different widths.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        assert_eq!(self.direction.len(), other.direction.len(), "both read one stream");
        let direction = self.direction.iter().zip(&other.direction).map(|(a, b)| a - b).collect();
        Self { direction, constant: self.constant - other.constant }
    }
}

impl Model {
    /// The logits [row, vocab] that the last norm and the output matrix make of `streams` [row, d_model] from any layer, soft-cap
    /// included (the logit lens; nostalgebraist 2020). Of what leaves the last block these are the model's logits.
    ///
    /// # Panics
    ///
    /// Where `streams` is not made of whole rows.
    #[must_use]
    pub fn read_out(&self, streams: &[f32], workers: &Workers) -> Vec<f32> {
        let rows = streams.len() / self.blueprint.d_model;
        assert_eq!(rows * self.blueprint.d_model, streams.len(), "streams are rows of d_model numbers");
        let run = Run { kernels: self.kernels, workers, edited: &[], prefix: 0, toward: None, tokens: rows, parts: Vec::new() };
        self.decoder.unembed(streams, 0..rows, &run, &mut Tap::new(&mut Off, 0))
    }

    /// How the logit of `token` follows from the parts of `stream` [d_model], which leaves the last block.
    ///
    /// # Errors
    ///
    /// For an id that has no row in the output matrix, and for a family that norms the stream itself between blocks.
    ///
    /// # Panics
    ///
    /// Where `stream` is not one row.
    pub fn logit_direction(&self, stream: &[f32], token: u32) -> Result<LogitDirection, ModelError> {
        let row: Vec<f64> = self.decoder.reader(token)?.into_iter().map(f64::from).collect();
        let (direction, constant) = self.decoder.norm.before(stream, &row);
        Ok(LogitDirection { direction, constant })
    }

    /// The direction of an answer's logit, or of how far it is above that of another answer, and what the parts through it add up to.
    ///
    /// - `stream`  [d_model], which leaves the last block
    /// - `logits`  [vocab], the model's own after it
    ///
    /// # Errors
    ///
    /// As [`Model::logit_direction`].
    ///
    /// # Panics
    ///
    /// Where `stream` is not one row, or `logits` not one of the vocabulary.
    pub fn answer_direction(
        &self,
        stream: &[f32],
        logits: &[f32],
        answer: u32,
        against: Option<u32>,
    ) -> Result<(LogitDirection, f64), ModelError> {
        let direction = self.logit_direction(stream, answer)?;
        let logit = self.before_cap(logits[answer as usize]);
        let Some(against) = against else { return Ok((direction, logit)) };
        Ok((direction.less(&self.logit_direction(stream, against)?), logit - self.before_cap(logits[against as usize])))
    }

    /// What each head of `layer` added to the logit of `direction`.
    ///
    /// - `mixed`     [head, d_head], the site `attn.z` of the token
    /// - `attn_out`  [d_model], the site `attn.out` of the token
    ///
    /// # Panics
    ///
    /// Where there is no such layer, or the sizes are not the layer's.
    #[must_use]
    pub fn head_parts(&self, layer: usize, mixed: &[f32], attn_out: &[f32], direction: &LogitDirection) -> HeadParts {
        let ValueDirection { of_values, bias } = self.value_direction(layer, attn_out, direction);
        assert_eq!(of_values.len(), mixed.len(), "`attn.z` has one number for each column of the output projection");
        let d_head = mixed.len() / self.blueprint.attention.heads.heads();
        let heads = of_values.chunks_exact(d_head).zip(mixed.chunks_exact(d_head));
        let heads =
            heads.map(|(of_values, mixed)| of_values.iter().zip(mixed).map(|(of_values, mixed)| of_values * f64::from(*mixed)).sum());
        HeadParts { heads: heads.collect(), bias }
    }

    /// What a key of weight 1 adds to the logit of `direction` through each head of `layer`, [head, key], for every key that `cache` holds.
    /// Times the weights of a row of attention, and added up over the keys, it is what [`Model::head_parts`] gives for that row.
    ///
    /// - `attn_out`  [d_model], the site `attn.out` of the token that attends
    ///
    /// # Errors
    ///
    /// Where the cache is not of this model.
    ///
    /// # Panics
    ///
    /// Where there is no such layer, or the sizes are not the layer's.
    pub fn key_parts(
        &self,
        layer: usize,
        cache: &Cache,
        attn_out: &[f32],
        direction: &LogitDirection,
        workers: &Workers,
    ) -> Result<Vec<f32>, ModelError> {
        let of_values: Vec<f32> = self.value_direction(layer, attn_out, direction).of_values.into_iter().map(|x| x as f32).collect();
        Ok(value_products(&cache.layer(layer)?, &self.blueprint.attention.heads, &of_values, workers)?)
    }

    /// A direction of the stream as the values of a layer see it, through the output projection and a norm after it.
    fn value_direction(&self, layer: usize, attn_out: &[f32], direction: &LogitDirection) -> ValueDirection {
        let block = &self.decoder.body.blocks[layer];
        let (direction, constant) = match &block.after_attention {
            None => (direction.direction.clone(), 0.0),
            Some(norm) => norm.before(attn_out, &direction.direction),
        };
        let out = &block.attention.out;
        let mut of_values = vec![0.0; self.blueprint.attention.heads.query_width()];
        out.each_row(|row, weights| {
            of_values.iter_mut().zip(weights).for_each(|(of_values, weight)| *of_values += f64::from(*weight) * direction[row]);
        });
        let bias: f64 =
            out.bias().iter().flat_map(|bias| bias.iter().zip(&direction)).map(|(bias, direction)| f64::from(*bias) * direction).sum();
        ValueDirection { of_values, bias: bias + constant }
    }

    /// A logit as it was before the soft-cap, if there is one: attributions are of that.
    fn before_cap(&self, logit: f32) -> f64 {
        let logit = f64::from(logit);
        self.logit_cap().map(f64::from).map_or(logit, |cap| cap * (logit / cap).atanh())
    }

    /// The soft-cap that bends the logits, where a family has one: attributions are of what stands before it.
    #[must_use]
    pub fn logit_cap(&self) -> Option<f32> {
        match self.decoder.soft_cap {
            SoftCap::At(cap) => Some(cap),
            SoftCap::None => None,
        }
    }
}
