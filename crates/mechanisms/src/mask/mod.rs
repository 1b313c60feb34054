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

    /// The keys that the query at absolute position `query` sees, among positions `0..len` of one text.
    ///
    /// Causal with window `W`: `query - W + 1 ..= query`. Without causality a window looks as far ahead as back.
    /// The range can be empty: a query beyond `len` whose window does not reach back to it.
    #[must_use]
    pub fn keys(&self, query: usize, len: usize) -> Range<usize> {
        self.keys_from(0, 0, query, len)
    }

    /// As [`KeyRange::keys`], where several texts lie one after another: what this rule, the borders of the query's own text and its prefix leave.
    /// Empty for a query in no text, which is padding.
    #[must_use]
    pub fn keys_among(&self, texts: &[Text], query: usize, len: usize) -> Range<usize> {
        match texts.iter().find(|text| text.positions.contains(&query)) {
            None => 0..0,
            Some(Text { positions, prefix }) => {
                self.keys_from(positions.start, positions.start.saturating_add(*prefix), query, positions.end.min(len))
            }
        }
    }

    /// The intersection of `first..end` with what the rule shows, where positions before `prefix_end` see one another.
    fn keys_from(&self, first: usize, prefix_end: usize, query: usize, end: usize) -> Range<usize> {
        let not_later = if self.causal { query.saturating_add(1).max(prefix_end) } else { usize::MAX };
        let (near_first, near_end) = match self.window {
            None => (0, usize::MAX),
            Some(window) => (query.saturating_sub(window.get() - 1), query.saturating_add(window.get())),
        };
        let end = end.min(not_later).min(near_end);
        first.max(near_first).min(end)..end
    }
}

/// One of several texts in a row of positions. Texts do not see one another; positions in no text are padding, which nothing sees and which sees
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its positions.
    pub positions: Range<usize>,
    /// How many of its first tokens see one another in both directions, also under a causal rule; 0 for most.
    pub prefix: usize,
}

/// Keys that some queries do not see though the rule shows them: a pass that is edited (attention knockout; Geva et al. 2023, arXiv:2304.14767).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Absolute positions of those queries.
    pub queries: Range<usize>,
    /// Absolute positions of the keys.
    pub keys: Range<usize>,
}

impl Hidden {
    /// What is left of `keys` for the query at the absolute position `query`: the keys before those hidden, and the keys behind. Where nothing is
    /// hidden from it, all stand in the first.
    #[must_use]
    pub fn parts(&self, query: usize, keys: Range<usize>) -> [Range<usize>; 2] {
        let hides = self.queries.contains(&query) && self.keys.start.max(keys.start) < self.keys.end.min(keys.end);
        if !hides {
            return [keys, 0..0];
        }
        [keys.start..self.keys.start.max(keys.start), self.keys.end.min(keys.end)..keys.end]
    }
}
