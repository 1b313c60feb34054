//! How fast and how large: tokens a second, time to the first token, resident memory.
//!
//! - [`Plan`]: which tests a command asks for; [`Test`] is one of them
//! - [`Bench`]: a model and how it is measured; [`Bench::measure`] runs one test
//! - [`Capture`]: what is watched meanwhile
//! - [`Stopwatch`]: wall time and processor time of any piece of work
//! - [`Machine`]: on what it was measured
//! - [`growth`]: how time and memory grow with the length of a text
//! - [`Summary`]: mean, standard deviation, median and extremes of repetitions
//!
//! The figures mean what those of `llama-bench` mean; see the README of the crate. What is measured is what `generate` does: the same
//! forward pass, the same cache.

#![forbid(unsafe_code)]

mod capture;
mod clock;
pub mod growth;
mod machine;
mod plan;
mod speed;
mod summary;

pub use capture::Capture;
pub use clock::{Spent, Stopwatch};
pub use machine::Machine;
pub use plan::{Plan, Test, Work};
pub use speed::{Bench, Measured, peak_resident_bytes};
pub use summary::Summary;

use glassbox_model::ModelError;
use thiserror::Error;

/// Why something cannot be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A plan without a test.
    #[error("there is nothing to measure: the numbers of prompt tokens and of generated tokens are all 0")]
    Nothing,
    /// A test longer than the model's context.
    #[error("`{test}` needs room for {tokens} tokens; the model was made for {context}")]
    TooLong {
        /// Name of the test.
        test: String,
        /// Tokens that it puts into the cache.
        tokens: usize,
        /// Tokens that the model was made for.
        context: usize,
    },
    /// A text that names no test.
    #[error("`{text}` names no test: wanted one such as `pp512`, `tg64` or `tg64 @ d2048`")]
    NoSuchTest {
        /// What was given.
        text: String,
    },
    /// A repetition without the preparation.
    #[error("`{test}` was not prepared; call `Bench::prepare` with it first")]
    NotPrepared {
        /// Name of the test.
        test: String,
    },
    /// A pass that the model refuses, or a cache that is too large.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The work was to end early.
    #[error("interrupted")]
    Interrupted,
}
