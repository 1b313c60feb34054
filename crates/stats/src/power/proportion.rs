//! What a gate on one proportion will say, before the trials are run.

use super::change::likely;
use super::mean::{reach, require_power};
use crate::distributions::binomial_point;
use crate::proportion::proportion_interval;
use crate::undefined::{Undefined, require_at_least, require_level, require_probability};
use crate::verdict::{Gate, Verdict};

/// How often a gate passes, fails or leaves open a subject of known truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictOdds {
    /// share of runs that pass
    pub pass: f64,
    /// share of runs that fail
    pub fail: f64,
    /// share of runs that end inconclusive
    pub inconclusive: f64,
}

/// Computes how often a gate on `n` trials gives each verdict, if the true rate is `truth`.
///
/// ```text
/// sum over k of Binomial(n, truth)(k) [decide(proportion_interval(k, n, level)) = verdict]
/// ```
///
/// - `gate`   on a share from 0 to 1
/// - `n`      independent trials
/// - `truth`  true share of successes
/// - `level`  of the interval, for example 0.95
///
/// Exact, with the interval that the verdict itself will use.
///
/// Source: definition.
pub fn verdict_odds(gate: Gate, n: usize, truth: f64, level: f64) -> Result<VerdictOdds, Undefined> {
    require_at_least("verdict odds", "trials", 1, n)?;
    require_probability("verdict odds", "truth", truth)?;
    require_probability("verdict odds", "gate", gate.threshold())?;
    require_level("verdict odds", level)?;
    let turns = Turns::of(gate, n, level);
    let (mut below, mut above) = (0.0, 0.0);
    for successes in likely(n, truth) {
        if successes < turns.open_from {
            below += binomial_point(successes, n, truth);
        } else if successes >= turns.decided_from {
            above += binomial_point(successes, n, truth);
        }
    }
    let inconclusive = (1.0 - below - above).max(0.0);
    Ok(match gate {
        Gate::Min(_) => VerdictOdds { pass: above, fail: below, inconclusive },
        Gate::Max(_) => VerdictOdds { pass: below, fail: above, inconclusive },
    })
}

/// Computes how many trials decide a gate, rightly, for a subject of known truth.
///
/// - `gate`   on a share from 0 to 1
/// - `truth`  true share; on the good side the trials that pass are counted, on the bad side those that fail
/// - `level`  of the interval, for example 0.95
/// - `power`  share of runs that should be decided, for example 0.8
///
/// The smallest number from which the next ten reach the power too: the odds of discrete data rise in a saw, and the first tooth that
/// reaches it would be luck. Undefined for a truth at the threshold, which no number decides, and beyond [`MOST_TRIALS`].
///
/// Source: search over [`verdict_odds`].
pub fn items_for_verdict(gate: Gate, truth: f64, level: f64, power: f64) -> Result<usize, Undefined> {
    const QUANTITY: &str = "items for a verdict";
    require_power(1.0 - level, power)?;
    require_probability(QUANTITY, "truth", truth)?;
    require_probability(QUANTITY, "gate", gate.threshold())?;
    let distance = (truth - gate.threshold()).abs();
    let deviation = (truth * (1.0 - truth)).max(gate.threshold() * (1.0 - gate.threshold())).sqrt();
    let roughly = (reach(1.0 - level, power)? * deviation / distance).powi(2);
    if roughly.is_nan() || roughly > MOST_TRIALS as f64 {
        return Err(Undefined::OutOfRange { quantity: QUANTITY, argument: "truth", wanted: "further from the threshold", found: truth });
    }
    let on_good_side = match gate {
        Gate::Min(threshold) => truth > threshold,
        Gate::Max(threshold) => truth < threshold,
    };
    let mut streak = 0;
    for n in (roughly / 2.0) as usize + 1..=2 * MOST_TRIALS {
        let odds = verdict_odds(gate, n, truth, level)?;
        let decided = if on_good_side { odds.pass } else { odds.fail };
        streak = if decided >= power { streak + 1 } else { 0 };
        if streak > 10 {
            return Ok(n - 10);
        }
    }
    Err(Undefined::OutOfRange {
        quantity: QUANTITY,
        argument: "power",
        wanted: "reachable: this gate never gives that verdict",
        found: power,
    })
}

/// More trials than any suite can pay for.
pub const MOST_TRIALS: usize = 50_000;

