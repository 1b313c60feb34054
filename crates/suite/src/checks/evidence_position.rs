//! Evidence position: k documents, one of them right, its place varied.
//!
//! ```text
//! acc_p                 share of items right with the gold document at place p
//! u_contrast            (acc_first + acc_last) / 2 - mean of acc between
//! evidence_utilisation  (mean_p acc_p - acc_closed) / (acc_oracle - acc_closed), undefined if the denominator is under 0.1
//! ```
//!
//! Source of the protocol: Liu et al. 2023, Lost in the Middle (arXiv:2307.03172); the contrasts, the arms and the citations are ours.

use std::collections::{BTreeMap, BTreeSet};

use glassbox_record::{Judgement, Score};
use glassbox_stats::order::range_beyond_chance;
use glassbox_stats::paired::{PairedCounts, mcnemar, paired_difference};
use glassbox_stats::repeats::{NOISY, noise_floor};
use glassbox_stats::several::{ends_against_middle, planned_contrast};

use super::Findings;
use crate::cases::{Case, ItemCases, answer_key};
use crate::measure::{Measure, Measured, PerItem, metric, named, series_by_language, undefined};
use crate::schema::Arm;

type Items<'a> = BTreeMap<&'a str, ItemCases<'a>>;

/// Metrics with an interval, so that a gate can decide on them.
pub(crate) fn metric_names(positions: &[usize], arms: &BTreeSet<Arm>, cite: bool) -> Vec<String> {
    let mut names = vec!["accuracy".to_owned()];
    names.extend(positions.iter().map(|place| format!("accuracy@{place}")));
    names.extend((positions.len() >= 3).then(|| "u_contrast".to_owned()));
    names.extend(["distractor_capture", "noise_floor"].map(str::to_owned));
    let of_arms: [(&[Arm], &[&str]); 5] = [
        (&[Arm::Closed, Arm::Oracle], &["evidence_utilisation"]),
        (&[Arm::Closed], &["closed_book_accuracy"]),
        (&[Arm::Oracle], &["oracle_accuracy"]),
        (&[Arm::NoGold], &["no_gold_abstention", "memory_leak"]),
        (&[Arm::NoCitation], &["citation_cost"]),
    ];
    for (needed, given) in of_arms {
        if needed.iter().all(|arm| arms.contains(arm)) {
            names.extend(given.iter().map(|name| (*name).to_owned()));
        }
    }
    if cite {
        names.extend(["groundedness", "citation_rate", "citation_accuracy"].map(str::to_owned));
    }
    names
}

pub(crate) fn measure(positions: &[usize], arms: &BTreeSet<Arm>, cite: bool, items: &Items<'_>, measure: &Measure<'_>) -> Findings {
    let mut findings = Findings::default();
    let rows = complete_rows(positions, items);
    if rows.len() < items.len() {
        findings.notes.push(format!(
            "{} of {} items lack an answer at some place and are left out of everything that compares places.",
            items.len() - rows.len(),
            items.len()
        ));
    }
    findings.metrics.extend(accuracies(positions, &rows, items, measure));
    findings.metrics.extend(position_contrasts(positions, &rows, measure));
    if arms.contains(&Arm::Closed) && arms.contains(&Arm::Oracle) {
        findings.metrics.push(utilisation(positions, items, measure));
    }
    findings.metrics.extend(single_arms(arms, items, measure));
    findings.metrics.push(capture(positions, items, measure));
    if cite {
        findings.metrics.extend(citations(positions, items, measure));
    }
    if arms.contains(&Arm::NoCitation) {
        findings.metrics.push(citation_cost(items, measure));
    }
    let floor = floor(items, measure);
    if floor.metric.value.is_some_and(|value| value > NOISY) {
        findings.notes.push(format!(
            "This subject is noisy: the same request gave different answers in {:.1} % of pairs. Differences between places may be noise.",
            100.0 * floor.metric.value.unwrap_or_default()
        ));
    }
    findings.metrics.push(floor);
    let outcomes = items.values().flat_map(|item| {
        positions
            .iter()
            .enumerate()
            .filter_map(|(index, place)| Some((item.lang, index, item.measured("position", Some(*place))?.right()?)))
    });
    let axis: Vec<String> = positions.iter().map(ToString::to_string).collect();
    let outcomes: Vec<(&str, usize, bool)> = outcomes.collect();
    findings.series.extend(series_by_language("accuracy_by_position", "place of the gold document", measure, &axis, &outcomes));
    findings
}

