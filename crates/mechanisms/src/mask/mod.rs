//! Masks: which keys a query may see, as a range instead of a matrix of yes and no.

pub mod textbook;

#[cfg(test)]
mod checks;

use std::num::NonZeroUsize;
use std::ops::Range;

/// Which keys a query sees: always one contiguous range of positions.
///
/// Kernels loop over the range; nothing is added to a score, so no large negative number can leak through (`-10000` is an
/// ordinary score for some models).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// A query sees no later position than its own.
    pub causal: bool,
    /// A query sees only keys nearer than this many positions, its own included: exactly `window` keys when causal.
    ///
    /// `None` is no limit. A configuration that says 0 means no limit too, which is why 0 cannot be written here.
    pub window: Option<NonZeroUsize>,
}

impl KeyRange {
    /// Every position up to and including the query's own.
    #[must_use]
    pub const fn causal() -> Self {
        Self { causal: true, window: None }
    }

    /// The query's own position and those before it, `window` keys in all; 0 is no limit.
    #[must_use]
    pub const fn causal_window(window: usize) -> Self {
        Self { causal: true, window: NonZeroUsize::new(window) }
    }

    /// Every position, earlier and later.
    #[must_use]
    pub const fn everything() -> Self {
        Self { causal: false, window: None }
    }

    /// The keys that the query at absolute position `query` sees, among positions `0..len`.
    ///
    /// Causal with window `W`: `query - W + 1 ..= query`. Without causality a window looks as far ahead as back.
    /// The range can be empty: a query beyond `len` whose window does not reach back to it.
    #[must_use]
    pub fn keys(&self, query: usize, len: usize) -> Range<usize> {
        let first = self.window.map_or(0, |window| query.saturating_sub(window.get() - 1));
        let end = match (self.causal, self.window) {
            (true, _) => query.saturating_add(1),
            (false, Some(window)) => query.saturating_add(window.get()),
            (false, None) => len,
        }
        .min(len);
        first.min(end)..end
    }
}
