//! One proportion: `successes` of `n` independent trials that are each right or wrong.
//!
//! Use [`proportion_interval`]; it chooses and its estimate says what it chose. For several trials of one item, average them
//! first and use [`crate::bounded::bounded_mean`]: repeats of one item are not independent trials.

use crate::distributions::{beta_quantile, two_sided_z};
use crate::estimate::{Estimate, Interval, Method};
use crate::undefined::{Undefined, require_at_least, require_level};

/// Below this many trials the exact interval takes over from Wilson's.
pub const SMALL_SAMPLE: usize = 30;

/// With fewer than this many successes or failures the exact interval takes over from Wilson's, whatever the number of trials.
///
/// One event in n trials lifts Wilson's lower end above rates at which one event is no surprise: at a true rate of `0.18 / n` a 95 %
/// interval covers only 84 %, for every n, and all of the misses are false alarms. With this rule the least coverage is 0.92.
pub const FEW_OUTCOMES: usize = 6;

/// Estimates a proportion with the interval that suits its size: Clopper-Pearson for fewer than [`SMALL_SAMPLE`] trials or fewer than
/// [`FEW_OUTCOMES`] of the rarer outcome, else Wilson.
///
/// - `successes`  trials that were right, at most `n`
/// - `n`          trials
/// - `level`      nominal coverage of both sides together, for example 0.95
///
/// The choice is in the estimate's `method`. Clopper-Pearson never covers less than `level` and usually more, so that small
/// samples give INCONCLUSIVE more often than a false verdict.
///
/// Source: Brown, Cai, DasGupta 2001, Interval Estimation for a Binomial Proportion, Statistical Science 16(2), who mend Wilson's interval
/// at its ends; coverage measured in `tests/stats/coverage.rs`.
pub fn proportion_interval(successes: usize, n: usize, level: f64) -> Result<Estimate, Undefined> {
    let rarer = successes.min(n.saturating_sub(successes));
    if n < SMALL_SAMPLE || rarer < FEW_OUTCOMES { clopper_pearson(successes, n, level) } else { wilson(successes, n, level) }
}

/// Estimates a proportion with Wilson's score interval: all p that a score test would not reject.
///
/// With `p = successes / n` and the normal quantile `z`:
///
/// ```text
/// centre = (p + z^2 / 2n) / (1 + z^2 / n)
/// half   = z sqrt(p (1 - p) / n + z^2 / 4n^2) / (1 + z^2 / n)
/// ```
///
/// - `successes`, `n`, `level`  as in [`proportion_interval`]
///
/// Its mean coverage over p is nominal; for a single p it moves around it, down to 84 % of 95 % close to 0 and 1 (see [`FEW_OUTCOMES`]).
///
/// Source: Wilson 1927, Probable Inference, JASA 22(158).
pub fn wilson(successes: usize, n: usize, level: f64) -> Result<Estimate, Undefined> {
    let share = checked_share(successes, n, level)?;
    let (low, high) = score_ends(share, n as f64, two_sided_z(level));
    Ok(Estimate { value: share, interval: Interval { low, high, level }, n, method: Method::Wilson })
}

/// Estimates a proportion with the Clopper-Pearson interval: all p that neither exact one-sided binomial test rejects.
///
/// With tail `a = (1 - level) / 2` and Beta quantiles B(probability; shape, shape):
///
/// ```text
/// low  = B(a; successes, n - successes + 1),     0 if no success
/// high = B(1 - a; successes + 1, n - successes), 1 if no failure
/// ```
///
/// - `successes`, `n`, `level`  as in [`proportion_interval`]
///
/// Coverage is at least `level` for every p; the price is width (mean coverage 0.97 to 0.98 at n = 10 to 30).
///
/// Source: Clopper, Pearson 1934, Biometrika 26(4).
pub fn clopper_pearson(successes: usize, n: usize, level: f64) -> Result<Estimate, Undefined> {
    let share = checked_share(successes, n, level)?;
    let tail = (1.0 - level) / 2.0;
    let (k, failures) = (successes as f64, (n - successes) as f64);
    let low = if successes == 0 { 0.0 } else { beta_quantile(tail, k, failures + 1.0) };
    let high = if successes == n { 1.0 } else { beta_quantile(1.0 - tail, k + 1.0, failures) };
    Ok(Estimate { value: share, interval: Interval { low, high, level }, n, method: Method::ClopperPearson })
}

