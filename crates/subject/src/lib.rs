//! The thing under test: asked a [`Request`](glassbox_record::Request), it gives an [`Answer`](glassbox_record::Answer), and some can be watched.
//!
//! - [`Subject`]: what the bench knows of the thing under test, and all that it knows
//! - [`NativeSubject`]: a model that this engine runs, and that can be watched
//! - [`RemoteSubject`]: a model behind an OpenAI-compatible endpoint
//! - [`RecordedSubject`]: the answers of an earlier run, without the model
//! - [`ScriptedSubject`]: behaves as its [`Script`] says, faults included; the bench is tested on it
//!
//! Invariant: an error is a result with a class, never dropped and never a panic.

mod error;
mod look;
mod native;
mod recorded;
mod remote;
mod scripted;
mod subject;

pub use error::SubjectError;
pub use native::NativeSubject;
pub use recorded::RecordedSubject;
pub use remote::RemoteSubject;
pub use scripted::{Script, ScriptedFact, ScriptedSubject};
pub use subject::{AtOnce, Capability, Subject, Watch};
