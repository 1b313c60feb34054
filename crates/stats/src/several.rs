//! Several related conditions of the same items, and several tests of the same run.
//!
//! - does the condition matter at all: [`cochran_q`]
//! - does it matter in the way the plan names (the middle is worse than the ends): [`planned_contrast`], which has more power
//! - many p-values: [`holm`] where a false alarm stops a release, [`benjamini_hochberg`] where somebody looks again

mod cochran;
mod contrast;
mod correction;

pub use cochran::cochran_q;
pub use contrast::{Contrast, contrast_of_items, contrast_range, ends_against_middle, planned_contrast};
pub use correction::{benjamini_hochberg, holm};
