//! Blueprint, weights and the one forward pass; families as tables.
//!
//! - [`Model`]: opened from a checkpoint; runs forward passes, observed or not
//! - [`Blueprint`]: the questions that define a decoder, answered by the model's family
//! - [`Rows`]: of which tokens the logits are wanted
//! - [`explain`]: the forward pass of one blueprint, written out
//!
//! The walk of a token: `decoder.rs`, then `block.rs`, `attention.rs`, `feed_forward.rs`. The model narrates: between two mechanisms it
//! says where it is, one line a site of `glassbox-anatomy`.
//!
//! Invariant: a pass fails only at its door, or for want of room in the cache. Sizes are checked once, when weights meet slots and
//! tokens meet the door. Only `families/` knows a family's name, a setting's name or a tensor's name.

mod assemble;
mod attention;
mod block;
pub mod blueprint;
mod decoder;
mod door;
mod error;
mod explain;
mod families;
mod feed_forward;
mod linear;
mod norm;
mod slot;
mod weights;

use glassbox_anatomy::{Observer, Off};
use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::{Cache, LayerShape};
use glassbox_mechanisms::{Kernels, Workers};

pub use blueprint::Blueprint;
pub use error::ModelError;
pub use explain::explain;
pub use families::{Proof, proofs};

use decoder::{Decoder, Pass};
use weights::Weights;

/// A model with its weights, ready to run.
#[derive(Debug)]
pub struct Model {
    blueprint: Blueprint,
    kernels: Kernels,
    decoder: Decoder,
}

/// Of which tokens of a pass the logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Of none: the pass only fills the cache.
    None,
    /// Of the last one.
    Last,
    /// Of every one.
    All,
}

impl Model {
    /// Reads settings and weights of a checkpoint.
    ///
    /// Weights stay as they are stored and where they lie (mapped from the file); only layouts that differ are copied.
    ///
    /// # Errors
    ///
    /// Where no family reads the file, a setting is missing, unusable or unread, or a tensor is missing, of other sizes, or left over.
    pub fn open(checkpoint: &Checkpoint, kernels: Kernels) -> Result<Self, ModelError> {
        let (_, dialect, blueprint) = families::read(checkpoint)?;
        let weights = Weights::read(checkpoint, &blueprint, dialect)?;
        let decoder = Decoder::new(&blueprint, weights)?;
        Ok(Self { blueprint, kernels, decoder })
    }

    /// What the model is made of.
    #[must_use]
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Which version of every mechanism runs.
    #[must_use]
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// An empty cache for up to `capacity` tokens of this model.
    ///
    /// # Errors
    ///
    /// Where it would take more than `limit_bytes`.
    pub fn new_cache(&self, capacity: usize, limit_bytes: u64) -> Result<Cache, ModelError> {
        Ok(Cache::new(&self.cache_layers(), capacity, limit_bytes)?)
    }

    /// What a cache of this model keeps of each token, layer by layer.
    #[must_use]
    pub fn cache_layers(&self) -> Vec<LayerShape> {
        let heads = self.blueprint.attention.heads;
        vec![LayerShape { kv_heads: heads.kv_heads(), d_head: heads.d_head() }; self.blueprint.layers.len()]
    }

    /// Reads `ids` after the tokens that `cache` holds, and adds them to it.
    ///
    /// Returns the logits [row, vocab] of the rows asked for. Their bits depend on the tokens alone: not on the number of workers, nor on
    /// how many of them came in earlier passes.
    ///
    /// # Errors
    ///
    /// Where there are no ids, one is outside the vocabulary, the cache is full or of another model, or learned positions end.
    /// The cache then holds what it held before, or, where a ring has let go of that, nothing.
    pub fn forward(&self, ids: &[u32], cache: &mut Cache, rows: Rows, workers: &Workers) -> Result<Vec<f32>, ModelError> {
        self.pass(ids, cache, Pass { rows, workers, kernels: self.kernels, edited: &[] }, &mut Off)
    }

    /// As [`Model::forward`], watched: the same bits, unless the observer edits.
    ///
    /// A long pass goes through the layers in pieces of 512 tokens; each piece is narrated with its own first row. A layer whose scores or
    /// weights are edited mixes its values by the plain definition instead of the kernel, so even an edit that changes no
    /// number may move the last bits.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`].
    pub fn forward_observed(
        &self,
        ids: &[u32],
        cache: &mut Cache,
        rows: Rows,
        workers: &Workers,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f32>, ModelError> {
        let edited = door::layers_with_edited_weights(&self.blueprint, observer, cache.len());
        self.pass(ids, cache, Pass { rows, workers, kernels: self.kernels, edited: &edited }, observer)
    }

    /// Compiled twice: for [`Off`], in which every tap vanishes, and for `dyn Observer`.
    fn pass<O: Observer + ?Sized>(&self, ids: &[u32], cache: &mut Cache, pass: Pass<'_>, observer: &mut O) -> Result<Vec<f32>, ModelError> {
        door::check(&self.blueprint, &self.cache_layers(), ids, cache)?;
        let before = cache.len();
        let logits = self.decoder.forward(ids, cache, pass, observer);
        if logits.is_err() && cache.truncate(before).is_err() {
            cache.clear();
        }
        Ok(logits?)
    }
}
