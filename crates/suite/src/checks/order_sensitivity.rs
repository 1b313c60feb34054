//! Order sensitivity: the same documents in several orders.
//!
//! ```text
//! FR_i  share of pairs of orders with different answers          F_i  the same for identical requests: the noise floor
//! eos   mean_i (FR_i - F_i)                                      woa  mean_i min over orders of right
//! ```
//!
//! Answers are compared by value: numbers of documents change with the order, and so do citations.
//!
//! Source: flip rate as in SCORE (arXiv:2503.00137), over unordered pairs; the floor as in arXiv:2606.26079.

use std::collections::BTreeMap;

use glassbox_stats::Alternative;
use glassbox_stats::order::{excess_flip_rates, excess_flip_test, flip_rate, kendall_tau_b, kendall_within_items, range_beyond_chance};
use glassbox_stats::paired::sign_flip;
use glassbox_stats::repeats::NOISY;

use super::Findings;
use crate::cases::{Case, ItemCases, answer_key};
use crate::measure::{Measure, Measured, PerItem, metric, named, series_by_language, undefined};
use crate::plan::GIVEN;

type Items<'a> = BTreeMap<&'a str, ItemCases<'a>>;

/// Metrics with an interval, so that a gate can decide on them.
pub(crate) fn metric_names() -> Vec<String> {
    ["eos", "flip_rate", "noise_floor", "accuracy", "worst_order_accuracy", "order_gap", "primacy"].map(str::to_owned).to_vec()
}

/// The complete answers of one item: every variant once, and the first several times again.
pub(super) struct Answers<'a> {
    pub(super) lang: &'a str,
    pub(super) orders: Vec<Case<'a>>,
    order_keys: Vec<String>,
    repeat_keys: Vec<String>,
}

/// Names and meanings of what is said of variants that should not matter.
pub(super) struct Words {
    pub(super) flips: FlipWords,
    pub(super) accuracy: &'static str,
    pub(super) worst: (&'static str, &'static str),
    pub(super) gap: (&'static str, &'static str),
}

/// The same of how often answers change.
pub(super) struct FlipWords {
    pub(super) excess: (&'static str, &'static str),
    pub(super) flips: &'static str,
}

const ORDERS: Words = Words {
    flips: FlipWords {
        excess: (
            "eos",
            "Excess order sensitivity: share of pairs of orders with different answers, minus the same for identical requests.",
        ),
        flips: "Share of pairs of orders with different answers, noise included.",
    },
    accuracy: "Share of right answers, mean over orders.",
    worst: ("worst_order_accuracy", "Share of items that are right under every order."),
    gap: ("order_gap", "Accuracy under the given order minus mean accuracy over all orders."),
};

pub(crate) fn measure(blocks: usize, items: &Items<'_>, measure: &Measure<'_>) -> Findings {
    let mut findings = Findings::default();
    let complete: Vec<Answers<'_>> = items.values().filter_map(Answers::of).collect();
    if complete.len() < items.len() {
        findings.notes.push(format!(
            "{} of {} items lack an answer under some order and are left out of everything that compares orders.",
            items.len() - complete.len(),
            items.len()
        ));
    }
    findings.metrics.extend(flips(&complete, &ORDERS.flips, measure));
    if let Some(floor) = findings.metrics.iter().find(|measured| measured.metric.name == "noise_floor").and_then(|floor| floor.metric.value)
        && floor > NOISY
    {
        findings.notes.push(format!(
            "This subject is noisy: the same request gave different answers in {:.1} % of pairs; `eos` has that subtracted.",
            100.0 * floor
        ));
    }
    findings.metrics.extend(accuracies(&complete, &ORDERS, measure));
    findings.metrics.push(range(&complete, measure));
    findings.metrics.push(primacy(blocks, &complete, measure));
    findings.metrics.push(trend(&complete, measure));
    let outcomes: Vec<(&str, usize, bool)> = complete
        .iter()
        .flat_map(|answers| answers.orders.iter().filter_map(|case| Some((answers.lang, case.condition().position? - 1, case.right()?))))
        .collect();
    let axis: Vec<String> = (1..=blocks).map(|place| place.to_string()).collect();
    findings.series.extend(series_by_language("accuracy_by_position", "place of the gold document", measure, &axis, &outcomes));
    for point in findings.series.iter_mut().flat_map(|series| &mut series.points) {
        // Several orders of one item share a place: the points are no independent trials, and the interval of a share would be too narrow.
        point.interval = None;
    }
    findings
}

impl<'a> Answers<'a> {
    pub(super) fn of(item: &ItemCases<'a>) -> Option<Self> {
        let (mut orders, repeats): (Vec<Case<'a>>, Vec<Case<'a>>) = item.cases.iter().partition(|case| case.trial.content.replicate == 0);
        // Identity (or what is given) and reverse first, the others by name: statistics must not depend on the order of the run.
        orders.sort_by_key(|case| {
            let name = case.condition().order_name.clone().unwrap_or_default();
            (name != "identity" && name != GIVEN, name != "reverse", name, case.condition().position)
        });
        let keys = |cases: &[Case<'a>]| {
            cases.iter().map(|case| case.answered().map(|score| answer_key(case.trial, score))).collect::<Option<Vec<String>>>()
        };
        let (order_keys, repeat_keys) = (keys(&orders)?, keys(&repeats)?);
        (orders.len() >= 2 && repeats.len() >= 2).then_some(Self { lang: item.lang, orders, order_keys, repeat_keys })
    }

