use glassbox_record::{Failure, FailureClass, Retry};

/// Why a subject gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SubjectError {
    /// The kind of trouble.
    pub class: FailureClass,
    /// What happened, in words.
    pub message: String,
    /// What failed before, in order, where the same was asked again.
    pub retries: Vec<Retry>,
}

impl SubjectError {
    /// An error of this class.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), retries: Vec::new() }
    }
}

impl From<SubjectError> for Failure {
    fn from(error: SubjectError) -> Self {
        Self { class: error.class, message: error.message, retries: error.retries }
    }
}
