//! A small suite, and scripted subjects that can read its items.

use glassbox_record::{Answer, Attempt, Looked, Outcome, PlannedTrial, Request, SubjectIdentity, Timestamp, Verdicts};
use glassbox_subject::{AtOnce, Capability, Script, ScriptedFact, ScriptedSubject, Subject, SubjectError, Watch};
use glassbox_suite::{Suite, built_in, judge_run};
use std::num::NonZeroUsize;

/// The built-in suite of this name with so many items and few draws, so that a test takes milliseconds.
pub(crate) fn small(name: &str, items: usize) -> Suite {
    let mut suite = built_in(name).expect("the suite is built in").expect("the shipped suite is valid");
    suite.limit_items(items);
    suite.defaults.stats.resamples = 399;
    suite
}

pub(crate) fn subject(suite: &Suite, script: Script) -> ScriptedSubject {
    let items = suite.tests.iter().flat_map(|test| &test.items);
    let fact = |item: &glassbox_suite::Item| ScriptedFact {
        question: item.question.clone(),
        answer: item.answer.clone(),
        gold: item.gold.clone(),
        counters: item.counters().map(|(text, value)| (text.to_owned(), value.to_owned())).collect(),
    };
    ScriptedSubject::new(script, items.map(fact).collect())
}

/// A subject that several threads ask at once.
pub(crate) struct Crowded<S>(pub(crate) S, pub(crate) usize);

impl<S: Subject + Sync> Subject for Crowded<S> {
    fn identity(&self) -> SubjectIdentity {
        self.0.identity()
    }

    fn shows(&self, capability: Capability) -> bool {
        self.0.shows(capability)
    }

    fn answer(&self, request: &Request) -> Result<Answer, SubjectError> {
        self.0.answer(request)
    }

    fn look(&self, request: &Request, watch: &Watch) -> Result<Looked, SubjectError> {
        self.0.look(request, watch)
    }

    fn at_once(&self) -> Option<AtOnce<'_>> {
        Some(AtOnce { subject: self, requests: NonZeroUsize::new(self.1).expect("at least one") })
    }
}

/// The verdicts of a run that is not written anywhere.
pub(crate) fn verdicts(suite: &Suite, subject: &dyn Subject) -> Verdicts {
    let plan = suite.plan().expect("the shipped suite can be planned");
    let started = Timestamp::from_unix_ms(1_796_072_052_345);
    let attempt = |trial: &PlannedTrial| {
        let outcome = match subject.answer(&trial.content.request) {
            Ok(answer) => Outcome::Answered(answer),
            Err(error) => Outcome::Failed(error.into()),
        };
        (trial.id.clone(), Attempt { trial: trial.id.clone(), attempt: 1, started, outcome })
    };
    let outcomes = plan.iter().map(attempt).collect();
    judge_run(suite, &plan, &outcomes, plan.len(), &[]).1
}
