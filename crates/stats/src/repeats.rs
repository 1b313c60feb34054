//! The same input several times: how often it works, and how much the answers differ for no reason.

use crate::bootstrap::Resampling;
use crate::bounded::bounded_mean;
use crate::estimate::Estimate;
use crate::order::flip_rate;
use crate::undefined::{Undefined, require_at_least};

/// Mean noise floor above which a server counts as noisy and every sensitivity on it needs more repeats.
pub const NOISY: f64 = 0.05;

/// Estimates, for one item, the probability that at least one of `k` tries passes.
///
/// With `c` passes among `n` repeats:
///
/// ```text
/// pass@k = 1 - C(n - c, k) / C(n, k)
/// ```
///
/// - `passes`   c
/// - `repeats`  n
/// - `k`        tries, from 1 to `repeats`
///
/// Unbiased; `1 - (1 - c/n)^k` is not. For a suite: [`crate::bounded::bounded_mean`] over the items' values.
///
/// Source: Chen et al. 2021, Evaluating Large Language Models Trained on Code (arXiv:2107.03374), eq. 1.
pub fn pass_at_k(passes: usize, repeats: usize, k: usize) -> Result<f64, Undefined> {
    Ok(1.0 - share_of_choices("pass@k", repeats.saturating_sub(passes), passes, repeats, k)?)
}

/// Estimates, for one item, the probability that all of `k` tries pass.
///
/// ```text
/// pass^k = C(c, k) / C(n, k)
/// ```
///
/// - `passes`, `repeats`, `k`  as in [`pass_at_k`]
///
/// Unbiased; `(c/n)^k` is too high: on average 0.428 instead of 0.343 for 5 repeats that pass with 0.7 and k = 3.
///
/// Source: Yao et al. 2024, tau-bench (arXiv:2406.12045), section 3.
pub fn pass_all_k(passes: usize, repeats: usize, k: usize) -> Result<f64, Undefined> {
    share_of_choices("pass^k", passes, passes, repeats, k)
}

/// Estimates the mean noise floor: how often two answers to the identical input differ.
///
/// ```text
/// floor_i = flip rate of the repeats of item i;   value = mean over items
/// ```
///
/// - `items`       `[item][repeat]`, answers to one unchanged prompt, cache bypassed
/// - `resampling`  number of draws, level and seed
///
/// Every sensitivity (to order, wording, precision) is read against it. Above [`NOISY`] say so in the report.
///
/// Source: flip rate as in [`crate::order::flip_rate`], interval as in [`crate::bounded::bounded_mean`].
pub fn noise_floor<T: PartialEq, A: AsRef<[T]>>(items: &[A], resampling: Resampling) -> Result<Estimate, Undefined> {
    let floors: Vec<f64> = items.iter().map(|repeats| flip_rate(repeats.as_ref())).collect::<Result<_, _>>()?;
    bounded_mean(&floors, 0.0..=1.0, resampling)
}

/// C(kind, k) / C(repeats, k) as a product of `k` ratios, so that nothing overflows.
fn share_of_choices(quantity: &'static str, kind: usize, passes: usize, repeats: usize, k: usize) -> Result<f64, Undefined> {
    require_at_least(quantity, "tries", 1, k)?;
    require_at_least(quantity, "repeats", k, repeats)?;
    if passes > repeats {
        return Err(Undefined::OutOfRange { quantity, argument: "passes", wanted: "at most `repeats`", found: passes as f64 });
    }
    Ok((0..k).map(|taken| kind.saturating_sub(taken) as f64 / (repeats - taken) as f64).product())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Dice;

    #[test]
    fn small_cases_by_counting_hands() {
        // (passes, repeats, k, pass@k, pass^k): choose k of the repeats without looking.
        for (passes, repeats, k, at, all) in [
            (1, 2, 1, 0.5, 0.5),
            (1, 2, 2, 1.0, 0.0),
            (3, 5, 2, 0.9, 0.3),
            (0, 4, 3, 0.0, 0.0),
            (4, 4, 4, 1.0, 1.0),
            (2, 10, 3, 1.0 - 56.0 / 120.0, 0.0),
        ] {
            let (found_at, found_all) = (pass_at_k(passes, repeats, k).expect("k fits"), pass_all_k(passes, repeats, k).expect("k fits"));
            assert!((found_at - at).abs() < 1e-12, "pass@{k} with {passes} of {repeats}: {found_at}, wanted {at}");
            assert!((found_all - all).abs() < 1e-12, "pass^{k} with {passes} of {repeats}: {found_all}, wanted {all}");
        }
    }

    #[test]
    fn both_are_unbiased_and_the_power_of_the_share_is_not() {
        let (chance, repeats, k, runs) = (0.7, 5, 3, 40_000);
        let mut dice = Dice::new(11);
        let (mut at, mut all, mut naive) = (0.0, 0.0, 0.0);
        for _ in 0..runs {
            let passes = (0..repeats).filter(|_| dice.happens(chance)).count();
            at += pass_at_k(passes, repeats, k).expect("k fits") / f64::from(runs);
            all += pass_all_k(passes, repeats, k).expect("k fits") / f64::from(runs);
            naive += (passes as f64 / repeats as f64).powi(3) / f64::from(runs);
        }
        // Standard error of each mean at most 0.5 / sqrt(40,000) = 0.0025; four of them.
        assert!((at - (1.0 - 0.3f64.powi(3))).abs() < 0.01, "pass@3 {at}");
        assert!((all - 0.343).abs() < 0.01, "pass^3 {all}");
        assert!((naive - 0.4278).abs() < 0.01, "(c/n)^3 {naive}");
    }

    #[test]
    fn more_tries_than_repeats_cannot_be_estimated() {
        assert!(matches!(pass_at_k(1, 3, 4), Err(Undefined::TooFew { wanted: 4, found: 3, .. })));
        assert!(pass_all_k(1, 0, 1).is_err() && pass_all_k(1, 3, 0).is_err() && pass_at_k(4, 3, 1).is_err());
    }

    #[test]
    fn a_deterministic_server_has_a_floor_of_zero_with_room_for_doubt() {
        let floor = noise_floor(&vec!["aaa".as_bytes(); 60], Resampling::seeded(1)).expect("repeats exist");
        assert_eq!((floor.value, floor.interval.low), (0.0, 0.0));
        assert!(floor.interval.high > 0.03 && floor.interval.high < 0.09, "{floor}");
    }
}
