//! The spread of accuracy over conditions, next to the spread that chance alone would give.

use std::fmt;

use crate::estimate::Method;
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite};

/// Best minus worst condition, and what relabelling the conditions gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeBeyondChance {
    /// largest minus smallest mean score over conditions, as observed
    pub range: f64,
    /// mean range when the conditions of each item are relabelled at random
    pub by_chance: f64,
    /// `range - by_chance`; about 0 if the condition does nothing, and below the true range if it does something
    pub excess: f64,
    /// probability, if the condition does nothing, of a range at least this large
    pub p_value: f64,
    /// items
    pub n: usize,
    /// how the p-value was made
    pub method: Method,
}

/// Compares the range of the conditions' mean scores with its permutation null.
///
/// ```text
/// range    = max_j m_j - min_j m_j,   m_j = mean score under condition j
/// excess   = range - mean over relabellings of the range
/// p        = (1 + relabellings with at least this range) / (1 + relabellings)
/// ```
///
/// - `rows`          `[item][condition]`, scores; every item under every condition
/// - `relabellings`  random relabellings within items; 4,999 is customary
/// - `seed`          of the relabellings
///
/// A range over k noisy cells is above 0 even if nothing happens and grows with k, so it is never reported alone. The excess is not an
/// estimate of the true range: with a real effect the bias of the observed range shrinks while the subtraction stays, so the excess is too
/// small (`tests/stats/size.rs` shows it). Report it as evidence beyond chance, and estimate with a planned contrast.
///
/// Source: Pitman 1937 for the permutation; the bias of ranges as in any table of the studentised range.
pub fn range_beyond_chance<R: AsRef<[f64]>>(rows: &[R], relabellings: usize, seed: u64) -> Result<RangeBeyondChance, Undefined> {
    const QUANTITY: &str = "range over conditions";
    require_at_least(QUANTITY, "items", 1, rows.len())?;
    require_at_least(QUANTITY, "relabellings", 1, relabellings)?;
    let k = rows[0].as_ref().len();
    require_at_least(QUANTITY, "conditions", 2, k)?;
    let mut table = Vec::with_capacity(rows.len() * k);
    for row in rows {
        require_equal_lengths(QUANTITY, ("first item", k), ("another item", row.as_ref().len()))?;
        require_finite(QUANTITY, row.as_ref())?;
        table.extend_from_slice(row.as_ref());
    }
    let n = rows.len();
    let range = range_of_sums(&table, k);
    let rounding = 1e-12 * table.iter().map(|score| score.abs()).sum::<f64>();
    let mut dice = Dice::new(seed);
    let (mut total, mut as_large) = (0.0, 0);
    for _ in 0..relabellings {
        for row in table.chunks_mut(k) {
            dice.shuffle(row);
        }
        let relabelled = range_of_sums(&table, k);
        total += relabelled;
        as_large += usize::from(relabelled >= range - rounding);
    }
    let (range, by_chance) = (range / n as f64, total / relabellings as f64 / n as f64);
    let p_value = (1 + as_large) as f64 / (1 + relabellings) as f64;
    Ok(RangeBeyondChance { range, by_chance, excess: range - by_chance, p_value, n, method: Method::Relabelling })
}

/// Largest minus smallest column sum of a table with `k` columns.
fn range_of_sums(table: &[f64], k: usize) -> f64 {
    let mut sums = vec![0.0; k];
    for row in table.chunks(k) {
        for (sum, score) in sums.iter_mut().zip(row) {
            *sum += score;
        }
    }
    sums.iter().copied().fold(f64::NEG_INFINITY, f64::max) - sums.iter().copied().fold(f64::INFINITY, f64::min)
}

impl fmt::Display for RangeBeyondChance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range {:.3}, by chance {:.3}, p = {:.3} ({}, n = {})", self.range, self.by_chance, self.p_value, self.method, self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_conditions_have_no_range_and_no_evidence() {
        let found = range_beyond_chance(&[[1.0; 4], [0.0; 4]], 99, 1).expect("complete rows");
        assert_eq!((found.range, found.by_chance, found.p_value), (0.0, 0.0, 1.0));
    }

    #[test]
    fn a_condition_that_always_fails_is_found() {
        let found = range_beyond_chance(&vec![[1.0, 1.0, 0.0]; 20], 999, 1).expect("complete rows");
        assert_eq!(found.range, 1.0);
        assert_eq!(found.p_value, 0.001);
        assert!(found.excess < 1.0 && found.excess > 0.5, "{found}");
    }

    #[test]
    fn a_missing_cell_is_refused() {
        assert!(range_beyond_chance(&[vec![1.0, 0.0], vec![1.0]], 99, 1).is_err());
        assert!(range_beyond_chance(&[[1.0]], 99, 1).is_err());
        assert!(range_beyond_chance::<[f64; 2]>(&[], 99, 1).is_err());
    }
}