/// Computes the true rate nearest to the threshold that `n` trials fail: the minimum detectable effect is its distance.
///
/// - `gate`, `level`, `power`  as in [`items_for_verdict`]
/// - `n`                       independent trials
///
/// Undefined if not even the worst subject fails with that power.
///
/// Source: inversion of [`verdict_odds`].
pub fn detectable_rate(gate: Gate, n: usize, level: f64, power: f64) -> Result<f64, Undefined> {
    require_power(1.0 - level, power)?;
    let mut missed = gate.threshold();
    let mut found = match gate {
        Gate::Min(_) => 0.0,
        Gate::Max(_) => 1.0,
    };
    if verdict_odds(gate, n, found, level)?.fail < power {
        return Err(Undefined::OutOfRange { quantity: "detectable rate", argument: "n", wanted: "larger for this gate", found: n as f64 });
    }
    while (found - missed).abs() > 1e-6 {
        let middle = (missed + found) / 2.0;
        if verdict_odds(gate, n, middle, level)?.fail >= power {
            found = middle;
        } else {
            missed = middle;
        }
    }
    Ok(found)
}

/// Where the verdict changes along the number of successes: first low-side verdicts, then inconclusive, then high-side.
struct Turns {
    open_from: usize,
    decided_from: usize,
}

impl Turns {
    fn of(gate: Gate, n: usize, level: f64) -> Self {
        let (few, many) = match gate {
            Gate::Min(_) => (Verdict::Fail, Verdict::Pass),
            Gate::Max(_) => (Verdict::Pass, Verdict::Fail),
        };
        let verdict = |successes| gate.decide_estimate(&proportion_interval(successes, n, level));
        Self { open_from: first_not(n, |k| verdict(k) == few), decided_from: first_not(n, |k| verdict(k) != many) }
    }
}

/// The first count from 0 to n at which `holds` no longer holds, n + 1 if it always does.
fn first_not(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n + 1);
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_at_the_threshold_seldom_gets_a_verdict() {
        for n in [20, 50, 200, 1000] {
            for gate in [Gate::Min(0.9), Gate::Max(0.1)] {
                let odds = verdict_odds(gate, n, gate.threshold(), 0.95).expect("in range");
                // Wilson's one-sided miss can exceed 2.5 % for a single rate; 5 % never.
                assert!(odds.fail < 0.05 && odds.pass < 0.05, "{gate}, n = {n}: {odds:?}");
                assert!((odds.pass + odds.fail + odds.inconclusive - 1.0).abs() < 1e-9, "{odds:?}");
            }
        }
    }

    #[test]
    fn the_planned_number_of_trials_reaches_the_power_and_two_thirds_of_it_do_not() {
        for (gate, truth, power) in
            [(Gate::Min(0.85), 0.75, 0.8), (Gate::Min(0.85), 0.95, 0.95), (Gate::Max(0.02), 0.08, 0.8), (Gate::Max(0.05), 0.01, 0.9)]
        {
            let n = items_for_verdict(gate, truth, 0.95, power).expect("reachable");
            let decided = |n| {
                let odds = verdict_odds(gate, n, truth, 0.95).expect("in range");
                odds.pass.max(odds.fail)
            };
            assert!(decided(n) >= power, "{gate}, truth {truth}: {n} trials decide {}", decided(n));
            assert!(decided(n * 2 / 3) < power, "{gate}, truth {truth}: {} trials decide {}", n * 2 / 3, decided(n * 2 / 3));
        }
    }

    #[test]
    fn the_detectable_rate_lies_beyond_the_threshold_and_comes_nearer_with_more_trials() {
        let rate = |n| detectable_rate(Gate::Min(0.9), n, 0.95, 0.8).expect("reachable");
        assert!(rate(50) < rate(200) && rate(200) < rate(800) && rate(800) < 0.9, "{} {} {}", rate(50), rate(200), rate(800));
        let rate = |n| detectable_rate(Gate::Max(0.05), n, 0.95, 0.8).expect("reachable");
        assert!(rate(50) > rate(200) && rate(200) > 0.05, "{} {}", rate(50), rate(200));
    }

    #[test]
    fn what_no_number_of_trials_decides_is_refused() {
        assert!(items_for_verdict(Gate::Min(0.9), 0.9, 0.95, 0.8).is_err());
        assert!(detectable_rate(Gate::Min(0.5), 3, 0.95, 0.8).is_err());
    }
}
