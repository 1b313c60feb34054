//! Blueprint, weights and the one forward pass; families as tables.
//!
//! - [`Model`]: opened from a checkpoint; runs forward passes, observed or not
//! - [`Encoder`]: the same for models that turn a text into vectors
//! - [`SentenceRecipe`]: how its vectors become one, as the model's files say
//! - [`Blueprint`]: the questions that define a decoder, answered by the model's family
//! - [`Rows`]: of which tokens the logits are wanted
//! - [`Sequence`]: tokens and their cache, for passes over several at once
//! - [`Keeping`]: how a cache stores, and what layers with a window keep
//! - [`LogitDirection`]: a logit as the sum of what each part of the residual stream gives to it
//! - [`GgufModel`]: a model of a folder, as its family's GGUF files would have it
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
mod encoder;
mod error;
mod explain;
mod families;
mod feed_forward;
mod linear;
mod norm;
#[cfg(test)]
mod planted;
mod read_out;
mod sentence;
mod slot;
mod weights;

use std::num::NonZeroUsize;

use glassbox_anatomy::{Observer, Off};
use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::{Cache, CachePlan, KvType, LayerPlan, LayerShape, room_for_together};
use glassbox_mechanisms::{Kernels, Workers};

pub use blueprint::Blueprint;
pub use encoder::{Encoded, Encoder};
pub use error::ModelError;
pub use explain::explain;
pub use families::{GgufModel, GgufTensor, Proof, proofs};
pub use read_out::{HeadParts, LogitDirection};
pub use sentence::{Pooling, SentenceRecipe, cosine};

// The two kernels with long sums. In unit tests of this crate planted ones can take their place.
#[cfg(not(test))]
use glassbox_mechanisms::{attention::attend, matmul::project};
#[cfg(test)]
use planted::{attend, project};

/// The checker of `tests/same_bits` runs in unit tests too.
#[cfg(test)]
extern crate self as glassbox_model;

use blueprint::{HeadMatrix, Window};
use decoder::{Decoder, PIECE, Pass};
use weights::Weights;

/// A model with its weights, ready to run.
#[derive(Debug)]
pub struct Model {
    blueprint: Blueprint,
    kernels: Kernels,
    activations: Activations,
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

/// Tokens to be read after those that a cache holds.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// The tokens.
    pub ids: &'a [u32],
    /// What was read before; the tokens are added to it.
    pub cache: &'a mut Cache,
    /// Of which of the tokens the logits are wanted.
    pub rows: Rows,
}

/// How a cache keeps what it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// How keys and values are stored; the logits depend on it.
    pub kv_type: KvType,
    /// What layers with a window keep; no logit depends on it.
    pub windows: Windows,
}

/// What the cache of a layer with a window keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// Everything, so that a sequence can be cut back to any length and continued.
    #[default]
    Whole,
    /// What later tokens see; a sequence cannot be cut back by more than some of the last tokens.
    Ring,
}

