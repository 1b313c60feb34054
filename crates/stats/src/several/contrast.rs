//! A planned comparison among k conditions: one number per item, fixed before the data are seen.

use std::ops::RangeInclusive;

use crate::bootstrap::Resampling;
use crate::bounded::bounded_mean;
use crate::estimate::{Alternative, Estimate, TestOutcome};
use crate::paired::sign_flip;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite};

/// A planned contrast: how large, and whether it could be chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// mean contrast over items, for a gate
    pub estimate: Estimate,
    /// two-sided sign-flip test of "the mean contrast is 0"
    pub test: TestOutcome,
}

/// Estimates and tests a contrast `sum_j w_j y_j` over k conditions of each item.
///
/// - `rows`        `[item][condition]`, scores; every item under every condition, repeats averaged
/// - `weights`     `[condition]`, summing to 0 so that equal conditions give 0, for example [`ends_against_middle`]
/// - `scores`      where one score can lie, for example `0.0..=1.0`
/// - `resampling`  draws for the interval and flips for the test, level and seed
///
/// The interval is [`crate::bounded::bounded_mean`]'s, the test [`crate::paired::sign_flip`]'s.
///
/// Source: contrasts as in Maxwell, Delaney 2004, Designing Experiments and Analyzing Data, chapter 12.
pub fn planned_contrast<R: AsRef<[f64]>>(
    rows: &[R],
    weights: &[f64],
    scores: RangeInclusive<f64>,
    resampling: Resampling,
) -> Result<Contrast, Undefined> {
    let contrasts = contrast_of_items(rows, weights)?;
    let estimate = bounded_mean(&contrasts, contrast_range(weights, scores), resampling)?;
    let test = sign_flip(&contrasts, Alternative::TwoSided, resampling.resamples, resampling.seed)?;
    Ok(Contrast { estimate, test })
}

/// Computes each item's contrast `sum_j w_j y_j`.
///
/// - `rows`     `[item][condition]`, scores
/// - `weights`  `[condition]`, summing to 0
pub fn contrast_of_items<R: AsRef<[f64]>>(rows: &[R], weights: &[f64]) -> Result<Vec<f64>, Undefined> {
    const QUANTITY: &str = "planned contrast";
    require_at_least(QUANTITY, "conditions", 2, weights.len())?;
    require_finite(QUANTITY, weights)?;
    let sum: f64 = weights.iter().sum();
    let size: f64 = weights.iter().map(|weight| weight.abs()).sum();
    if size == 0.0 || sum.abs() > 1e-9 * size {
        return Err(Undefined::OutOfRange { quantity: QUANTITY, argument: "weights", wanted: "not all 0 and with sum 0", found: sum });
    }
    let contrast = |row: &R| {
        let row = row.as_ref();
        require_equal_lengths(QUANTITY, ("weights", weights.len()), ("scores of an item", row.len()))?;
        require_finite(QUANTITY, row)?;
        Ok(row.iter().zip(weights).map(|(score, weight)| score * weight).sum())
    };
    rows.iter().map(contrast).collect()
}

/// The range of a contrast whose scores lie in a range: weights above 0 at one end, weights below 0 at the other.
///
/// - `weights`  `[condition]`
/// - `scores`   where one score can lie
pub fn contrast_range(weights: &[f64], scores: RangeInclusive<f64>) -> RangeInclusive<f64> {
    let extreme = |of_positive: f64, of_negative: f64| -> f64 {
        weights.iter().map(|weight| weight * if *weight > 0.0 { of_positive } else { of_negative }).sum()
    };
    let (low, high) = (extreme(*scores.start(), *scores.end()), extreme(*scores.end(), *scores.start()));
    // A contrast is summed in the order of its row; one unit in the last place outside must not refuse it.
    let rounding = 1e-12 * (low.abs() + high.abs());
    low - rounding..=high + rounding
}

/// Weights of the U-shape contrast: mean of both ends minus mean of the positions between.
///
/// ```text
/// k = 5: [1/2, -1/3, -1/3, -1/3, 1/2]
/// ```
///
/// - `positions`  number of places the evidence can stand, at least 3
///
/// Above zero the middle is worse than the ends ("lost in the middle").
///
/// Source: Liu et al. 2023, Lost in the Middle (arXiv:2307.03172), which shows the shape; the contrast is ours.
pub fn ends_against_middle(positions: usize) -> Result<Vec<f64>, Undefined> {
    require_at_least("U-shape contrast", "positions", 3, positions)?;
    let mut weights = vec![-1.0 / (positions - 2) as f64; positions];
    weights[0] = 0.5;
    weights[positions - 1] = 0.5;
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contrast_of_a_lost_middle_is_the_drop() {
        let weights = ends_against_middle(5).expect("five positions");
        let contrasts = contrast_of_items(&[[1.0, 0.0, 0.0, 0.0, 1.0], [1.0; 5], [0.0; 5], [1.0, 1.0, 1.0, 0.0, 0.0]], &weights);
        let expected = [1.0, 0.0, 0.0, 0.5 - 2.0 / 3.0];
        for (found, wanted) in contrasts.expect("complete rows").iter().zip(expected) {
            assert!((found - wanted).abs() < 1e-12, "{found}, wanted {wanted}");
        }
    }

    #[test]
    fn the_range_holds_every_contrast() {
        let weights = ends_against_middle(5).expect("five positions");
        let range = contrast_range(&weights, 0.0..=1.0);
        assert!((range.start() + 1.0).abs() < 1e-9 && (range.end() - 1.0).abs() < 1e-9, "{range:?}");
        for bits in 0..32u32 {
            let row: Vec<f64> = (0..5).map(|position| f64::from(bits >> position & 1)).collect();
            let contrast = contrast_of_items(&[row], &weights).expect("complete row")[0];
            assert!(range.contains(&contrast), "{bits:05b}: {contrast}");
        }
    }

    #[test]
    fn weights_that_do_not_cancel_are_refused() {
        for weights in [&[1.0, -0.5][..], &[0.0, 0.0], &[f64::NAN, 0.0]] {
            assert!(contrast_of_items(&[[1.0, 0.0]], weights).is_err(), "{weights:?}");
        }
        assert!(contrast_of_items(&[[1.0, 0.0]], &[1.0, 0.0, -1.0]).is_err());
    }
}
