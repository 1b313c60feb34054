//! Runs drawn from a known truth, and what may be concluded from a finite number of them.

use glassbox_stats::random::Dice;
use glassbox_stats::{Estimate, Interval, Undefined};

/// Share of runs in which `happens`, with the standard error that the number of runs leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) share: f64,
    pub(crate) error: f64,
}

/// Counts in how many of `runs` seeded runs something happens.
pub(crate) fn share_of_runs(runs: u64, mut happens: impl FnMut(&mut Dice, u64) -> bool) -> Share {
    let mut dice = Dice::new(0x5eed);
    let count = (0..runs).filter(|run| happens(&mut dice, *run)).count() as f64;
    let share = count / runs as f64;
    // Never below the error at 1 %: a share of exactly 0 or 1 is not certain either.
    Share { share, error: (share * (1.0 - share)).max(0.01 * 0.99 / 4.0).sqrt() / (runs as f64).sqrt() }
}

/// Share of runs in which the interval contains the truth; runs without an interval count as misses.
pub(crate) fn coverage(runs: u64, truth: f64, mut interval: impl FnMut(&mut Dice, u64) -> Result<Interval, Undefined>) -> Share {
    share_of_runs(runs, |dice, run| interval(dice, run).is_ok_and(|interval| interval.contains(truth)))
}

/// The interval of an estimate that may not exist.
pub(crate) fn interval_of(estimate: Result<Estimate, Undefined>) -> Result<Interval, Undefined> {
    estimate.map(|estimate| estimate.interval)
}

/// Mean and least of several coverages, with the standard error of the mean.
pub(crate) fn mean_and_least(shares: &[Share]) -> (Share, f64) {
    let count = shares.len() as f64;
    let share = shares.iter().map(|share| share.share).sum::<f64>() / count;
    let error = shares.iter().map(|share| share.error * share.error).sum::<f64>().sqrt() / count;
    (Share { share, error }, shares.iter().map(|share| share.share).fold(1.0, f64::min))
}

/// Says a measured number in the test's output, where `cargo test -- --nocapture` shows it.
#[expect(clippy::print_stdout, reason = "the measured numbers are published from here")]
pub(crate) fn publish(what: &str, measured: &str) {
    println!("measured: {what}: {measured}");
}

/// A normal number of mean 0 and deviation 1.
pub(crate) fn normal(dice: &mut Dice) -> f64 {
    (2.0 * dice.waiting_time()).sqrt() * (2.0 * std::f64::consts::PI * dice.unit()).cos()
}

/// A right (1) or wrong (0) answer.
pub(crate) fn answer(dice: &mut Dice, rate: f64) -> f64 {
    if dice.happens(rate) { 1.0 } else { 0.0 }
}

/// `n` values from `value`.
pub(crate) fn sample(dice: &mut Dice, n: usize, mut value: impl FnMut(&mut Dice) -> f64) -> Vec<f64> {
    (0..n).map(|_| value(dice)).collect()
}
