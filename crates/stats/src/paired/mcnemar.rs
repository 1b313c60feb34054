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
    tested(counts, policy(counts.discordant()))
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
    tested(counts, Method::McNemarExact)
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
    tested(counts, Method::McNemarMidP)
}

/// The p-values that [`mcnemar`] gives `changed` items with 0, 1, ... `changed / 2` of them in the rarer direction; they rise.
pub(crate) fn policy_p_values(changed: usize) -> impl Iterator<Item = f64> {
    p_values(changed, policy(changed))
}

fn policy(changed: usize) -> Method {
    if changed < MID_P_BELOW { Method::McNemarMidP } else { Method::McNemarExact }
}

fn tested(counts: PairedCounts, method: Method) -> Result<TestOutcome, Undefined> {
    require_at_least("McNemar's test", "items", 1, counts.n())?;
    let rarer = counts.only_base_right.min(counts.only_new_right);
    let p_value = p_values(counts.discordant(), method).nth(rarer).expect("the rarer direction has at most half of the changed items");
    let statistic = counts.only_new_right as f64 - counts.only_base_right as f64;
    Ok(TestOutcome { statistic, p_value, n: counts.n(), method })
}

fn p_values(changed: usize, method: Method) -> impl Iterator<Item = f64> {
    let mut up_to_here = 0.0;
    (0..=changed / 2).map(move |rarer| {
        let here = binomial_point(rarer, changed, 0.5);
        up_to_here += here;
        match method {
            _ if changed == 0 => 1.0,
            Method::McNemarMidP if 2 * rarer == changed => 1.0 - here / 2.0,
            Method::McNemarMidP => 2.0 * up_to_here - here,
            _ => (2.0 * up_to_here).min(1.0),
        }
    })
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
