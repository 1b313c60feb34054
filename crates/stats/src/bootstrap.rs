//! Intervals for any statistic of independent items, by drawing the items again.
//!
//! The item is the unit that is drawn: all trials of one item (its orders, positions, repeats) go together, because they are
//! not independent. Ratios, half-lives and other statistics of several cells need nothing but a closure:
//!
//! ```
//! use glassbox_stats::bootstrap::{Resampling, over_items};
//! // [item] (right closed book, right with the gold document); evidence gain relative to what was missing
//! let items = [(0.0, 1.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
//! let gain = |drawn: &[&(f64, f64)]| {
//!     let mean = |part: fn(&(f64, f64)) -> f64| drawn.iter().map(|item| part(item)).sum::<f64>() / drawn.len() as f64;
//!     (mean(|item| item.1) - mean(|item| item.0)) / (1.0 - mean(|item| item.0))
//! };
//! let estimate = over_items(&items, gain, Resampling::seeded(1))?;
//! assert!((estimate.value - 4.0 / 6.0).abs() < 1e-12);
//! # Ok::<(), glassbox_stats::Undefined>(())
//! ```

use crate::distributions::{normal_cdf, normal_quantile, normal_tail, student_quantile};
use crate::estimate::{Estimate, Interval, Method};
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite, require_level};

/// How many times to draw, for which level, from which seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// draws; 9,999 makes the usual quantiles whole ranks
    pub resamples: usize,
    /// nominal coverage of both sides together
    pub level: f64,
    /// start of the random stream, for example [`crate::random::seed_from`] of the run's fingerprint and the metric's name
    pub seed: u64,
}

impl Resampling {
    /// 9,999 draws for a 95 % interval.
    pub fn seeded(seed: u64) -> Self {
        Self { resamples: 9_999, level: 0.95, seed }
    }

    pub(crate) fn check(self, quantity: &'static str) -> Result<(), Undefined> {
        require_level(quantity, self.level)?;
        // A quantile needs at least one draw beyond it, however coarse.
        let tail = (1.0 - self.level) / 2.0;
        require_at_least(quantity, "resamples", (1.0 / tail).ceil() as usize, self.resamples)
    }
}

/// Share of resamples that may lack the statistic (a ratio whose denominator vanished) before there is no interval.
pub const MOST_UNDEFINED: f64 = 0.01;

