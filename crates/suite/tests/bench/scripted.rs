//! A small suite, and scripted subjects that can read its items.

use glassbox_record::{Attempt, Outcome, PlannedTrial, Timestamp, Verdicts};
use glassbox_subject::{Script, ScriptedFact, ScriptedSubject, Subject};
use glassbox_suite::{Suite, built_in, judge_run};

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
    };
    ScriptedSubject::new(script, items.map(fact).collect())
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
