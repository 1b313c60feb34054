//! McNemar's test on the items that changed.

use super::PairedCounts;
use crate::distributions::binomial_point;
use crate::estimate::{Method, TestOutcome};
use crate::undefined::{Undefined, require_at_least};

const MID_P_BELOW: usize = 25; // with more changes the two p-values differ by less than the reader can use

/// Tests whether as many items got better as got worse: mid-p below 25 changed items, exact from there on.
///
/// - `counts`  outcomes of the same items under both conditions
///
/// The outcome's `statistic` is the net number of items that got better. Two-sided. If no item changed, p = 1.
///
/// Source: Fagerland, Lydersen, Laake 2013, The McNemar test for binary matched-pairs data, BMC Med Res Methodol 13:91.
pub fn mcnemar(counts: PairedCounts) -> Result<TestOutcome, Undefined> {
    if counts.discordant() < MID_P_BELOW { mcnemar_mid_p(counts) } else { mcnemar_exact(counts) }
}

/// Tests the same with the exact conditional p-value, which never rejects too often and often too rarely.
///
/// With `m` changed items, `k` of them in the rarer direction:
///
/// ```text
/// p = min(1, 2 sum_{i <= k} C(m, i) / 2^m)
/// ```
///
/// - `counts`  as in [`mcnemar`]
///
/// Source: McNemar 1947, Psychometrika 12(2); exact form as in Fagerland et al. 2013, eq. 3.
pub fn mcnemar_exact(counts: PairedCounts) -> Result<TestOutcome, Undefined> {
    let (up_to_observed, _) = tails(counts)?;
    Ok(outcome(counts, (2.0 * up_to_observed).min(1.0), Method::McNemarExact))
}

/// Tests the same, counting the observed table half: nearly exact on average, and without the exact test's loss of power.
///
/// ```text
/// p = 2 sum_{i <= k} C(m, i) / 2^m - C(m, k) / 2^m,   1 - C(m, k) / 2^(m+1) if both directions are equal
/// ```
///
/// - `counts`  as in [`mcnemar`]
///
/// Source: Fagerland et al. 2013, eq. 4.
pub fn mcnemar_mid_p(counts: PairedCounts) -> Result<TestOutcome, Undefined> {
    let (up_to_observed, at_observed) = tails(counts)?;
    let tie = counts.only_base_right == counts.only_new_right && counts.discordant() > 0;
    let p_value = match (counts.discordant(), tie) {
        (0, _) => 1.0,
        (_, true) => 1.0 - at_observed / 2.0,
        (_, false) => 2.0 * up_to_observed - at_observed,
    };
    Ok(outcome(counts, p_value, Method::McNemarMidP))
}

/// P(X <= k) and P(X = k) for the rarer direction k of m fair coins.
fn tails(counts: PairedCounts) -> Result<(f64, f64), Undefined> {
    require_at_least("McNemar's test", "items", 1, counts.n())?;
    let changed = counts.discordant();
    let rarer = counts.only_base_right.min(counts.only_new_right);
    let point = |k| binomial_point(k, changed, 0.5);
    Ok(((0..=rarer).map(point).sum(), point(rarer)))
}

fn outcome(counts: PairedCounts, p_value: f64, method: Method) -> TestOutcome {
    let statistic = counts.only_new_right as f64 - counts.only_base_right as f64;
    TestOutcome { statistic, p_value, n: counts.n(), method }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(only_base_right: usize, only_new_right: usize) -> PairedCounts {
        PairedCounts { both_right: 20, only_base_right, only_new_right, both_wrong: 5 }
    }

    #[test]
    fn the_p_values_of_small_tables_are_those_of_counting_coins() {
        // (base only, new only, exact, mid-p) by hand: for 1 and 5 changed items, 2 (1 + 6) / 64 and (2 (1 + 6) - 6) / 64.
        for (base, new, exact, mid_p) in
            [(1, 5, 14.0 / 64.0, 8.0 / 64.0), (0, 5, 2.0 / 32.0, 1.0 / 32.0), (2, 2, 1.0, 1.0 - 3.0 / 16.0), (0, 0, 1.0, 1.0)]
        {
            let p = |test: fn(PairedCounts) -> Result<TestOutcome, Undefined>| test(changed(base, new)).expect("items exist").p_value;
            assert!((p(mcnemar_exact) - exact).abs() < 1e-12, "{base} against {new}: exact {}", p(mcnemar_exact));
            assert!((p(mcnemar_mid_p) - mid_p).abs() < 1e-12, "{base} against {new}: mid-p {}", p(mcnemar_mid_p));
        }
    }

    #[test]
    fn swapping_the_conditions_keeps_the_p_value_and_turns_the_net_change() {
        let (there, back) = (mcnemar(changed(3, 11)).expect("items exist"), mcnemar(changed(11, 3)).expect("items exist"));
        assert_eq!(there.p_value, back.p_value);
        assert_eq!((there.statistic, back.statistic), (8.0, -8.0));
    }

    #[test]
    fn the_policy_turns_exact_at_25_changed_items() {
        assert_eq!(mcnemar(changed(10, 14)).expect("items exist").method, Method::McNemarMidP);
        assert_eq!(mcnemar(changed(10, 15)).expect("items exist").method, Method::McNemarExact);
    }

    #[test]
    fn no_items_give_no_test() {
        assert!(matches!(mcnemar(PairedCounts::default()), Err(Undefined::TooFew { .. })));
    }
}
