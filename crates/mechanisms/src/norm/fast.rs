//! The everyday norms: sums in the eight lanes of contract 1, exact square root and division.

use crate::matmul::{dot, fast::sum_lanes};

/// `y = (x · (1 / sqrt(dot(x, x) / d + eps))) · gain`, row by row.
pub(super) fn rms_norm(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let scale = 1.0 / (dot(x, x) / d as f32 + eps).sqrt();
        for i in 0..d {
            y[i] = (x[i] * scale) * gain[i];
        }
    }
}

/// `y = ((x − mean) · (1 / sqrt(Σ (x − mean)² / d + eps))) · gain + bias` with the last step fused, row by row.
pub(super) fn layer_norm(x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    let d = gain.len();
    for (x, y) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
        let mean = sum_in_lanes(x, |x| x) / d as f32;
        for i in 0..d {
            y[i] = x[i] - mean;
        }
        let scale = 1.0 / (dot(y, y) / d as f32 + eps).sqrt();
        match bias {
            Some(bias) => (0..d).for_each(|i| y[i] = (y[i] * scale).mul_add(gain[i], bias[i])),
            None => (0..d).for_each(|i| y[i] = (y[i] * scale) * gain[i]),
        }
    }
}

fn sum_in_lanes(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (k, x) in x.iter().enumerate() {
        lanes[k % 8] += f(*x);
    }
    sum_lanes(lanes)
}
