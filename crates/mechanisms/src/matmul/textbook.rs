//! The definition of a linear layer: three loops.
#![forbid(unsafe_code)]

use glassbox_tensor::Matrix;
use ndarray::NdFloat;

use super::Panels;

/// Maps every token through a linear layer, summing in the number type `F`: `f64` is the truth, `f32` shows what precision costs.
///
/// ```text
/// out[t, o] = b[o] + Σ_i W[o, i] x[t, i]
/// ```
///
/// - `weight`  `[out, in]`
/// - `x`       `[token, in]`
/// - `bias`    `[out]`
/// - `out`     `[token, out]`, overwritten
pub fn project<F: NdFloat>(weight: &Matrix, x: &[f32], bias: Option<&[f32]>, out: &mut [F]) {
    let (outputs, inputs) = (weight.rows(), weight.columns());
    let mut row = vec![0.0_f32; inputs];
    for o in 0..outputs {
        weight.decode_row(o, &mut row);
        for (t, token) in x.chunks_exact(inputs).enumerate() {
            let mut sum = F::zero();
            for (w, x) in row.iter().zip(token) {
                sum += exact::<F>(*w) * exact(*x);
            }
            out[t * outputs + o] = bias.map_or(sum, |b| sum + exact(b[o]));
        }
    }
}

/// As [`project`], for rows in panels: every token is rounded first, as [`Panels::rounded`] says, and nothing else changes.
pub fn project_rounded<F: NdFloat>(weight: &Panels, x: &[f32], bias: Option<&[f32]>, out: &mut [F]) {
    let (outputs, inputs) = (weight.rows(), weight.columns());
    let x = weight.rounded(x);
    let mut sums = vec![F::zero(); x.len() / inputs];
    for o in 0..outputs {
        project(&weight.row(o), &x, bias.map(|bias| &bias[o..=o]), &mut sums);
        sums.iter().enumerate().for_each(|(t, sum)| out[t * outputs + o] = *sum);
    }
}

/// `x` in the number type `F`; nothing is lost.
pub(crate) fn exact<F: NdFloat>(x: f32) -> F {
    F::from(x).expect("f32 and f64 hold every f32")
}
