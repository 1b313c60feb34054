//! Fact conflict: a document says otherwise than what is known by heart, or than another document.
//!
//! ```text
//! known              items that are right closed book
//! follows_document   share of known items that answer what the document says, which contradicts what they know
//! follows_memory     share of known items that answer what they know in spite of it
//! order_decides      share of items whose answer changes when two documents that contradict one another change places, minus the same for
//!                    identical requests
//! last_wins          share of answers to two such documents that are what the last one says
//! ```
//!
//! Source of the arms: the shape of ConflictQA (Xie et al. 2023, arXiv:2305.13300); which of the two is right is the tester's to say, by the gates.

use std::collections::BTreeMap;

use glassbox_record::Judgement;
use glassbox_stats::repeats::NOISY;

use super::Findings;
use super::order_sensitivity::{Answers, FlipWords, flips};
use crate::cases::{Case, ItemCases};
use crate::measure::{Measure, named};

type Items<'a> = BTreeMap<&'a str, ItemCases<'a>>;

const PLACES: FlipWords = FlipWords {
    excess: (
        "order_decides",
        "Share of items whose answer changes when two documents that contradict one another change places, minus the same for identical requests.",
    ),
    flips: "Share of items whose answer changes when two documents that contradict one another change places, noise included.",
};

/// Metrics with an interval, so that a gate can decide on them.
pub(crate) fn metric_names() -> Vec<String> {
    [
        "closed_book_accuracy",
        "agreement_accuracy",
        "follows_document",
        "follows_memory",
        "conflict_abstention",
        "order_decides",
        "last_wins",
        "flip_rate",
        "noise_floor",
    ]
    .map(str::to_owned)
    .to_vec()
}

pub(crate) fn measure(items: &Items<'_>, measure: &Measure<'_>) -> Findings {
    let mut findings = Findings::default();
    let knows = |item: &ItemCases<'_>| item.measured("closed", None).and_then(|case| case.right());
    let known: Vec<&ItemCases<'_>> = items.values().filter(|item| knows(item) == Some(true)).collect();
    if known.len() < items.len() {
        findings.notes.push(format!(
            "{} of {} items are known by heart; only these can show whether a document or memory wins.",
            known.len(),
            items.len()
        ));
    }
    let closed: Vec<bool> = items.values().filter_map(knows).collect();
    let agreeing: Vec<bool> = known.iter().filter_map(|item| item.measured("oracle", None)?.right()).collect();
    let of_conflict = |holds: &dyn Fn(&Case<'_>) -> Option<bool>| -> Vec<bool> {
        known.iter().filter_map(|item| holds(&item.measured("conflict", None)?)).collect()
    };
    let document = of_conflict(&|case| Some(case.answered()?.captured_by.is_some()));
    let memory = of_conflict(&|case| case.right());
    let abstained = of_conflict(&|case| Some(case.answered()?.judgement == Judgement::Abstained));
    // With the gold document at place 1 the last one contradicts it; at place 2 it is the last.
    let last = |item: &ItemCases<'_>| {
        let of = |place| {
            let score = item.measured("both", Some(place))?.answered()?;
            let (gold, other) = (score.judgement == Judgement::Right, score.captured_by.is_some());
            (gold || other).then_some(if place == 2 { gold } else { other })
        };
        let answers: Vec<bool> = [1, 2].into_iter().filter_map(of).collect();
        (!answers.is_empty()).then(|| answers.iter().filter(|last| **last).count() as f64 / answers.len() as f64)
    };
    let last: Vec<f64> = items.values().filter_map(last).collect();
    let shares = [
        ("closed_book_accuracy", "Share of right answers without any document: what is known by heart.", &closed),
        ("agreement_accuracy", "Share of known items that stay right when a document says what is known.", &agreeing),
        ("follows_document", "Share of known items that answer what the document says, though it contradicts what they know.", &document),
        ("follows_memory", "Share of known items that answer what they know, though the document contradicts it.", &memory),
        (
            "conflict_abstention",
            "Share of known items that say that they do not know, when a document contradicts what they know.",
            &abstained,
        ),
    ];
    findings.metrics.extend(shares.into_iter().map(|(name, meaning, outcomes)| measure.share(named(name, meaning), outcomes)));
    let meaning =
        "Share of answers to two documents that contradict one another which are what the last one says; one half is no preference.";
    findings.metrics.push(measure.mean(named("last_wins", meaning), &last, 0.0, 1.0));
    let both: Vec<Answers<'_>> = items.values().filter_map(|item| Answers::of(&item.of_arm("both"))).collect();
    findings.metrics.extend(flips(&both, &PLACES, measure));
    let floor = findings.metrics.iter().find(|measured| measured.metric.name == "noise_floor").and_then(|floor| floor.metric.value);
    if let Some(floor) = floor.filter(|floor| *floor > NOISY) {
        findings.notes.push(format!(
            "This subject is noisy: the same request gave different answers in {:.1} % of pairs; `order_decides` has that subtracted.",
            100.0 * floor
        ));
    }
    findings
}
