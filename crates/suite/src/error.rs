use std::fmt;
use std::io;

use glassbox_record::RecordError;

/// Why a suite cannot be read, planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The suite says something that cannot be meant.
    #[error("{message} ({place})")]
    Refused {
        /// What is wrong: wanted, found.
        message: String,
        /// Where it is.
        place: Place,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// A statistic that a plan needs cannot be computed.
    #[error("cannot plan test `{test}`: {reason}")]
    Plan {
        /// The test.
        test: String,
        /// Why not.
        reason: String,
    },
    /// The record cannot be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A place in a file, counted from 1; line 0 stands for the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: String,
    /// Line.
    pub line: u64,
    /// Column; 0 for the whole line.
    pub column: u64,
}

impl SuiteError {
    /// One action that may help, to be shown on a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    pub(crate) fn refused(place: Place, message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), place, hint: None }
    }

    pub(crate) fn with_hint(self, new: impl Into<String>) -> Self {
        match self {
            Self::Refused { message, place, .. } => Self::Refused { message, place, hint: Some(new.into()) },
            other => other,
        }
    }

    /// Proposes the name of `known` that is most like `found`, or lists them all where none is like it.
    pub(crate) fn with_nearest<'a>(self, found: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let best = known.iter().copied().max_by(|a, b| strsim::jaro_winkler(a, found).total_cmp(&strsim::jaro_winkler(b, found)));
        match best {
            Some(best) if strsim::jaro_winkler(best, found) >= ALIKE => self.with_hint(format!("did you mean `{best}`?")),
            Some(_) => self.with_hint(format!("known are {}", in_a_row(&known))),
            None => self,
        }
    }
}

/// Below this Jaro-Winkler similarity a proposal is more confusing than the list: `desing` has 0.94 with `design`, `data` 0.56 with `gate`.
const ALIKE: f64 = 0.8;

fn in_a_row(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Place {
    pub(crate) fn new(path: &str, line: u64, column: u64) -> Self {
        Self { path: path.to_owned(), line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.path),
            (line, 0) => write!(f, "{}:{line}", self.path),
            (line, column) => write!(f, "{}:{line}:{column}", self.path),
        }
    }
}
