//! Quantiles and tails of the few distributions the intervals need, on the special functions of `statrs`.

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::factorial::ln_factorial;
use statrs::function::gamma::gamma_ur;

/// P(Z <= z) for a standard normal Z.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// P(Z > z) for a standard normal Z, accurate far out in the tail.
pub(crate) fn normal_tail(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// The z with P(Z <= z) = `probability`; infinite at 0 and 1.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

/// The z that a two-sided interval of this level reaches to each side: 1.96 for 0.95.
pub(crate) fn two_sided_z(level: f64) -> f64 {
    -normal_quantile((1.0 - level) / 2.0)
}

/// The x with I_x(a, b) = `probability`, where I is the regularised incomplete beta function.
///
/// Bisection on `beta_reg`: slower than Newton's method and never wrong, and an interval needs it twice.
pub(crate) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_reg(a, b, x) < probability)
}

/// The t with P(T <= t) = `probability` for Student's T with `degrees` of freedom.
pub(crate) fn student_quantile(probability: f64, degrees: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    // 2 P(T > t) = I_x(degrees/2, 1/2) with x = degrees / (degrees + t^2).
    let x = beta_quantile(2.0 * tail, degrees / 2.0, 0.5);
    let t = (degrees * (1.0 - x) / x).sqrt();
    if probability < 0.5 { -t } else { t }
}

/// P(X > x) for chi-squared with `degrees` of freedom.
pub(crate) fn chi_squared_tail(x: f64, degrees: f64) -> f64 {
    if x <= 0.0 { 1.0 } else { gamma_ur(degrees / 2.0, x / 2.0) }
}

/// P(exactly `k` of `n` succeed) when each does with `probability`.
pub(crate) fn binomial_point(k: usize, n: usize, probability: f64) -> f64 {
    if probability <= 0.0 {
        return if k == 0 { 1.0 } else { 0.0 };
    }
    if probability >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    let (k, n) = (k as u64, n as u64);
    let ln_ways = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    (ln_ways + k as f64 * probability.ln() + (n - k) as f64 * (-probability).ln_1p()).exp()
}

/// The point where `below` turns from true to false, to the last bit or to 1e-24, whichever comes first.
///
/// - `low`, `high`  ends; `below` is taken to be true at `low` and false at `high`
pub(crate) fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        // Near zero the last bit is hundreds of halvings away and means nothing.
        if middle <= low || middle >= high || high - low < 1e-24 {
            return middle;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of arguments and, last, SciPy's value.
    fn check(name: &str, tolerance: f64, compute: impl Fn(&[f64]) -> f64) {
        let all: serde_json::Value = serde_json::from_str(include_str!("../tests/fixtures/reference.json")).expect("the fixture is JSON");
        let rows: Vec<Vec<f64>> = serde_json::from_value(all["distributions"][name].clone()).expect("rows of numbers");
        assert!(rows.len() > 3, "{name} has rows");
        for row in rows {
            let (arguments, wanted) = (&row[..row.len() - 1], row[row.len() - 1]);
            let found = compute(arguments);
            assert!((found - wanted).abs() <= tolerance * wanted.abs().max(1e-6), "{name} at {arguments:?}: found {found}, SciPy {wanted}");
        }
    }

    #[test]
    fn quantiles_and_tails_agree_with_scipy() {
        check("normal_quantile", 1e-10, |row| normal_quantile(row[0]));
        check("normal_tail", 1e-10, |row| normal_tail(row[0]));
        check("beta_quantile", 1e-10, |row| beta_quantile(row[0], row[1], row[2]));
        check("student_quantile", 1e-10, |row| student_quantile(row[0], row[1]));
        check("chi_squared_tail", 1e-10, |row| chi_squared_tail(row[0], row[1]));
        check("binomial_point", 1e-10, |row| binomial_point(row[0] as usize, row[1] as usize, row[2]));
    }

    #[test]
    fn bisection_finds_the_turn_near_zero_and_far_from_it() {
        for turn in [1e-12, 0.3, 7.5] {
            assert!((bisect(0.0, 10.0, |x| x < turn) - turn).abs() <= 1e-15 * turn.max(1.0), "turn {turn}");
        }
    }
}
