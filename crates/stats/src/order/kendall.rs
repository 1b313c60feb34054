//! Kendall's rank correlation, of one sample and within items.

use std::collections::HashMap;
use std::hash::Hash;

use crate::estimate::{Alternative, Method, TestOutcome};
use crate::paired::Extremes;
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite};

/// Computes Kendall's tau-b, the rank correlation with ties accounted for.
///
/// Over all pairs of observations, with `S` = concordant minus discordant pairs:
///
/// ```text
/// tau_b = S / sqrt(pairs not tied in x * pairs not tied in y)
/// ```
///
/// - `x`, `y`  `[observation]`, any ordered quantity, for example position and score
///
/// From -1 to 1. Undefined if x or y is constant. Quadratic time: for observations within items, not for millions of rows.
///
/// Source: Kendall 1945, The treatment of ties in ranking problems, Biometrika 33(3).
pub fn kendall_tau_b(x: &[f64], y: &[f64]) -> Result<f64, Undefined> {
    kendall_of(&[Item { x: x.to_vec(), y: y.to_vec() }.checked()?])
}

/// Tests for a monotone trend within items: only observations of the same item are compared, and y is shuffled within items.
///
/// With `S_i` and the pair counts of item i:
///
/// ```text
/// tau_b = sum_i S_i / sqrt(sum_i pairs of i not tied in x * sum_i pairs of i not tied in y)
/// p     = (1 + shuffles at least as extreme) / (1 + shuffles)
/// ```
///
/// - `x`, `y`       `[trial]`, for example the position of the evidence and the score
/// - `items`        `[trial]`, the item that the trial belongs to
/// - `alternative`  which direction counts
/// - `shuffles`     random orders of y within items; 9,999 is customary
/// - `seed`         of the shuffles
///
/// The outcome's `statistic` is tau-b. That some items are harder than others neither creates nor hides a trend. If x and y never both vary
/// within an item there is no trend to speak of and the correlation is undefined.
///
/// Source: stratified Kendall S as in Hirsch, Slack 1984, Water Resources Research 20(6), with exact permutation instead of a normal tail.
pub fn kendall_within_items<K: Eq + Hash>(
    x: &[f64],
    y: &[f64],
    items: &[K],
    alternative: Alternative,
    shuffles: usize,
    seed: u64,
) -> Result<TestOutcome, Undefined> {
    require_equal_lengths(QUANTITY, ("x", x.len()), ("items", items.len()))?;
    require_at_least(QUANTITY, "shuffles", 1, shuffles)?;
    let mut groups = grouped(x, y, items)?;
    let statistic = kendall_of(&groups)?;
    let observed: f64 = groups.iter().map(Item::score).sum();
    let extremes = Extremes::of(observed, &[], alternative);
    let mut dice = Dice::new(seed);
    let as_extreme = (0..shuffles)
        .filter(|_| {
            let score = groups
                .iter_mut()
                .map(|item| {
                    dice.shuffle(&mut item.y);
                    item.score()
                })
                .sum();
            extremes.include(score)
        })
        .count();
    let p_value = (1 + as_extreme) as f64 / (1 + shuffles) as f64;
    Ok(TestOutcome { statistic, p_value, n: groups.len(), method: Method::Relabelling })
}

const QUANTITY: &str = "Kendall's tau-b";

/// Observations that may be compared with each other.
struct Item {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Item {
    fn checked(self) -> Result<Self, Undefined> {
        require_equal_lengths(QUANTITY, ("x", self.x.len()), ("y", self.y.len()))?;
        require_finite(QUANTITY, &self.x)?;
        require_finite(QUANTITY, &self.y)?;
        Ok(self)
    }

