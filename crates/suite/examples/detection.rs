//! How often each gate of the built-in suites fails, leaves open and passes scripted subjects of known truth.
//!
//! ```text
//! cargo run --release -p glassbox-suite --example detection -- 100
//! cargo run --release -p glassbox-suite --example detection -- 200 memory
//! ```
#![expect(clippy::print_stdout, reason = "a table is all that this program is for")]

use std::collections::BTreeMap;

use glassbox_record::{Attempt, Outcome, PlannedTrial, Status, Timestamp};
use glassbox_subject::{Script, ScriptedFact, ScriptedSubject, Subject};
use glassbox_suite::{Suite, SuiteError, built_in, judge_run};

/// Enough draws for the 95 % ends; the suites themselves take 9,999.
const RESAMPLES: usize = 399;

fn main() -> Result<(), SuiteError> {
    let seeds: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100);
    println!("suite, subject, gate: pass / cannot say / inconclusive / fail of {seeds} seeds");
    for (name, subjects) in [
        ("evidence", evidence_subjects()),
        ("order", order_subjects()),
        ("memory", memory_subjects()),
        ("length", length_subjects()),
        ("conflict", conflict_subjects()),
        ("rewrite", rewrite_subjects()),
    ] {
        if std::env::args().nth(2).is_some_and(|only| only != name) {
            continue;
        }
        let mut suite = built_in(name).expect("the suite is built in")?;
        suite.defaults.stats.resamples = RESAMPLES;
        let plan = suite.plan()?;
        for (fault, script) in subjects {
            for (gate, [pass, cannot_say, inconclusive, fail]) in count(&suite, &plan, &script, seeds) {
                println!("{name}, {fault}, {gate}: {pass} / {cannot_say} / {inconclusive} / {fail}");
            }
        }
    }
    Ok(())
}

fn evidence_subjects() -> Vec<(&'static str, Script)> {
    let healthy = || Script::healthy(0);
    vec![
        ("healthy, 97 % right", Script { accuracy: 0.97, ..healthy() }),
        ("blind to the middle in 25 %", Script { blind_to_middle: 0.25, ..healthy() }),
        ("blind to the middle in 50 %", Script { blind_to_middle: 0.5, ..healthy() }),
        ("bound to the first document in 30 %", Script { bound_to_first: 0.3, ..healthy() }),
        ("knows 25 % by heart", Script { memory: 0.25, ..healthy() }),
        ("invents in 35 %", Script { invents: 0.35, ..healthy() }),
        ("cites wrongly in 25 %", Script { cites_rightly: 0.75, ..healthy() }),
        ("does not cite in 25 %", Script { cites: 0.75, ..healthy() }),
    ]
}

fn order_subjects() -> Vec<(&'static str, Script)> {
    let healthy = || Script::healthy(0);
    vec![
        ("healthy, 98 % right", Script { accuracy: 0.98, ..healthy() }),
        ("noisy in 20 %", Script { noise: 0.2, ..healthy() }),
        ("bound to the first document in 25 %", Script { bound_to_first: 0.25, ..healthy() }),
        ("blind to the middle in 40 %", Script { blind_to_middle: 0.4, ..healthy() }),
    ]
}

fn memory_subjects() -> Vec<(&'static str, Script)> {
    let forgets = |forgets, forgets_after| Script { forgets, forgets_after, ..Script::healthy(0) };
    vec![
        ("healthy, 97 % right", Script { accuracy: 0.97, ..Script::healthy(0) }),
        ("forgets all after 10 turns", forgets(1.0, 10)),
        ("forgets half after 10 turns", forgets(0.5, 10)),
        ("forgets 30 % after 5 turns", forgets(0.3, 5)),
        ("knows 25 % by heart", Script { memory: 0.25, ..Script::healthy(0) }),
    ]
}

fn length_subjects() -> Vec<(&'static str, Script)> {
    // All that lies between is one turn: whoever forgets after none forgets what a text pushed away.
    let forgets = |forgets| Script { forgets, ..Script::healthy(0) };
    vec![
        ("healthy, 97 % right", Script { accuracy: 0.97, ..Script::healthy(0) }),
        ("forgets all behind a text", forgets(1.0)),
        ("forgets half behind a text", forgets(0.5)),
        ("forgets 30 % behind a text", forgets(0.3)),
    ]
}

fn conflict_subjects() -> Vec<(&'static str, Script)> {
    let knowing = || Script { memory: 1.0, ..Script::healthy(0) };
    vec![
        ("knows all and follows its documents, 97 % right", Script { accuracy: 0.97, ..knowing() }),
        ("stubborn in all", Script { stubborn: 1.0, ..knowing() }),
        ("stubborn in 50 %", Script { stubborn: 0.5, ..knowing() }),
        ("stubborn in 30 %", Script { stubborn: 0.3, ..knowing() }),
        ("bound to the last in all", Script { bound_to_last: 1.0, ..knowing() }),
        ("bound to the last in 60 %", Script { bound_to_last: 0.6, ..knowing() }),
        ("bound to the last in 30 %", Script { bound_to_last: 0.3, ..knowing() }),
        ("noisy in 20 %", Script { noise: 0.2, ..knowing() }),
        ("knows 10 % by heart", Script { memory: 0.1, ..knowing() }),
    ]
}

fn rewrite_subjects() -> Vec<(&'static str, Script)> {
    let startled = |startled_by_wording| Script { startled_by_wording, ..Script::healthy(0) };
    vec![
        ("healthy, 98 % right", Script { accuracy: 0.98, ..Script::healthy(0) }),
        ("noisy in 20 %", Script { noise: 0.2, ..Script::healthy(0) }),
        ("startled by wording in 60 %", startled(0.6)),
        ("startled by wording in 40 %", startled(0.4)),
        ("startled by wording in 25 %", startled(0.25)),
    ]
}

/// For each gate, and for the whole suite, how often it came out as each [`Status`], in the order of its variants.
fn count(suite: &Suite, plan: &[PlannedTrial], script: &Script, seeds: u64) -> BTreeMap<String, [usize; 4]> {
    let fact = |item: &glassbox_suite::Item| ScriptedFact {
        question: item.question.clone(),
        answer: item.answer.clone(),
        gold: item.gold.clone(),
        counters: item.counters().map(|(text, value)| (text.to_owned(), value.to_owned())).collect(),
    };
    let facts: Vec<ScriptedFact> = suite.tests.iter().flat_map(|test| &test.items).map(fact).collect();
    let mut counts: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for seed in 0..seeds {
        let subject = ScriptedSubject::new(Script { seed, ..script.clone() }, facts.clone());
        let attempt = |trial: &PlannedTrial| {
            let answered = subject.answer(&trial.content.request);
            let outcome = answered.map_or_else(|error| Outcome::Failed(error.into()), Outcome::Answered);
            (trial.id.clone(), Attempt { trial: trial.id.clone(), attempt: 1, started: Timestamp::default(), outcome })
        };
        let outcomes = plan.iter().map(attempt).collect();
        let verdicts = judge_run(suite, plan, &outcomes, plan.len(), &[]).1;
        let gates = verdicts.tests.iter().flat_map(|test| &test.gates).map(|gate| (gate.metric.as_str(), gate.status));
        for (name, status) in gates.chain(std::iter::once(("any gate", verdicts.status))) {
            let place = match status {
                Status::Pass => 0,
                Status::CannotSay => 1,
                Status::Inconclusive => 2,
                Status::Fail => 3,
            };
            counts.entry(name.to_owned()).or_default()[place] += 1;
        }
    }
    counts
}
