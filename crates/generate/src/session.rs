use glassbox_anatomy::Observer;
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::{Cache, Pool};
use glassbox_mechanisms::softmax::log_probability;
use glassbox_model::{Keeping, Model, ModelError, Rows, Sequence};

/// Rows of logits that are held at once when many are wanted: 64 MiB with the largest vocabularies.
const ROWS_AT_ONCE: usize = 64;

/// One sequence of tokens and the cache of its keys and values.
///
/// A prompt that begins like the sequence held keeps that prefix: only the rest is computed. By the contract of equal
/// bits the logits are those of a fresh session.
///
/// A fork holds the same tokens without computing or storing them again: many questions about one prefix cost the prefix once.
#[derive(Debug)]
pub struct Session {
    cache: Cache,
    ids: Vec<u32>,
}

impl Session {
    /// An empty session for `model` with room for `context_tokens`, whose cache may take `limit_bytes`.
    ///
    /// # Errors
    ///
    /// Where the cache would need more than `limit_bytes`; the message holds both numbers.
    pub fn new(model: &Model, context_tokens: usize, limit_bytes: u64) -> Result<Self, ModelError> {
        Self::keeping(model, context_tokens, Keeping::default(), &Pool::new(limit_bytes))
    }

    /// An empty session for `model` with room for `context_tokens`, which stores as `keeping` says and takes its memory from `pool`.
    ///
    /// # Errors
    ///
    /// Where the full cache would need more than the whole pool; the message holds both numbers.
    pub fn keeping(model: &Model, context_tokens: usize, keeping: Keeping, pool: &Pool) -> Result<Self, ModelError> {
        Ok(Self { cache: Cache::planned(&model.cache_plan(context_tokens, keeping), pool)?, ids: Vec::new() })
    }

    /// Another session that holds the same tokens. They share memory; each goes on by itself, and none sees what the other adds.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { cache: self.cache.fork(), ids: self.ids.clone() }
    }

    /// Their keys and values.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The tokens held.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Tokens for which there was room at the start.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.cache.capacity()
    }

    /// Tokens for which there is still room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.cache.capacity() - self.ids.len()
    }

    /// Makes the session hold exactly `prompt` and gives the logits [vocab] after its last token.
    ///
    /// # Errors
    ///
    /// Those of the forward pass: an unknown id, no tokens, a full cache. The session is then empty.
    pub fn prompt(&mut self, model: &Model, prompt: &[u32], workers: &Workers) -> Result<Vec<f32>, ModelError> {
        self.keep_shared(prompt);
        let rest = &prompt[self.ids.len()..];
        self.advance(rest, |cache| model.forward(rest, cache, Rows::Last, workers))
    }

    /// Keeps of the tokens held those that `prompt` begins with, but not its last one, because that one's logits are wanted.
    pub fn keep_shared(&mut self, prompt: &[u32]) {
        self.truncate(self.shared(prompt));
    }

    /// How many tokens of `prompt` need not be computed: those with which the tokens held begin too, but not its last one.
    #[must_use]
    pub fn shared(&self, prompt: &[u32]) -> usize {
        let shared = self.ids.iter().zip(prompt).take_while(|(held, wanted)| held == wanted).count();
        shared.min(prompt.len().saturating_sub(1))
    }

    /// Makes the session hold exactly `prompt`, computed afresh under the eyes of `observer`; gives the logits of `rows`.
    ///
    /// # Errors
    ///
    /// Those of the forward pass.
    pub fn prompt_observed(
        &mut self,
        model: &Model,
        prompt: &[u32],
        rows: Rows,
        workers: &Workers,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f32>, ModelError> {
        self.truncate(0);
        self.push_observed(model, prompt, rows, workers, observer)
    }

    /// Appends tokens under the eyes of `observer`; gives the logits of `rows`. What the session held is not computed again.
    ///
    /// # Errors
    ///
    /// Those of the forward pass.
    pub fn push_observed(
        &mut self,
        model: &Model,
        ids: &[u32],
        rows: Rows,
        workers: &Workers,
        observer: &mut dyn Observer,
    ) -> Result<Vec<f32>, ModelError> {
        self.advance(ids, |cache| model.forward_observed(ids, cache, rows, workers, observer))
    }

    /// Appends one token and gives the logits [vocab] after it.
    ///
    /// # Errors
    ///
    /// Those of the forward pass.
    pub fn push(&mut self, model: &Model, id: u32, workers: &Workers) -> Result<Vec<f32>, ModelError> {
        self.advance(&[id], |cache| model.forward(&[id], cache, Rows::Last, workers))
    }

    /// Natural logarithms of the probabilities of `ids[start..]`, each given all tokens before it; of a first token, none.
    ///
    /// What the session held of `ids` is not computed again, so that many continuations of one context cost the context once.
    ///
    /// # Errors
    ///
    /// Those of the forward pass. The session is then empty.
    pub fn log_probabilities(
        &mut self,
        model: &Model,
        ids: &[u32],
        start: usize,
        workers: &Workers,
    ) -> Result<Vec<Option<f64>>, ModelError> {
        let mut scores = vec![None; usize::from(start == 0).min(ids.len())];
        let first = start.max(1); // the first token that has one before it
        if first >= ids.len() {
            return Ok(scores);
        }
        self.keep_shared(&ids[..first]);
        let before = &ids[self.ids.len()..first - 1];
        if !before.is_empty() {
            self.advance(before, |cache| model.forward(before, cache, Rows::None, workers))?;
        }
        let vocab = model.blueprint().vocab;
        for (piece, targets) in ids[first - 1..ids.len() - 1].chunks(ROWS_AT_ONCE).zip(ids[first..].chunks(ROWS_AT_ONCE)) {
            let logits = self.advance(piece, |cache| model.forward(piece, cache, Rows::All, workers))?;
            scores.extend(logits.chunks_exact(vocab).zip(targets).map(|(row, target)| log_probability(row, *target)));
        }
        Ok(scores)
    }

    /// Forgets all tokens from position `len` on; all of them, where a ring has let go of what the next token would see.
    pub fn truncate(&mut self, len: usize) {
        if self.cache.truncate(len).is_err() {
            self.cache.clear();
        }
        self.ids.truncate(self.cache.len());
    }

    /// The tokens `ids` as part of a pass over several sequences; [`Session::passed`] comes after.
    pub(crate) fn sequence<'s>(&'s mut self, ids: &'s [u32], rows: Rows) -> Sequence<'s> {
        Sequence { ids, cache: &mut self.cache, rows }
    }

    /// After a pass over several sequences: `ids` were read, or, where it failed, nothing was.
    pub(crate) fn passed(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.ids.truncate(self.cache.len());
    }

    /// Whether a pass over `ids` would be refused.
    pub(crate) fn check(&self, model: &Model, ids: &[u32]) -> Result<(), ModelError> {
        model.check(ids, &self.cache)
    }

    fn advance(&mut self, ids: &[u32], pass: impl FnOnce(&mut Cache) -> Result<Vec<f32>, ModelError>) -> Result<Vec<f32>, ModelError> {
        match pass(&mut self.cache) {
            Ok(logits) => {
                self.ids.extend_from_slice(ids);
                Ok(logits)
            }
            Err(error) => {
                self.truncate(0);
                Err(error)
            }
        }
    }
}
