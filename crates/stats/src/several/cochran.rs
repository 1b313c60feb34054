//! Cochran's Q: do k conditions of the same items have the same share of right answers?

use crate::distributions::chi_squared_tail;
use crate::estimate::{Method, TestOutcome};
use crate::undefined::{Undefined, require_at_least, require_equal_lengths};

/// Tests whether k conditions are equally often right on the same items.
///
/// With column totals `c_j` over `k` conditions, row totals `r_i` over items and grand total `N`:
///
/// ```text
/// Q = (k - 1) (k sum_j c_j^2 - N^2) / (k N - sum_i r_i^2),   p = P(chi-squared with k - 1 degrees > Q)
/// ```
///
/// - `rows`  `[item][condition]`, true where right; every item under every condition
///
/// The outcome's `statistic` is Q, without unit. With two conditions it is McNemar's chi-squared. Items that are right or wrong under every
/// condition do not count; if all are such, Q = 0 and p = 1. The chi-squared tail needs about 24 answers among the others (items times
/// conditions). It asks about any difference: with a planned pattern, [`super::planned_contrast`] finds it with fewer items.
///
/// Source: Cochran 1950, The comparison of percentages in matched samples, Biometrika 37(3/4).
pub fn cochran_q<R: AsRef<[bool]>>(rows: &[R]) -> Result<TestOutcome, Undefined> {
    const QUANTITY: &str = "Cochran's Q";
    require_at_least(QUANTITY, "items", 1, rows.len())?;
    let k = rows[0].as_ref().len();
    require_at_least(QUANTITY, "conditions", 2, k)?;
    let mut columns = vec![0.0; k];
    let mut row_squares = 0.0;
    for row in rows {
        let row = row.as_ref();
        require_equal_lengths(QUANTITY, ("first item", k), ("another item", row.len()))?;
        let mut right = 0.0;
        for (column, answer) in columns.iter_mut().zip(row) {
            let point = f64::from(u8::from(*answer));
            *column += point;
            right += point;
        }
        row_squares += right * right;
    }
    let (conditions, total) = (k as f64, columns.iter().sum::<f64>());
    let column_squares: f64 = columns.iter().map(|column| column * column).sum();
    let spread_within_items = conditions * total - row_squares;
    let numerator = (conditions - 1.0) * (conditions * column_squares - total * total);
    let q = if spread_within_items == 0.0 { 0.0 } else { numerator / spread_within_items };
    Ok(TestOutcome { statistic: q, p_value: chi_squared_tail(q, conditions - 1.0), n: rows.len(), method: Method::CochranQ })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_two_conditions_it_is_mcnemars_chi_squared() {
        let mut rows = vec![[true, true]; 30];
        rows.extend([[true, false]; 4]);
        rows.extend([[false, true]; 12]);
        let q = cochran_q(&rows).expect("items exist").statistic;
        assert!((q - 64.0 / 16.0).abs() < 1e-12, "(4 - 12)^2 / (4 + 12), found {q}");
    }

    #[test]
    fn items_that_no_condition_changes_do_not_count() {
        let mixed = vec![[true, false, true], [false, true, true], [true, false, false], [false, false, true]];
        let mut padded = mixed.clone();
        padded.extend([[true; 3]; 5]);
        padded.extend([[false; 3]; 7]);
        let (few, many) = (cochran_q(&mixed).expect("items exist"), cochran_q(&padded).expect("items exist"));
        assert!((few.statistic - many.statistic).abs() < 1e-12, "{few:?} against {many:?}");
        assert_eq!(cochran_q(&[[true; 3], [false; 3]]).expect("items exist").p_value, 1.0);
    }

    #[test]
    fn a_missing_cell_is_refused() {
        let ragged = [vec![true, false], vec![true]];
        assert!(matches!(cochran_q(&ragged), Err(Undefined::LengthsDiffer { left: 2, right: 1, .. })));
        assert!(matches!(cochran_q::<[bool; 3]>(&[]), Err(Undefined::TooFew { .. })));
    }
}
