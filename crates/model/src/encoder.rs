//! The forward pass of an encoder: every token sees every other, and what comes out are vectors, not logits.

use glassbox_anatomy::{Observer, Off, Tap};
use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::Cache;
use glassbox_mechanisms::softmax::soft_cap_in_place;
use glassbox_mechanisms::{Kernels, Workers};

use crate::blueprint::{Blueprint, HeadMatrix};
use crate::decoder::{Body, Part, Run};
use crate::linear::Linear;
use crate::weights::Weights;
use crate::{ModelError, door, families};

/// A model that turns a text into vectors, such as BERT; ready to run.
#[derive(Debug)]
pub struct Encoder {
    blueprint: Blueprint,
    kernels: Kernels,
    pub(crate) body: Body,
    /// Of the first token's vector, before a hyperbolic tangent.
    pub(crate) pooler: Option<Linear>,
}

/// What an encoder makes of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// [token, d_model], as the last block leaves them.
    pub vectors: Vec<f32>,
    /// [d_model]: the first token's vector, projected and bounded, where the file has the weights for it.
    pub pooled: Option<Vec<f32>>,
}

impl Encoder {
    /// Reads settings and weights of a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`crate::Model::open`], and where the model is a decoder.
    pub fn open(checkpoint: &Checkpoint, kernels: Kernels) -> Result<Self, ModelError> {
        let (_, dialect, blueprint) = families::read(checkpoint)?;
        if blueprint.unembedding.head != HeadMatrix::None {
            return Err(ModelError::NoEncoder { family: blueprint.family, file: checkpoint.label().to_owned() });
        }
        let mut weights = Weights::read(checkpoint, &blueprint, dialect)?;
        let body = Body::new(&blueprint, &mut weights)?;
        let pooler = Linear::pooler(&blueprint, &mut weights);
        Ok(Self { blueprint, kernels, body, pooler })
    }

    /// Whether the model of this checkpoint is one of these, told from its settings alone.
    ///
    /// # Errors
    ///
    /// Where no family reads the file, or a setting is missing, unusable or unread.
    pub fn reads(checkpoint: &Checkpoint) -> Result<bool, ModelError> {
        let (_, _, blueprint) = families::read(checkpoint)?;
        Ok(blueprint.unembedding.head == HeadMatrix::None)
    }

    /// Which version of every mechanism runs.
    #[must_use]
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// What the model is made of.
    #[must_use]
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Reads a text.
    ///
    /// - `ids`          [token]
    /// - `token_types`  [token], 0 for the first sentence and 1 for the second; without them, 0 for all
    ///
    /// The bits depend on the tokens alone, not on the number of workers.
    ///
    /// # Errors
    ///
    /// Where there are no ids, one is outside the vocabulary, there are more than learned positions, or a type has no vector.
    pub fn encode(&self, ids: &[u32], token_types: Option<&[u32]>, workers: &Workers) -> Result<Encoded, ModelError> {
        self.pass(ids, token_types, &[], workers, &mut Off)
    }

    /// As [`Encoder::encode`], watched: the same bits, unless the observer edits. `norm.out` and `logits` are never shown.
    ///
    /// # Errors
    ///
    /// As [`Encoder::encode`].
    pub fn encode_observed(
        &self,
        ids: &[u32],
        token_types: Option<&[u32]>,
        workers: &Workers,
        observer: &mut dyn Observer,
    ) -> Result<Encoded, ModelError> {
        if let Some(token) = observer.asks().logit {
            return Err(ModelError::NoPathToLogit { token, vocab: 0, found: "an encoder, which has no logits" });
        }
        let edited = door::layers_with_edited_weights(&self.blueprint, observer, 0);
        self.pass(ids, token_types, &edited, workers, observer)
    }

    fn pass<O: Observer + ?Sized>(
        &self,
        ids: &[u32],
        token_types: Option<&[u32]>,
        edited: &[usize],
        workers: &Workers,
        observer: &mut O,
    ) -> Result<Encoded, ModelError> {
        door::check_ids(&self.blueprint, ids, 0)?;
        door::check_token_types(&self.blueprint, ids, token_types)?;
        // Keys and values of this text alone, in f32; the door has bounded its length by the table of positions.
        let mut cache = Cache::new(&self.blueprint.cache_layers(), ids.len(), u64::MAX)?;
        let tokens = ids.len();
        let parts = vec![Part { sequence: 0, first: 0, rows: 0..tokens, turns: self.body.turns(0..tokens, tokens) }];
        let run = Run { kernels: self.kernels, workers, edited, prefix: 0, toward: None, tokens, parts };
        let vectors = self.body.forward(ids, token_types, &mut [&mut cache], &run, &mut Tap::new(observer, 0))?;
        let pooled = self.pooler.as_ref().map(|pooler| {
            let mut pooled = pooler.apply(&vectors[..self.blueprint.d_model], &run);
            soft_cap_in_place(self.kernels, 1.0, &mut pooled); // 1 · tanh(x / 1)
            pooled
        });
        Ok(Encoded { vectors, pooled })
    }
}