/// Wilson's ends for a share of `n` trials at `z` standard errors; exactly 0 for share 0 and 1 for share 1.
pub(crate) fn score_ends(share: f64, n: f64, z: f64) -> (f64, f64) {
    let shrink = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / shrink;
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt() / shrink;
    let low = if share == 0.0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if share == 1.0 { 1.0 } else { (centre + half).min(1.0) };
    (low, high)
}

fn checked_share(successes: usize, n: usize, level: f64) -> Result<f64, Undefined> {
    require_level("proportion", level)?;
    require_at_least("proportion", "trials", 1, n)?;
    if successes > n {
        let found = successes as f64;
        return Err(Undefined::OutOfRange { quantity: "proportion", argument: "successes", wanted: "at most `n`", found });
    }
    Ok(successes as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_trials_give_no_proportion() {
        let expected = Undefined::TooFew { quantity: "proportion", unit: "trials", wanted: 1, found: 0 };
        for interval in [proportion_interval, wilson, clopper_pearson] {
            assert_eq!(interval(0, 0, 0.95), Err(expected.clone()));
        }
    }

    #[test]
    fn more_successes_than_trials_or_a_level_in_percent_is_refused() {
        assert!(matches!(wilson(11, 10, 0.95), Err(Undefined::OutOfRange { argument: "successes", .. })));
        for level in [95.0, 0.0, 1.0, -0.5, f64::NAN] {
            assert!(matches!(wilson(5, 10, level), Err(Undefined::OutOfRange { argument: "level", .. })), "level {level}");
        }
    }

    #[test]
    fn agreement_of_all_trials_never_gives_zero_width() {
        for n in [1, 2, 10, 29, 30, 1000] {
            for successes in [0, n] {
                let estimate = proportion_interval(successes, n, 0.95).expect("trials exist");
                assert!(estimate.interval.width() > 0.0, "{successes} of {n}: {estimate}");
                assert!(estimate.interval.contains(estimate.value), "{successes} of {n}: {estimate}");
            }
        }
    }

    #[test]
    fn swapping_right_and_wrong_mirrors_the_interval() {
        for (successes, n) in [(3, 10), (0, 25), (17, 40), (199, 200)] {
            for interval in [wilson, clopper_pearson] {
                let right = interval(successes, n, 0.9).expect("trials exist").interval;
                let wrong = interval(n - successes, n, 0.9).expect("trials exist").interval;
                assert!((right.low - (1.0 - wrong.high)).abs() < 1e-12, "{successes} of {n}: {right} against {wrong}");
                assert!((right.high - (1.0 - wrong.low)).abs() < 1e-12, "{successes} of {n}: {right} against {wrong}");
            }
        }
    }

    #[test]
    fn the_policy_says_what_it_chose() {
        for (successes, n, method) in [
            (14, 29, Method::ClopperPearson),
            (15, 30, Method::Wilson),
            (5, 100, Method::ClopperPearson),
            (6, 100, Method::Wilson),
            (994, 1000, Method::Wilson),
            (995, 1000, Method::ClopperPearson),
        ] {
            assert_eq!(proportion_interval(successes, n, 0.95).expect("trials exist").method, method, "{successes} of {n}");
        }
    }

    #[test]
    fn one_more_success_moves_both_ends_up_across_the_change_of_method() {
        for n in [1, 12, 29, 30, 31, 60, 200] {
            let ends: Vec<Interval> = (0..=n).map(|k| proportion_interval(k, n, 0.95).expect("trials exist").interval).collect();
            let rising = ends.windows(2).all(|pair| pair[0].low <= pair[1].low && pair[0].high <= pair[1].high);
            assert!(rising, "n = {n}: {ends:?}");
        }
    }
}
