use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What can be wrong with a model on disk. Every message names the file, the place, what was wanted, what was found, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("{}: cannot {doing}: {source}", .file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// What was being done, as in "cannot … ".
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Nothing is there: a path, a file of a folder, a model of the cache, a tensor.
    #[error("{0}")]
    NotFound(Box<Fault>),
    /// The file is something else: an HTML page, a Git LFS pointer, a zip archive.
    #[error("{0}")]
    OtherFormat(Box<Fault>),
    /// The file breaks the rules of its format.
    #[error("{0}")]
    Malformed(Box<Fault>),
    /// The file is valid, but asks for something that is not implemented here.
    #[error("{0}")]
    Unsupported(Box<Fault>),
    /// A setting is missing, or has a type or a value that cannot be used.
    #[error("{0}")]
    Setting(Box<Fault>),
    /// Settings that nothing read.
    #[error("{0}")]
    Unread(Box<Unread>),
}

impl CheckpointError {
    /// The kind of error as one word, for machines.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::NotFound(_) => "not_found",
            Self::OtherFormat(_) => "other_format",
            Self::Malformed(_) => "malformed",
            Self::Unsupported(_) => "unsupported",
            Self::Setting(_) => "setting",
            Self::Unread(_) => "unread",
        }
    }

    /// The details, where the error is about one place in one file.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Io { .. } | Self::Unread(_) => None,
            Self::NotFound(fault) | Self::OtherFormat(fault) | Self::Malformed(fault) | Self::Unsupported(fault) | Self::Setting(fault) => {
                Some(fault)
            }
        }
    }

    pub(crate) fn io(file: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), doing, source }
    }
}

/// One fault at one place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, as it was given.
    pub file: String,
    /// Where in the file.
    pub place: Place,
    /// What would have been right.
    pub wanted: String,
    /// What is there.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, wanted, found, remedy } = self;
        write!(f, "{file}{place}: wanted {wanted}, found {found}; {remedy}")
    }
}

/// Where in a file something is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// Bytes from the start of the file.
    Byte(u64),
    /// A key of the configuration, of the metadata or of an index.
    Key(String),
    /// A tensor.
    Tensor(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Byte(byte) => write!(f, ", byte {byte}"),
            Self::Key(key) => write!(f, ", key `{}`", clip(key)),
            Self::Tensor(tensor) => write!(f, ", tensor `{}`", clip(tensor)),
        }
    }
}

/// The settings that nothing read, and what each may have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file, as it was given.
    pub file: String,
    /// The keys in alphabetical order.
    pub keys: Vec<UnreadKey>,
}

/// One setting that nothing read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadKey {
    /// The key, with dots for nesting.
    pub key: String,
    /// Its value, shortened.
    pub value: String,
    /// A key that was asked for and is absent, and is spelt almost like this one.
    pub nearest: Option<String>,
}

const LISTED: usize = 30; // keys in one message; the largest known configurations have about 60

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.keys.len();
        let keys = if count == 1 { "a setting".to_owned() } else { format!("{count} settings") };
        write!(f, "{}: wanted every setting to be understood, found {keys} that nothing here reads: ", self.file)?;
        for (index, UnreadKey { key, value, nearest }) in self.keys.iter().take(LISTED).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{}` = {value}", clip(key))?;
            if let Some(nearest) = nearest {
                write!(f, " (did you mean `{nearest}`?)")?;
            }
        }
        if count > LISTED {
            write!(f, " and {} more", count - LISTED)?;
        }
        let first = self.keys.first().map_or("KEY", |unread| unread.key.as_str());
        write!(
            f,
            "; an unread setting may change the numbers, so it is refused: correct the key, or where you know that it is harmless \
             pass --allow-unread {}=REASON",
            clip(first)
        )
    }
}

/// A name from a file, short enough for a message and without control characters.
pub(crate) fn clip(name: &str) -> String {
    const LONGEST: usize = 120; // characters; a name in a malformed file can be as long as the file
    let mut clipped: String = name.chars().take(LONGEST).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if name.chars().nth(LONGEST).is_some() {
        clipped.push('…');
    }
    clipped
}
