use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::lines::Lines;
use crate::writer::plan_hash;
use crate::{Attempt, Digest, FORMAT_VERSION, Look, Manifest, Outcome, PlannedTrial, RecordError, Score, TRIALS_VERSION, Totals, Verdicts};

/// Name, format and version of a file of the run folder.
pub(crate) struct FileKind {
    pub(crate) name: &'static str,
    pub(crate) format: &'static str,
    pub(crate) version: u32,
}

pub(crate) const MANIFEST: FileKind = FileKind { name: "manifest.json", format: "glassbox-run", version: FORMAT_VERSION };
pub(crate) const PLAN: FileKind = FileKind { name: "plan.jsonl", format: "glassbox-plan", version: FORMAT_VERSION };
pub(crate) const TRIALS: FileKind = FileKind { name: "trials.jsonl", format: "glassbox-trials", version: TRIALS_VERSION };
pub(crate) const LOOKS: FileKind = FileKind { name: "looks.jsonl", format: "glassbox-looks", version: FORMAT_VERSION };
pub(crate) const SCORES: FileKind = FileKind { name: "scores.jsonl", format: "glassbox-scores", version: FORMAT_VERSION };
pub(crate) const VERDICTS: FileKind = FileKind { name: "verdicts.json", format: "glassbox-verdicts", version: FORMAT_VERSION };

/// Reads a run, also one that is still being written or was killed.
#[derive(Debug)]
pub struct RunReader {
    folder: PathBuf,
    manifest: Manifest,
}

impl RunReader {
    /// Opens the folder of a run and reads its manifest.
    ///
    /// Errors: no run there, an unreadable manifest, a newer format.
    pub fn open(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(MANIFEST.name);
        if !path.is_file() {
            return Err(RecordError::NotARun { path: folder.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), manifest: read_whole(&path, &MANIFEST)? })
    }

    /// Folder of the run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was tested, with what, where.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Every planned trial, in order.
    ///
    /// Errors: a damaged file, or a plan that is not the one the manifest names.
    pub fn plan(&self) -> Result<Vec<PlannedTrial>, RecordError> {
        let mut lines = Lines::open(&self.folder.join(PLAN.name), &PLAN)?;
        let plan = lines.by_ref().collect::<Result<Vec<PlannedTrial>, _>>()?;
        if plan_hash(&plan)? != self.manifest.plan {
            return Err(lines.damaged("the plan is not the one that the manifest names".to_owned()));
        }
        Ok(plan)
    }

    /// Every attempt, in the order of the file; a torn last line is left out.
    pub fn attempts(&self) -> Result<Vec<Attempt>, RecordError> {
        Lines::open(&self.folder.join(TRIALS.name), &TRIALS)?.collect()
    }

    /// The attempt that counts of each trial: its first answer, else its last failure.
    ///
    /// Errors: as [`RunReader::attempts`], and an attempt of a trial that was never planned.
    pub fn outcomes(&self) -> Result<BTreeMap<Digest, Attempt>, RecordError> {
        let planned: std::collections::BTreeSet<Digest> = self.plan()?.into_iter().map(|trial| trial.id).collect();
        let mut lines = Lines::<Attempt>::open(&self.folder.join(TRIALS.name), &TRIALS)?;
        let mut outcomes = BTreeMap::new();
        while let Some(attempt) = lines.next().transpose()? {
            if !planned.contains(&attempt.trial) {
                return Err(RecordError::Damaged {
                    path: self.folder.join(TRIALS.name),
                    line: lines.line(),
                    reason: format!("trial {} was never planned", attempt.trial.short()),
                });
            }
            count(&mut outcomes, attempt);
        }
        Ok(outcomes)
    }

    /// Every look, in the order of the file; a torn last line is left out.
    pub fn looks(&self) -> Result<Vec<Look>, RecordError> {
        Lines::open(&self.folder.join(LOOKS.name), &LOOKS)?.collect()
    }

    /// How each answer was judged, in the order of the plan; none before the run is concluded.
    pub fn scores(&self) -> Result<Option<Vec<Score>>, RecordError> {
        let path = self.folder.join(SCORES.name);
        if !path.is_file() {
            return Ok(None);
        }
        Lines::open(&path, &SCORES)?.collect::<Result<Vec<Score>, _>>().map(Some)
    }