    /// Concordant minus discordant pairs; a whole number.
    fn score(&self) -> f64 {
        pairs(self.x.len()).map(|(i, j)| direction(self.x[i], self.x[j]) * direction(self.y[i], self.y[j])).sum()
    }
}

fn kendall_of(items: &[Item]) -> Result<f64, Undefined> {
    let untied = |values: fn(&Item) -> &Vec<f64>| -> f64 {
        items.iter().map(values).map(|values| pairs(values.len()).filter(|(i, j)| values[*i] != values[*j]).count() as f64).sum()
    };
    let (untied_x, untied_y) = (untied(|item| &item.x), untied(|item| &item.y));
    require_at_least(QUANTITY, "observations", 2, items.iter().map(|item| item.x.len()).sum())?;
    for (argument, untied) in [("x", untied_x), ("y", untied_y)] {
        if untied == 0.0 {
            return Err(Undefined::Constant { quantity: QUANTITY, argument });
        }
    }
    Ok(items.iter().map(Item::score).sum::<f64>() / (untied_x * untied_y).sqrt())
}

fn grouped<K: Eq + Hash>(x: &[f64], y: &[f64], items: &[K]) -> Result<Vec<Item>, Undefined> {
    require_equal_lengths(QUANTITY, ("x", x.len()), ("y", y.len()))?;
    let mut place_of = HashMap::new();
    let mut groups: Vec<Item> = Vec::new();
    for ((&x, &y), item) in x.iter().zip(y).zip(items) {
        let place = *place_of.entry(item).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Item { x: Vec::new(), y: Vec::new() });
        }
        groups[place].x.push(x);
        groups[place].y.push(y);
    }
    groups.into_iter().map(Item::checked).collect()
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

/// -1, 0 or 1 as `to` lies below, at or above `from`.
fn direction(from: f64, to: f64) -> f64 {
    f64::from(i8::from(to > from) - i8::from(to < from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_one_reversal_minus_one_and_a_swap_costs_two_pairs() {
        let ranks = [1.0, 2.0, 3.0, 4.0];
        for (order, expected) in [([1.0, 2.0, 3.0, 4.0], 1.0), ([4.0, 3.0, 2.0, 1.0], -1.0), ([2.0, 1.0, 3.0, 4.0], 4.0 / 6.0)] {
            let tau = kendall_tau_b(&ranks, &order).expect("ranks vary");
            assert!((tau - expected).abs() < 1e-12, "{order:?}: {tau}, wanted {expected}");
        }
    }

    #[test]
    fn difficulty_of_items_creates_no_trend() {
        // Items at higher positions are easier, but no item changes with its own position.
        let (mut x, mut y, mut items) = (Vec::new(), Vec::new(), Vec::new());
        for item in 0..10 {
            for position in 0..5 {
                x.push(f64::from(item + position));
                y.push(f64::from(item) + if (item + position) % 2 == 0 { 0.1 } else { 0.0 });
                items.push(item);
            }
        }
        let pooled = kendall_tau_b(&x, &y).expect("values vary");
        let within = kendall_within_items(&x, &y, &items, Alternative::TwoSided, 999, 1).expect("values vary within items");
        assert!(pooled > 0.5 && within.p_value > 0.2, "pooled {pooled}, within {within}");
    }

    #[test]
    fn a_planted_trend_is_found_in_its_direction_only() {
        let items: Vec<usize> = (0..60).map(|trial| trial / 4).collect();
        let x: Vec<f64> = (0..60).map(|trial| f64::from(trial % 4)).collect();
        let y: Vec<f64> = x.iter().enumerate().map(|(trial, x)| x + (trial / 4) as f64 * 7.0).collect();
        let p = |alternative| kendall_within_items(&x, &y, &items, alternative, 999, 1).expect("values vary").p_value;
        assert_eq!(p(Alternative::Greater), 0.001);
        assert_eq!(p(Alternative::Less), 1.0);
    }

    #[test]
    fn constant_values_have_no_correlation() {
        let (varying, constant) = ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]);
        assert!(matches!(kendall_tau_b(&constant, &varying), Err(Undefined::Constant { argument: "x", .. })));
        assert!(matches!(kendall_tau_b(&varying, &constant), Err(Undefined::Constant { argument: "y", .. })));
        assert!(matches!(kendall_tau_b(&[1.0], &[1.0]), Err(Undefined::TooFew { .. })));
        assert!(matches!(kendall_tau_b(&[1.0, 2.0], &[1.0]), Err(Undefined::LengthsDiffer { .. })));
    }
}
