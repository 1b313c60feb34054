//! The definitions of the two norms.
#![forbid(unsafe_code)]

use ndarray::NdFloat;

use crate::matmul::textbook::exact;

/// Divides every row by its root mean square.
///
/// ```text
/// y_i = g_i x_i / sqrt(mean(x²) + eps)
/// ```
///
/// - `x`     `[row, d]`
/// - `gain`  `[d]`, the `g`
/// - `eps`   keeps a row of zeros from dividing by zero
/// - `out`   `[row, d]`, overwritten
///
/// Source: Zhang and Sennrich 2019, Root Mean Square Layer Normalization (arXiv:1910.07467).
pub fn rms_norm<F: NdFloat>(x: &[f32], gain: &[f32], eps: f32, out: &mut [F]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let mut squares = F::zero();
        for x in x {
            squares += exact::<F>(*x) * exact(*x);
        }
        let root = (squares / count(d) + exact(eps)).sqrt();
        for i in 0..d {
            y[i] = exact::<F>(gain[i]) * exact(x[i]) / root;
        }
    }
}

/// Gives every row mean 0 and variance 1, then its gain and bias.
///
/// ```text
/// y_i = g_i (x_i - mean(x)) / sqrt(var(x) + eps) + b_i,   var(x) = mean((x - mean(x))²)
/// ```
///
/// - `x`     `[row, d]`
/// - `gain`  `[d]`, the `g`
/// - `bias`  `[d]`, the `b`; zero where absent
/// - `eps`   keeps a constant row from dividing by zero
/// - `out`   `[row, d]`, overwritten
///
/// Source: Ba, Kiros and Hinton 2016, Layer Normalization (arXiv:1607.06450).
pub fn layer_norm<F: NdFloat>(x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [F]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let mut sum = F::zero();
        for x in x {
            sum += exact::<F>(*x);
        }
        let mean = sum / count(d);
        let mut squares = F::zero();
        for x in x {
            let centred = exact::<F>(*x) - mean;
            squares += centred * centred;
        }
        let deviation = (squares / count(d) + exact(eps)).sqrt();
        for i in 0..d {
            let shift = bias.map_or(F::zero(), |b| exact(b[i]));
            y[i] = exact::<F>(gain[i]) * (exact::<F>(x[i]) - mean) / deviation + shift;
        }
    }
}

fn count<F: NdFloat>(d: usize) -> F {
    F::from(d).expect("f32 and f64 hold every width in use")
}
