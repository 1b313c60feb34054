//! A client of OpenAI-compatible endpoints: chat and completions, in one piece or as a stream.
//!
//! - [`Address`]: where a model is asked, as in `https://host/v1#model`
//! - [`Client::probe`]: a few tiny requests that find out what the endpoint can do
//! - [`Client::ask`]: one question, with deadlines, retries, pace, a circuit breaker and a budget
//!
//! Invariants: whatever an endpoint sends is an answer or a [`Failed`] with a class, never a panic and never more memory than
//! [`Settings::largest_answer_bytes`]; the key goes to the endpoint's own host only and into no text; redirects are not followed.

mod address;
mod ask;
mod client;
mod clock;
mod failed;
mod field;
mod limits;
mod probe;
mod reply;
mod retry;
mod settings;
mod stream;
mod transport;

pub use address::{Address, AddressError, Secret};
pub use ask::{Api, Ask, Features, MaxTokensField, Prompt};
pub use client::Client;
pub use clock::{Clock, SystemClock};
pub use failed::Failed;
pub use probe::Probed;
pub use reply::{Candidate, Reply, Usage};
pub use retry::{retry_after, wait_before};
pub use settings::{Budget, Deadlines, Patience, Prices, Settings};
