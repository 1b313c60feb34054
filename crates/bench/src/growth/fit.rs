//! The power of `n` that fits a curve.

use glassbox_stats::line;
use serde::{Deserialize, Serialize};

use crate::Summary;

/// Exponent of the power of `n` that fits best: the slope of the logarithms, by least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exponent {
    /// Of all points.
    pub value: f64,
    /// 95 % interval (t) over what the power leaves of all points: noise, and how far the curve is from a power.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Between the medians of the two largest lengths: where the curve is going.
    pub last_step: f64,
}

/// Of `points` (length, value); nothing of fewer than three points, of one length, or where a value is 0.
pub(super) fn exponent(points: &[(usize, f64)]) -> Option<Exponent> {
    let logarithms: Vec<(f64, f64)> = points.iter().map(|(n, value)| ((*n as f64).ln(), value.ln())).collect();
    let fitted = line::slope(&logarithms, 0.95).ok()?;
    let mut lengths: Vec<usize> = points.iter().map(|(n, _)| *n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let [.., before, last] = lengths[..] else { return None };
    let median = |n: usize| {
        let values: Vec<f64> = points.iter().filter(|(other, _)| *other == n).map(|(_, value)| *value).collect();
        Summary::of(&values).map(|summary| summary.median)
    };
    let last_step = (median(last)? / median(before)?).ln() / (last as f64 / before as f64).ln();
    Some(Exponent { value: fitted.value, low: fitted.interval.low, high: fitted.interval.high, last_step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_found_exactly() {
        let points: Vec<(usize, f64)> = [8, 16, 40, 64].map(|n| (n, 7.0 * (n as f64).powi(3))).to_vec();
        let found = exponent(&points).expect("four lengths");
        for value in [found.value, found.low, found.high, found.last_step] {
            assert!((value - 3.0).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn what_has_no_power_is_told_as_none() {
        assert_eq!(exponent(&[]), None);
        assert_eq!(exponent(&[(8, 1.0), (16, 2.0)]), None, "two points leave nothing over");
        assert_eq!(exponent(&[(8, 1.0), (8, 2.0), (8, 3.0)]), None, "one length");
        assert_eq!(exponent(&[(8, 1.0), (16, 0.0), (32, 3.0)]), None, "nothing measured at one length");
    }

    #[test]
    fn the_interval_holds_the_power_under_noise() {
        // A tenth more or less, by turns.
        let noise = |index: usize| if index.is_multiple_of(2) { 1.1 } else { 0.9 };
        let points: Vec<(usize, f64)> =
            (0..15).map(|index| 100 << (index / 3)).zip(0..).map(|(n, index)| (n, noise(index) * (n as f64).powi(2))).collect();
        let found = exponent(&points).expect("five lengths");
        assert!(found.low < 2.0 && 2.0 < found.high && found.high - found.low < 0.3, "{found:?}");
    }

    #[test]
    fn the_last_step_is_nearer_to_the_leading_power_of_a_sum_than_the_fit() {
        let points: Vec<(usize, f64)> = [10, 100, 1000, 10_000].map(|n| (n, 1e3 * n as f64 + (n * n) as f64)).to_vec();
        let found = exponent(&points).expect("four lengths");
        assert!(found.value < found.last_step && found.last_step < 2.0, "{found:?}");
        // Lengths in any order.
        let turned: Vec<(usize, f64)> = points.into_iter().rev().collect();
        assert_eq!(exponent(&turned).map(|turned| turned.last_step), Some(found.last_step));
    }
}
