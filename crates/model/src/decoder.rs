//! The forward pass: embed, the blocks one after another, the last norm, logits.

use std::ops::Range;

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::cache::Cache;
use glassbox_mechanisms::matmul::Weight;
use glassbox_mechanisms::position::{Rotary, Turns, add_learned, sinusoidal};
use glassbox_mechanisms::{Kernels, MechanismError, Workers, embedding, softmax};

use crate::block::Block;
use crate::blueprint::SoftCap;
use crate::norm::NormWeights;
use crate::{ModelError, Rows, Sequence, project};

/// Tokens that go through the layers together; bounds the memory of a long prompt. No bit depends on it.
pub(crate) const PIECE: usize = 512;

/// From logits back: the body, the last norm, the matrix of logits.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) body: Body,
    pub(crate) norm: NormWeights,
    pub(crate) unembedding: Weight,
    pub(crate) soft_cap: SoftCap,
}

/// What decoders and encoders share, in the order in which a token meets it.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) embedding: Weight,
    pub(crate) embedding_scale: f32,
    /// [type, d_model]
    pub(crate) token_types: Option<Weight>,
    pub(crate) positions: Positions,
    pub(crate) embedding_norm: Option<NormWeights>,
    pub(crate) rotaries: Vec<Rotary>,
    pub(crate) blocks: Vec<Block>,
}

/// Vectors that are added by position.
#[derive(Debug)]
pub(crate) enum Positions {
    None,
    /// [position, d_model]
    Learned(Vec<f32>),
    Sinusoidal,
}

/// How a pass is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'a> {
    pub(crate) kernels: Kernels,
    pub(crate) workers: &'a Workers,
    /// Layers whose scores or weights the observer changes.
    pub(crate) edited: &'a [usize],
    /// How many of the first tokens see one another in both directions.
    pub(crate) prefix: usize,
}

/// What all steps of one piece of a pass share.
pub(crate) struct Run<'a> {
    pub(crate) kernels: Kernels,
    pub(crate) workers: &'a Workers,
    pub(crate) edited: &'a [usize],
    pub(crate) prefix: usize,
    /// [d_model] The direction of the logit that is to be divided among keys, in the residual stream after the last block.
    pub(crate) toward: Option<&'a [f32]>,
    pub(crate) tokens: usize,
    /// Sequences whose tokens make up the piece, one after the other; where somebody watches there is one.
    pub(crate) parts: Vec<Part>,
}

impl Run<'_> {
    /// Changes rows of `width` numbers, each by itself, on all threads where there are enough of them.
    pub(crate) fn each_row(&self, x: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
        self.workers.split_rows(x, width, (NUMBERS_A_PIECE / width).max(1), work);
    }
}

const NUMBERS_A_PIECE: usize = 1 << 14; // some microseconds of work

/// The tokens of one sequence in a piece.
pub(crate) struct Part {
    /// Which sequence, and which cache.
    pub(crate) sequence: usize,
    /// Absolute position of the first token.
    pub(crate) first: usize,
    /// Where in the piece.
    pub(crate) rows: Range<usize>,
    /// The turns of these tokens, one entry for each different rotation of the model.
    pub(crate) turns: Vec<Turns>,
}

impl Decoder {
    /// Reads the tokens of all sequences; the results are [row, vocab], one for each sequence.
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        sequences: &mut [Sequence<'_>],
        pass: Pass<'_>,
        observer: &mut O,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let Pass { kernels, workers, edited, prefix } = pass;
        let toward = match observer.is_on() {
            true => observer.asks().logit.map(|token| self.toward(token)).transpose()?,
            false => None,
        };
        let mut logits = vec![Vec::new(); sequences.len()];
        let mut read = vec![0; sequences.len()];
        loop {
            let (ids, parts) = self.piece(sequences, &mut read, PIECE.max(prefix));
            let Some(part) = parts.first() else { return Ok(logits) };
            let mut tap = Tap::new(observer, part.first);
            let run = Run { kernels, workers, edited, prefix, toward: toward.as_deref(), tokens: ids.len(), parts };
            let mut caches: Vec<&mut Cache> = sequences.iter_mut().map(|sequence| &mut *sequence.cache).collect();
            let x = self.body.forward(&ids, None, &mut caches, &run, &mut tap)?;
            for part in &run.parts {
                let Sequence { ids, cache, rows } = &mut sequences[part.sequence];
                cache.advance(part.rows.len())?;
                let from = match rows {
                    Rows::All => part.rows.start,
                    Rows::Last if read[part.sequence] == ids.len() => part.rows.end - 1,
                    Rows::Last | Rows::None => continue,
                };
                let first = part.first + from - part.rows.start;
                logits[part.sequence].extend(self.unembed(&x, from..part.rows.end, &run, &mut tap.from_row(first)));
            }
        }
    }

