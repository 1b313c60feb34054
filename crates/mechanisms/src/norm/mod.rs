//! Normalisation of every token's vector: `RMSNorm` and `LayerNorm`. The room's page is `README.md`.

#[cfg(test)]
mod checks;
mod fast;
pub mod textbook;

use crate::Kernels;

/// Divides every row by its root mean square, then multiplies by `gain`.
///
/// - `x`     `[row, d]`, `d = gain.len()`
/// - `gain`  `[d]`; where a family stores `w` and means `1 + w`, the 1 has been added already
/// - `eps`   added to the mean square, so that a row of zeros stays zero
/// - `out`   `[row, d]`, overwritten
///
/// # Panics
///
/// Where `x` and `out` are no rows of `gain.len()`.
pub fn rms_norm(kernels: Kernels, x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) {
    check_lengths(x, gain, None, out);
    match kernels {
        Kernels::Textbook => rounded(out, |exact| textbook::rms_norm::<f64>(x, gain, eps, exact)),
        Kernels::Fast => fast::rms_norm(x, gain, eps, out),
        Kernels::Portable => fast::rms_norm_rows(x, gain, eps, out),
    }
}

/// Subtracts every row's mean, divides by its standard deviation (over d, not d − 1), then applies `gain` and `bias`.
///
/// - `x`     `[row, d]`, `d = gain.len()`
/// - `gain`  `[d]`
/// - `bias`  `[d]`; without one, zero
/// - `eps`   added to the variance
/// - `out`   `[row, d]`, overwritten
///
/// # Panics
///
/// Where `x`, `bias` and `out` do not fit `gain.len()`.
pub fn layer_norm(kernels: Kernels, x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    check_lengths(x, gain, bias, out);
    match kernels {
        Kernels::Textbook => rounded(out, |exact| textbook::layer_norm::<f64>(x, gain, bias, eps, exact)),
        Kernels::Fast => fast::layer_norm(x, gain, bias, eps, out),
        Kernels::Portable => fast::layer_norm_rows(x, gain, bias, eps, out),
    }
}

fn check_lengths(x: &[f32], gain: &[f32], bias: Option<&[f32]>, out: &[f32]) {
    let d = gain.len();
    assert!(d > 0 && x.len().is_multiple_of(d), "x holds whole rows of {d}, found {} numbers", x.len());
    assert_eq!(x.len(), out.len(), "out is as long as x");
    assert!(bias.is_none_or(|bias| bias.len() == d), "a bias is as long as the gain");
}

fn rounded(out: &mut [f32], definition: impl FnOnce(&mut [f64])) {
    let mut exact = vec![0.0; out.len()];
    definition(&mut exact);
    for (out, exact) in out.iter_mut().zip(exact) {
        *out = exact as f32;
    }
}
