//! From judged trials to verdicts. A verdict is never a bare boolean: value, interval, number of items, threshold, noise floor.

use std::collections::BTreeMap;

use glassbox_record::{
    Attempt, Bound, Digest, FORMAT_VERSION, GateVerdict, Judgement, Look, Metric, PlannedTrial, Score, Status, TestVerdict, Totals,
    Verdicts,
};
use glassbox_stats::power::{detectable_mean, detectable_rate};
use glassbox_stats::verdict::{Gate as StatsGate, Verdict};
use glassbox_stats::{Interval, Undefined};

use crate::attention;
use crate::cases::{items_of, score};
use crate::checks;
use crate::measure::{Measure, Measured, Spread};
use crate::suite::{Gate, Suite, Test};

/// Share of runs in which an effect of the stated size would be found.
const POWER: f64 = 0.8;

/// Judges every answer and decides every gate. A pure function of its arguments: the same record gives the same verdicts.
///
/// - `plan`      of the run
/// - `outcomes`  the attempt that counts of each trial
/// - `attempts`  how many attempts there were in all
/// - `looks`     what watched answers read
#[must_use]
pub fn judge_run(
    suite: &Suite,
    plan: &[PlannedTrial],
    outcomes: &BTreeMap<Digest, Attempt>,
    attempts: usize,
    looks: &[Look],
) -> (Vec<Score>, Verdicts) {
    let scores = score(suite, plan, outcomes);
    let failed = scores.iter().filter(|score| score.judgement == Judgement::Error).count();
    let totals = Totals { planned: plan.len(), answered: scores.len() - failed, failed, missing: plan.len() - scores.len(), attempts };
    let by_trial: BTreeMap<&Digest, &Score> = scores.iter().map(|score| (&score.trial, score)).collect();
    let tests: Vec<TestVerdict> = suite.tests.iter().map(|test| judge_test(suite, test, plan, &by_trial, looks)).collect();
    let status = Status::worst(tests.iter().map(|test| test.status));
    let verdicts = Verdicts { format: "glassbox-verdicts".to_owned(), version: FORMAT_VERSION, status, totals, tests };
    (scores, verdicts)
}

fn judge_test(suite: &Suite, test: &Test, plan: &[PlannedTrial], scores: &BTreeMap<&Digest, &Score>, looks: &[Look]) -> TestVerdict {
    let stats = &suite.defaults.stats;
    let measure = Measure { level: stats.level, resamples: stats.resamples, seed: suite.defaults.seed, test: &test.id };
    let items = items_of(&test.id, plan, scores);
    let mut findings = checks::measure(test, &items, &measure);
    let gates: Vec<GateVerdict> = test.gates.iter().map(|gate| decide(gate, &findings.metrics, stats.level)).collect();
    let (series, note) = attention::summary(&test.id, plan, looks);
    findings.series.extend(series);
    findings.notes.extend(note);
    let unparsed =
        items.values().flat_map(|item| &item.cases).filter(|case| case.score.is_some_and(|score| score.judgement == Judgement::Unparsed));
    let unparsed = unparsed.count();
    if unparsed > 0 {
        findings.notes.push(format!("No value could be read out of {unparsed} answers; they count as not right."));
    }
    TestVerdict {
        id: test.id.clone(),
        kind: test.design.kind().name().to_owned(),
        status: Status::worst(gates.iter().map(|gate| gate.status)),
        items: items.len(),
        gates,
        metrics: findings.metrics.into_iter().map(|measured| measured.metric).collect(),
        series: findings.series,
        notes: findings.notes,
    }
}

fn decide(gate: &Gate, metrics: &[Measured], level: f64) -> GateVerdict {
    let threshold = stats_gate(gate.bound);
    let found = metrics.iter().find(|measured| measured.metric.name == gate.metric);
    let verdict = |status, warned, sentence, detectable| GateVerdict {
        metric: gate.metric.clone(),
        bound: gate.bound,
        status,
        warned,
        sentence,
        detectable,
    };
    let Some(measured) = found else {
        return verdict(Status::CannotSay, false, format!("`{}` was not measured.", gate.metric), None);
    };
    let metric = &measured.metric;
    let (Some(value), Some(interval)) = (metric.value, &metric.interval) else {
        let reason = metric.undefined.as_deref().unwrap_or("it has no interval");
        return verdict(Status::CannotSay, false, format!("`{}` has no value: {reason}.", gate.metric), None);
    };
    let detectable = detectable(measured, threshold, level);
    let decided = match Interval::new(interval.low, interval.high, interval.level) {
        Ok(interval) => threshold.decide(interval),
        Err(reason) => Verdict::CannotSay(reason.to_string()),
    };
    let status = match &decided {
        Verdict::Pass => Status::Pass,
        Verdict::Fail => Status::Fail,
        Verdict::Inconclusive => Status::Inconclusive,
        Verdict::CannotSay(_) => Status::CannotSay,
    };
    let warned = gate.warn.is_some_and(|warn| match gate.bound {
        Bound::Max(_) => value > warn,
        Bound::Min(_) => value < warn,
    });
    verdict(status, warned, sentence(metric, threshold, &decided, detectable), detectable)
}

fn sentence(metric: &Metric, gate: StatsGate, verdict: &Verdict, detectable: Option<f64>) -> String {
    let (Some(value), Some(interval)) = (metric.value, &metric.interval) else { return format!("`{}` has no value.", metric.name) };
    let floor = metric.floor.map_or_else(String::new, |floor| format!(", noise floor {floor:.3}"));
    let numbers = format!(
        "`{}` is {value:.3}, {:.0} % interval {:.3} to {:.3} ({}, {} items{floor})",
        metric.name,
        100.0 * interval.level,
        interval.low,
        interval.high,
        interval.method,
        metric.n
    );
    let seen = detectable.map_or_else(String::new, |distance| {
        format!("; so many items show a distance of {distance:.3} from the threshold in {:.0} of 100 runs", 100.0 * POWER)
    });
    match verdict {
        Verdict::Pass => format!("{numbers}: {gate}, as wanted."),
        Verdict::Fail => format!("{numbers}: wanted {gate}."),
        Verdict::Inconclusive => format!("{numbers}: wanted {gate}, and the interval holds both sides{seen}."),
        Verdict::CannotSay(reason) => format!("{numbers}: no verdict, because {reason}."),
    }
}

fn detectable(measured: &Measured, gate: StatsGate, level: f64) -> Option<f64> {
    let n = measured.metric.n;
    let distance: Result<f64, Undefined> = match measured.spread {
        Spread::Proportion => detectable_rate(gate, n, level, POWER).map(|rate| (rate - gate.threshold()).abs()),
        Spread::Deviation(deviation) => detectable_mean(n, deviation, 1.0 - level, POWER),
        Spread::Unknown => return None,
    };
    distance.ok().filter(|distance| distance.is_finite())
}

fn stats_gate(bound: Bound) -> StatsGate {
    match bound {
        Bound::Max(threshold) => StatsGate::Max(threshold),
        Bound::Min(threshold) => StatsGate::Min(threshold),
    }
}
