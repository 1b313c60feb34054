//! The forward pass: embed, the blocks one after another, the last norm, logits.

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::cache::Cache;
use glassbox_mechanisms::position::{Rotary, Turns, add_learned};
use glassbox_mechanisms::{Kernels, MechanismError, Workers, embedding, matmul, softmax};
use glassbox_tensor::Matrix;

use crate::Rows;
use crate::block::Block;
use crate::blueprint::SoftCap;
use crate::norm::NormWeights;

/// Tokens that go through the layers together; bounds the memory of a long prompt. No bit depends on it.
const PIECE: usize = 512;

/// The weights in the order in which a token meets them.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) embedding: Matrix,
    pub(crate) embedding_scale: f32,
    pub(crate) positions: Option<Vec<f32>>,
    pub(crate) embedding_norm: Option<NormWeights>,
    pub(crate) rotaries: Vec<Rotary>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) norm: NormWeights,
    pub(crate) unembedding: Matrix,
    pub(crate) soft_cap: SoftCap,
}

/// How a pass is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) rows: Rows,
    pub(crate) kernels: Kernels,
    pub(crate) workers: &'a Workers,
    /// Layers whose scores or weights the observer changes.
    pub(crate) edited: &'a [usize],
}

/// What all steps of one piece of a pass share.
pub(crate) struct Run<'a> {
    pub(crate) kernels: Kernels,
    pub(crate) workers: &'a Workers,
    pub(crate) edited: &'a [usize],
    /// Absolute position of the first token.
    pub(crate) first: usize,
    pub(crate) tokens: usize,
    /// The turns of these tokens, one entry for each different rotation of the model.
    pub(crate) turns: Vec<Turns>,
}

impl Decoder {
    /// - `ids`  [token]; the result is [row, vocab]
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        ids: &[u32],
        cache: &mut Cache,
        pass: Pass<'_>,
        observer: &mut O,
    ) -> Result<Vec<f32>, MechanismError> {
        let mut logits = Vec::new();
        let pieces = ids.len().div_ceil(PIECE);
        for (index, ids) in ids.chunks(PIECE).enumerate() {
            let (first, tokens) = (cache.len(), ids.len());
            let turns = self.rotaries.iter().map(|rotary| rotary.turns(first..first + tokens, cache.capacity())).collect();
            let Pass { kernels, workers, edited, .. } = pass;
            let run = Run { kernels, workers, edited, first, tokens, turns };
            let mut tap = Tap::new(observer, first);
            let mut x = self.embed(ids, &run, &mut tap)?;
            for block in &self.blocks {
                block.forward(&mut x, cache, &run, &mut tap)?;
            }
            cache.advance(tokens)?;
            let from = match pass.rows {
                Rows::All => 0,
                Rows::Last if index + 1 == pieces => tokens - 1,
                Rows::Last | Rows::None => continue,
            };
            logits.extend(self.unembed(&x, from, &run, &mut tap));
        }
        Ok(logits)
    }

    fn embed<O: Observer + ?Sized>(&self, ids: &[u32], run: &Run<'_>, tap: &mut Tap<'_, O>) -> Result<Vec<f32>, MechanismError> {
        let d_model = self.embedding.columns();
        let mut x = vec![0.0; run.tokens * d_model];
        embedding::look_up(&self.embedding, ids, self.embedding_scale, &mut x);
        if let Some(positions) = &self.positions {
            add_learned(&mut x, positions, d_model, run.first)?;
        }
        if let Some(norm) = &self.embedding_norm {
            x = norm.apply(&x, run);
        }
        tap.at(Site::EmbedOut, &[run.tokens, d_model], &mut x);
        Ok(x)
    }

    /// The logits of the tokens from index `from` of this piece on.
    fn unembed<O: Observer + ?Sized>(&self, x: &[f32], from: usize, run: &Run<'_>, tap: &mut Tap<'_, O>) -> Vec<f32> {
        let (d_model, vocab, rows) = (self.embedding.columns(), self.unembedding.rows(), run.tokens - from);
        let mut tap = tap.from_row(run.first + from);
        let mut x = self.norm.apply(&x[from * d_model..], run);
        tap.at(Site::NormOut, &[rows, d_model], &mut x);
        let mut logits = vec![0.0; rows * vocab];
        matmul::project(run.kernels, &self.unembedding, &x, None, &mut logits, run.workers);
        if let SoftCap::At(cap) = self.soft_cap {
            softmax::soft_cap_in_place(run.kernels, cap, &mut logits);
        }
        tap.at(Site::Logits, &[rows, vocab], &mut logits);
        logits
    }
}
