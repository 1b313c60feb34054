use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::lines::{Appender, Header, Lines, line_of};
use crate::reader::{FileKind, LOOKS, MANIFEST, PLAN, RunReader, SCORES, TRIALS, VERDICTS};
use crate::{Attempt, Digest, Fingerprint, Look, Machine, Manifest, PlannedTrial, RecordError, Score, Timestamp, Verdicts, write_whole};

const LOCK: &str = "lock";

/// What a new run is made of.
#[derive(Debug)]
pub struct NewRun<'a> {
    /// Everything that may change an answer or a verdict.
    pub fingerprint: Fingerprint,
    /// Where it runs.
    pub machine: Machine,
    /// Every trial, in the order in which they will be asked.
    pub plan: &'a [PlannedTrial],
}

/// The one process that may write a run.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    manifest: Manifest,
    trials: Appender,
    looks: Appender,
    // Held until the writer is dropped; the system lets go of it when the process dies, however it dies.
    _lock: File,
}

/// A run taken up again.
#[derive(Debug)]
pub struct Resumed {
    /// Writes on.
    pub writer: RunWriter,
    /// The plan of the run.
    pub plan: Vec<PlannedTrial>,
    /// Every whole attempt of earlier processes, in the order of the file.
    pub attempts: Vec<Attempt>,
    /// Every whole look of earlier processes.
    pub looks: Vec<Look>,
}

impl RunWriter {
    /// Begins a run in a new folder `<runs>/<utc>-<short>/`.
    ///
    /// - `runs`  folder of all runs; made where it is missing
    /// - `now`   the time, which also names the run
    ///
    /// The manifest is written last: a folder without one was never begun and holds no answer. What cannot be begun leaves no folder.
    ///
    /// Errors: a trial that is planned twice, anything the file system refuses.
    pub fn create(runs: &Path, new: NewRun<'_>, now: Timestamp) -> Result<Self, RecordError> {
        let mut ids = BTreeSet::new();
        for trial in new.plan {
            if !ids.insert(&trial.id) {
                let (item, test) = (trial.content.item.clone(), trial.content.test.clone());
                return Err(RecordError::PlannedTwice { id: trial.id.clone(), item, test });
            }
        }
        let (folder, run) = make_folder(runs, &new.fingerprint, now)?;
        let begun = Self::begin(&folder, &run, new, now);
        if begun.is_err() && !folder.join(MANIFEST.name).exists() {
            // Nothing but what `begin` wrote can be in there. A folder that stays all the same is only litter.
            let _ = fs::remove_dir_all(&folder);
        }
        begun
    }

    fn begin(folder: &Path, run: &str, new: NewRun<'_>, now: Timestamp) -> Result<Self, RecordError> {
        let lock = take_lock(folder)?;
        let plan_lines = file_of_lines(&Header::new(&PLAN, run), "a planned trial", new.plan)?;
        let manifest = Manifest {
            format: MANIFEST.format.to_owned(),
            version: MANIFEST.version,
            run: run.to_owned(),
            created: now,
            fingerprint: new.fingerprint,
            machine: new.machine,
            plan: plan_hash(new.plan)?,
            trials: new.plan.len(),
        };
        write_whole(&folder.join(PLAN.name), &plan_lines)?;
        let header = |kind: &FileKind| line_of("a header", &Header::new(kind, run));
        write_whole(&folder.join(TRIALS.name), &header(&TRIALS)?)?;
        write_whole(&folder.join(LOOKS.name), &header(&LOOKS)?)?;
        write_whole(&folder.join(MANIFEST.name), &pretty("the manifest", &manifest)?)?;
        let trials = open_end::<Attempt>(&folder.join(TRIALS.name), &TRIALS, now)?.0;
        let looks = open_end::<Look>(&folder.join(LOOKS.name), &LOOKS, now)?.0;
        Ok(Self { folder: folder.to_owned(), manifest, trials, looks, _lock: lock })
    }

