//! Flip rates: how often two answers to what should be the same question differ.

use crate::estimate::{Method, TestOutcome};
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths};

/// Computes the share of pairs of answers that differ.
///
/// With `M` answers:
///
/// ```text
/// flip rate = number of unordered pairs with different answers / C(M, 2)
/// ```
///
/// - `answers`  `[order or repeat]`, compared with `==`, so normalise them first; an answer that could not be read is an answer of its own
///
/// Its expected value is the probability that two random answers differ, whatever `M`, which makes flip rates of different `M`
/// comparable. One answer has no flip rate.
///
/// Source: 1 - consistency rate of SCORE (arXiv:2503.00137), over unordered pairs.
pub fn flip_rate<T: PartialEq>(answers: &[T]) -> Result<f64, Undefined> {
    require_at_least("flip rate", "answers", 2, answers.len())?;
    Ok(share_of_differing_pairs(answers))
}

/// Computes each item's flip rate over orders minus its flip rate over identical repeats.
///
/// ```text
/// excess_i = flip rate(orders of i) - flip rate(repeats of i);   their mean is the excess order sensitivity
/// ```
///
/// - `orders`   `[item][order]`, the answers under different orders
/// - `repeats`  `[item][repeat]`, the answers to one unchanged prompt (the noise floor)
///
/// If the order does nothing the expected excess is 0. For its size: [`crate::bounded::bounded_mean`] over `-1.0..=1.0`.
///
/// Source: the floor as in the order-sensitivity audit arXiv:2606.26079.
pub fn excess_flip_rates<T: PartialEq, A: AsRef<[T]>>(orders: &[A], repeats: &[A]) -> Result<Vec<f64>, Undefined> {
    require_equal_lengths("excess flip rate", ("orders", orders.len()), ("repeats", repeats.len()))?;
    orders.iter().zip(repeats).map(|(orders, repeats)| Ok(flip_rate(orders.as_ref())? - flip_rate(repeats.as_ref())?)).collect()
}

/// Tests whether reordering flips answers more often than repeating does, by exchanging answers between both arms of an item.
///
/// ```text
/// p = (1 + exchanges with mean excess at least as large as observed) / (1 + exchanges)
/// ```
///
/// - `orders`, `repeats`  as in [`excess_flip_rates`]
/// - `exchanges`          random exchanges; 9,999 is customary
/// - `seed`               of the exchanges
///
/// One-sided; the outcome's `statistic` is the mean excess. Exact whatever the numbers of orders and repeats: if the order does nothing, all
/// answers of one item come from one distribution. (A sign flip of the excesses is not exact: with 6 orders and 3 repeats one stray answer is +1/3 or
/// -2/3.) The answers must be separate calls: an answer that stands in both arms makes the test conservative.
///
/// Source: permutation of exchangeable labels, Pitman 1937; p-value as in Phipson, Smyth 2010 (arXiv:1603.05766).
pub fn excess_flip_test<T: PartialEq, A: AsRef<[T]>>(
    orders: &[A],
    repeats: &[A],
    exchanges: usize,
    seed: u64,
) -> Result<TestOutcome, Undefined> {
    const QUANTITY: &str = "excess flip test";
    let excesses = excess_flip_rates(orders, repeats)?;
    require_at_least(QUANTITY, "items", 1, excesses.len())?;
    require_at_least(QUANTITY, "exchanges", 1, exchanges)?;
    let n = excesses.len();
    let observed: f64 = excesses.iter().sum();
    // An item whose answers all agree has excess 0 after every exchange.
    let mut pools: Vec<(Vec<usize>, usize)> = orders
        .iter()
        .zip(repeats)
        .map(|(orders, repeats)| pooled(orders.as_ref(), repeats.as_ref()))
        .filter(|(pool, _)| pool.iter().any(|kind| *kind > 0))
        .collect();
    let mut dice = Dice::new(seed);
    let rounding = 1e-9; // far below the smallest step between two mean flip rates, far above rounding
    let as_large = (0..exchanges)
        .filter(|_| {
            let exchanged: f64 = pools
                .iter_mut()
                .map(|(pool, in_orders)| {
                    dice.shuffle(pool);
                    share_of_differing_pairs(&pool[..*in_orders]) - share_of_differing_pairs(&pool[*in_orders..])
                })
                .sum();
            exchanged >= observed - rounding
        })
        .count();
    let p_value = (1 + as_large) as f64 / (1 + exchanges) as f64;
    Ok(TestOutcome { statistic: observed / n as f64, p_value, n, method: Method::Relabelling })
}

fn share_of_differing_pairs<T: PartialEq>(answers: &[T]) -> f64 {
    let differing: usize =
        answers.iter().enumerate().map(|(index, answer)| answers[index + 1..].iter().filter(|other| *other != answer).count()).sum();
    differing as f64 / (answers.len() * (answers.len() - 1) / 2) as f64
}

/// All answers of an item as kinds numbered from 0, and how many of them came from orders.
fn pooled<T: PartialEq>(orders: &[T], repeats: &[T]) -> (Vec<usize>, usize) {
    let mut kinds: Vec<&T> = Vec::new();
    let mut kind_of = |answer| {
        kinds.iter().position(|kind| *kind == answer).unwrap_or_else(|| {
            kinds.push(answer);
            kinds.len() - 1
        })
    };
    (orders.iter().chain(repeats).map(&mut kind_of).collect(), orders.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flip_rate_counts_unordered_pairs() {
        for (answers, expected) in
            [("aa", 0.0), ("ab", 1.0), ("aab", 2.0 / 3.0), ("abcd", 1.0), ("aaaaab", 1.0 / 3.0), ("aaabbb", 9.0 / 15.0)]
        {
            let found = flip_rate(answers.as_bytes()).expect("two answers");
            assert!((found - expected).abs() < 1e-12, "{answers}: {found}, wanted {expected}");
        }
        assert!(matches!(flip_rate(&["alone"]), Err(Undefined::TooFew { wanted: 2, found: 1, .. })));
    }

    #[test]
    fn the_noise_floor_is_subtracted_item_by_item() {
        let excess = excess_flip_rates(&[b"aab", b"abc", b"aaa"], &[b"aaa", b"aab", b"abc"]).expect("answers exist");
        for (found, wanted) in excess.iter().zip([2.0 / 3.0, 1.0 / 3.0, -1.0]) {
            assert!((found - wanted).abs() < 1e-12, "{excess:?}");
        }
    }

    #[test]
    fn without_any_flip_the_test_says_nothing() {
        let outcome = excess_flip_test(&vec!["aaaaaa".as_bytes(); 50], &vec!["aaa".as_bytes(); 50], 99, 1).expect("answers exist");
        assert_eq!((outcome.statistic, outcome.p_value), (0.0, 1.0));
    }

    #[test]
    fn reordering_that_flips_where_repeating_does_not_is_found() {
        let orders = vec!["aabbab".as_bytes(); 12];
        let repeats = vec!["aaa".as_bytes(); 12];
        let outcome = excess_flip_test(&orders, &repeats, 999, 1).expect("answers exist");
        assert!(outcome.p_value <= 0.002, "{outcome}");
    }
}
