//! For tests only: golden walker, derived tolerances, generators, planted bugs.
//!
//! - [`Values`]: numbers that look random and are the same everywhere, from a seed
//! - [`sizes_across`]: the sizes at which tiled kernels go wrong
//! - [`agree`], [`agree_over`]: the derived tolerance; a fast kernel may err twice as much as the textbook in the same precision
//! - [`seeds`], [`mutations`]: the seeds of `fuzz/`, as they are and changed; the short deterministic twin of fuzzing
//! - [`GoldenWalk`]: compares a pass with a reference site by site and names the first divergence
//! - [`LocalHub`]: a Hugging Face hub on this machine, which can be told to misbehave

mod agreement;
mod golden;
mod local_hub;
mod mutations;
mod values;

pub use agreement::{Agreement, Disagreement, agree, agree_over};
pub use golden::{Closeness, Divergence, Golden, GoldenError, GoldenWalk};
pub use local_hub::{Asked, LocalHub, Twist};
pub use mutations::{mutations, seeds};
pub use values::{Values, sizes_across};
