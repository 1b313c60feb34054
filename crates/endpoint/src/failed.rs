use std::time::Duration;

use glassbox_record::{FailureClass, Retry};

/// Why there is no answer, and what was tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// The kind of trouble.
    pub class: FailureClass,
    /// What happened, in words.
    pub message: String,
    /// What failed before, in order.
    pub retries: Vec<Retry>,
}

/// What came of one request that was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) class: FailureClass,
    pub(crate) message: String,
    pub(crate) again: Again,
    /// Whether it shows that no working endpoint was met.
    pub(crate) down: bool,
}

/// Whether another request may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It will not get better.
    Never,
    /// After a wait of our own choice.
    Soon,
    /// After the wait that the endpoint asks for.
    After(Duration),
}

impl Trouble {
    /// One that another request will not mend.
    pub(crate) fn finally(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), again: Again::Never, down: false }
    }

    /// A connection that broke.
    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self { class: FailureClass::Connection, message: message.into(), again: Again::Soon, down: true }
    }

    /// A deadline that passed.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self { class: FailureClass::Timeout, message: message.into(), again: Again::Never, down: true }
    }

    /// An answer that is none.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::finally(FailureClass::Internal, message)
    }
}

/// A foreign text in a message: one line, not too long, no control characters.
pub(crate) fn clip(text: &str) -> String {
    const LONGEST: usize = 300; // characters; enough for a sentence or two
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
