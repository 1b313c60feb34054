//! The definitions of the activations and of both feed-forward layers.
#![forbid(unsafe_code)]

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use glassbox_tensor::Matrix;

use super::Activation;
use crate::matmul::textbook::project;

/// The activation of one number.
///
/// Source: Hendrycks and Gimpel 2016, Gaussian Error Linear Units (arXiv:1606.08415), for both GELUs;
/// Elfwing et al. 2017 (arXiv:1702.03118) for SiLU.
#[must_use]
pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Relu => x.max(0.0),
        Activation::GeluErf => x * 0.5 * (1.0 + erf(x / SQRT_2)),
        Activation::GeluTanh => x * 0.5 * (1.0 + (SQRT_2 * FRAC_2_SQRT_PI * 0.5 * (x + 0.044_715 * x * x * x)).tanh()),
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

/// A plain feed-forward layer: `W_down act(W_up x + b_up) + b_down`.
///
/// - `x`       [token, d_model]
/// - `up`      [hidden, d_model] with bias [hidden]
/// - `down`    [d_model, hidden] with bias [d_model]
///
/// Returns [token, d_model]. Source: Vaswani et al. 2017, eq. 2 (arXiv:1706.03762), there with ReLU.
#[must_use]
pub fn plain(activation: Activation, x: &[f32], up: (&Matrix, Option<&[f32]>), down: (&Matrix, Option<&[f32]>)) -> Vec<f64> {
    let tokens = x.len() / up.0.columns();
    let mut hidden = vec![0.0_f64; tokens * up.0.rows()];
    project(up.0, x, up.1, &mut hidden);
    let hidden: Vec<f32> = hidden.iter().map(|h| activate(activation, *h) as f32).collect();
    let mut out = vec![0.0; tokens * down.0.rows()];
    project(down.0, &hidden, down.1, &mut out);
    out
}

/// A gated feed-forward layer: `W_down (act(W_gate x) ⊙ W_up x)`.
///
/// - `x`           [token, d_model]
/// - `gate`, `up`  [hidden, d_model]
/// - `down`        [d_model, hidden]
///
/// Returns [token, d_model]. Source: Shazeer 2020, GLU Variants Improve Transformer (arXiv:2002.05202).
#[must_use]
pub fn gated(activation: Activation, x: &[f32], gate: &Matrix, up: &Matrix, down: &Matrix) -> Vec<f64> {
    let tokens = x.len() / up.columns();
    let mut gates = vec![0.0_f64; tokens * gate.rows()];
    project(gate, x, None, &mut gates);
    let mut ups = vec![0.0_f64; tokens * up.rows()];
    project(up, x, None, &mut ups);
    let hidden: Vec<f32> = gates.iter().zip(&ups).map(|(g, u)| (activate(activation, *g) * u) as f32).collect();
    let mut out = vec![0.0; tokens * down.rows()];
    project(down, &hidden, None, &mut out);
    out
}

/// Number of weights of a plain layer without biases: up and down.
#[must_use]
pub const fn plain_parameters(d_model: usize, hidden: usize) -> usize {
    2 * d_model * hidden
}

/// Number of weights of a gated layer without biases: gate, up and down.
#[must_use]
pub const fn gated_parameters(d_model: usize, hidden: usize) -> usize {
    3 * d_model * hidden
}

/// `erf(x) = 2/√π ∫₀ˣ exp(-t²) dt` by its Maclaurin series for `|x| < 3`, by the continued fraction of its complement beyond.
fn erf(x: f64) -> f64 {
    let t = x.abs();
    if t.is_nan() || t > 6.0 {
        return if t.is_nan() { t } else { 1.0_f64.copysign(x) };
    }
    let value = if t < 3.0 {
        let (mut power, mut sum) = (t, t); // (-1)^n t^(2n+1) / n!
        for n in 1..100 {
            power *= -t * t / f64::from(n);
            sum += power / f64::from(2 * n + 1);
        }
        FRAC_2_SQRT_PI * sum
    } else {
        let fraction = (1..60).rev().fold(0.0, |deeper, n| f64::from(n) * 0.5 / (t + deeper));
        1.0 - (-t * t).exp() * FRAC_2_SQRT_PI * 0.5 / (t + fraction)
    };
    value.copysign(x)
}
