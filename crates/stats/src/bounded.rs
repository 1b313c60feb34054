//! The mean of independent values that are known to lie in a range, without any assumption about their shape.
//!
//! The interval for per-item scores, flip rates, contrasts and differences that a gate decides on: it stays honest where a
//! bootstrap fails, when few or no items differ. Every interval here leaves some weight for outcomes that the sample did not show.

use std::ops::RangeInclusive;

use crate::bootstrap::{Resampling, quantile_of_sorted};
use crate::estimate::{Estimate, Interval, Method};
use crate::proportion::{FEW_OUTCOMES, SMALL_SAMPLE};
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_finite};

/// Estimates the mean of bounded values: [`bounded_mean_guarded`] for fewer than [`SMALL_SAMPLE`] items or fewer than [`FEW_OUTCOMES`] that
/// differ from the commonest value, else [`bounded_mean_even`].
///
/// - `values`      `[item]`, one per independent item; repeats of an item are averaged first
/// - `range`       where a value can lie at all, for example `0.0..=1.0` for scores, `-1.0..=1.0` for differences of scores
/// - `resampling`  number of weightings, level and seed
///
/// On values that are all 0 or 1 it is the Clopper-Pearson or the Jeffreys interval. Independent of the order of the values. Never without
/// width: `n` items that all agree leave room for about `3.7/n` of the way to each end of the range.
///
/// Not for values without a natural range (latency, divergence): use [`crate::bootstrap::over_items`]. A range much wider than the values
/// ever reach makes the interval wider than it need be.
///
/// Source: the policy of [`crate::proportion::proportion_interval`]; coverage measured in `tests/stats/coverage.rs`.
pub fn bounded_mean(values: &[f64], range: RangeInclusive<f64>, resampling: Resampling) -> Result<Estimate, Undefined> {
    let interval = if values.len() < SMALL_SAMPLE || differing(values) < FEW_OUTCOMES { bounded_mean_guarded } else { bounded_mean_even };
    interval(values, range, resampling)
}

/// Values other than the commonest one.
fn differing(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let commonest = sorted.chunk_by(|left, right| left == right).map(<[f64]>::len).max().unwrap_or(0);
    values.len() - commonest
}

/// Estimates the mean with random weights that leave half an outcome unseen at each end of the range.
///
/// With values `x_i` in `[a, b]`, independent exponential weights `g_i` and weights `u`, `v` of half that mean (Gamma of shape 1/2):
///
/// ```text
/// low, high = quantiles at tail and 1 - tail of  (sum_i g_i x_i + u a + v b) / (sum_i g_i + u + v),   tail = (1 - level) / 2
/// ```
///
/// - `values`, `range`, `resampling`  as in [`bounded_mean`]
///
/// Coverage is near nominal on average. On zeros and ones it is the Jeffreys interval, which a single rare event can lift too far.
///
/// Source: Rubin 1981, The Bayesian Bootstrap, Annals of Statistics 9(1), with the half counts of Jeffreys' prior at both ends; the
/// combination is ours.
pub fn bounded_mean_even(values: &[f64], range: RangeInclusive<f64>, resampling: Resampling) -> Result<Estimate, Undefined> {
    weighted_means(values, range, resampling, Method::BoundedMean, |dice, weights, weighted, (smallest, largest)| {
        let (below, above) = (dice.half_waiting_time(), dice.half_waiting_time());
        let mean = (weighted + below * smallest + above * largest) / (weights + below + above);
        (mean, mean)
    })
}

/// Estimates the mean with random weights that leave one whole outcome unseen at the end in question.
///
/// With values `x_i` in `[a, b]` and independent exponential weights `g_0 ... g_n`:
///
/// ```text
/// low  = quantile at tail     of  (sum_i g_i x_i + g_0 a) / sum_i g_i,   tail = (1 - level) / 2
/// high = quantile at 1 - tail of  (sum_i g_i x_i + g_0 b) / sum_i g_i
/// ```
///
/// - `values`, `range`, `resampling`  as in [`bounded_mean`]
///
/// On zeros and ones it is Clopper-Pearson's interval, so it covers at least nominally there; that it does so for every distribution is a
/// conjecture that nobody has broken. The price is width, about `1/n` of the range to each side.
///
/// Source: Gaffke 2005, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
/// Mathematical Methods of Statistics 14(4); Learned-Miller, Thomas 2019 (arXiv:1905.06208).
pub fn bounded_mean_guarded(values: &[f64], range: RangeInclusive<f64>, resampling: Resampling) -> Result<Estimate, Undefined> {
    weighted_means(values, range, resampling, Method::BoundedMeanGuarded, |dice, weights, weighted, (smallest, largest)| {
        let unseen = dice.waiting_time();
        ((weighted + unseen * smallest) / (weights + unseen), (weighted + unseen * largest) / (weights + unseen))
    })
}

