//! Runs the trials of a suite on a subject, and writes what happens as it happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use glassbox_record::{
    Answer, Attempt, Digest, Event, FailureClass, Fingerprint, Judgement, Look, Machine, NewRun, Outcome, PlannedTrial, Request, RunWriter,
    Score, Status, Timestamp, Verdicts,
};
use glassbox_subject::{AtOnce, Capability, Subject, SubjectError, Watch};

use crate::cases::score;
use crate::suite::Suite;
use crate::verdict::judge_run;
use crate::{SuiteError, attention};

/// Where a run is written.
#[derive(Debug, Clone, Copy)]
pub enum Destination<'a> {
    /// A new folder in this folder of runs.
    New(&'a Path),
    /// The folder of a run that was interrupted: what is missing is added, failed trials are tried again.
    Resume(&'a Path),
}

/// What a run needs from outside: the clock, the wish to stop, and somebody who listens.
pub struct Surroundings<'a> {
    /// The time.
    pub clock: &'a dyn Fn() -> Timestamp,
    /// Whether somebody wants to stop; asked before every trial.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Told what happens.
    pub listener: &'a mut dyn FnMut(&Event),
    /// For the manifest.
    pub machine: Machine,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Folder of the run.
    pub folder: PathBuf,
    /// Why it ended.
    pub ending: Ending,
    /// The limit of the budget that was reached, in words.
    pub limit: Option<String>,
    /// The verdicts; also after too many errors, but not after an interruption or where the budget was spent.
    pub verdicts: Option<Verdicts>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every trial was attempted.
    Complete,
    /// Somebody stopped it; it can be resumed.
    Interrupted,
    /// The budget for asking was spent; it can be resumed.
    OutOfBudget,
    /// More trials failed than the suite allows.
    TooManyErrors,
}

/// Fewer failures than this never end a run early: a share of a handful says little.
const FEWEST_FAILURES: usize = 10;

impl Suite {
    /// The fingerprint of a run of this suite on this subject.
    #[must_use]
    pub fn fingerprint(&self, subject: &dyn Subject) -> Fingerprint {
        Fingerprint {
            glassbox: env!("CARGO_PKG_VERSION").to_owned(),
            suite: self.identity.clone(),
            data: self.data.clone(),
            subject: subject.identity(),
            seed: self.defaults.seed,
        }
    }

    /// Runs the suite to its verdicts.
    ///
    /// A failed trial is a result, not an error of the run. With a subject that can be watched, some wrong and some right answers are asked
    /// again under watch before the verdicts are written.
    ///
    /// Errors: an impossible plan; a record that cannot be written, that somebody else writes, or that was begun with something else.
    pub fn run(&self, subject: &dyn Subject, destination: Destination<'_>, mut around: Surroundings<'_>) -> Result<Finished, SuiteError> {
        let mut run = Run::begin(self, subject, destination, &around)?;
        let finished_before = run.outcomes.values().filter(|attempt| attempt.outcome.answer().is_some()).count();
        let name = run.writer.manifest().run.clone();
        (around.listener)(&Event::Started { run: name.clone(), planned: run.plan.len(), finished_before });
        let mut ending = run.ask_all(self, subject, &mut around)?;
        if ending == Ending::Complete && subject.shows(Capability::Attention) {
            ending = run.look_all(self, subject, &mut around)?;
        }
        let folder = run.writer.folder().to_owned();
        if matches!(ending, Ending::Interrupted | Ending::OutOfBudget) {
            run.writer.sync((around.clock)())?;
            return Ok(Finished { folder, ending, limit: run.limit, verdicts: None });
        }
        let (scores, verdicts) = judge_run(self, &run.plan, &run.outcomes, run.attempts, &run.looks);
        if too_many(verdicts.totals.failed, run.plan.len(), self.defaults.max_error_rate) {
            ending = Ending::TooManyErrors;
        }
        run.writer.conclude(&scores, &verdicts, (around.clock)())?;
        for test in &verdicts.tests {
            for gate in &test.gates {
                let (metric, sentence) = (gate.metric.clone(), gate.sentence.clone());
                (around.listener)(&Event::Result { test: test.id.clone(), metric, status: gate.status, sentence });
            }
        }
        (around.listener)(&Event::Finished { run: name, status: verdicts.status, failed: verdicts.totals.failed });
        Ok(Finished { folder, ending, limit: None, verdicts: Some(verdicts) })
    }
}

impl Finished {
    /// The exit code of the process.
    ///
    /// 0 all gates pass, 100 a gate failed, 101 a gate is open and `strict` asks for certainty, 102 too many errors, 130 interrupted or out of budget.
    #[must_use]
    pub fn exit_code(&self, strict: bool) -> u8 {
        match (self.ending, self.verdicts.as_ref().map(|verdicts| verdicts.status)) {
            (Ending::Interrupted | Ending::OutOfBudget, _) | (_, None) => 130,
            (Ending::TooManyErrors, _) => 102,
            (_, Some(Status::Fail)) => 100,
            (_, Some(Status::Inconclusive | Status::CannotSay)) if strict => 101,
            _ => 0,
        }
    }
}