    /// Whether scores and verdicts follow from the attempts that the record holds now.
    ///
    /// The hash in the header of `scores.jsonl` decides; in records from before it was written, the counts of the verdicts do.
    ///
    /// Errors: [`RecordError::Stale`] where they do not, and as [`RunReader::outcomes`].
    pub fn check_derived(&self, verdicts: &Verdicts) -> Result<(), RecordError> {
        let mut lines = Lines::<Attempt>::open(&self.folder.join(TRIALS.name), &TRIALS)?;
        let attempts = lines.by_ref().collect::<Result<Vec<_>, _>>()?.len();
        let outcomes = self.outcomes()?;
        let answered = outcomes.values().filter(|attempt| matches!(attempt.outcome, Outcome::Answered(_))).count();
        let (failed, planned) = (outcomes.len() - answered, self.manifest.trials);
        let found = Totals { planned, answered, failed, missing: planned.saturating_sub(outcomes.len()), attempts };
        let mut scores = Lines::<Score>::open(&self.folder.join(SCORES.name), &SCORES)?;
        let scored = scores.by_ref().collect::<Result<Vec<_>, _>>()?.len();
        let unchanged = match scores.derived_from() {
            Some(digest) => *digest == Digest::of_file(&self.folder.join(TRIALS.name), lines.whole_bytes())?,
            None => true,
        };
        if unchanged && found == verdicts.totals && scored == answered + failed {
            return Ok(());
        }
        Err(RecordError::Stale { path: self.folder.clone(), judged: verdicts.totals.clone(), found, scored })
    }

    /// Metrics, gates and verdicts; none before the run is concluded.
    pub fn verdicts(&self) -> Result<Option<Verdicts>, RecordError> {
        let path = self.folder.join(VERDICTS.name);
        if !path.is_file() {
            return Ok(None);
        }
        read_whole(&path, &VERDICTS).map(Some)
    }
}

/// The runs in a folder of runs, oldest first; none where the folder does not exist.
///
/// Errors: a folder that cannot be listed.
pub fn run_folders(runs: &Path) -> Result<Vec<PathBuf>, RecordError> {
    if !runs.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(runs).map_err(RecordError::io("list", runs))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.join(MANIFEST.name).is_file()).collect();
    // Names begin with the second of the start; within one second only the manifest knows which came first.
    let created = |path: &PathBuf| RunReader::open(path).ok().map(|reader| reader.manifest().created);
    folders.sort_by_cached_key(|path| (second_of(path), created(path), path.clone()));
    Ok(folders)
}

/// The part of a run's name that says in which second it began.
fn second_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('-').next().unwrap_or_default().to_owned()
}

/// Lets an attempt count for its trial, unless an answer is there already.
pub(crate) fn count(outcomes: &mut BTreeMap<Digest, Attempt>, attempt: Attempt) {
    let answered = outcomes.get(&attempt.trial).is_some_and(|earlier| matches!(earlier.outcome, Outcome::Answered(_)));
    if !answered {
        outcomes.insert(attempt.trial.clone(), attempt);
    }
}

/// Reads a JSON file after looking at its format and version only, so that a newer one is told apart from a damaged one.
fn read_whole<T: DeserializeOwned>(path: &Path, kind: &FileKind) -> Result<T, RecordError> {
    let bytes = fs::read(path).map_err(RecordError::io("read", path))?;
    let damaged = |line: usize, reason: String| RecordError::Damaged { path: path.to_owned(), line: line.max(1), reason };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.line(), format!("unreadable: {error}")))?;
    let found = value.get("version").and_then(serde_json::Value::as_u64).ok_or_else(|| damaged(1, "no `version`".to_owned()))?;
    if found > u64::from(kind.version) {
        return Err(RecordError::Newer { path: path.to_owned(), found, newest: kind.version });
    }
    let named = value.get("format").and_then(serde_json::Value::as_str).unwrap_or_default();
    if named != kind.format {
        return Err(damaged(1, format!("wanted format `{}`, found `{named}`", kind.format)));
    }
    serde_json::from_slice(&bytes).map_err(|error| damaged(error.line(), format!("unreadable: {error}")))
}
