//! Reports of a run: made from the record alone, so that they can be made again at any time.

mod item;
mod json;
mod junit;
mod look;
mod page;
mod terminal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glassbox_record::{
    Attempt, Digest, Judgement, Look, LookReason, Manifest, PlannedTrial, RecordError, RunReader, Score, Verdicts, write_whole,
};

use crate::ReportError;
use crate::texts::{Lang, Texts};

/// A finished run, read whole.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
    plan: Vec<PlannedTrial>,
    outcomes: BTreeMap<Digest, Attempt>,
    scores: BTreeMap<Digest, Score>,
    looks: BTreeMap<Digest, Look>,
    verdicts: Verdicts,
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    ///
    /// Where the record cannot be read, the run is not finished, or its verdicts do not follow from the attempts that it holds.
    pub fn load(reader: &RunReader) -> Result<Self, ReportError> {
        let (folder, suite) = (reader.folder().to_owned(), reader.manifest().fingerprint.suite.name.clone());
        let (Some(verdicts), Some(scores)) = (reader.verdicts()?, reader.scores()?) else {
            let answered = reader.outcomes()?.values().filter(|attempt| attempt.outcome.answer().is_some()).count();
            return Err(ReportError::Unfinished { folder, suite, answered, planned: reader.manifest().trials });
        };
        reader.check_derived(&verdicts).map_err(|error| match error {
            source @ RecordError::Stale { .. } => ReportError::Stale { folder: folder.clone(), suite, source: Box::new(source) },
            other => other.into(),
        })?;
        Ok(Self {
            folder,
            manifest: reader.manifest().clone(),
            plan: reader.plan()?,
            outcomes: reader.outcomes()?,
            scores: scores.into_iter().map(|score| (score.trial.clone(), score)).collect(),
            looks: reader.looks()?.into_iter().map(|look| (look.trial.clone(), look)).collect(),
            verdicts,
        })
    }

    /// Writes `report.html`, `junit.xml` and `report.json` into `folder`, each whole or not at all; gives their paths.
    ///
    /// # Errors
    ///
    /// Where one cannot be made or written.
    pub fn write_reports(&self, folder: &Path, lang: Lang) -> Result<Vec<PathBuf>, ReportError> {
        let json = serde_json::to_vec_pretty(&self.json()).map_err(ReportError::picture)?;
        let reports = [("report.html", self.html(lang)?.into_bytes()), ("junit.xml", self.junit()?.into_bytes()), ("report.json", json)];
        let mut written = Vec::new();
        for (name, bytes) in reports {
            let path = folder.join(name);
            write_whole(&path, &bytes)?;
            written.push(path);
        }
        Ok(written)
    }

    /// The page: one file, nothing from outside, readable without scripts.
    ///
    /// # Errors
    ///
    /// Where a template cannot be filled in.
    pub fn html(&self, lang: Lang) -> Result<String, ReportError> {
        page::html(self, &Texts::new(lang))
    }

    /// The verdicts as a table for a terminal of `width` columns.
    #[must_use]
    pub fn terminal_summary(&self, lang: Lang, width: usize) -> String {
        terminal::summary(self, &Texts::new(lang), width)
    }

    /// Manifest, verdicts and wrong answers as one document.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        json::document(self)
    }

    /// The verdicts as JUnit XML: a suite a test, a case a gate.
    ///
    /// # Errors
    ///
    /// Where the document cannot be written.
    pub fn junit(&self) -> Result<String, ReportError> {
        junit::document(self)
    }

    /// Trials that were measured, hold the right document, and were not answered rightly; watched ones first.
    fn failing(&self) -> Vec<&PlannedTrial> {
        let wrong = |trial: &&PlannedTrial| {
            let score = self.scores.get(&trial.id);
            let missed = score.is_some_and(|score| score.judgement != Judgement::Right);
            trial.content.replicate == 0 && missed && trial.content.expected.gold_number().is_some()
        };
        let (watched, rest): (Vec<_>, Vec<_>) = self.plan.iter().filter(wrong).partition(|trial| self.looks.contains_key(&trial.id));
        watched.into_iter().chain(rest).collect()
    }

    /// Trials that were watched for comparison.
    fn contrast(&self) -> Vec<&PlannedTrial> {
        let for_contrast = |trial: &&PlannedTrial| self.looks.get(&trial.id).is_some_and(|look| look.reason == LookReason::Contrast);
        self.plan.iter().filter(for_contrast).collect()
    }

    /// Why trials failed: each kind of trouble with how many trials met it and the first message, the most frequent first.
    fn failures(&self) -> Vec<(&'static str, usize, &str)> {
        let mut failures: Vec<(&'static str, usize, &str)> = Vec::new();
        for trial in &self.plan {
            let Some(glassbox_record::Outcome::Failed(failure)) = self.outcomes.get(&trial.id).map(|attempt| &attempt.outcome) else {
                continue;
            };
            match failures.iter_mut().find(|(class, ..)| *class == failure.class.name()) {
                Some((_, count, _)) => *count += 1,
                None => failures.push((failure.class.name(), 1, &failure.message)),
            }
        }
        failures.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        failures
    }

    /// What the subject answered, or why it did not.
    fn answer_text(&self, trial: &PlannedTrial) -> String {
        match self.outcomes.get(&trial.id).map(|attempt| &attempt.outcome) {
            Some(glassbox_record::Outcome::Answered(answer)) => answer.text.clone(),
            Some(glassbox_record::Outcome::Failed(failure)) => format!("({}: {})", failure.class.name(), failure.message),
            None => "–".to_owned(),
        }
    }
}
