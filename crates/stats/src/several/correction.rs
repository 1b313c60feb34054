//! Corrections for asking many questions of one run.

use crate::undefined::{Undefined, require_finite, require_probability};

/// Adjusts p-values so that rejecting those at most `alpha` rejects any true "nothing happens" with probability at most `alpha`.
///
/// With the p-values in rising order `p_(1) <= ... <= p_(m)`:
///
/// ```text
/// adjusted_(i) = max_{j <= i} min(1, (m - j + 1) p_(j))
/// ```
///
/// - `p_values`  `[test]`, in any order; the result keeps it
///
/// For the gates of a suite, whatever their dependence.
///
/// Source: Holm 1979, Scandinavian Journal of Statistics 6(2).
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, Undefined> {
    let order = rising(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &test) in order.iter().enumerate() {
        largest = largest.max((p_values.len() - rank) as f64 * p_values[test]).min(1.0);
        adjusted[test] = largest;
    }
    Ok(adjusted)
}

/// Adjusts p-values so that among those at most `q` the expected share of false discoveries is at most `q`.
///
/// With the p-values in rising order `p_(1) <= ... <= p_(m)`:
///
/// ```text
/// adjusted_(i) = min_{j >= i} min(1, m p_(j) / j)
/// ```
///
/// - `p_values`  `[test]`, in any order; the result keeps it
///
/// For exploring slices, never for gates. Holds for independent and positively dependent tests.
///
/// Source: Benjamini, Hochberg 1995, JRSS B 57(1).
pub fn benjamini_hochberg(p_values: &[f64]) -> Result<Vec<f64>, Undefined> {
    let order = rising(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (rank, &test) in order.iter().enumerate().rev() {
        smallest = smallest.min(p_values.len() as f64 * p_values[test] / (rank + 1) as f64);
        adjusted[test] = smallest;
    }
    Ok(adjusted)
}

/// The tests in rising order of their p-values.
fn rising(p_values: &[f64]) -> Result<Vec<usize>, Undefined> {
    require_finite("correction for many tests", p_values)?;
    for &p_value in p_values {
        require_probability("correction for many tests", "p_values", p_value)?;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_values_by_hand() {
        let p_values = [0.04, 0.01, 0.03];
        let (holm, discovery) = (holm(&p_values).expect("probabilities"), benjamini_hochberg(&p_values).expect("probabilities"));
        for (found, wanted) in holm.iter().zip([0.06, 0.03, 0.06]) {
            assert!((found - wanted).abs() < 1e-12, "Holm {holm:?}");
        }
        for (found, wanted) in discovery.iter().zip([0.04, 0.03, 0.04]) {
            assert!((found - wanted).abs() < 1e-12, "Benjamini-Hochberg {discovery:?}");
        }
    }

    #[test]
    fn no_tests_need_no_correction_and_one_test_keeps_its_value() {
        for correct in [holm, benjamini_hochberg] {
            assert_eq!(correct(&[]), Ok(vec![]));
            assert_eq!(correct(&[0.03]), Ok(vec![0.03]));
            assert!(correct(&[0.1, f64::NAN]).is_err());
            assert!(correct(&[1.5]).is_err());
        }
    }
}
