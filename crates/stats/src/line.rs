//! The slope of a straight line through points, and with logarithms the exponent of a power law.

use crate::distributions::student_quantile;
use crate::estimate::{Estimate, Interval, Method};
use crate::undefined::{Undefined, require_at_least, require_finite, require_level};

/// Estimates the slope of the line `y = a + b x` by least squares, with the t interval of `n - 2` degrees of freedom.
///
/// ```text
/// b = Σ (x - x̄)(y - ȳ) / Σ (x - x̄)²        SE² = Σ (y - a - b x)² / ((n - 2) Σ (x - x̄)²)        b ± t(1 - tail; n - 2) SE
/// ```
///
/// - `points`  `(x, y)`, any units; the slope is in units of `y` per unit of `x`
/// - `level`   nominal coverage of both sides together
///
/// With `(ln n, ln value)` the slope is the exponent `p` of `value ~ n^p`. The interval takes what the line leaves over for noise of one size,
/// independent from point to point. Where the points bend, it says how well a line describes them, not what the slope will be further out.
/// Points that lie on a line but for rounding have an interval of the width that rounding gives them.
///
/// Source: any text on regression; checked against R's `lm` on Anscombe's first data set.
pub fn slope(points: &[(f64, f64)], level: f64) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "slope";
    require_level(QUANTITY, level)?;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    require_finite(QUANTITY, &x)?;
    require_finite(QUANTITY, &y)?;
    require_at_least(QUANTITY, "points", 3, points.len())?;
    if x.iter().all(|other| *other == x[0]) {
        return Err(Undefined::Constant { quantity: QUANTITY, argument: "x" });
    }
    let count = points.len() as f64;
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / count, y.iter().sum::<f64>() / count);
    let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let value = products / squares;
    let left_over: f64 = points.iter().map(|(x, y)| (y - mean_y - value * (x - mean_x)).powi(2)).sum();
    let degrees = count - 2.0;
    let half = student_quantile(f64::midpoint(1.0, level), degrees) * (left_over / degrees / squares).sqrt();
    let interval = Interval { low: value - half, high: value + half, level };
    Ok(Estimate { value, interval, n: points.len(), method: Method::LeastSquaresT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anscombes_first_line_has_the_slope_and_the_interval_of_r() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let found = slope(&points, 0.95).expect("eleven points");
        // summary(lm(y1 ~ x1, anscombe)) and confint: seven digits.
        assert!((found.value - 0.500_090_9).abs() < 5e-8, "{found:?}");
        assert!((found.interval.low - 0.233_370_1).abs() < 5e-7 && (found.interval.high - 0.766_811_7).abs() < 5e-7, "{found:?}");
    }

    #[test]
    fn two_points_one_place_and_what_is_no_number_have_no_slope() {
        let check = |points: &[(f64, f64)], wanted: &str| {
            let error = slope(points, 0.95).expect_err("no slope").to_string();
            assert!(error.contains(wanted), "{error}");
        };
        check(&[(1.0, 1.0), (2.0, 2.0)], "at least 3 points");
        check(&[(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)], "`x` to vary");
        check(&[(1.0, 1.0), (2.0, f64::NEG_INFINITY), (3.0, 1.0)], "finite");
    }
}