/// [item][position] scores of the items that were answered at every place.
fn complete_rows(positions: &[usize], items: &Items<'_>) -> Vec<Vec<f64>> {
    let row = |item: &ItemCases<'_>| {
        let score = |place: &usize| item.measured("position", Some(*place))?.right().map(|right| f64::from(u8::from(right)));
        positions.iter().map(score).collect::<Option<Vec<f64>>>()
    };
    items.values().filter_map(row).collect()
}

fn accuracies(positions: &[usize], rows: &[Vec<f64>], items: &Items<'_>, measure: &Measure<'_>) -> Vec<Measured> {
    let means: Vec<f64> = rows.iter().map(|row| row.iter().sum::<f64>() / row.len() as f64).collect();
    let mut all =
        vec![measure.mean(named("accuracy", "Share of right answers, mean over the places of the gold document."), &means, 0.0, 1.0)];
    for place in positions {
        let right: Vec<bool> = items.values().filter_map(|item| item.measured("position", Some(*place))?.right()).collect();
        let meaning = format!("Share of right answers with the gold document at place {place}.");
        all.push(measure.share(named(format!("accuracy@{place}"), meaning), &right));
    }
    all
}

fn position_contrasts(positions: &[usize], rows: &[Vec<f64>], measure: &Measure<'_>) -> Vec<Measured> {
    let mut all = Vec::new();
    if let Ok(weights) = ends_against_middle(positions.len()) {
        let meaning = "Mean accuracy of the first and last place minus mean accuracy of the places between; above 0 the middle is worse.";
        let named = named("u_contrast", meaning);
        let contrast = planned_contrast(rows, &weights, 0.0..=1.0, measure.resampling(&named.name));
        all.push(match contrast {
            Ok(contrast) => {
                Measured { metric: metric(named, Ok(contrast.estimate), rows.len()), items: PerItem::Graded }.with_test(&Ok(contrast.test))
            }
            Err(reason) => Measured { metric: undefined(named, rows.len(), reason.to_string()), items: PerItem::Graded },
        });
    }
    let meaning = "Best minus worst place, minus the range that relabelling the places at random gives; no interval, the p-value says whether it is chance.";
    let named = named("position_range", meaning);
    let resampling = measure.resampling(&named.name);
    let metric = match range_beyond_chance(rows, resampling.resamples, resampling.seed) {
        Ok(range) => {
            let mut metric = undefined(named, range.n, String::new());
            metric.undefined = None;
            metric.value = Some(range.excess);
            metric.floor = Some(range.by_chance);
            metric.p_value = Some(range.p_value);
            metric.p_method = Some(range.method.name().to_owned());
            metric
        }
        Err(reason) => undefined(named, rows.len(), reason.to_string()),
    };
    all.push(Measured { metric, items: PerItem::Graded });
    all
}

fn utilisation(positions: &[usize], items: &Items<'_>, measure: &Measure<'_>) -> Measured {
    let as_score = |right: bool| f64::from(u8::from(right));
    let row = |item: &ItemCases<'_>| {
        let reached: Option<Vec<f64>> =
            positions.iter().map(|place| item.measured("position", Some(*place))?.right().map(as_score)).collect();
        let reached = reached?;
        let closed = as_score(item.measured("closed", None)?.right()?);
        let oracle = as_score(item.measured("oracle", None)?.right()?);
        Some([reached.iter().sum::<f64>() / reached.len() as f64, closed, oracle])
    };
    let rows: Vec<[f64; 3]> = items.values().filter_map(row).collect();
    let meaning = "Share of what the gold document has to give that is used when it stands among others: \
                   (mean accuracy over places - closed book) / (oracle - closed book).";
    measure.utilisation(named("evidence_utilisation", meaning), &rows)
}

fn single_arms(arms: &BTreeSet<Arm>, items: &Items<'_>, measure: &Measure<'_>) -> Vec<Measured> {
    let judged = |arm: &str, wanted: Judgement| -> Vec<bool> {
        items.values().filter_map(|item| Some(item.measured(arm, None)?.answered()?.judgement == wanted)).collect()
    };
    let all = [
        (
            Arm::Closed,
            "closed",
            Judgement::Right,
            "closed_book_accuracy",
            "Share of right answers without any document: what is known by heart.",
        ),
        (
            Arm::Oracle,
            "oracle",
            Judgement::Right,
            "oracle_accuracy",
            "Share of right answers with the gold document alone: the most that can be expected.",
        ),
        (
            Arm::NoGold,
            "no_gold",
            Judgement::Abstained,
            "no_gold_abstention",
            "Share of \"I do not know\" when no document holds the answer.",
        ),
        (
            Arm::NoGold,
            "no_gold",
            Judgement::Right,
            "memory_leak",
            "Share of right answers when no document holds the answer: memory, not evidence.",
        ),
    ];
    let present = all.into_iter().filter(|(arm, ..)| arms.contains(arm));
    present.map(|(_, arm, wanted, name, meaning)| measure.share(named(name, meaning), &judged(arm, wanted))).collect()
}

