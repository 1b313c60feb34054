use std::num::NonZeroUsize;

use glassbox_record::{Answer, FailureClass, Looked, Request, SubjectIdentity};

use crate::SubjectError;

/// The thing under test.
pub trait Subject {
    /// Which thing it is: hashes and settings, everything that may change an answer.
    fn identity(&self) -> SubjectIdentity;

    /// Whether it can show this. A check that needs more says CANNOT-SAY instead of FAIL.
    fn shows(&self, capability: Capability) -> bool;

    /// Asks it.
    ///
    /// Errors: no answer, with the class of the trouble.
    fn answer(&self, request: &Request) -> Result<Answer, SubjectError>;

    /// Asks the same again and watches what the answer reads. Watching changes no bit of the answer.
    ///
    /// Errors: as [`Subject::answer`], and [`FailureClass::Unsupported`] from a subject that cannot be watched.
    fn look(&self, request: &Request, watch: &Watch) -> Result<Looked, SubjectError> {
        let _ = (request, watch);
        Err(SubjectError::new(FailureClass::Unsupported, "this subject cannot be watched"))
    }

    /// How several threads may ask it at once; `None` where one asks after the other.
    fn at_once(&self) -> Option<AtOnce<'_>> {
        None
    }
}

/// A subject that several threads may ask at once.
pub struct AtOnce<'s> {
    /// The subject itself.
    pub subject: &'s (dyn Subject + Sync),
    /// Most requests at once.
    pub requests: NonZeroUsize,
}

/// What a subject can show beside its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Attention weights of every layer and head.
    Attention,
    /// Probabilities of the first answer token.
    FirstToken,
    /// The ids of the tokens that it read.
    TokenIds,
}

/// How closely to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// How many heads are kept with their full attention rows: those that read most from one document against the uniform baseline.
    /// 0 keeps the masses of the spans only.
    pub heads_in_full: usize,
}

impl Default for Watch {
    fn default() -> Self {
        Self { heads_in_full: 4 }
    }
}
