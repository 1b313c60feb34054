use std::fmt::Debug;

/// How far a kernel lay from the truth, and how far it was allowed to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Largest difference between the fast result and the truth.
    pub error: f64,
    /// Largest difference between the textbook in `f32` and the truth: what the precision alone costs.
    pub textbook_error: f64,
    /// 2 × `textbook_error` + 2 ulp of the largest true value.
    pub allowed: f64,
}

/// A fast kernel that errs more than the derived tolerance, or where it should not err at all.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// The three results differ in length.
    #[error("{fast} fast values, {in_f32} textbook values in f32 and {truth} true values cannot be compared")]
    Lengths {
        /// Number of values of the fast kernel.
        fast: usize,
        /// Number of values of the textbook in `f32`.
        in_f32: usize,
        /// Number of values of the textbook in `f64`.
        truth: usize,
    },
    /// A value lies too far off, or is no number where the truth is one.
    #[error(
        "value {index}: wanted {wanted:.9e}, found {found:.9e}; error {error:.3e}, allowed {allowed:.3e} (textbook in f32: {textbook_error:.3e})"
    )]
    TooFar {
        /// Where the largest error is.
        index: usize,
        /// The true value there.
        wanted: f64,
        /// The fast value there.
        found: f32,
        /// Their difference.
        error: f64,
        /// The derived tolerance.
        allowed: f64,
        /// Largest difference between the textbook in `f32` and the truth.
        textbook_error: f64,
    },
}

/// Checks `error(fast, truth) <= 2 * error(textbook in f32, truth) + 2 ulp of the largest true value`.
///
/// - `fast`    what the kernel under test gave
/// - `in_f32`  the textbook's formula evaluated in `f32`
/// - `truth`   the same formula in `f64`
///
/// The factor 2 allows another order of the same operations, the ulps the rounding of an exact result.
/// Where the truth is infinite or NaN, the fast value must be the same infinity, or NaN.
///
/// # Errors
///
/// The worst value with its place, and both errors.
///
/// Source of the rule: the tests of `FlashAttention` (Dao et al. 2022), which compare against the reference at the same precision.
pub fn agree(fast: &[f32], in_f32: &[f32], truth: &[f64]) -> Result<Agreement, Disagreement> {
    if fast.len() != truth.len() || in_f32.len() != truth.len() {
        return Err(Disagreement::Lengths { fast: fast.len(), in_f32: in_f32.len(), truth: truth.len() });
    }
    let textbook_error = in_f32.iter().zip(truth).map(|(x, t)| distance(*x, *t)).filter(|error| error.is_finite()).fold(0.0, f64::max);
    let largest = truth.iter().filter(|t| t.is_finite()).fold(0.0_f64, |largest, t| largest.max(t.abs()));
    let allowed = 2.0 * textbook_error + 2.0 * ulp(largest);
    let (mut index, mut error) = (0, 0.0);
    for (at, (x, t)) in fast.iter().zip(truth).enumerate() {
        let here = distance(*x, *t);
        if here > error {
            (index, error) = (at, here);
        }
    }
    if error > allowed {
        return Err(Disagreement::TooFar { index, wanted: truth[index], found: fast[index], error, allowed, textbook_error });
    }
    Ok(Agreement { error, textbook_error, allowed })
}

/// Runs [`agree`] over a grid of shapes: `run` gives the fast result, the textbook's in `f32`, and the truth.
///
/// # Panics
///
/// At the first shape that disagrees, with the shape and the worst value.
#[track_caller]
pub fn agree_over<S: Debug>(shapes: impl IntoIterator<Item = S>, mut run: impl FnMut(&S) -> (Vec<f32>, Vec<f32>, Vec<f64>)) {
    for shape in shapes {
        let (fast, in_f32, truth) = run(&shape);
        if let Err(error) = agree(&fast, &in_f32, &truth) {
            panic!("{shape:?}: {error}");
        }
    }
}

/// |x − truth|; infinite where one of them is no number and the other is, or where they are different infinities.
fn distance(x: f32, truth: f64) -> f64 {
    let rounded = truth as f32;
    if x == rounded || (x.is_nan() && truth.is_nan()) {
        return if truth.is_finite() { (f64::from(x) - truth).abs() } else { 0.0 };
    }
    let error = (f64::from(x) - truth).abs();
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The gap between `f32` values at magnitude `value`.
fn ulp(value: f64) -> f64 {
    let value = (value as f32).clamp(f32::MIN_POSITIVE, f32::MAX);
    f64::from(value) - f64::from(f32::from_bits(value.to_bits() - 1))
}

#[cfg(test)]
mod tests {
    use super::{Disagreement, agree};

    #[test]
    fn an_error_up_to_twice_the_textbooks_is_allowed() {
        let truth = [1.0, 2.0];
        let agreement = agree(&[1.0 + 2e-6, 2.0], &[1.0, 2.0 + 1e-6], &truth).expect("2e-6 is twice 1e-6, give or take an ulp");
        assert!(agreement.error > agreement.textbook_error);
        assert!(matches!(agree(&[1.0 + 4e-6, 2.0], &[1.0, 2.0 + 1e-6], &truth), Err(Disagreement::TooFar { index: 0, .. })));
    }

    #[test]
    fn a_nan_or_a_wrong_infinity_is_never_close() {
        assert!(agree(&[f32::NAN], &[1.0], &[1.0]).is_err());
        assert!(agree(&[f32::INFINITY], &[1.0], &[f64::NEG_INFINITY]).is_err());
        assert!(agree(&[f32::NEG_INFINITY], &[f32::NEG_INFINITY], &[f64::NEG_INFINITY]).is_ok());
        assert!(agree(&[f32::NAN], &[f32::NAN], &[f64::NAN]).is_ok());
    }

    #[test]
    fn results_of_different_lengths_are_not_compared() {
        assert!(matches!(agree(&[1.0], &[1.0, 2.0], &[1.0]), Err(Disagreement::Lengths { fast: 1, in_f32: 2, truth: 1 })));
    }

    #[test]
    fn an_exact_result_may_be_rounded() {
        assert!(agree(&[0.1], &[0.1], &[0.1]).is_ok());
    }
}
