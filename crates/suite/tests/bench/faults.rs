//! Each check fails the subject with its fault and passes the healthy one.

use glassbox_record::{Status, Verdicts};
use glassbox_subject::Script;
use glassbox_suite::Suite;

use crate::scripted::{small, subject, verdicts};

/// Seeds of subjects; the items stay the same.
const SEEDS: u64 = 8;

fn gate(verdicts: &Verdicts, metric: &str) -> Status {
    let gates = verdicts.tests.iter().flat_map(|test| &test.gates);
    gates.filter(|gate| gate.metric == metric).map(|gate| gate.status).next().expect("the suite gates on it")
}

/// In how many of all runs the gate on `metric` fails, and in how many it passes.
fn outcomes(suite: &Suite, metric: &str, script: impl Fn(u64) -> Script) -> (usize, usize) {
    let statuses: Vec<Status> = (0..SEEDS).map(|seed| gate(&verdicts(suite, &subject(suite, script(seed))), metric)).collect();
    let count = |wanted: Status| statuses.iter().filter(|status| **status == wanted).count();
    (count(Status::Fail), count(Status::Pass))
}

#[track_caller]
fn passes_every_gate(suite: &Suite, script: impl Fn(u64) -> Script) {
    for seed in 0..SEEDS {
        let verdicts = verdicts(suite, &subject(suite, script(seed)));
        let sentences: Vec<&String> = verdicts.tests.iter().flat_map(|test| &test.gates).map(|gate| &gate.sentence).collect();
        assert_eq!(verdicts.status, Status::Pass, "seed {seed}: {sentences:#?}");
    }
}

#[test]
fn a_healthy_subject_passes_every_gate_of_the_evidence_suite() {
    let suite = small("evidence", 80);
    passes_every_gate(&suite, |seed| Script { accuracy: 0.985, ..Script::healthy(seed) });
}

#[test]
fn a_healthy_subject_passes_every_gate_of_the_order_suite() {
    let suite = small("order", 50);
    passes_every_gate(&suite, |seed| Script { accuracy: 0.99, ..Script::healthy(seed) });
}

#[test]
fn a_healthy_subject_passes_every_gate_of_the_memory_suite() {
    let suite = small("memory", 60);
    passes_every_gate(&suite, |seed| Script { accuracy: 0.985, ..Script::healthy(seed) });
}

#[test]
fn forgetting_after_some_turns_fails_the_decay_gates_and_the_half_life_says_how_fast() {
    let suite = small("memory", 60);
    let forgetful = |seed| Script { forgets: 0.6, forgets_after: 7, ..Script::healthy(seed) };
    for gate in ["decay", "recall@20"] {
        assert_eq!(outcomes(&suite, gate, forgetful).0, SEEDS as usize, "{gate}");
    }
    let found = verdicts(&suite, &subject(&suite, forgetful(1)));
    let turns = &found.tests[0];
    assert!(
        turns.notes.iter().any(|note| note.starts_with("Half-life in turns: ") && !note.contains("turns: endless")),
        "{:?}",
        turns.notes
    );
    let recall = |name: &str| turns.metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value).expect("measured");
    assert!(recall("recall@5") == 1.0 && recall("recall@10") < 0.6, "it remembers seven turns");
    assert_eq!(outcomes(&suite, "untold_accuracy", |seed| Script { memory: 0.5, ..Script::healthy(seed) }).0, SEEDS as usize);
}

#[test]
fn who_wins_a_conflict_is_told_apart_from_which_place_wins() {
    let suite = small("conflict", 70);
    let knowing = |seed| Script { memory: 1.0, ..Script::healthy(seed) };
    passes_every_gate(&suite, |seed| Script { accuracy: 0.985, ..knowing(seed) });
    let stubborn = |seed| Script { stubborn: 0.5, ..knowing(seed) };
    assert_eq!(outcomes(&suite, "follows_document", stubborn).0, SEEDS as usize);
    assert_eq!(outcomes(&suite, "order_decides", stubborn).1, SEEDS as usize, "memory does not depend on the order");
    let last = |seed| Script { bound_to_last: 0.6, ..knowing(seed) };
    assert_eq!(outcomes(&suite, "order_decides", last).0, SEEDS as usize);
    assert_eq!(outcomes(&suite, "follows_document", last).1, SEEDS as usize);
    let found = verdicts(&suite, &subject(&suite, Script { bound_to_last: 1.0, ..knowing(1) }));
    let value = |name: &str| found.tests[0].metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value);
    assert_eq!((value("last_wins"), value("order_decides"), value("follows_memory")), (Some(1.0), Some(1.0), Some(0.0)));
    for seed in 0..SEEDS {
        let noisy = verdicts(&suite, &subject(&suite, Script { noise: 0.1, ..knowing(seed) }));
        assert_ne!(gate(&noisy, "order_decides"), Status::Fail, "noise is subtracted");
    }
    // Who knows nothing by heart cannot show what wins.
    assert_eq!(outcomes(&suite, "follows_document", |seed| Script { memory: 0.0, ..Script::healthy(seed) }), (0, 0));
}

