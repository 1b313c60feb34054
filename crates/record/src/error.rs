use std::io;
use std::path::{Path, PathBuf};

use crate::{Difference, Totals};

/// Why a record cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file system refused; a full disk is one of the reasons.
    #[error("cannot {action} `{path}`: {reason}", path = .path.display(), reason = in_words(.source))]
    Io {
        /// What was tried, as in `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds no run.
    #[error("`{path}` holds no run: wanted a `manifest.json` in it", path = .path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process writes this run.
    #[error("`{path}` is being written by another process; wait for it or stop it", path = .path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Written by a later version of glassbox.
    #[error("`{path}` has format version {found}; this glassbox reads up to version {newest}: use a newer one", path = .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest that is read here.
        newest: u32,
    },
    /// The file is not what it should be.
    #[error("`{path}`:{line}: {reason}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The verdicts were made from other attempts than the record holds now.
    #[error("the verdicts of `{path}` {}", stale(.judged, .found, *.scored), path = .path.display())]
    Stale {
        /// Folder of the run.
        path: PathBuf,
        /// Counts of the verdicts.
        judged: Totals,
        /// Counts of the attempts that are there.
        found: Totals,
        /// Scores that are there.
        scored: usize,
    },
    /// The same trial is planned twice.
    #[error("trial {id} is planned twice, the second time for item `{item}` of test `{test}`", id = .id.short())]
    PlannedTwice {
        /// Id of the trial.
        id: crate::Digest,
        /// Id of the item.
        item: String,
        /// Id of the test.
        test: String,
    },
    /// The run was begun with something else.
    #[error("`{path}` was begun with something else: {}", in_a_row(.differences), path = .path.display())]
    Drifted {
        /// The folder.
        path: PathBuf,
        /// What differs; not empty.
        differences: Vec<Difference>,
    },
    /// A value cannot be written as JSON.
    #[error("{what} cannot be written as JSON: {source}")]
    NotJson {
        /// Which value.
        what: &'static str,
        /// What the writer said.
        source: serde_json::Error,
    },
}

impl RecordError {
    /// Whether the file system refused, as it does when the disk is full; everything else is in the record or in how it is used.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; free some space".to_owned(),
        _ => error.to_string(),
    }
}

fn stale(judged: &Totals, found: &Totals, scored: usize) -> String {
    let counts = |totals: &Totals| format!("{} answers of {} trials in {} attempts", totals.answered, totals.planned, totals.attempts);
    let scores = found.answered + found.failed;
    let now = if judged != found {
        format!("its `trials.jsonl` now holds {}", counts(found))
    } else if scored != scores {
        format!("its `scores.jsonl` now holds {scored} of {scores} scores")
    } else {
        "its `trials.jsonl` was changed since".to_owned()
    };
    format!("were made from {}, and {now}", counts(judged))
}

fn in_a_row(differences: &[Difference]) -> String {
    let parts: Vec<String> = differences
        .iter()
        .map(|difference| format!("{} was `{}` and is `{}`", difference.what, difference.recorded, difference.now))
        .collect();
    parts.join("; ")
}