/// Estimates any statistic of the items with a BCa interval: percentiles of resampled statistics, corrected for bias and skewness.
///
/// With the share `s` of resamples below the estimate (half of the equal ones), jackknife values `j_i` with mean `j`, normal
/// distribution F and quantile z:
///
/// ```text
/// bias         z0 = z(s)
/// acceleration a  = sum (j - j_i)^3 / (6 (sum (j - j_i)^2)^(3/2))
/// tail         q  = F(-sqrt(n / (n - 1)) t),   t = Student's quantile at (1 + level) / 2 with n - 1 degrees
/// ends            = quantiles of the resamples at F(z0 + y / (1 - a y)),   y = z0 + z(q) and z0 + z(1 - q)
/// ```
///
/// - `items`       `[item]`, independent; everything that belongs to one item inside it
/// - `statistic`   of the drawn items, any unit; may return NaN where it does not exist
/// - `resampling`  number of draws, level and seed
///
/// The tail q is a little smaller than `(1 - level) / 2`, because resamples vary less than samples do; without it 60 items cover about one point less.
/// Undefined if the resamples do not vary: a zero-width interval would claim certainty. Not for proportions near 0 or 1 nor for means of which
/// fewer than about ten items differ ([`crate::bounded::bounded_mean`]); not for extremes such as a maximum. Depends on the order of the
/// items through the seed: sort them by their id.
///
/// Source: Efron 1987, Better Bootstrap Confidence Intervals, JASA 82(397); acceleration as in Efron, Tibshirani 1993, eq. 14.15; the tail
/// as in Hesterberg 2015, What Teachers Should Know About the Bootstrap (arXiv:1411.5279), section 4.3.
pub fn over_items<T>(items: &[T], statistic: impl Fn(&[&T]) -> f64, resampling: Resampling) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "BCa bootstrap";
    let value = observed(QUANTITY, items, &statistic)?;
    let sorted = resampled(QUANTITY, items, &statistic, resampling)?;
    let all: Vec<&T> = items.iter().collect();
    let mut left_out = Vec::with_capacity(items.len());
    for skipped in 0..items.len() {
        let rest: Vec<&T> = all.iter().enumerate().filter(|(index, _)| *index != skipped).map(|(_, item)| *item).collect();
        left_out.push(statistic(&rest));
    }
    require_finite("jackknife of the BCa bootstrap", &left_out)?;
    let below = sorted.partition_point(|resample| *resample < value);
    let equal = sorted.partition_point(|resample| *resample <= value) - below;
    let share = (below as f64 + equal as f64 / 2.0) / sorted.len() as f64;
    if share <= 0.0 || share >= 1.0 {
        return Err(Undefined::OutOfRange {
            quantity: QUANTITY,
            argument: "statistic",
            wanted: "inside the range of its resamples",
            found: value,
        });
    }
    let (bias, acceleration) = (normal_quantile(share), acceleration(&left_out));
    let end = |tail: f64| {
        let shifted = bias + normal_quantile(tail);
        quantile_of_sorted(&sorted, normal_cdf(bias + shifted / (1.0 - acceleration * shifted)))
    };
    let tail = expanded_tail(resampling.level, items.len());
    let interval = Interval::new(end(tail), end(1.0 - tail), resampling.level)?;
    Ok(Estimate { value, interval, n: items.len(), method: Method::BootstrapBca })
}

/// Estimates any statistic of the items with the percentiles of its resampled values, at the tails of [`over_items`].
///
/// - `items`, `statistic`, `resampling`  as in [`over_items`]
///
/// Simpler to explain; [`over_items`] covers better for skewed data.
///
/// Source: Efron, Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.
pub fn percentile_over_items<T>(items: &[T], statistic: impl Fn(&[&T]) -> f64, resampling: Resampling) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "percentile bootstrap";
    let value = observed(QUANTITY, items, &statistic)?;
    let sorted = resampled(QUANTITY, items, &statistic, resampling)?;
    let interval = percentiles(&sorted, expanded_tail(resampling.level, items.len()), resampling.level);
    Ok(Estimate { value, interval, n: items.len(), method: Method::BootstrapPercentile })
}

/// Estimates the mean per-item difference, new minus base, with a BCa interval.
///
/// - `base`, `new`  `[item]`, the same items in the same order, any unit
/// - `resampling`   number of draws, level and seed
///
/// Source: as [`over_items`].
pub fn paired_mean_difference(base: &[f64], new: &[f64], resampling: Resampling) -> Result<Estimate, Undefined> {
    require_equal_lengths("paired mean difference", ("base", base.len()), ("new", new.len()))?;
    let differences: Vec<f64> = base.iter().zip(new).map(|(base, new)| new - base).collect();
    require_finite("paired mean difference", &differences)?;
    over_items(&differences, |drawn| drawn.iter().copied().sum::<f64>() / drawn.len() as f64, resampling)
}