    /// The next tokens that go through the layers together, sequence after sequence, at most `most`. `read` counts what went before.
    fn piece(&self, sequences: &[Sequence<'_>], read: &mut [usize], most: usize) -> (Vec<u32>, Vec<Part>) {
        let (mut all, mut parts) = (Vec::new(), Vec::new());
        for (index, (sequence, read)) in sequences.iter().zip(read).enumerate() {
            let tokens = (sequence.ids.len() - *read).min(most - all.len());
            if tokens == 0 {
                continue;
            }
            let first = sequence.cache.len();
            let turns = self.body.turns(first..first + tokens, sequence.cache.capacity());
            parts.push(Part { sequence: index, first, rows: all.len()..all.len() + tokens, turns });
            all.extend_from_slice(&sequence.ids[*read..*read + tokens]);
            *read += tokens;
        }
        (all, parts)
    }

    /// The direction of a token's logit in the residual stream after the last block, [d_model]: before a soft-cap, the logit is the stream's product with it,
    /// over the stream's root mean square or standard deviation as the last norm takes it, plus the product of the norm's bias.
    pub(crate) fn toward(&self, token: u32) -> Result<Vec<f32>, ModelError> {
        Ok(self.norm.toward(&self.reader(token)?))
    }

    /// The token's row of the output matrix, [d_model], where its logit is a sum over the parts of the stream.
    pub(crate) fn reader(&self, token: u32) -> Result<Vec<f32>, ModelError> {
        let vocab = self.unembedding.rows();
        let refuse = |found| ModelError::NoPathToLogit { token, vocab, found };
        if self.body.blocks.iter().any(Block::norms_the_stream) {
            return Err(refuse("norms on the stream itself"));
        }
        let row = usize::try_from(token).ok().filter(|row| *row < vocab).ok_or_else(|| refuse("a token outside the vocabulary"))?;
        let mut direction = vec![0.0; self.unembedding.columns()];
        self.unembedding.decode_row(row, &mut direction);
        Ok(direction)
    }

    /// The logits of some tokens of this piece.
    pub(crate) fn unembed<O: Observer + ?Sized>(&self, x: &[f32], tokens: Range<usize>, run: &Run<'_>, tap: &mut Tap<'_, O>) -> Vec<f32> {
        let (d_model, vocab, rows) = (self.body.embedding.columns(), self.unembedding.rows(), tokens.len());
        let mut x = self.norm.apply(&x[tokens.start * d_model..tokens.end * d_model], run);
        tap.at(Site::NormOut, &[rows, d_model], &mut x);
        let mut logits = vec![0.0; rows * vocab];
        project(run.kernels, &self.unembedding, &x, None, &mut logits, run.workers);
        if let SoftCap::At(cap) = self.soft_cap {
            softmax::soft_cap_in_place(run.kernels, cap, &mut logits);
        }
        tap.at(Site::Logits, &[rows, vocab], &mut logits);
        logits
    }
}

impl Body {
    /// The turns of tokens at `positions`, one entry for each different rotation.
    pub(crate) fn turns(&self, positions: Range<usize>, sequence: usize) -> Vec<Turns> {
        self.rotaries.iter().map(|rotary| rotary.turns(positions.clone(), sequence)).collect()
    }

    /// - `token_types`  [token]; without them, 0 for all
    ///
    /// The result is the residual stream after the last block, [token, d_model].
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        ids: &[u32],
        token_types: Option<&[u32]>,
        caches: &mut [&mut Cache],
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<Vec<f32>, MechanismError> {
        let mut x = self.embed(ids, token_types, run)?;
        tap.at(Site::EmbedOut, &[run.tokens, self.embedding.columns()], &mut x);
        for block in &self.blocks {
            block.forward(&mut x, caches, run, tap)?;
        }
        Ok(x)
    }

    fn embed(&self, ids: &[u32], token_types: Option<&[u32]>, run: &Run<'_>) -> Result<Vec<f32>, MechanismError> {
        let d_model = self.embedding.columns();
        let mut x = vec![0.0; run.tokens * d_model];
        embedding::look_up(&self.embedding, ids, self.embedding_scale, &mut x);
        if let Some(table) = &self.token_types {
            let mut added = vec![0.0; x.len()];
            embedding::look_up(table, token_types.unwrap_or(&vec![0; ids.len()]), 1.0, &mut added);
            x.iter_mut().zip(added).for_each(|(x, added)| *x += added);
        }
        for part in &run.parts {
            let x = &mut x[part.rows.start * d_model..part.rows.end * d_model];
            match &self.positions {
                Positions::None => {}
                Positions::Learned(table) => add_learned(x, table, d_model, part.first)?,
                Positions::Sinusoidal => add_learned(x, &sinusoidal(part.first..part.first + part.rows.len(), d_model), d_model, 0)?,
            }
        }
        Ok(match &self.embedding_norm {
            None => x,
            Some(norm) => norm.apply(&x, run),
        })
    }
}
