//! Minimal rewrite: the same question in words that mean the same.
//!
//! ```text
//! FR_i  share of pairs of wordings with different answers        F_i  the same for identical requests: the noise floor
//! ews   mean_i (FR_i - F_i)                                      worst_wording_accuracy  mean_i min over wordings of right
//! ```
//!
//! The statistics are those of order sensitivity: only what is varied differs.
//!
//! Source: invariance tests, Ribeiro et al. 2020 (CheckList, arXiv:2005.04118); the floor as in order sensitivity.

use std::collections::{BTreeMap, BTreeSet};

use glassbox_stats::repeats::NOISY;

use super::Findings;
use super::order_sensitivity::{Answers, FlipWords, Words, accuracies, flips};
use crate::cases::ItemCases;
use crate::measure::{Measure, series_by_language};

type Items<'a> = BTreeMap<&'a str, ItemCases<'a>>;

const WORDINGS: Words = Words {
    flips: FlipWords {
        excess: (
            "ews",
            "Excess wording sensitivity: share of pairs of wordings with different answers, minus the same for identical requests.",
        ),
        flips: "Share of pairs of wordings with different answers, noise included.",
    },
    accuracy: "Share of right answers, mean over wordings.",
    worst: ("worst_wording_accuracy", "Share of items that are right under every wording."),
    gap: ("wording_gap", "Accuracy under the given wording minus mean accuracy over all wordings."),
};

/// Metrics with an interval, so that a gate can decide on them.
pub(crate) fn metric_names() -> Vec<String> {
    [WORDINGS.flips.excess.0, "flip_rate", "noise_floor", "accuracy", WORDINGS.worst.0, WORDINGS.gap.0].map(str::to_owned).to_vec()
}

pub(crate) fn measure(items: &Items<'_>, measure: &Measure<'_>) -> Findings {
    let mut findings = Findings::default();
    let complete: Vec<Answers<'_>> = items.values().filter_map(Answers::of).collect();
    if complete.len() < items.len() {
        findings.notes.push(format!(
            "{} of {} items lack an answer under some wording and are left out of everything that compares wordings.",
            items.len() - complete.len(),
            items.len()
        ));
    }
    findings.metrics.extend(flips(&complete, &WORDINGS.flips, measure));
    let floor = findings.metrics.iter().find(|measured| measured.metric.name == "noise_floor").and_then(|floor| floor.metric.value);
    if let Some(floor) = floor.filter(|floor| *floor > NOISY) {
        findings.notes.push(format!(
            "This subject is noisy: the same request gave different answers in {:.1} % of pairs; `ews` has that subtracted.",
            100.0 * floor
        ));
    }
    findings.metrics.extend(accuracies(&complete, &WORDINGS, measure));
    let name = |case: &crate::cases::Case<'_>| case.condition().order_name.clone().unwrap_or_default();
    let axis: Vec<String> =
        complete.iter().flat_map(|answers| answers.orders.iter().map(name)).collect::<BTreeSet<_>>().into_iter().collect();
    let outcomes: Vec<(&str, usize, bool)> = complete
        .iter()
        .flat_map(|answers| {
            answers.orders.iter().filter_map(|case| Some((answers.lang, axis.binary_search(&name(case)).ok()?, case.right()?)))
        })
        .collect();
    findings.series.extend(series_by_language("accuracy_by_wording", "wording of the question", measure, &axis, &outcomes));
    findings
}
