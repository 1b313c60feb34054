use std::io;
use std::path::{Path, PathBuf};

use glassbox_checkpoint::{CheckpointError, Fault, Place};

/// Why a model could not be fetched. Every message says what was wanted, what was found, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The name is no name, or the files that were fetched cannot be found as a model.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A variable of the environment has a value that cannot be used.
    #[error("{0}")]
    Setting(Box<Fault>),
    /// The hub answered that this may not be had, or does not exist.
    #[error("{0}")]
    Refused(Box<Fault>),
    /// The repository is there, and has nothing that can be used, or too much to choose from.
    #[error("{0}")]
    Choice(Box<Fault>),
    /// The hub could not be reached, or broke off too often. What has come is kept.
    #[error("{0}")]
    Network(Box<Fault>),
    /// The server's answer breaks the rules: a listing that leads out of the cache, a redirect to nowhere.
    #[error("{0}")]
    Malformed(Box<Fault>),
    /// What has come is not what was announced; it has been removed.
    #[error("{0}")]
    Checksum(Box<Fault>),
    /// The operating system refused, as where the disk is full.
    #[error("{}: cannot {doing}: {source}", .file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// What was being done, as in "cannot … ".
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The user interrupted. What has come is kept.
    #[error("interrupted; what has come is kept, and the same command goes on")]
    Interrupted,
}

impl HubError {
    /// The details, where the error is about one thing.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Checkpoint(error) => error.fault(),
            Self::Setting(fault)
            | Self::Refused(fault)
            | Self::Choice(fault)
            | Self::Network(fault)
            | Self::Malformed(fault)
            | Self::Checksum(fault) => Some(fault),
            Self::Io { .. } | Self::Interrupted => None,
        }
    }

    pub(crate) fn io(file: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), doing, source }
    }
}

/// A fault of `what`: a model, a file of it, an address or a variable.
pub(crate) fn fault(what: &str, wanted: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Box<Fault> {
    Box::new(Fault { file: clip(what), place: Place::Whole, wanted: wanted.into(), found: found.into(), remedy: remedy.into() })
}

/// A text from a server, short enough for a message and without control characters.
pub(crate) fn clip(text: &str) -> String {
    const LONGEST: usize = 200; // characters; an address with a long file name fits
    let mut clipped: String = text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        clipped.push('…');
    }
    clipped
}