/// A run in progress.
struct Run {
    writer: RunWriter,
    plan: Vec<PlannedTrial>,
    outcomes: BTreeMap<Digest, Attempt>,
    /// Attempts of each trial so far.
    tries: BTreeMap<Digest, u32>,
    attempts: usize,
    looks: Vec<Look>,
    /// The limit of the budget that was reached.
    limit: Option<String>,
}

impl Run {
    fn begin(suite: &Suite, subject: &dyn Subject, destination: Destination<'_>, around: &Surroundings<'_>) -> Result<Self, SuiteError> {
        let now = (around.clock)();
        let fingerprint = suite.fingerprint(subject);
        let empty = |writer, plan| Self {
            writer,
            plan,
            outcomes: BTreeMap::new(),
            tries: BTreeMap::new(),
            attempts: 0,
            looks: Vec::new(),
            limit: None,
        };
        match destination {
            Destination::New(runs) => {
                let plan = suite.plan()?;
                let writer = RunWriter::create(runs, NewRun { fingerprint, machine: around.machine.clone(), plan: &plan }, now)?;
                Ok(empty(writer, plan))
            }
            Destination::Resume(folder) => {
                let resumed = RunWriter::resume(folder, &fingerprint, now)?;
                let mut run = empty(resumed.writer, resumed.plan);
                for attempt in resumed.attempts {
                    run.count(attempt);
                }
                run.looks = resumed.looks;
                Ok(run)
            }
        }
    }

    /// Lets an attempt count: the first answer of a trial, else its last failure.
    fn count(&mut self, attempt: Attempt) {
        self.attempts += 1;
        let tries = self.tries.entry(attempt.trial.clone()).or_default();
        *tries = (*tries).max(attempt.attempt);
        let answered = self.outcomes.get(&attempt.trial).is_some_and(|earlier| earlier.outcome.answer().is_some());
        if !answered {
            self.outcomes.insert(attempt.trial.clone(), attempt);
        }
    }

    fn ask_all(&mut self, suite: &Suite, subject: &dyn Subject, around: &mut Surroundings<'_>) -> Result<Ending, SuiteError> {
        let is_open =
            |run: &Self, trial: &PlannedTrial| run.outcomes.get(&trial.id).is_none_or(|attempt| attempt.outcome.answer().is_none());
        let open: Vec<usize> = (0..self.plan.len()).filter(|index| is_open(self, &self.plan[*index])).collect();
        let mut asking = Asking { finished: self.plan.len() - open.len(), failures: 0, ending: None };
        match subject.at_once() {
            Some(AtOnce { subject, requests }) if requests.get() > 1 => {
                self.ask_at_once(suite, subject, requests.get(), &open, &mut asking, around)?;
            }
            _ => {
                for index in open {
                    if self.must_stop(suite, &mut asking, around) {
                        break;
                    }
                    let started = (around.clock)();
                    let told = subject.answer(&self.plan[index].content.request);
                    self.take(suite, index, started, told, &mut asking, around)?;
                }
            }
        }
        Ok(asking.ending.unwrap_or(Ending::Complete))
    }