    /// [order] 1 where right.
    fn scores(&self) -> Vec<f64> {
        self.orders.iter().map(|case| f64::from(u8::from(case.right() == Some(true)))).collect()
    }
}

pub(super) fn flips(items: &[Answers<'_>], words: &FlipWords, measure: &Measure<'_>) -> Vec<Measured> {
    let orders: Vec<&Vec<String>> = items.iter().map(|item| &item.order_keys).collect();
    let repeats: Vec<&Vec<String>> = items.iter().map(|item| &item.repeat_keys).collect();
    let rates = |answers: &[&Vec<String>]| -> Vec<f64> { answers.iter().filter_map(|keys| flip_rate(keys).ok()).collect() };
    let floors = rates(&repeats);
    let floor = (!floors.is_empty()).then(|| floors.iter().sum::<f64>() / floors.len() as f64);
    let excess = named(words.excess.0, words.excess.1);
    let resampling = measure.resampling(words.excess.0);
    let test = excess_flip_test(&orders, &repeats, resampling.resamples, resampling.seed);
    let excess = match excess_flip_rates(&orders, &repeats) {
        Ok(excesses) => measure.mean(excess, &excesses, -1.0, 1.0).with_test(&test).with_floor(floor),
        Err(reason) => Measured { metric: undefined(excess, items.len(), reason.to_string()), items: PerItem::Graded },
    };
    vec![
        excess,
        measure.mean(named("flip_rate", words.flips), &rates(&orders), 0.0, 1.0),
        measure.mean(named("noise_floor", "Share of pairs of answers to the same request that differ."), &floors, 0.0, 1.0),
    ]
}

pub(super) fn accuracies(items: &[Answers<'_>], words: &Words, measure: &Measure<'_>) -> Vec<Measured> {
    let scores: Vec<Vec<f64>> = items.iter().map(Answers::scores).collect();
    let means: Vec<f64> = scores.iter().map(|row| row.iter().sum::<f64>() / row.len() as f64).collect();
    let worst: Vec<bool> = scores.iter().map(|row| row.iter().all(|score| *score == 1.0)).collect();
    let gaps: Vec<f64> = scores.iter().zip(&means).map(|(row, mean)| row[0] - mean).collect();
    let resampling = measure.resampling(words.gap.0);
    let test = sign_flip(&gaps, Alternative::TwoSided, resampling.resamples, resampling.seed);
    vec![
        measure.mean(named("accuracy", words.accuracy), &means, 0.0, 1.0),
        measure.share(named(words.worst.0, words.worst.1), &worst),
        measure.mean(named(words.gap.0, words.gap.1), &gaps, -1.0, 1.0).with_test(&test),
    ]
}

fn range(items: &[Answers<'_>], measure: &Measure<'_>) -> Measured {
    let rows: Vec<Vec<f64>> = items.iter().map(Answers::scores).collect();
    let meaning = "Best minus worst order, minus the range that relabelling the orders at random gives; no interval, the p-value says whether it is chance.";
    let named = named("order_range", meaning);
    let resampling = measure.resampling(&named.name);
    let metric = match range_beyond_chance(&rows, resampling.resamples, resampling.seed) {
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
    Measured { metric, items: PerItem::Graded }
}

/// Accuracy with the gold document first minus accuracy with it last, over the items that were asked both ways.
fn primacy(blocks: usize, items: &[Answers<'_>], measure: &Measure<'_>) -> Measured {
    let mean_at = |item: &Answers<'_>, place: usize| {
        let here: Vec<f64> = item
            .orders
            .iter()
            .filter(|case| case.condition().position == Some(place))
            .map(|case| f64::from(u8::from(case.right() == Some(true))))
            .collect();
        (!here.is_empty()).then(|| here.iter().sum::<f64>() / here.len() as f64)
    };
    let differences: Vec<f64> = items.iter().filter_map(|item| Some(mean_at(item, 1)? - mean_at(item, blocks)?)).collect();
    let meaning = "Accuracy with the gold document first minus accuracy with it last; above 0 is primacy, below 0 recency.";
    let resampling = measure.resampling("primacy");
    let test = sign_flip(&differences, Alternative::TwoSided, resampling.resamples, resampling.seed);
    measure.mean(named("primacy", meaning), &differences, -1.0, 1.0).with_test(&test)
}

/// Whether answers get worse the more an order differs from the given one.
fn trend(items: &[Answers<'_>], measure: &Measure<'_>) -> Measured {
    let (mut likeness, mut scores, mut of_item) = (Vec::new(), Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        for (case, score) in item.orders.iter().zip(item.scores()) {
            let order: Vec<f64> = case.condition().order.iter().flatten().map(|block| *block as f64).collect();
            let places: Vec<f64> = (0..order.len()).map(|place| place as f64).collect();
            if let Ok(tau) = kendall_tau_b(&places, &order) {
                likeness.push(tau);
                scores.push(score);
                of_item.push(index);
            }
        }
    }
    let named = named(
        "order_trend",
        "Kendall's tau-b, within items, between likeness to the given order and being right; above 0 shuffling hurts.",
    );
    let resampling = measure.resampling(&named.name);
    let test = kendall_within_items(&likeness, &scores, &of_item, Alternative::TwoSided, resampling.resamples, resampling.seed);
    let measured = match &test {
        Ok(outcome) => {
            let mut metric = undefined(named, outcome.n, String::new());
            metric.undefined = None;
            metric.value = Some(outcome.statistic);
            metric
        }
        Err(reason) => metric(named, Err(reason.clone()), items.len()),
    };
    Measured { metric: measured, items: PerItem::Graded }.with_test(&test)
}
