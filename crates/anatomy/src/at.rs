use std::fmt;

use crate::Site;

/// Where in a forward pass a value was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Layer of a block's site, counted from 0; 0 for sites outside the blocks.
    pub layer: usize,
    /// The place.
    pub site: Site,
    /// Absolute position of the first row (token or query) of the value.
    pub first_row: usize,
}

impl fmt::Display for At {
    /// The path of a site: `blocks.3.attn.pattern`, `logits`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site.scope() {
            crate::Scope::Pass => write!(f, "{}", self.site),
            crate::Scope::Block => write!(f, "blocks.{}.{}", self.layer, self.site),
        }
    }
}
