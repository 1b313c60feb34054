//! Power of means of independent per-item numbers, by the normal approximation.

use super::whole_items;
use crate::distributions::{normal_cdf, normal_quantile, two_sided_z};
use crate::undefined::{
    Undefined, require_at_least, require_equal_lengths, require_finite, require_open_unit, require_positive, require_probability,
};

/// Computes how many items find a mean that lies `effect` beyond the threshold.
///
/// ```text
/// n = ((z(1 - alpha/2) + z(power)) * deviation / effect)^2, rounded up
/// ```
///
/// - `effect`     distance of the true mean from the threshold (0 for a sign-flip test), in the unit of the items
/// - `deviation`  standard deviation of the per-item numbers, same unit; from a pilot or [`contrast_deviation`]
/// - `alpha`      two-sided, for example 0.05
/// - `power`      share of runs that should find it, for example 0.8
///
/// Holds for the sign-flip test and for intervals of means alike. Plan at least 50 items whatever it says: with few items that
/// differ the approximation promises too much.
///
/// Source: Cohen 1988, Statistical Power Analysis, chapter 2, in its normal form.
pub fn items_for_mean(effect: f64, deviation: f64, alpha: f64, power: f64) -> Result<usize, Undefined> {
    require_positive("items for a mean", "effect", effect)?;
    require_positive("items for a mean", "deviation", deviation)?;
    Ok(whole_items((reach(alpha, power)? * deviation / effect).powi(2)))
}

/// Computes the smallest distance from the threshold that `n` items find.
///
/// ```text
/// effect = (z(1 - alpha/2) + z(power)) * deviation / sqrt(n)
/// ```
///
/// - `n`                             items
/// - `deviation`, `alpha`, `power`  as in [`items_for_mean`]
///
/// Source: as [`items_for_mean`].
pub fn detectable_mean(n: usize, deviation: f64, alpha: f64, power: f64) -> Result<f64, Undefined> {
    require_at_least("detectable mean", "items", 1, n)?;
    require_positive("detectable mean", "deviation", deviation)?;
    Ok(reach(alpha, power)? * deviation / (n as f64).sqrt())
}

/// Computes the share of runs that find a mean `effect` beyond the threshold, on the right side.
///
/// ```text
/// power = F(effect sqrt(n) / deviation - z(1 - alpha/2))
/// ```
///
/// - `n`                              items
/// - `effect`, `deviation`, `alpha`  as in [`items_for_mean`]
///
/// Source: as [`items_for_mean`].
pub fn mean_power(n: usize, effect: f64, deviation: f64, alpha: f64) -> Result<f64, Undefined> {
    require_at_least("power of a mean", "items", 1, n)?;
    require_finite("power of a mean", &[effect])?;
    require_positive("power of a mean", "deviation", deviation)?;
    require_open_unit("power of a mean", "alpha", alpha)?;
    Ok(normal_cdf(effect * (n as f64).sqrt() / deviation - two_sided_z(1.0 - alpha)))
}

/// Computes how many items find an excess flip rate over a noise floor, before any pilot.
///
/// With `p1 = floor`, `p2 = floor + excess` and `m = (p1 + p2) / 2`:
///
/// ```text
/// n = (z(1 - alpha/2) sqrt(2 m (1 - m)) + z(power) sqrt(p1 (1 - p1) + p2 (1 - p2)))^2 / excess^2, rounded up
/// ```
///
/// - `floor`           share of differing pairs among identical repeats, for example 0.02
/// - `excess`          mean excess flip rate to find, for example 0.05; `floor + excess` at most 1
/// - `alpha`, `power`  as in [`items_for_mean`]
///
/// An upper bound: it takes each item as all or nothing in both arms, and both arms as unrelated. After a pilot use [`items_for_mean`].
///
/// Source: two independent proportions, Fleiss, Levin, Paik 2003, eq. 4.14 without correction.
pub fn excess_flip_items(floor: f64, excess: f64, alpha: f64, power: f64) -> Result<usize, Undefined> {
    const QUANTITY: &str = "items for an excess flip rate";
    require_probability(QUANTITY, "floor", floor)?;
    require_positive(QUANTITY, "excess", excess)?;
    require_probability(QUANTITY, "floor + excess", floor + excess)?;
    require_power(alpha, power)?;
    let (low, high, middle) = (floor, floor + excess, floor + excess / 2.0);
    let under_none = two_sided_z(1.0 - alpha) * (2.0 * middle * (1.0 - middle)).sqrt();
    let under_excess = normal_quantile(power) * (low * (1.0 - low) + high * (1.0 - high)).sqrt();
    Ok(whole_items(((under_none + under_excess) / excess).powi(2)))
}

