//! The run record: what was asked, what was answered, what follows from it. Append-only, versioned, resumable.
//!
//! ```text
//! runs/20261130T205412Z-1f3a9c/
//!   manifest.json    what was tested with what: versions, hashes, seed, machine      written once, last of the three
//!   plan.jsonl       every trial with its full request, in order                     written once
//!   trials.jsonl     one line an attempt                                             appended: the truth
//!   looks.jsonl      one line a watched answer: what attention read                  appended
//!   scores.jsonl     one line a trial: how its answer was judged                     derived
//!   verdicts.json    metrics, gates, verdicts                                        derived
//!   lock             held by the one process that writes
//! ```
//!
//! Derived files can be made again from the truth. Every file states its format and version; a reader refuses a newer
//! version and ignores fields it does not know within its own. This crate never reads the clock: time is an argument.

mod answer;
mod digest;
mod error;
mod event;
mod inspection;
mod lines;
mod look;
mod manifest;
mod plan;
mod reader;
mod request;
mod score;
mod time;
mod verdict;
mod whole;
mod writer;

pub use answer::{
    Answer, Attempt, Failure, FailureClass, FinishReason, Outcome, PromptIntegrity, RemoteAnswer, Retry, Timing, TokenProbability,
};
pub use digest::Digest;
pub use error::RecordError;
pub use event::Event;
pub use inspection::{HeadSummary, InspectedModel, Inspection, NextTokenRow, PooledMap};
pub use look::{HeadMap, LayerLook, Look, LookReason, Looked, PromptSpan, TokenText};
pub use manifest::{DataIdentity, Difference, Fingerprint, Machine, Manifest, SubjectIdentity, SubjectKind, SuiteIdentity};
pub use plan::{Condition, Expected, Passage, PassageRole, PlannedTrial, TrialContent};
pub use reader::{RunReader, run_folders};
pub use request::{Message, Piece, Request, Role, Sampling};
pub use score::{Judgement, Rung, Score};
pub use time::Timestamp;
pub use verdict::{Bound, GateVerdict, Interval, Metric, Point, Series, Status, TestVerdict, Totals, Verdicts};
pub use whole::write_whole;
pub use writer::{NewRun, Resumed, RunWriter};

/// Version of every file that this crate writes, and the newest that it reads, but for the attempts: see [`TRIALS_VERSION`].
pub const FORMAT_VERSION: u32 = 1;
/// Version of `trials.jsonl`. Since 2 an answer may leave out what an endpoint does not tell, such as the length of its prompt in tokens.
pub const TRIALS_VERSION: u32 = 2;
