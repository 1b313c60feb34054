//! The one table of exit codes, and how a failure is told.

use std::io::ErrorKind;
use std::process::ExitCode;

use glassbox_checkpoint::{CheckpointError, Fault};
use glassbox_hub::HubError;
use glassbox_model::ModelError;

use crate::terminal;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All gates passed, or there was nothing to gate.
    Success,
    /// A gate failed.
    GateFailed,
    /// No gate failed, but one is open (inconclusive or cannot say), and `--strict` was given.
    Inconclusive,
    /// More trials failed than the suite allows.
    TargetErrors,
    /// The suite selected nothing to run.
    NothingSelected,
    /// Usage, configuration, or an input that cannot be read.
    Usage,
    /// A fault of the program, or of the disk.
    Internal,
    /// Interrupted by the user; the run can be resumed.
    Interrupted,
}

impl Exit {
    const fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Internal => 1,
            Self::Usage => 2,
            Self::NothingSelected => 4,
            Self::GateFailed => 100,
            Self::Inconclusive => 101,
            Self::TargetErrors => 102,
            Self::Interrupted => 130,
        }
    }

    /// The exit of a suite's own exit code.
    pub(crate) fn of_suite(code: u8) -> Self {
        let all = [Self::Success, Self::GateFailed, Self::Inconclusive, Self::TargetErrors, Self::Interrupted];
        all.into_iter().find(|exit| exit.number() == code).unwrap_or(Self::Internal)
    }

    /// For the operating system.
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// A command that could not do its work: what is wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// An input or a setting that the user can mend.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), hint: None }
    }

    /// A fault of the program, the disk or memory.
    pub(crate) fn internal(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Internal, error: error.into(), hint: None }
    }

    /// The same with one proposal for action.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with a proposal, unless there is one already.
    pub(crate) fn or_hint(self, hint: impl FnOnce() -> String) -> Self {
        let hint = self.hint.or_else(|| Some(hint()));
        Self { hint, ..self }
    }

    /// The same, where the disk was full and a run was begun: its answers are kept.
    pub(crate) fn resumable(self) -> Self {
        if self.exit == Exit::Internal && no_room(&self.error) {
            return self.hint("free some space, then go on with `--resume last`");
        }
        self
    }

    /// Tells the user, and gives the exit code. A reader that has gone away (`glassbox … | head`) is no failure.
    pub(crate) fn report(self) -> ExitCode {
        if io_kind(&self.error) == Some(ErrorKind::BrokenPipe) {
            return Exit::Success.code();
        }
        terminal::say_error(&in_words(&self.error), self.hint.as_deref());
        self.exit.code()
    }

    /// Something that cannot be written: the user's matter where the place is wrong, the disk's where there is no room.
    pub(crate) fn output(error: impl Into<anyhow::Error>) -> Self {
        let error = error.into();
        let (exit, hint) = match io_kind(&error) {
            Some(ErrorKind::NotFound) => (Exit::Usage, "make the folder first, or give another place"),
            Some(ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {
                (Exit::Usage, "a file stands where a folder is wanted; give another place")
            }
            Some(ErrorKind::IsADirectory) => (Exit::Usage, "a folder stands where a file is wanted; give a file name"),
            Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => (Exit::Usage, "give a place where you may write"),
            _ if no_room(&error) => (Exit::Internal, "free some space, then do it again"),
            _ => return Self::internal(error),
        };
        Self { exit, error, hint: Some(hint.to_owned()) }
    }
}

fn no_room(error: &anyhow::Error) -> bool {
    matches!(io_kind(error), Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge))
}

/// What the system said, where the system is the cause.
fn io_kind(error: &anyhow::Error) -> Option<ErrorKind> {
    error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind)
}

/// An error and its causes in one line, each once: many messages end in the words of their cause already.
fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// A file of a model that cannot be used: what is wrong with it on one line, what to do on the next.
impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error.fault() {
            Some(Fault { file, place, wanted, found, remedy }) => {
                Self::usage(anyhow::anyhow!("{file}{place}: wanted {wanted}, found {found}")).hint(remedy.clone())
            }
            None => {
                let hint = match &error {
                    CheckpointError::Io { source, .. } => Some(match source.kind() {
                        ErrorKind::PermissionDenied => {
                            "it must be readable for you: look at the permissions of the file and of its folders"
                        }
                        ErrorKind::NotFound => "check the path",
                        _ => "check the path, and the disk that it is on",
                    }),
                    _ => None,
                };
                Self { hint: hint.map(str::to_owned), ..Self::usage(error) }
            }
        }
    }
}

/// A model that could not be fetched: the user's matter where the hub refuses, the network's or the disk's otherwise.
impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        let (exit, hint) = match &error {
            HubError::Interrupted => (Exit::Interrupted, None),
            HubError::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    (Exit::Internal, Some("free some space, then do it again: what has come is kept"))
                }
                _ => (Exit::Usage, Some("the cache must be a folder where you may write; HF_HUB_CACHE or HF_HOME says where it is")),
            },
            HubError::Checkpoint(_) | HubError::Setting(_) | HubError::Refused(_) | HubError::Choice(_) => (Exit::Usage, None),
            _ => (Exit::Internal, None),
        };
        match error.fault() {
            Some(Fault { file, place, wanted, found, remedy }) => {
                let hint = Some(remedy.clone());
                Self { exit, error: anyhow::anyhow!("{file}{place}: wanted {wanted}, found {found}"), hint }
            }
            None => Self { exit, error: error.into(), hint: hint.map(str::to_owned) },
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Checkpoint(error) => error.into(),
            ModelError::UnknownFamily { file, key, found, known } => {
                Self::usage(anyhow::anyhow!("{file}: no family reads {key} `{found}`; known: {}", known.join(", ")))
                    .hint("take a model of these, or add the family as a table: the handbook's page on olmo2 tells how")
            }
            error @ ModelError::NoDecoder { .. } => Self::usage(error).hint(
                "`glassbox embed MODEL TEXT...` gives the vectors of texts and how alike they are, `glassbox inspect -m MODEL TEXT` shows its attention",
            ),
            error @ ModelError::NoEncoder { .. } => {
                Self::usage(error).hint("`glassbox generate` and `glassbox inspect` run decoders; `glassbox models list` says which models are encoders")
            }
            error => Self::usage(error),
        }
    }
}

impl From<glassbox_text::Error> for Failure {
    fn from(error: glassbox_text::Error) -> Self {
        let hint = error.hint().map(|hint| hint.to_string());
        Self { hint, ..Self::usage(error) }
    }
}

/// Standard output that fails is the disk's or the pipe's fault.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::output(anyhow::Error::new(error).context("cannot write to standard output"))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_that_the_system_refuses_has_a_remedy() {
        for (kind, remedy) in
            [(ErrorKind::PermissionDenied, "permissions"), (ErrorKind::NotFound, "check the path"), (ErrorKind::Other, "disk")]
        {
            let error = CheckpointError::Io { file: "x.gguf".into(), doing: "open it", source: io::Error::from(kind) };
            let hint = Failure::from(error).hint.unwrap_or_default();
            assert!(hint.contains(remedy), "{kind}: {hint}");
        }
    }
}
