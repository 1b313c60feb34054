use glassbox_anatomy::Observer;
use glassbox_mechanisms::Workers;
use glassbox_mechanisms::cache::Cache;
use glassbox_model::{Model, ModelError, Rows};

/// One sequence of tokens and the cache of its keys and values.
///
/// A prompt that begins like the sequence held keeps that prefix: only the rest is computed. By the contract of equal
/// bits the logits are those of a fresh session.
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
        Ok(Self { cache: model.new_cache(context_tokens, limit_bytes)?, ids: Vec::new() })
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
        // The last token is always computed, because its logits are wanted.
        let shared = self.ids.iter().zip(prompt).take_while(|(held, wanted)| held == wanted).count();
        self.truncate(shared.min(prompt.len().saturating_sub(1)));
        let rest = &prompt[self.ids.len()..];
        self.advance(rest, |cache| model.forward(rest, cache, Rows::Last, workers))
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
        self.advance(prompt, |cache| model.forward_observed(prompt, cache, rows, workers, observer))
    }

    /// Appends one token and gives the logits [vocab] after it.
    ///
    /// # Errors
    ///
    /// Those of the forward pass.
    pub fn push(&mut self, model: &Model, id: u32, workers: &Workers) -> Result<Vec<f32>, ModelError> {
        self.advance(&[id], |cache| model.forward(&[id], cache, Rows::Last, workers))
    }

    /// Forgets all tokens from position `len` on; all of them, where a ring has let go of what the next token would see.
    pub fn truncate(&mut self, len: usize) {
        if self.cache.truncate(len).is_err() {
            self.cache.clear();
        }
        self.ids.truncate(self.cache.len());
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