/// For each item, the share of its answers at all places for which something holds; items without such an answer are left out.
fn share_per_item(positions: &[usize], items: &Items<'_>, holds: impl Fn(&Case<'_>, &Score) -> Option<bool>) -> Vec<f64> {
    let share = |item: &ItemCases<'_>| {
        let answers = positions.iter().filter_map(|place| item.measured("position", Some(*place)));
        let held: Vec<bool> = answers.filter_map(|case| holds(&case, case.answered()?)).collect();
        (!held.is_empty()).then(|| held.iter().filter(|held| **held).count() as f64 / held.len() as f64)
    };
    items.values().filter_map(share).collect()
}

fn capture(positions: &[usize], items: &Items<'_>, measure: &Measure<'_>) -> Measured {
    let captured = share_per_item(positions, items, |_, score| Some(score.captured_by.is_some()));
    measure.mean(named("distractor_capture", "Share of answers that give the value of another document."), &captured, 0.0, 1.0)
}

fn citations(positions: &[usize], items: &Items<'_>, measure: &Measure<'_>) -> Vec<Measured> {
    let gives_value = |score: &Score| matches!(score.judgement, Judgement::Right | Judgement::Wrong);
    let grounded = share_per_item(positions, items, |_, score| gives_value(score).then(|| score.grounded == Some(true)));
    let cites = share_per_item(positions, items, |_, score| gives_value(score).then_some(!score.cited.is_empty()));
    let rightly = share_per_item(positions, items, |case, score| {
        let gold = case.trial.content.expected.gold_number()?;
        (gives_value(score) && !score.cited.is_empty()).then(|| score.cited == [gold])
    });
    vec![
        measure.mean(
            named("groundedness", "Share of answered values that stand in a cited document; an answer without a citation is not grounded."),
            &grounded,
            0.0,
            1.0,
        ),
        measure.mean(named("citation_rate", "Share of answered values with a citation."), &cites, 0.0, 1.0),
        measure.mean(named("citation_accuracy", "Share of citations that name the gold document and no other."), &rightly, 0.0, 1.0),
    ]
}

fn citation_cost(items: &Items<'_>, measure: &Measure<'_>) -> Measured {
    let pair = |item: &ItemCases<'_>| {
        let without = item.measured("no_citation", None)?;
        let with = item.measured("position", without.condition().position)?;
        Some((without.right()?, with.right()?))
    };
    let (without, with): (Vec<bool>, Vec<bool>) = items.values().filter_map(pair).unzip();
    let named =
        named("citation_cost", "Accuracy without minus accuracy with a demand to cite, on the same prompts: what the demand costs.");
    let counts = PairedCounts::count(&with, &without);
    let estimate = counts.clone().and_then(|counts| paired_difference(counts, measure.level));
    Measured { metric: metric(named, estimate, with.len()), items: PerItem::Graded }.with_test(&counts.and_then(mcnemar))
}

/// How often two answers to the same request differ.
pub(super) fn floor(items: &Items<'_>, measure: &Measure<'_>) -> Measured {
    let repeats = |item: &ItemCases<'_>| {
        let again: Vec<&Case<'_>> = item.cases.iter().filter(|case| case.trial.content.replicate > 0).collect();
        let condition = again.first()?.condition();
        let first = item.cases.iter().find(|case| case.trial.content.replicate == 0 && case.condition() == condition)?;
        let keys: Option<Vec<String>> =
            std::iter::once(first).chain(again).map(|case| case.answered().map(|score| answer_key(case.trial, score))).collect();
        keys.filter(|keys| keys.len() >= 2)
    };
    let answers: Vec<Vec<String>> = items.values().filter_map(repeats).collect();
    let named = named("noise_floor", "Share of pairs of answers to the same request that differ.");
    let estimate = noise_floor(&answers, measure.resampling(&named.name));
    Measured { metric: metric(named, estimate, answers.len()), items: PerItem::Graded }
}
