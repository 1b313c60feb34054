//! Sessions with a cache, sampling, stopping, streaming.
//!
//! - [`Session`]: one sequence of tokens and its cache; a new prompt keeps the prefix it shares with the old one
//! - [`Batch`]: several sequences read together; they join and leave between passes
//! - [`Answering`]: logits in, tokens and text out: one answer in the making, alone or in a batch
//! - [`Generation`]: prompt in, text out, piece by piece
//! - [`Sampling`], [`Sampler`]: how the next token is chosen
//! - [`StopStrings`]: stop strings across token borders
//!
//! Invariant: no clock and no randomness of its own; the seed is an argument.

mod answering;
mod batch;
mod generation;
mod sampling;
mod session;
mod stop;

pub use answering::{Answering, Chosen};
pub use batch::{Batch, Seat};
pub use generation::{Answer, FinishReason, Generation, GenerationError, Settings, Step};
pub use sampling::{Sampler, Sampling, SamplingError};
pub use session::Session;
pub use stop::StopStrings;