/// Computes the largest standard deviation of a per-item contrast of right-or-wrong scores.
///
/// ```text
/// deviation = sqrt(sum_j w_j^2 p_j (1 - p_j))
/// ```
///
/// - `weights`  `[condition]`, as in [`crate::several::planned_contrast`]
/// - `rates`    `[condition]`, expected share of right answers
///
/// Exact when the conditions of an item are unrelated; items that are hard under every condition make the true one smaller.
///
/// Source: variance of a sum of independent Bernoulli variables.
pub fn contrast_deviation(weights: &[f64], rates: &[f64]) -> Result<f64, Undefined> {
    const QUANTITY: &str = "deviation of a contrast";
    require_equal_lengths(QUANTITY, ("weights", weights.len()), ("rates", rates.len()))?;
    require_finite(QUANTITY, weights)?;
    let mut variance = 0.0;
    for (weight, rate) in weights.iter().zip(rates) {
        require_probability(QUANTITY, "rates", *rate)?;
        variance += weight * weight * rate * (1.0 - rate);
    }
    Ok(variance.sqrt())
}

/// Standard errors between the threshold and a mean that is found with this power.
pub(super) fn reach(alpha: f64, power: f64) -> Result<f64, Undefined> {
    require_power(alpha, power)?;
    Ok(two_sided_z(1.0 - alpha) + normal_quantile(power))
}

pub(super) fn require_power(alpha: f64, power: f64) -> Result<(), Undefined> {
    require_open_unit("power calculation", "alpha", alpha)?;
    require_open_unit("power calculation", "power", power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_effect_and_power_agree_with_each_other() {
        for (effect, deviation, power) in [(0.05, 0.3, 0.8), (0.1, 0.4, 0.95), (0.02, 0.2, 0.9)] {
            let n = items_for_mean(effect, deviation, 0.05, power).expect("in range");
            assert!(mean_power(n, effect, deviation, 0.05).expect("in range") >= power);
            assert!(mean_power(n - 1, effect, deviation, 0.05).expect("in range") < power);
            let detectable = detectable_mean(n, deviation, 0.05, power).expect("in range");
            assert!(detectable <= effect && detectable > 0.98 * effect, "{n} items detect {detectable}, planned {effect}");
        }
    }

    #[test]
    fn excess_flips_over_a_floor_of_two_percent() {
        assert_eq!(excess_flip_items(0.02, 0.05, 0.05, 0.8), Ok(269));
        assert_eq!(excess_flip_items(0.02, 0.10, 0.05, 0.8), Ok(102));
    }

    #[test]
    fn effects_of_zero_and_certain_power_are_refused() {
        assert!(items_for_mean(0.0, 0.3, 0.05, 0.8).is_err());
        assert!(items_for_mean(0.1, 0.3, 0.05, 1.0).is_err());
        assert!(items_for_mean(0.1, 0.3, 5.0, 0.8).is_err());
        assert!(excess_flip_items(0.9, 0.2, 0.05, 0.8).is_err());
        assert!(detectable_mean(0, 0.3, 0.05, 0.8).is_err());
    }
}