/// Draws weights for the values and lets `complete` add the unseen, once for the low end and once for the high end.
fn weighted_means(
    values: &[f64],
    range: RangeInclusive<f64>,
    resampling: Resampling,
    method: Method,
    complete: impl Fn(&mut Dice, f64, f64, (f64, f64)) -> (f64, f64),
) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "mean of bounded values";
    resampling.check(QUANTITY)?;
    require_at_least(QUANTITY, "items", 1, values.len())?;
    let (smallest, largest) = range.into_inner();
    require_finite(QUANTITY, &[smallest, largest])?;
    require_finite(QUANTITY, values)?;
    if let Some(&found) = values.iter().find(|value| **value < smallest || **value > largest) {
        return Err(Undefined::OutOfRange { quantity: QUANTITY, argument: "values", wanted: "inside `range`", found });
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let mut dice = Dice::new(resampling.seed);
    let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = (0..resampling.resamples)
        .map(|_| {
            let (mut weights, mut weighted) = (0.0, 0.0);
            for value in &sorted {
                let weight = dice.waiting_time();
                weights += weight;
                weighted += weight * value;
            }
            complete(&mut dice, weights, weighted, (smallest, largest))
        })
        .unzip();
    lows.sort_by(f64::total_cmp);
    highs.sort_by(f64::total_cmp);
    let tail = (1.0 - resampling.level) / 2.0;
    // The mean itself is always possible; when all values sit at one end of the range the quantile alone would exclude it.
    let low = quantile_of_sorted(&lows, tail).clamp(smallest, value);
    let high = quantile_of_sorted(&highs, 1.0 - tail).clamp(value, largest);
    let interval = Interval { low, high, level: resampling.level };
    Ok(Estimate { value, interval, n: values.len(), method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::beta_quantile;
    use crate::proportion::clopper_pearson;

    fn right(successes: usize, n: usize) -> Vec<f64> {
        (0..n).map(|item| if item < successes { 1.0 } else { 0.0 }).collect()
    }

    // A 2.5 % quantile of 40,000 draws is off by sqrt(0.025 * 0.975 / 40,000) / density: below 0.001 for these cases; four of them.
    const TOLERANCE: f64 = 0.004;

    #[test]
    fn on_zeros_and_ones_it_is_clopper_pearson_or_jeffreys() {
        let resampling = Resampling { resamples: 40_000, ..Resampling::seeded(5) };
        for (successes, n) in [(0, 40), (3, 40), (20, 40), (40, 40), (1, 2)] {
            let exact = clopper_pearson(successes, n, 0.95).expect("items exist").interval;
            let guarded = bounded_mean_guarded(&right(successes, n), 0.0..=1.0, resampling).expect("items exist").interval;
            assert!((guarded.low - exact.low).abs() < TOLERANCE, "{successes} of {n}: {guarded}, exact {exact}");
            assert!((guarded.high - exact.high).abs() < TOLERANCE, "{successes} of {n}: {guarded}, exact {exact}");
            let (k, failures) = (successes as f64 + 0.5, (n - successes) as f64 + 0.5);
            let even = bounded_mean_even(&right(successes, n), 0.0..=1.0, resampling).expect("items exist").interval;
            let low = if successes == 0 { 0.0 } else { beta_quantile(0.025, k, failures) };
            let high = if successes == n { 1.0 } else { beta_quantile(0.975, k, failures) };
            assert!((even.low - low).abs() < TOLERANCE, "{successes} of {n}: {even}, Jeffreys [{low}, {high}]");
            assert!((even.high - high).abs() < TOLERANCE, "{successes} of {n}: {even}, Jeffreys [{low}, {high}]");
        }
    }

    #[test]
    fn items_that_all_agree_leave_room_for_the_ones_not_seen() {
        // Guarded: 1 - 0.025^(1/100) = 0.0362 to each side. Even: 0.0248 + 0.002 for one end alone; here the ends compete.
        for (estimate, least, most) in [
            (bounded_mean_guarded(&[0.0; 100], -1.0..=1.0, Resampling::seeded(1)), 0.034, 0.039),
            (bounded_mean_even(&[0.0; 100], -1.0..=1.0, Resampling::seeded(1)), 0.018, 0.027),
        ] {
            let interval = estimate.expect("items exist").interval;
            assert!(interval.high > least && interval.high < most, "{interval}");
            assert!(-interval.low > least && -interval.low < most, "{interval}");
        }
    }

    #[test]
    fn the_order_of_the_items_does_not_matter() {
        let forward: Vec<f64> = (0..50).map(|item| f64::from(item % 7) / 7.0).collect();
        let backward: Vec<f64> = forward.iter().rev().copied().collect();
        for values in [bounded_mean_even, bounded_mean_guarded] {
            let estimate = |items: &[f64]| values(items, 0.0..=1.0, Resampling::seeded(9)).expect("items exist");
            assert_eq!(estimate(&forward), estimate(&backward));
        }
    }

    #[test]
    fn a_value_outside_the_range_is_refused_with_both() {
        let found = bounded_mean(&[0.2, 1.2], 0.0..=1.0, Resampling::seeded(1)).map_err(|reason| reason.to_string());
        assert_eq!(found, Err("mean of bounded values needs `values` inside `range`, found 1.2".to_string()));
        assert!(bounded_mean(&[], 0.0..=1.0, Resampling::seeded(1)).is_err());
        assert!(bounded_mean(&[0.0, f64::NAN], 0.0..=1.0, Resampling::seeded(1)).is_err());
    }

    #[test]
    fn the_policy_says_what_it_chose() {
        let method = |values: &[f64]| bounded_mean(values, 0.0..=1.0, Resampling::seeded(1)).expect("items exist").method;
        let spread = |n: usize| -> Vec<f64> { (0..n).map(|item| item as f64 / n as f64).collect() };
        for (values, expected) in [
            (spread(29), Method::BoundedMeanGuarded),
            (spread(30), Method::BoundedMean),
            (right(5, 100), Method::BoundedMeanGuarded),
            (right(94, 100), Method::BoundedMean),
            (vec![0.5; 100], Method::BoundedMeanGuarded),
        ] {
            assert_eq!(method(&values), expected, "{values:?}");
        }
    }
}
