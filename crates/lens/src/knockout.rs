use std::ops::Range;

use glassbox_anatomy::{Hides, Observer};

/// Keeps some queries from seeing some keys, in some layers: the scores are minus infinity before the softmax, and the weights that are left add up to 1
/// (attention knockout; Geva et al. 2023, arXiv:2304.14767).
///
/// Later layers of the same pass see what that does to the stream. A pass with it is an edited one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knockout {
    hides: Hides,
    layers: Range<usize>,
}

impl Knockout {
    /// Hides `keys` from `queries`, both absolute positions, in `layers`.
    #[must_use]
    pub fn new(queries: Range<usize>, keys: Range<usize>, layers: Range<usize>) -> Self {
        Self { hides: Hides { queries, keys }, layers }
    }

    /// Hides `keys` from all tokens after them, in all layers: as if nobody could ever read them.
    #[must_use]
    pub fn from_all_later(keys: Range<usize>) -> Self {
        Self::new(keys.end..usize::MAX, keys, 0..usize::MAX)
    }
}

impl Observer for Knockout {
    fn hides(&self, layer: usize) -> Option<Hides> {
        self.layers.contains(&layer).then(|| self.hides.clone())
    }
}