    /// Asks on several threads; this one alone hands out trials in the order of the plan, and writes what comes back in the order in which it comes.
    ///
    /// Nothing is handed out once the run must stop, and everything that is under way is waited for and written.
    fn ask_at_once(
        &mut self,
        suite: &Suite,
        subject: &(dyn Subject + Sync),
        requests: usize,
        open: &[usize],
        asking: &mut Asking,
        around: &mut Surroundings<'_>,
    ) -> Result<(), SuiteError> {
        let (told_here, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..requests.min(open.len())).map(|id| Worker::start(scope, id, subject, told_here.clone())).collect();
            let mut open = open.iter();
            let mut under_way = 0;
            let mut hand_out = |run: &mut Self, worker: &Worker, asking: &mut Asking, around: &mut Surroundings<'_>| {
                if open.len() == 0 || run.must_stop(suite, asking, around) {
                    return false;
                }
                let Some(index) = open.next() else { return false };
                worker.ask(*index, (around.clock)(), run.plan[*index].content.request.clone())
            };
            for worker in &workers {
                under_way += usize::from(hand_out(self, worker, asking, around));
            }
            let mut written = Ok(());
            while under_way > 0 {
                let Ok(Told { worker, index, started, answer }) = told.recv() else { break };
                under_way -= 1;
                // After a record that cannot be written nothing more is asked; what is under way is only waited for.
                if written.is_ok() {
                    written = self.take(suite, index, started, answer, asking, around);
                }
                if written.is_ok() {
                    let free = workers.iter().find(|free| free.id == worker);
                    under_way += usize::from(free.is_some_and(|free| hand_out(self, free, asking, around)));
                }
            }
            written
        })
    }

    /// Whether no further trial may be asked.
    fn must_stop(&self, suite: &Suite, asking: &mut Asking, around: &Surroundings<'_>) -> bool {
        if asking.ending.is_none() {
            if (around.interrupted)() {
                asking.ending = Some(Ending::Interrupted);
            } else if asking.failures >= FEWEST_FAILURES && too_many(asking.failures, self.plan.len(), suite.defaults.max_error_rate) {
                asking.ending = Some(Ending::TooManyErrors);
            }
        }
        asking.ending.is_some()
    }

    /// Writes what came of a trial. A trial that was not asked leaves no trace, and ends the run.
    fn take(
        &mut self,
        suite: &Suite,
        index: usize,
        started: Timestamp,
        told: Result<Answer, SubjectError>,
        asking: &mut Asking,
        around: &mut Surroundings<'_>,
    ) -> Result<(), SuiteError> {
        let outcome = match told {
            Ok(answer) => Outcome::Answered(answer),
            Err(error) if error.was_not_asked() => {
                let out_of_budget = error.class == FailureClass::Budget;
                asking.ending.get_or_insert(if out_of_budget { Ending::OutOfBudget } else { Ending::Interrupted });
                if out_of_budget {
                    self.limit = Some(error.message);
                }
                return Ok(());
            }
            Err(error) => Outcome::Failed(error.into()),
        };
        let trial = self.plan[index].clone();
        let now = (around.clock)();
        let attempt = Attempt { trial: trial.id.clone(), attempt: self.tries.get(&trial.id).copied().unwrap_or(0) + 1, started, outcome };
        self.writer.append(&attempt, now)?;
        asking.failures += usize::from(attempt.outcome.answer().is_none());
        asking.finished += 1;
        let judgement = judgement_of(suite, &trial, &attempt);
        self.count(attempt);
        (around.listener)(&Event::Attempted {
            trial: trial.id,
            test: trial.content.test,
            item: trial.content.item,
            condition: trial.content.condition.label(),
            judgement,
            finished: asking.finished,
            elapsed_ms: now.ms_since(started),
        });
        Ok(())
    }

    fn look_all(&mut self, suite: &Suite, subject: &dyn Subject, around: &mut Surroundings<'_>) -> Result<Ending, SuiteError> {
        let scores: Vec<Score> = score(suite, &self.plan, &self.outcomes);
        let spec = &suite.defaults.looks;
        let chosen: Vec<_> = suite.tests.iter().flat_map(|test| attention::choose(&test.id, &self.plan, &scores, spec)).collect();
        let planned = chosen.len();
        for (index, (trial, reason)) in chosen.into_iter().enumerate() {
            if (around.interrupted)() {
                return Ok(Ending::Interrupted);
            }
            if self.looks.iter().any(|look| look.trial == trial.id) {
                continue;
            }
            // A look that fails explains nothing and changes no verdict; the answer itself is already in the record.
            if let Ok(looked) = subject.look(&trial.content.request, &Watch { heads_in_full: spec.heads_in_full }) {
                let look = Look { trial: trial.id.clone(), reason, looked };
                self.writer.append_look(&look, (around.clock)())?;
                self.looks.push(look);
            }
            (around.listener)(&Event::Looked { trial: trial.id.clone(), finished: index + 1, planned });
        }
        Ok(Ending::Complete)
    }
}

/// How far the asking is.
struct Asking {
    /// Trials that have been attempted, earlier processes included.
    finished: usize,
    /// Trials that failed in this process.
    failures: usize,
    /// Why no further trial is asked.
    ending: Option<Ending>,
}

/// A thread that asks one trial after the other.
struct Worker {
    id: usize,
    trials: mpsc::Sender<(usize, Timestamp, Request)>,
}

/// What a worker was told.
struct Told {
    worker: usize,
    index: usize,
    started: Timestamp,
    answer: Result<Answer, SubjectError>,
}

impl Worker {
    /// Ends when it is dropped and has answered what it was given.
    fn start<'s, 'e>(
        scope: &'s std::thread::Scope<'s, 'e>,
        id: usize,
        subject: &'e (dyn Subject + Sync),
        told: mpsc::Sender<Told>,
    ) -> Self {
        let (trials, given) = mpsc::channel::<(usize, Timestamp, Request)>();
        scope.spawn(move || {
            for (index, started, request) in given {
                // A subject that panics is a fault of ours; the trial fails, and the others go on.
                let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| subject.answer(&request)));
                let answer = asked.unwrap_or_else(|_| Err(SubjectError::new(FailureClass::Internal, "the subject panicked")));
                if told.send(Told { worker: id, index, started, answer }).is_err() {
                    return;
                }
            }
        });
        Self { id, trials }
    }

    fn ask(&self, index: usize, started: Timestamp, request: Request) -> bool {
        self.trials.send((index, started, request)).is_ok()
    }
}

fn too_many(failed: usize, planned: usize, max_error_rate: f64) -> bool {
    failed as f64 > max_error_rate * planned as f64
}

fn judgement_of(suite: &Suite, trial: &PlannedTrial, attempt: &Attempt) -> Judgement {
    let outcomes = BTreeMap::from([(trial.id.clone(), attempt.clone())]);
    score(suite, std::slice::from_ref(trial), &outcomes).first().map_or(Judgement::Error, |score| score.judgement)
}