/// Estimates a mean over items of a statistic of each item's repeats, drawing items and then repeats inside each drawn item.
///
/// ```text
/// value = mean_i f(repeats of i);   each resample: draw items, for each drawn item draw its repeats, take the mean of f
/// ```
///
/// - `items`       `[item][repeat]`, each item with at least one repeat
/// - `of_item`     a statistic of one item's repeats, for example their mean
/// - `resampling`  number of draws, level and seed
///
/// Too wide for a mean: the spread between items already contains the spread of their repeats, and this adds it once more
/// (by up to `1 + (R - 1)/R^2 * within / (between + within / R)` in variance). And wrong for pass^k: a repeat drawn twice counts
/// as two independent passes, so resamples sit at `(c/n)^k`, above the unbiased `C(c,k)/C(n,k)`. For both, draw items only
/// ([`over_items`]). Use this where the repeats themselves are the question, such as a spread within items.
///
/// Source: Davison, Hinkley 1997, Bootstrap Methods and their Application, section 3.8.
pub fn over_items_then_repeats<R: AsRef<[f64]>>(
    items: &[R],
    of_item: impl Fn(&[f64]) -> f64,
    resampling: Resampling,
) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "two-level bootstrap";
    for item in items {
        require_at_least(QUANTITY, "repeats in every item", 1, item.as_ref().len())?;
        require_finite(QUANTITY, item.as_ref())?;
    }
    let mean = |drawn: &[&R]| drawn.iter().map(|item| of_item(item.as_ref())).sum::<f64>() / drawn.len() as f64;
    let value = observed(QUANTITY, items, &mean)?;
    resampling.check(QUANTITY)?;
    let mut dice = Dice::new(resampling.seed);
    let mut repeats = Vec::new();
    let draws = (0..resampling.resamples).map(|_| {
        let total: f64 = (0..items.len())
            .map(|_| {
                let item = items[dice.below(items.len())].as_ref();
                repeats.clear();
                repeats.extend((0..item.len()).map(|_| item[dice.below(item.len())]));
                of_item(&repeats)
            })
            .sum();
        total / items.len() as f64
    });
    let sorted = sorted_finite(QUANTITY, draws.collect())?;
    // Already too wide; its tails need no expansion.
    let interval = percentiles(&sorted, (1.0 - resampling.level) / 2.0, resampling.level);
    Ok(Estimate { value, interval, n: items.len(), method: Method::BootstrapTwoLevel })
}

/// The quantile of sorted draws at rank `probability * (B + 1)`, straight between neighbouring draws, the ends beyond the last ones.
pub(crate) fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let rank = (probability * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let below = rank.floor();
    let (left, right) = (sorted[below as usize], sorted[rank.ceil() as usize]);
    left + (rank - below) * (right - left)
}

/// The tail at which quantiles of resamples are as far out as Student's interval would be.
fn expanded_tail(level: f64, n: usize) -> f64 {
    let degrees = (n - 1) as f64;
    normal_tail((n as f64 / degrees).sqrt() * student_quantile((1.0 + level) / 2.0, degrees))
}

fn percentiles(sorted: &[f64], tail: f64, level: f64) -> Interval {
    Interval { low: quantile_of_sorted(sorted, tail), high: quantile_of_sorted(sorted, 1.0 - tail), level }
}

fn observed<T>(quantity: &'static str, items: &[T], statistic: &impl Fn(&[&T]) -> f64) -> Result<f64, Undefined> {
    require_at_least(quantity, "items", 2, items.len())?;
    let all: Vec<&T> = items.iter().collect();
    let value = statistic(&all);
    require_finite(quantity, &[value])?;
    Ok(value)
}

/// The statistic of `resamples` draws of items, sorted.
fn resampled<T>(
    quantity: &'static str,
    items: &[T],
    statistic: &impl Fn(&[&T]) -> f64,
    resampling: Resampling,
) -> Result<Vec<f64>, Undefined> {
    resampling.check(quantity)?;
    let mut dice = Dice::new(resampling.seed);
    let mut drawn: Vec<&T> = items.iter().collect();
    let draws = (0..resampling.resamples).map(|_| {
        for place in &mut drawn {
            *place = &items[dice.below(items.len())];
        }
        statistic(&drawn)
    });
    sorted_finite(quantity, draws.collect())
}