    /// Takes up a run that was interrupted, or one that is finished, to add what is missing.
    ///
    /// - `folder`  folder of the run
    /// - `now`     the fingerprint as it would be today; a run is not mixed from two different things
    ///
    /// Errors: no run there, another writer, a newer format, a damaged line before the last, a drifted fingerprint.
    pub fn resume(folder: &Path, fingerprint: &Fingerprint, now: Timestamp) -> Result<Resumed, RecordError> {
        let reader = RunReader::open(folder)?;
        let lock = take_lock(folder)?;
        let differences = reader.manifest().fingerprint.differences(fingerprint);
        if !differences.is_empty() {
            return Err(RecordError::Drifted { path: folder.to_owned(), differences });
        }
        let plan = reader.plan()?;
        let (trials, attempts) = open_end::<Attempt>(&folder.join(TRIALS.name), &TRIALS, now)?;
        let (looks, seen) = open_end::<Look>(&folder.join(LOOKS.name), &LOOKS, now)?;
        let writer = Self { folder: folder.to_owned(), manifest: reader.manifest().clone(), trials, looks, _lock: lock };
        Ok(Resumed { writer, plan, attempts, looks: seen })
    }

    /// Folder of the run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The manifest as written.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Appends an attempt. When this returns, killing the process cannot lose it.
    ///
    /// Errors: the file system refuses, such as a full disk; then the line is taken back and does not count.
    pub fn append(&mut self, attempt: &Attempt, now: Timestamp) -> Result<(), RecordError> {
        self.trials.append(&line_of("an attempt", attempt)?, now)
    }

    /// Appends a look, as safely as an attempt.
    pub fn append_look(&mut self, look: &Look, now: Timestamp) -> Result<(), RecordError> {
        self.looks.append(&line_of("a look", look)?, now)
    }

    /// Writes what follows from the attempts, each file whole, the verdicts last.
    pub fn conclude(&mut self, scores: &[Score], verdicts: &Verdicts, now: Timestamp) -> Result<(), RecordError> {
        self.sync(now)?;
        let header = Header { derived_from: Some(self.trials.digest()?), ..Header::new(&SCORES, &self.manifest.run) };
        let lines = file_of_lines(&header, "a score", scores)?;
        write_whole(&self.folder.join(SCORES.name), &lines)?;
        write_whole(&self.folder.join(VERDICTS.name), &pretty("the verdicts", verdicts)?)
    }

    /// Forces everything appended so far to the disk.
    pub fn sync(&mut self, now: Timestamp) -> Result<(), RecordError> {
        self.trials.sync(now)?;
        self.looks.sync(now)
    }
}

/// Hash over the ids of a plan, in order.
pub(crate) fn plan_hash(plan: &[PlannedTrial]) -> Result<Digest, RecordError> {
    let ids: Vec<&Digest> = plan.iter().map(|trial| &trial.id).collect();
    Digest::of_content(&ids)
}

fn make_folder(runs: &Path, fingerprint: &Fingerprint, now: Timestamp) -> Result<(PathBuf, String), RecordError> {
    fs::create_dir_all(runs).map_err(RecordError::io("make the folder", runs))?;
    // Two runs may begin in the same millisecond: the next number gives the next name.
    let mut number = 0;
    loop {
        let digest = Digest::of_content(&(fingerprint, now, number))?;
        let run = format!("{}-{}", now.compact(), digest.as_hex().get(..6).unwrap_or_default());
        let folder = runs.join(&run);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok((folder, run)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            Err(error) => return Err(RecordError::io("make the folder", &folder)(error)),
        }
    }
}

fn take_lock(folder: &Path) -> Result<File, RecordError> {
    let path = folder.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(RecordError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::Locked { path: folder.to_owned() }),
        Err(TryLockError::Error(error)) => Err(RecordError::io("lock", &path)(error)),
    }
}

/// Reads a file of lines to its last whole line and opens it for more.
fn open_end<T: serde::de::DeserializeOwned>(path: &Path, kind: &FileKind, now: Timestamp) -> Result<(Appender, Vec<T>), RecordError> {
    let mut lines = Lines::<T>::open(path, kind)?;
    let values = lines.by_ref().collect::<Result<Vec<T>, _>>()?;
    Ok((Appender::open(path, lines.whole_bytes(), now)?, values))
}

fn file_of_lines<T: serde::Serialize>(header: &Header, what: &'static str, values: &[T]) -> Result<Vec<u8>, RecordError> {
    let mut bytes = line_of("a header", header)?;
    for value in values {
        bytes.extend(line_of(what, value)?);
    }
    Ok(bytes)
}

fn pretty<T: serde::Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, RecordError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| RecordError::NotJson { what, source })?;
    bytes.push(b'\n');
    Ok(bytes)
}