/// What a token's numbers are when they meet weights that are stored in blocks of codes (Q4_0 to Q6_K). Floating-point weights always meet
/// them as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activations {
    /// As they are: weights are decoded, and the product is that of two `f32`. For research and for comparing with other programs.
    #[default]
    Exact,
    /// Rounded to signed bytes, 32 of which share a factor: products of integers, two to three times faster. llama.cpp always rounds them, and
    /// more coarsely for K types. Moves logits by some hundredths of their spread: 0.02 in Qwen2.5-Coder-0.5B, 0.06 in Gemma-3-270M.
    Rounded,
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
        Self::open_with(checkpoint, kernels, Activations::Exact, &Workers::inline())
    }

    /// As [`Model::open`], and says what tokens are when they meet quantised weights.
    ///
    /// With [`Activations::Rounded`], quantised weights are copied once into panels, by `workers`; the copy is as large as they are.
    ///
    /// # Errors
    ///
    /// As [`Model::open`], and where the system gives no memory for the copy.
    pub fn open_with(checkpoint: &Checkpoint, kernels: Kernels, activations: Activations, workers: &Workers) -> Result<Self, ModelError> {
        let (dialect, blueprint) = Self::read(checkpoint)?;
        let mut weights = Weights::read(checkpoint, &blueprint, dialect)?;
        if activations == Activations::Rounded {
            weights.lay_out(&blueprint, workers)?;
        }
        let decoder = Decoder::new(&blueprint, weights)?;
        Ok(Self { blueprint, kernels, activations, decoder })
    }

    /// What a model of this checkpoint would be made of, told from its settings alone: enough to know whether it can be run.
    ///
    /// # Errors
    ///
    /// Where no family reads the file, it is an encoder, or a setting is missing, unusable or unread.
    pub fn blueprint_of(checkpoint: &Checkpoint) -> Result<Blueprint, ModelError> {
        Self::read(checkpoint).map(|(_, blueprint)| blueprint)
    }

    fn read(checkpoint: &Checkpoint) -> Result<(&'static families::Dialect, Blueprint), ModelError> {
        let (_, dialect, blueprint) = families::read(checkpoint)?;
        if blueprint.unembedding.head == HeadMatrix::None {
            return Err(ModelError::NoDecoder { family: blueprint.family, file: checkpoint.label().to_owned() });
        }
        Ok((dialect, blueprint))
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

    /// What tokens are when they meet quantised weights.
    #[must_use]
    pub fn activations(&self) -> Activations {
        self.activations
    }

    /// An empty cache for up to `capacity` tokens of this model, which keeps everything as `f32`.
    ///
    /// # Errors
    ///
    /// Where it would take more than `limit_bytes`.
    pub fn new_cache(&self, capacity: usize, limit_bytes: u64) -> Result<Cache, ModelError> {
        Ok(Cache::new(&self.cache_layers(), capacity, limit_bytes)?)
    }

    /// What a cache for up to `capacity` tokens of this model is to hold; [`Cache::planned`] makes it.
    #[must_use]
    pub fn cache_plan(&self, capacity: usize, keeping: Keeping) -> CachePlan {
        let window = |layer: usize| match (keeping.windows, self.blueprint.layers[layer].window) {
            (Windows::Ring, Window::Last(tokens)) => NonZeroUsize::new(tokens),
            _ => None,
        };
        let layers = self.cache_layers().into_iter().enumerate();
        let layers = layers.map(|(layer, shape)| LayerPlan { shape, window: window(layer) }).collect();
        CachePlan { layers, kv_type: keeping.kv_type, capacity, pass_tokens: PIECE.min(capacity) }
    }

    /// What a cache of this model keeps of each token, layer by layer.
    #[must_use]
    pub fn cache_layers(&self) -> Vec<LayerShape> {
        self.blueprint.cache_layers()
    }

    /// Whether [`Model::forward`] would read `ids` after the tokens that `cache` holds; nothing is computed.
    ///
    /// # Errors
    ///
    /// Those with which it would refuse.
    pub fn check(&self, ids: &[u32], cache: &Cache) -> Result<(), ModelError> {
        door::check(&self.blueprint, &self.cache_layers(), ids, cache)
    }

    /// Reads `ids` after the tokens that `cache` holds, and adds them to it.
    ///
    /// Returns the logits [row, vocab] of the rows asked for. Their bits depend on the tokens alone: not on the number of workers, nor on
    /// how many of them came in earlier passes; and on the capacity of the cache where [`Blueprint::depends_on_capacity`].
    ///
    /// # Errors
    ///
    /// Where there are no ids, one is outside the vocabulary, the cache is full or of another model, or learned positions end.
    /// The cache then holds what it held before, or, where a ring has let go of that, nothing.
    pub fn forward(&self, ids: &[u32], cache: &mut Cache, rows: Rows, workers: &Workers) -> Result<Vec<f32>, ModelError> {
        let pass = Pass { workers, kernels: self.kernels, edited: &[], prefix: 0 };
        Ok(self.pass(&mut [Sequence { ids, cache, rows }], pass, &mut Off)?.remove(0))
    }

    /// As [`Model::forward_observed`] from an empty cache, where the first `prefix` tokens see one another in both directions, as in a prefix language
    /// model. Later tokens, of this pass and of passes that follow in any way, see all before them; a sliding window holds in both directions.
    ///
    /// A prefix goes through the layers together, however long it is.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`]; where the cache holds something, there are fewer tokens than `prefix`, or it has more than 512 and the model has windows,
    /// whose rings have room for a piece of a pass.
    pub fn forward_with_prefix(
        &self,
        ids: &[u32],
        prefix: usize,
        cache: &mut Cache,
        rows: Rows,
        workers: &Workers,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f32>, ModelError> {
        door::check_prefix(&self.blueprint, ids, prefix, cache)?;
        let edited = door::layers_with_edited_weights(&self.blueprint, observer, 0);
        let pass = Pass { workers, kernels: self.kernels, edited: &edited, prefix };
        Ok(self.pass(&mut [Sequence { ids, cache, rows }], pass, observer)?.remove(0))
    }

    /// Reads the tokens of several sequences together, each after those that its own cache holds: all rows go through every matrix side by
    /// side, without padding, and attention runs sequence by sequence. Returns what [`Model::forward`] gives for each, the same bits.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`], for any of the sequences; or where their caches share a pool that has no room for all of them.
    pub fn forward_together(&self, sequences: &mut [Sequence<'_>], workers: &Workers) -> Result<Vec<Vec<f32>>, ModelError> {
        self.pass(sequences, Pass { workers, kernels: self.kernels, edited: &[], prefix: 0 }, &mut Off)
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
        let pass = Pass { workers, kernels: self.kernels, edited: &edited, prefix: 0 };
        Ok(self.pass(&mut [Sequence { ids, cache, rows }], pass, observer)?.remove(0))
    }

    /// The direction of a token's logit in `out` of the last block, [d_model]: before a final soft-cap, the logit is the row's product with it over the row's
    /// root mean square (where the last norm centres: standard deviation) with that norm's epsilon, plus what the norm's bias gives.
    ///
    /// # Errors
    ///
    /// Where the token is outside the vocabulary, or norms change the stream between blocks.
    pub fn toward_logit(&self, token: u32) -> Result<Vec<f32>, ModelError> {
        self.decoder.toward(token)
    }

    /// Compiled twice: for [`Off`], in which every tap vanishes, and for `dyn Observer`.
    fn pass<O: Observer + ?Sized>(
        &self,
        sequences: &mut [Sequence<'_>],
        pass: Pass<'_>,
        observer: &mut O,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let layers = self.cache_layers();
        for Sequence { ids, cache, .. } in sequences.iter() {
            door::check(&self.blueprint, &layers, ids, cache)?;
        }
        room_for_together(sequences.iter().map(|sequence| (&*sequence.cache, sequence.ids.len())))?;
        let before: Vec<usize> = sequences.iter().map(|sequence| sequence.cache.len()).collect();
        let logits = self.decoder.forward(sequences, pass, observer);
        if logits.is_err() {
            for (Sequence { cache, .. }, before) in sequences.iter_mut().zip(before) {
                if cache.truncate(before).is_err() {
                    cache.clear();
                }
            }
        }
        logits
    }
}
