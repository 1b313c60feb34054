//! Power of paired right-or-wrong comparisons: planning formulas, and exact power by adding up every table.

use std::ops::RangeInclusive;

use super::mean::require_power;
use super::whole_items;
use crate::distributions::{binomial_point, normal_quantile, two_sided_z};
use crate::paired::{PairedCounts, non_inferiority, policy_p_values};
use crate::undefined::{Undefined, require_at_least, require_open_unit, require_positive};
use crate::verdict::Verdict;

/// Computes how many items show a net change by McNemar's test.
///
/// ```text
/// n = (z(1 - alpha/2) sqrt(d) + z(power) sqrt(d - change^2))^2 / change^2, rounded up
/// ```
///
/// - `discordance`  d, share of items that change in either direction, for example 0.10
/// - `change`       net share of items that get better (or worse), above 0 and at most `discordance`
/// - `alpha`        two-sided, for example 0.05
/// - `power`        share of runs that should find it, for example 0.8
///
/// A normal approximation: the discrete test has a little more or less. [`mcnemar_power`] says exactly.
///
/// Source: Connor 1987, Biometrics 43(1).
pub fn mcnemar_items(discordance: f64, change: f64, alpha: f64, power: f64) -> Result<usize, Undefined> {
    require_change(discordance, change)?;
    require_power(alpha, power)?;
    let under_none = two_sided_z(1.0 - alpha) * discordance.sqrt();
    let under_change = normal_quantile(power) * (discordance - change * change).sqrt();
    Ok(whole_items(((under_none + under_change) / change).powi(2)))
}

/// Computes the exact share of runs in which [`crate::paired::mcnemar`] rejects.
///
/// ```text
/// sum over tables of P(table) [p(table) <= alpha],   changed items ~ Binomial(n, discordance),
/// better among the changed ~ Binomial(changed, (discordance + change) / (2 discordance))
/// ```
///
/// - `n`                                items
/// - `discordance`, `change`, `alpha`  as in [`mcnemar_items`]; a change of 0 gives the size of the test
///
/// Source: definition.
pub fn mcnemar_power(n: usize, discordance: f64, change: f64, alpha: f64) -> Result<f64, Undefined> {
    require_at_least("power of McNemar's test", "items", 1, n)?;
    require_open_unit("power of McNemar's test", "alpha", alpha)?;
    if change != 0.0 {
        require_change(discordance, change.abs())?;
    }
    require_open_unit("power of McNemar's test", "discordance", discordance)?;
    let share_better = (discordance + change) / (2.0 * discordance);
    let rejected_with = |changed: usize| -> f64 {
        let both_directions = |rarer: usize| {
            let one_way = binomial_point(rarer, changed, share_better);
            if 2 * rarer == changed { one_way } else { one_way + binomial_point(changed - rarer, changed, share_better) }
        };
        policy_p_values(changed).take_while(|p_value| *p_value <= alpha).enumerate().map(|(rarer, _)| both_directions(rarer)).sum()
    };
    Ok(likely(n, discordance).map(|changed| binomial_point(changed, n, discordance) * rejected_with(changed)).sum())
}

/// Computes the smallest net change that McNemar's test finds with `n` items.
///
/// - `n`                               items
/// - `discordance`, `alpha`, `power`  as in [`mcnemar_items`]
///
/// By exact power; undefined if even a change of all discordant items in one direction is not found.
///
/// Source: inversion of [`mcnemar_power`].
pub fn detectable_change(n: usize, discordance: f64, alpha: f64, power: f64) -> Result<f64, Undefined> {
    require_power(alpha, power)?;
    let largest = mcnemar_power(n, discordance, discordance, alpha)?;
    if largest < power {
        let wanted = "reachable: more items or more discordance";
        return Err(Undefined::OutOfRange { quantity: "detectable change", argument: "power", wanted, found: power });
    }
    // The change is refined to a thousandth of an item, far finer than its use.
    let (mut missed, mut found) = (0.0, discordance);
    while found - missed > 1e-3 / n as f64 {
        let middle = (missed + found) / 2.0;
        if mcnemar_power(n, discordance, middle, alpha)? >= power {
            found = middle;
        } else {
            missed = middle;
        }
    }
    Ok(found)
}

