//! One room per mechanism of the book: contract, textbook, fast version, checks.
//!
//! Each room has the same doors: `README.md` (formula, contract, what can go wrong, the ladder), `mod.rs` (the public
//! functions and which kernel they choose), `textbook.rs` (the definition, loops in f64), `fast.rs` (the everyday kernel), `checks.rs`.
//!
//! Invariant: nothing here knows an observer, a file, a configuration or a model.

pub mod attention;
pub mod cache;
pub mod elementary;
pub mod embedding;
mod error;
pub mod feed_forward;
pub mod heads;
pub mod mask;
pub mod matmul;
pub mod norm;
pub mod position;
pub mod softmax;
mod workers;

pub use error::MechanismError;
pub use workers::Workers;

/// Which version of every mechanism runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kernels {
    /// The definitions, in f64: slow, and the truth that the others are checked against.
    Textbook,
    /// The everyday kernels, with the vector instructions of the machine.
    #[default]
    Fast,
    /// The everyday kernels in portable code: the bits of [`Kernels::Fast`], slowly. What a machine without those instructions computes.
    Portable,
}
