//! The everyday norms: sums in the eight lanes of contract 1, exact square root and division.

use crate::elementary::simd::vector_twin;
use crate::matmul::fast::{dot, sum_lanes};

vector_twin! {
    /// `y = (x · (1 / sqrt(dot(x, x) / d + eps))) · gain`, row by row.
    pub(super) fn rms_norm(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) = rms_norm_rows
}
vector_twin! {
    /// `y = ((x − mean) · (1 / sqrt(dot(x − mean, x − mean) / d + eps))) · gain + bias` with the last step fused, row by row.
    pub(super) fn layer_norm(x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [f32]) = layer_norm_rows
}

#[inline(always)]
pub(super) fn rms_norm_rows(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let scale = 1.0 / (dot(x, x) / d as f32 + eps).sqrt();
        for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
            *y = (x * scale) * gain;
        }
    }
}

#[inline(always)]
pub(super) fn layer_norm_rows(x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let mean = sum(x) / d as f32;
        for (y, x) in y.iter_mut().zip(x) {
            *y = x - mean;
        }
        let scale = 1.0 / (dot(y, y) / d as f32 + eps).sqrt();
        match bias {
            Some(bias) => {
                for ((y, gain), bias) in y.iter_mut().zip(gain).zip(bias) {
                    *y = (*y * scale).mul_add(*gain, *bias);
                }
            }
            None => {
                for (y, gain) in y.iter_mut().zip(gain) {
                    *y = (*y * scale) * gain;
                }
            }
        }
    }
}

/// The sum in eight lanes over the index, as the dot product with ones.
#[inline(always)]
fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let (x, rest) = x.as_chunks::<8>();
    for x in x {
        for l in 0..8 {
            lanes[l] += x[l];
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x;
    }
    sum_lanes(lanes)
}
