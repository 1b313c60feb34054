//! From an interval and a threshold to a verdict that admits when it does not know.

use std::fmt;

use crate::estimate::{Estimate, Interval};
use crate::undefined::{Undefined, require_finite};

/// What may be said about a value that has to stay on one side of a threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// the whole interval lies on the good side
    Pass,
    /// the whole interval lies on the bad side
    Fail,
    /// the threshold lies inside the interval: more data may decide
    Inconclusive,
    /// there is no interval, for the stated reason: more of the same data will not decide
    CannotSay(String),
}

/// The threshold and its good side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gate {
    /// the value must be at least this, as an accuracy must
    Min(f64),
    /// the value must be at most this, as an error rate or a latency must
    Max(f64),
}

impl Gate {
    /// Decides: Pass if the whole interval is on the good side, Fail if it is whole on the bad side, else Inconclusive.
    ///
    /// ```text
    /// Min(t): Pass if t <= low,   Fail if high < t
    /// Max(t): Pass if high <= t,  Fail if t < low
    /// ```
    ///
    /// - `interval`  of the value, in the unit of the threshold
    ///
    /// At two-sided level L a subject exactly at the threshold fails with probability at most `(1 - L) / 2`: 2.5 % for 95 %.
    pub fn decide(self, interval: Interval) -> Verdict {
        if let Err(reason) = require_finite("verdict", &[self.threshold(), interval.low, interval.high]) {
            return Verdict::CannotSay(reason.to_string());
        }
        let (good, bad) = match self {
            Self::Min(threshold) => (threshold <= interval.low, interval.high < threshold),
            Self::Max(threshold) => (interval.high <= threshold, threshold < interval.low),
        };
        match (good, bad) {
            (true, _) => Verdict::Pass,
            (_, true) => Verdict::Fail,
            _ => Verdict::Inconclusive,
        }
    }

    /// Decides on an estimate that may not exist; the reason why not becomes the reason of [`Verdict::CannotSay`].
    ///
    /// - `estimate`  as any function of this crate returns it
    pub fn decide_estimate(self, estimate: &Result<Estimate, Undefined>) -> Verdict {
        match estimate {
            Ok(estimate) => self.decide(estimate.interval),
            Err(reason) => Verdict::CannotSay(reason.to_string()),
        }
    }

    /// The p-value of Fail: the smallest one-sided error at which the interval would still lie whole on the bad side.
    ///
    /// ```text
    /// p = (1 - L) / 2 for the widest level L with decide(interval_at(L)) = Fail; 1/2 if no level fails
    /// ```
    ///
    /// - `interval_at`  the interval of the same data for any level; it must widen with the level
    ///
    /// Turns any interval into something [`crate::several::holm`] can correct when a suite has several gates: fail those
    /// whose corrected p is at most `(1 - level) / 2`. Resolved down to 1e-9.
    pub fn p_value_of_fail(self, interval_at: impl Fn(f64) -> Result<Interval, Undefined>) -> Result<f64, Undefined> {
        let fails = |tail: f64| Ok::<bool, Undefined>(self.decide(interval_at(1.0 - 2.0 * tail)?) == Verdict::Fail);
        let (mut passes_below, mut fails_at) = (SMALLEST_TAIL, 0.5);
        if !fails(LARGEST_TAIL)? {
            return Ok(fails_at);
        }
        if fails(SMALLEST_TAIL)? {
            return Ok(SMALLEST_TAIL);
        }
        // Tails span decades, so the halving is of their logarithm; 40 halvings of 9 decades leave 2e-11 of a decade.
        fails_at = LARGEST_TAIL;
        for _ in 0..40 {
            let middle = (passes_below * fails_at).sqrt();
            if fails(middle)? {
                fails_at = middle;
            } else {
                passes_below = middle;
            }
        }
        Ok(fails_at)
    }

    /// The number the value is compared with.
    pub fn threshold(self) -> f64 {
        match self {
            Self::Min(threshold) | Self::Max(threshold) => threshold,
        }
    }
}

const SMALLEST_TAIL: f64 = 1e-9; // far below any level a suite asks for
const LARGEST_TAIL: f64 = 0.499; // an interval of level 0.002 is all but a point

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("PASS"),
            Self::Fail => f.write_str("FAIL"),
            Self::Inconclusive => f.write_str("INCONCLUSIVE"),
            Self::CannotSay(reason) => write!(f, "CANNOT-SAY: {reason}"),
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min(threshold) => write!(f, "at least {threshold}"),
            Self::Max(threshold) => write!(f, "at most {threshold}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proportion::{proportion_interval, wilson};

    fn interval(low: f64, high: f64) -> Interval {
        Interval::new(low, high, 0.95).expect("ends in order")
    }

    #[test]
    fn the_whole_interval_must_lie_on_one_side() {
        for (gate, low, high, expected) in [
            (Gate::Min(0.9), 0.90, 0.95, Verdict::Pass),
            (Gate::Min(0.9), 0.89, 0.95, Verdict::Inconclusive),
            (Gate::Min(0.9), 0.80, 0.90, Verdict::Inconclusive),
            (Gate::Min(0.9), 0.80, 0.89, Verdict::Fail),
            (Gate::Max(0.05), 0.01, 0.05, Verdict::Pass),
            (Gate::Max(0.05), 0.04, 0.06, Verdict::Inconclusive),
            (Gate::Max(0.05), 0.05, 0.06, Verdict::Inconclusive),
            (Gate::Max(0.05), 0.06, 0.07, Verdict::Fail),
        ] {
            assert_eq!(gate.decide(interval(low, high)), expected, "{gate} on [{low}, {high}]");
        }
    }

    #[test]
    fn a_gate_without_a_number_or_an_estimate_without_data_cannot_say() {
        assert!(matches!(Gate::Min(f64::NAN).decide(interval(0.0, 1.0)), Verdict::CannotSay(_)));
        let nothing = Gate::Min(0.9).decide_estimate(&proportion_interval(0, 0, 0.95));
        assert_eq!(nothing.to_string(), "CANNOT-SAY: proportion needs at least 1 trials, found 0");
    }

    #[test]
    fn the_p_value_of_fail_is_where_the_verdict_turns() {
        let interval_at = |level| wilson(70, 100, level).map(|estimate| estimate.interval);
        let p = Gate::Min(0.8).p_value_of_fail(interval_at).expect("trials exist");
        // Wilson inverts the score test: z = (0.7 - 0.8) / sqrt(0.8 * 0.2 / 100) = -2.5, P(Z < -2.5) = 0.00620967.
        assert!((p - 0.006_209_665).abs() < 1e-8, "p = {p}");
        let healthy = Gate::Min(0.6).p_value_of_fail(interval_at).expect("trials exist");
        assert_eq!(healthy, 0.5);
    }
}
