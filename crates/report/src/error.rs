use std::path::PathBuf;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The record could not be read.
    #[error(transparent)]
    Record(#[from] glassbox_record::RecordError),
    /// The run has no verdicts yet.
    #[error(
        "the run `{folder}` is not finished: {answered} of {planned} trials are answered, and there are no verdicts; go on with suite `{suite}`: `glassbox test SUITE --resume {folder}`",
        folder = folder.display()
    )]
    Unfinished {
        /// Folder of the run.
        folder: PathBuf,
        /// Name of its suite.
        suite: String,
        /// Trials with an answer.
        answered: usize,
        /// Trials of the plan.
        planned: usize,
    },
    /// The verdicts do not follow from what the record holds.
    #[error("{source}; judge anew with suite `{suite}`: `glassbox test SUITE --resume {folder}`", folder = folder.display())]
    Stale {
        /// Folder of the run.
        folder: PathBuf,
        /// Name of its suite.
        suite: String,
        /// What differs.
        source: Box<glassbox_record::RecordError>,
    },
    /// A picture could not be drawn.
    #[error("cannot draw a picture: {reason}")]
    Picture {
        /// What the drawing library says.
        reason: String,
    },
    /// Something has more cells than a picture can.
    #[error("{what} of {edge} cells along an edge is larger than a picture can be")]
    TooLarge {
        /// What was to be drawn.
        what: &'static str,
        /// Cells along its edge.
        edge: usize,
    },
    /// The parts of a picture do not belong together.
    #[error("{what}: wanted {wanted} for {tokens} tokens, found {found}; make the inspection again")]
    Mismatch {
        /// Which part, with layer and head.
        what: String,
        /// Tokens of the prompt.
        tokens: usize,
        /// How many entries that asks for.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
}

impl ReportError {
    /// A fault that a drawing library reports.
    pub(crate) fn picture(error: impl std::fmt::Display) -> Self {
        Self::Picture { reason: error.to_string() }
    }
}
