//! The thing under test: asked a [`Request`](glassbox_record::Request), it gives an [`Answer`](glassbox_record::Answer), and some can be watched.
//!
//! - [`Subject`]: what the bench knows of the thing under test, and all that it knows
//! - [`NativeSubject`]: a model that this engine runs, and that can be watched
//! - [`RemoteSubject`]: a model behind an OpenAI-compatible endpoint
//! - [`RecordedSubject`]: the answers of an earlier run, without the model
//! - [`Evidence`]: what an answer came from, by what attention did, by what it carried, and by what the answer needs
//! - [`ScriptedSubject`]: behaves as its [`Script`] says, faults included; the bench is tested on it
//!
//! Invariant: an error is a result with a class, never dropped and never a panic.

mod error;
mod evidence;
mod look;
mod native;
mod recorded;
mod remote;
mod scripted;
mod subject;

pub use error::SubjectError;
pub use evidence::{Claim, Effect, Evidence, Memory, NamedSpan, Says, SpanEvidence};
pub use native::NativeSubject;
pub use recorded::RecordedSubject;
pub use remote::RemoteSubject;
pub use scripted::{Script, ScriptedFact, ScriptedSubject};
pub use subject::{AtOnce, Capability, Subject, Watch};