#[test]
fn wording_that_changes_answers_fails_and_noise_alone_does_not() {
    let suite = small("rewrite", 50);
    passes_every_gate(&suite, |seed| Script { accuracy: 0.99, ..Script::healthy(seed) });
    let startled = |seed| Script { startled_by_wording: 0.4, ..Script::healthy(seed) };
    assert_eq!(outcomes(&suite, "ews", startled).0, SEEDS as usize);
    for seed in 0..SEEDS {
        let noisy = verdicts(&suite, &subject(&suite, Script { noise: 0.2, ..Script::healthy(seed) }));
        assert_ne!(noisy.status, Status::Fail, "noise is subtracted, by every gate");
    }
}

#[test]
fn blindness_to_the_middle_fails_the_contrast_and_the_used_share() {
    let suite = small("evidence", 80);
    for strength in [0.4, 1.0] {
        let blind = |seed| Script { blind_to_middle: strength, ..Script::healthy(seed) };
        assert_eq!(outcomes(&suite, "u_contrast", blind).0, SEEDS as usize, "strength {strength}");
        let caught = outcomes(&suite, "evidence_utilisation", blind).0;
        assert!(strength < 1.0 || caught == SEEDS as usize, "strength {strength}: {caught}");
    }
}

#[test]
fn being_bound_to_the_first_document_fails_the_used_share_and_not_the_contrast_of_ends() {
    let suite = small("evidence", 80);
    let bound = |seed| Script { bound_to_first: 0.5, ..Script::healthy(seed) };
    assert_eq!(outcomes(&suite, "evidence_utilisation", bound).0, SEEDS as usize);
}

#[test]
fn knowing_by_heart_fails_the_memory_gate_and_makes_the_used_share_undefined() {
    let suite = small("evidence", 80);
    let knowing = |seed| Script { memory: 1.0, ..Script::healthy(seed) };
    assert_eq!(outcomes(&suite, "memory_leak", knowing).0, SEEDS as usize);
    let verdicts = verdicts(&suite, &subject(&suite, knowing(1)));
    assert_eq!(gate(&verdicts, "evidence_utilisation"), Status::CannotSay);
}

#[test]
fn inventing_answers_fails_the_abstention_gate() {
    let inventing = |seed| Script { invents: 0.6, ..Script::healthy(seed) };
    assert_eq!(outcomes(&small("evidence", 80), "no_gold_abstention", inventing).0, SEEDS as usize);
}

#[test]
fn wrong_citations_fail_the_citation_gates() {
    let suite = small("evidence", 80);
    let careless = |seed| Script { cites_rightly: 0.5, ..Script::healthy(seed) };
    assert_eq!(outcomes(&suite, "citation_accuracy", careless).0, SEEDS as usize);
    assert_eq!(outcomes(&suite, "groundedness", careless).0, SEEDS as usize);
    let silent = |seed| Script { cites: 0.4, ..Script::healthy(seed) };
    assert_eq!(outcomes(&suite, "groundedness", silent).0, SEEDS as usize);
}

#[test]
fn answers_that_depend_on_the_order_fail_the_order_gates() {
    let suite = small("order", 50);
    for script in [Script { bound_to_first: 0.3, ..Script::healthy(0) }, Script { blind_to_middle: 0.6, ..Script::healthy(0) }] {
        let biased = |seed| Script { seed, ..script.clone() };
        assert_eq!(outcomes(&suite, "eos", biased).0, SEEDS as usize, "{script:?}");
        assert_eq!(outcomes(&suite, "worst_order_accuracy", biased).0, SEEDS as usize, "{script:?}");
    }
}

#[test]
fn noise_that_has_nothing_to_do_with_order_is_subtracted() {
    let suite = small("order", 50);
    for seed in 0..SEEDS {
        let verdicts = verdicts(&suite, &subject(&suite, Script { noise: 0.3, ..Script::healthy(seed) }));
        assert_ne!(gate(&verdicts, "eos"), Status::Fail, "seed {seed}");
        let metric = |name: &str| verdicts.tests[0].metrics.iter().find(|metric| metric.name == name).expect("it is measured");
        assert!(metric("flip_rate").value > Some(0.3), "{:?}", metric("flip_rate"));
        assert!(metric("noise_floor").value > Some(0.2), "{:?}", metric("noise_floor"));
        assert!(verdicts.tests[0].notes.iter().any(|note| note.starts_with("This subject is noisy")), "{:?}", verdicts.tests[0].notes);
    }
}
