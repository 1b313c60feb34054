//! Memory decay: what was told, asked again after neutral turns or text.
//!
//! ```text
//! recall@k       share of items right at distance k
//! decay          recall at the first distance - recall at the last, on the same items
//! loss_per_step  q of p(k) = g + (A - g) (1 - q)^k; half-life ln 2 / -ln(1 - q); g is what is right without having been told
//! ```
//!
//! Each distance is a conversation of its own: asking in one conversation again and again would rehearse.
//!
//! Source of the fit: `glassbox_stats::decay`; of the procedure, with every probe on its own copy of the conversation: ours.

use std::collections::BTreeMap;

use glassbox_record::Judgement;
use glassbox_stats::Alternative;
use glassbox_stats::decay::{half_life, loss_per_step};
use glassbox_stats::paired::sign_flip;
use glassbox_stats::repeats::NOISY;

use super::{Findings, evidence_position};
use crate::cases::{Case, ItemCases};
use crate::design::Distance;
use crate::measure::{Measure, Measured, PerItem, metric, named, series_by_language};

type Items<'a> = BTreeMap<&'a str, ItemCases<'a>>;

/// Metrics with an interval, so that a gate can decide on them.
pub(crate) fn metric_names(distances: &[Distance], untold: bool) -> Vec<String> {
    let mut names = vec!["recall".to_owned()];
    names.extend(distances.iter().map(|distance| format!("recall@{}", distance.steps())));
    names.extend(["decay", "loss_per_step", "noise_floor"].map(str::to_owned));
    if untold {
        names.extend(["untold_accuracy", "untold_abstention"].map(str::to_owned));
    }
    names
}

pub(crate) fn measure(distances: &[Distance], untold: bool, items: &Items<'_>, measure: &Measure<'_>) -> Findings {
    let mut findings = Findings::default();
    let score = |case: Case<'_>| case.right().map(|right| f64::from(u8::from(right)));
    let row = |item: &ItemCases<'_>| distances.iter().map(|distance| told(item, *distance).and_then(score)).collect::<Option<Vec<f64>>>();
    let rows: Vec<Vec<f64>> = items.values().filter_map(row).collect();
    if rows.len() < items.len() {
        findings.notes.push(format!(
            "{} of {} items lack an answer at some distance and are left out of everything that compares distances.",
            items.len() - rows.len(),
            items.len()
        ));
    }
    let means: Vec<f64> = rows.iter().map(|row| row.iter().sum::<f64>() / row.len() as f64).collect();
    findings.metrics.push(measure.mean(named("recall", "Share of right answers, mean over the distances."), &means, 0.0, 1.0));
    for distance in distances {
        let right: Vec<bool> = items.values().filter_map(|item| told(item, *distance)?.right()).collect();
        findings.metrics.push(
            measure
                .share(named(format!("recall@{}", distance.steps()), format!("Share of right answers {}.", in_words(*distance))), &right),
        );
    }
    let differences: Vec<f64> = rows.iter().map(|row| row[0] - row[row.len() - 1]).collect();
    let resampling = measure.resampling("decay");
    let test = sign_flip(&differences, Alternative::TwoSided, resampling.resamples, resampling.seed);
    let meaning = "Recall at the first distance minus recall at the last, on the same items; above 0 something is forgotten.";
    findings.metrics.push(measure.mean(named("decay", meaning), &differences, -1.0, 1.0).with_test(&test));

    let of_untold = |wanted: Judgement| -> Vec<bool> {
        items.values().filter_map(|item| Some(item.measured("closed", None)?.answered()?.judgement == wanted)).collect()
    };
    let guessed = of_untold(Judgement::Right);
    let guess = guessed.iter().filter(|right| **right).count() as f64 / guessed.len().max(1) as f64;
    if guessed.is_empty() {
        findings.notes.push(
            "What is right without having been told was not asked; `loss_per_step` and the half-life take it for nothing.".to_owned(),
        );
    }
    findings.metrics.push(loss(distances, &rows, guess, measure, &mut findings.notes));
    if untold {
        let meaning = "Share of right answers to what was never told: guessing, or a leak.";
        findings.metrics.push(measure.share(named("untold_accuracy", meaning), &guessed));
        let meaning = "Share of \"I do not know\" to what was never told: the rest are false memories.";
        findings.metrics.push(measure.share(named("untold_abstention", meaning), &of_untold(Judgement::Abstained)));
    }
    let floor = evidence_position::floor(items, measure);
    if let Some(value) = floor.metric.value.filter(|value| *value > NOISY) {
        findings.notes.push(format!(
            "This subject is noisy: the same request gave different answers in {:.1} % of pairs. Differences between distances may be noise.",
            100.0 * value
        ));
    }
    findings.metrics.push(floor);
    let outcomes: Vec<(&str, usize, bool)> = items
        .values()
        .flat_map(|item| {
            distances.iter().enumerate().filter_map(|(index, distance)| Some((item.lang, index, told(item, *distance)?.right()?)))
        })
        .collect();
    let axis: Vec<String> = distances.iter().map(|distance| distance.steps().to_string()).collect();
    let unit = match distances[0] {
        Distance::Turns(_) => "turns since it was told",
        Distance::Characters(_) => "characters since it was told",
    };
    findings.series.extend(series_by_language("recall_by_distance", unit, measure, &axis, &outcomes));
    findings
}

/// The measurement of an item at a distance.
fn told<'a>(item: &ItemCases<'a>, distance: Distance) -> Option<Case<'a>> {
    let at = |case: &&Case<'_>| {
        let condition = case.condition();
        let here = match distance {
            Distance::Turns(turns) => condition.turns == Some(turns),
            Distance::Characters(characters) => condition.characters == Some(characters),
        };
        here && condition.arm == "told" && case.trial.content.replicate == 0
    };
    item.cases.iter().find(at).copied()
}

fn in_words(distance: Distance) -> String {
    match distance {
        Distance::Turns(0) | Distance::Characters(0) => "right after it was told".to_owned(),
        Distance::Turns(turns) => format!("{turns} neutral turns after it was told"),
        Distance::Characters(characters) => format!("{characters} characters of neutral text after it was told"),
    }
}

fn loss(distances: &[Distance], rows: &[Vec<f64>], guess: f64, measure: &Measure<'_>, notes: &mut Vec<String>) -> Measured {
    // A hundred characters are a step: a share lost with a single one would be a string of zeros.
    let (unit, step) = match distances[0] {
        Distance::Turns(_) => ("turns", 1.0),
        Distance::Characters(_) => ("hundred characters", 100.0),
    };
    let steps: Vec<f64> = distances.iter().map(|distance| distance.steps() as f64 / step).collect();
    let named =
        named("loss_per_step", format!("Share of what is still known, above guessing, that is lost with each step of one of: {unit}."));
    let estimate = loss_per_step(rows, &steps, guess, measure.resampling(&named.name));
    if let Ok(estimate) = &estimate {
        let life = |loss| half_life(loss).map_or_else(|| "endless".to_owned(), |life| format!("{life:.1}"));
        let interval = estimate.interval;
        notes.push(format!(
            "Half-life in {unit}: {} ({:.0} % interval {} to {}).",
            life(estimate.value),
            100.0 * interval.level,
            life(interval.high),
            life(interval.low)
        ));
    }
    Measured { metric: metric(named, estimate, rows.len()), items: PerItem::Graded }
}