fn sorted_finite(quantity: &'static str, mut draws: Vec<f64>) -> Result<Vec<f64>, Undefined> {
    let resamples = draws.len();
    draws.retain(|draw| draw.is_finite());
    let undefined = resamples - draws.len();
    if undefined as f64 > MOST_UNDEFINED * resamples as f64 {
        return Err(Undefined::UndefinedOnResamples { quantity, undefined, resamples });
    }
    draws.sort_by(f64::total_cmp);
    let (smallest, largest) = (draws[0], draws[draws.len() - 1]);
    // Draws of equal values in another order may differ in their last bits.
    if largest - smallest <= 1e-12 * smallest.abs().max(largest.abs()) {
        return Err(Undefined::NoVariation { quantity, n: draws.len(), value: smallest });
    }
    Ok(draws)
}

fn acceleration(left_out: &[f64]) -> f64 {
    let mean = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let power_sum = |power: i32| left_out.iter().map(|value| (mean - value).powi(power)).sum::<f64>();
    let squares = power_sum(2);
    if squares == 0.0 { 0.0 } else { power_sum(3) / (6.0 * squares.powf(1.5)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(drawn: &[&f64]) -> f64 {
        drawn.iter().copied().sum::<f64>() / drawn.len() as f64
    }

    #[test]
    fn items_that_all_agree_give_no_interval_instead_of_one_without_width() {
        for values in [vec![1.0; 20], vec![0.1; 7]] {
            let found = over_items(&values, mean, Resampling::seeded(1));
            assert!(matches!(found, Err(Undefined::NoVariation { .. })), "{found:?}");
            assert!(percentile_over_items(&values, mean, Resampling::seeded(1)).is_err());
            assert!(over_items_then_repeats(&[&values, &values], |repeats| repeats[0], Resampling::seeded(1)).is_err());
        }
    }

    #[test]
    fn one_item_says_nothing_about_other_items() {
        let found = over_items(&[0.3], mean, Resampling::seeded(1));
        assert!(matches!(found, Err(Undefined::TooFew { wanted: 2, found: 1, .. })), "{found:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_bits_and_another_seed_nearly_the_same() {
        let values: Vec<f64> = (0..80).map(|item| f64::from(item * item % 17)).collect();
        let estimate = |seed| over_items(&values, mean, Resampling::seeded(seed)).expect("items vary").interval;
        assert_eq!(estimate(4), estimate(4));
        assert_ne!(estimate(4), estimate(5));
        // The end of a 95 % interval from 9,999 draws has a sampling error of about 0.03 standard errors (0.6 here).
        assert!((estimate(4).low - estimate(5).low).abs() < 0.1);
    }

    #[test]
    fn a_ratio_that_often_does_not_exist_has_no_interval() {
        let items = [(1.0, 1.0), (2.0, 0.0), (1.5, 0.0), (0.5, 0.0)];
        let ratio = |drawn: &[&(f64, f64)]| drawn.iter().map(|item| item.0).sum::<f64>() / drawn.iter().map(|item| item.1).sum::<f64>();
        let found = over_items(&items, ratio, Resampling::seeded(1));
        assert!(matches!(found, Err(Undefined::UndefinedOnResamples { .. })), "{found:?}");
    }

    #[test]
    fn quantiles_fall_on_whole_ranks_of_9999_draws() {
        let sorted: Vec<f64> = (1..=9_999).map(f64::from).collect();
        assert_eq!(quantile_of_sorted(&sorted, 0.025), 250.0);
        assert_eq!(quantile_of_sorted(&sorted, 0.975), 9_750.0);
        assert_eq!((quantile_of_sorted(&sorted, 0.0), quantile_of_sorted(&sorted, 1.0)), (1.0, 9_999.0));
    }

    #[test]
    fn too_few_draws_for_the_level_are_refused() {
        let values = [1.0, 2.0, 3.0];
        for (resamples, level, accepted) in [(39, 0.95, false), (40, 0.95, true), (100, 0.99, false), (0, 0.95, false)] {
            let found = percentile_over_items(&values, mean, Resampling { resamples, level, seed: 1 });
            assert_eq!(found.is_ok(), accepted, "{resamples} draws for level {level}: {found:?}");
        }
    }
}
