//! From judged trials to verdicts. A verdict is never a bare boolean: value, interval, number of items, threshold, noise floor.

use std::collections::BTreeMap;

use glassbox_record::{
    Attempt, Bound, Digest, FORMAT_VERSION, GateVerdict, Judgement, Look, Metric, PlannedTrial, Score, Status, TestVerdict, Totals,
    Verdicts,
};
use glassbox_stats::Interval;
use glassbox_stats::power::{detectable_mean, detectable_rate, verdict_odds};
use glassbox_stats::verdict::{Gate as StatsGate, Verdict};

use crate::attention;
use crate::cases::{items_of, score};
use crate::checks;
use crate::measure::{Measure, Measured, PerItem};
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
    let fewest = fewest_that_pass(measured, threshold, level);
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
    verdict(status, warned, sentence(metric, threshold, &decided, detectable, fewest), detectable)
}

fn sentence(metric: &Metric, gate: StatsGate, verdict: &Verdict, detectable: Option<f64>, fewest: Option<usize>) -> String {
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
    let seen = match (fewest, detectable) {
        (Some(fewest), _) => format!("; of so few items no answers could have passed: ask at least {fewest}"),
        (None, Some(distance)) => {
            format!("; so many items show a distance of {distance:.3} from the threshold in {:.0} of 100 runs", 100.0 * POWER)
        }
        (None, None) => String::new(),
    };
    match verdict {
        Verdict::Pass => format!("{numbers}: {gate}, as wanted."),
        Verdict::Fail => format!("{numbers}: wanted {gate}."),
        Verdict::Inconclusive => format!("{numbers}: wanted {gate}, and the interval holds both sides{seen}."),
        Verdict::CannotSay(reason) => format!("{numbers}: no verdict, because {reason}."),
    }
}

/// The distance from the threshold that so many items decide in [`POWER`] of runs.
///
/// Of right and wrong items it is computed exactly. Of other numbers it is the arm of the interval that decided, the longer one, widened
/// from what half of the runs decide to what [`POWER`] of them do: `(z(level) + z(POWER)) / z(level)` arms.
fn detectable(measured: &Measured, gate: StatsGate, level: f64) -> Option<f64> {
    let metric = &measured.metric;
    let distance = match measured.items {
        PerItem::YesOrNo => (detectable_rate(gate, metric.n, level, POWER).ok()? - gate.threshold()).abs(),
        PerItem::Graded => {
            let (value, interval) = (metric.value?, metric.interval.as_ref()?);
            let arm = (value - interval.low).max(interval.high - value);
            // One item with this deviation would have this arm: half of the runs decide what lies an arm away.
            let deviation = arm / detectable_mean(1, 1.0, 1.0 - level, 0.5).ok()?;
            detectable_mean(1, deviation, 1.0 - level, POWER).ok()?
        }
    };
    Some(distance).filter(|distance| distance.is_finite())
}

/// The fewest items of which a perfect subject passes, where these `n` are fewer: no answers whatever could have passed.
fn fewest_that_pass(measured: &Measured, gate: StatsGate, level: f64) -> Option<usize> {
    let perfect = match gate {
        StatsGate::Max(_) => 0.0,
        StatsGate::Min(_) => 1.0,
    };
    let passes = |n: usize| verdict_odds(gate, n, perfect, level).is_ok_and(|odds| odds.pass > 0.5);
    let n = measured.metric.n;
    (measured.items == PerItem::YesOrNo && !passes(n)).then(|| (n + 1..=MOST_ITEMS).find(|n| passes(*n))).flatten()
}

/// Where the search for a number of items ends.
const MOST_ITEMS: usize = 5_000;

fn stats_gate(bound: Bound) -> StatsGate {
    match bound {
        Bound::Max(threshold) => StatsGate::Max(threshold),
        Bound::Min(threshold) => StatsGate::Min(threshold),
    }
}

#[cfg(test)]
mod tests {
    use glassbox_stats::random::Dice;

    use super::*;
    use crate::measure::named;

    /// The promise that stands beside a gate, kept: a subject as far from the threshold as is stated is decided in 80 of 100 runs.
    #[test]
    fn the_stated_distance_is_decided_in_four_of_five_runs() {
        // [n, share of items that differ, size of the difference]: contrasts of a good, a middling and a poor subject.
        for (n, share, size) in [(30, 0.03, 1.0), (120, 0.03, 1.0), (60, 0.3, 0.5), (200, 0.5, 1.0)] {
            let mean = share * size;
            let run = |seed: u64| {
                let mut dice = Dice::new(seed);
                let values: Vec<f64> = (0..n).map(|_| if (dice.below(10_000) as f64) < 10_000.0 * share { size } else { 0.0 }).collect();
                Measure { level: 0.95, resamples: 199, seed, test: "t" }.mean(named("m", "m"), &values, -1.0, 1.0)
            };
            let runs: Vec<Measured> = (0..200).map(run).collect();
            let mut stated: Vec<f64> =
                runs.iter().map(|run| detectable(run, StatsGate::Max(0.0), 0.95).expect("it has an interval")).collect();
            stated.sort_by(f64::total_cmp);
            let gate = StatsGate::Max(mean + stated[stated.len() / 2]);
            let passes = |run: &&Measured| {
                let interval = run.metric.interval.as_ref().expect("it has one");
                let interval = Interval::new(interval.low, interval.high, interval.level).expect("it is one");
                gate.decide(interval) == Verdict::Pass
            };
            let decided = runs.iter().filter(passes).count();
            // 80 of 100 less three standard errors of 200 runs.
            assert!(decided >= 143, "n {n}, share {share}: decided in {decided} of 200 at a distance of {:.3}", stated[stated.len() / 2]);
        }
    }

    #[test]
    fn a_gate_that_no_answers_of_so_few_items_could_pass_says_how_many_are_needed() {
        let measure = Measure { level: 0.95, resamples: 199, seed: 1, test: "t" };
        let gate = Gate { metric: "memory_leak".to_owned(), bound: Bound::Max(0.1), warn: None };
        let decided = |n: usize| decide(&gate, &[measure.share(named("memory_leak", "m"), &vec![false; n])], 0.95);
        // Clopper-Pearson of 0 in n ends at 1 - 0.025^(1/n): 0.1157 for 30, 0.0999 for 36.
        assert!(
            decided(30).sentence.ends_with("of so few items no answers could have passed: ask at least 36."),
            "{}",
            decided(30).sentence
        );
        assert_eq!(
            (decided(30).status, decided(35).status, decided(36).status),
            (Status::Inconclusive, Status::Inconclusive, Status::Pass)
        );
    }
}