/// Computes how many items show that nothing was lost beyond a margin, when nothing was lost at all.
///
/// ```text
/// n = (z(confidence) + z(power))^2 * discordance / margin^2, rounded up
/// ```
///
/// - `discordance`  share of items that change in either direction, equally often in both
/// - `margin`       largest tolerable loss, a share of items
/// - `confidence`   one-sided, for example 0.95
/// - `power`        share of runs that should pass, for example 0.8
///
/// A normal approximation that promises too much when few items change; [`non_inferiority_power`] says exactly.
///
/// Source: Liu et al. 2002, Statistics in Medicine 21(2), in its simplest form.
pub fn non_inferiority_items(discordance: f64, margin: f64, confidence: f64, power: f64) -> Result<usize, Undefined> {
    require_open_unit("items for non-inferiority", "discordance", discordance)?;
    require_positive("items for non-inferiority", "margin", margin)?;
    require_power(1.0 - confidence, power)?;
    Ok(whole_items((normal_quantile(confidence) + normal_quantile(power)).powi(2) * discordance / (margin * margin)))
}

/// Computes the exact share of runs in which [`crate::paired::non_inferiority`] passes.
///
/// - `n`                        items
/// - `discordance`, `loss`     share of items that change, and net share that get worse (0 if none does, the margin for the size)
/// - `margin`, `confidence`    as in [`non_inferiority_items`]
///
/// Source: definition.
pub fn non_inferiority_power(n: usize, discordance: f64, loss: f64, margin: f64, confidence: f64) -> Result<f64, Undefined> {
    require_at_least("power of non-inferiority", "items", 1, n)?;
    require_open_unit("power of non-inferiority", "discordance", discordance)?;
    if loss != 0.0 {
        require_change(discordance, loss.abs())?;
    }
    let share_worse = (discordance + loss) / (2.0 * discordance);
    let passes = |changed: usize, worse: usize| -> Result<bool, Undefined> {
        let table = PairedCounts { only_base_right: worse, only_new_right: changed - worse, both_right: n - changed, both_wrong: 0 };
        Ok(non_inferiority(table, margin, confidence)?.verdict == Verdict::Pass)
    };
    let mut power = 0.0;
    for changed in likely(n, discordance) {
        // The fewer got worse, the likelier a pass, so the passing tables are the first ones.
        let (mut passing, mut failing) = (0, changed + 1);
        while passing < failing {
            let middle = (passing + failing) / 2;
            if passes(changed, middle)? {
                passing = middle + 1;
            } else {
                failing = middle;
            }
        }
        let passed: f64 = (0..passing).map(|worse| binomial_point(worse, changed, share_worse)).sum();
        power += binomial_point(changed, n, discordance) * passed;
    }
    Ok(power)
}

/// The counts of n that are not all but impossible: within nine standard deviations and nine.
pub(super) fn likely(n: usize, probability: f64) -> RangeInclusive<usize> {
    let (mean, deviation) = (n as f64 * probability, (n as f64 * probability * (1.0 - probability)).sqrt());
    let reach = 9.0 * deviation + 9.0;
    (mean - reach).max(0.0) as usize..=((mean + reach) as usize).min(n)
}

fn require_change(discordance: f64, change: f64) -> Result<(), Undefined> {
    require_open_unit("paired power", "discordance", discordance)?;
    require_positive("paired power", "change", change)?;
    if change > discordance {
        return Err(Undefined::OutOfRange { quantity: "paired power", argument: "change", wanted: "at most `discordance`", found: change });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_items_or_a_larger_change_give_more_power_than_the_other_way_round() {
        let power = |n, change| mcnemar_power(n, 0.1, change, 0.05).expect("in range");
        assert!(power(400, 0.05) > power(200, 0.05) && power(200, 0.05) > power(200, 0.03));
        assert!((power(200, 0.05) - power(200, -0.05)).abs() < 1e-12);
    }

    #[test]
    fn the_detectable_change_is_found_with_the_power_asked_for_and_a_smaller_one_is_not() {
        let change = detectable_change(312, 0.10, 0.05, 0.8).expect("reachable");
        assert!((mcnemar_power(312, 0.10, change, 0.05).expect("in range") - 0.8).abs() < 1e-3, "{change}");
        assert!(mcnemar_power(312, 0.10, change * 0.98, 0.05).expect("in range") < 0.8);
        assert!(matches!(detectable_change(20, 0.05, 0.05, 0.8), Err(Undefined::OutOfRange { argument: "power", .. })));
    }

    #[test]
    fn a_change_larger_than_the_discordance_is_refused() {
        assert!(mcnemar_items(0.05, 0.06, 0.05, 0.8).is_err());
        assert!(mcnemar_power(100, 0.05, 0.06, 0.05).is_err());
        assert!(non_inferiority_power(100, 0.05, 0.06, 0.02, 0.95).is_err());
    }
}
