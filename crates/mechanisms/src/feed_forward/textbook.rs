//! The definitions of the activations and of both feed-forward layers.
#![forbid(unsafe_code)]

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use glassbox_tensor::Matrix;
use ndarray::NdFloat;

use super::Activation;
use crate::matmul::textbook::project;

/// The activation of one number, in the number type `F`.
///
/// Source: Hendrycks and Gimpel 2016, Gaussian Error Linear Units (arXiv:1606.08415), for both GELUs;
/// Elfwing et al. 2017 (arXiv:1702.03118) for SiLU; So et al. 2021, Primer (arXiv:2109.08668) for the squared ReLU;
/// Dauphin et al. 2016 (arXiv:1612.08083) for the sigmoid as a gate.
pub fn activate<F: NdFloat>(activation: Activation, x: F) -> F {
    let number = |value: f64| F::from(value).expect("f32 and f64 hold constants, rounded");
    let (half, one) = (number(0.5), F::one());
    match activation {
        Activation::Relu | Activation::ReluSquared if x <= F::zero() => F::zero(),
        Activation::Relu => x, // a NaN, too: `max` would swallow it
        Activation::ReluSquared => x * x,
        Activation::GeluErf => half * x * (one + erf(x / number(SQRT_2))),
        Activation::GeluTanh => {
            let root_2_over_pi = number(FRAC_2_SQRT_PI / SQRT_2);
            half * x * (one + (root_2_over_pi * (x + number(0.044_715) * x * x * x)).tanh())
        }
        Activation::Silu => x / (one + (-x).exp()),
        Activation::Sigmoid => one / (one + (-x).exp()),
    }
}

/// A plain feed-forward layer: `W_down act(W_up x + b_up) + b_down`. The hidden numbers between the maps are stored as `f32`.
///
/// - `x`     `[token, d_model]`
/// - `up`    `[hidden, d_model]` with bias `[hidden]`
/// - `down`  `[d_model, hidden]` with bias `[d_model]`
///
/// Returns `[token, d_model]`. Source: Vaswani et al. 2017, eq. 2 (arXiv:1706.03762), there with ReLU.
pub fn plain<F: NdFloat>(activation: Activation, x: &[f32], up: (&Matrix, Option<&[f32]>), down: (&Matrix, Option<&[f32]>)) -> Vec<F> {
    let hidden: Vec<F> = mapped(x, up);
    let hidden: Vec<f32> = hidden.iter().map(|h| stored(activate(activation, *h))).collect();
    mapped(&hidden, down)
}

/// A gated feed-forward layer: `W_down (act(W_gate x) ⊙ W_up x)`. The hidden numbers between the maps are stored as `f32`.
///
/// - `x`           `[token, d_model]`
/// - `gate`, `up`  `[hidden, d_model]`
/// - `down`        `[d_model, hidden]`
///
/// Returns `[token, d_model]`. Source: Shazeer 2020, GLU Variants Improve Transformer (arXiv:2002.05202).
pub fn gated<F: NdFloat>(activation: Activation, x: &[f32], gate: &Matrix, up: &Matrix, down: &Matrix) -> Vec<F> {
    let (gates, ups): (Vec<F>, Vec<F>) = (mapped(x, (gate, None)), mapped(x, (up, None)));
    let hidden: Vec<f32> = gates.iter().zip(&ups).map(|(g, u)| stored(activate(activation, *g) * *u)).collect();
    mapped(&hidden, (down, None))
}

fn mapped<F: NdFloat>(x: &[f32], (weight, bias): (&Matrix, Option<&[f32]>)) -> Vec<F> {
    let mut out = vec![F::zero(); x.len() / weight.columns() * weight.rows()];
    project(weight, x, bias, &mut out);
    out
}

fn stored<F: NdFloat>(x: F) -> f32 {
    x.to_f32().expect("every number has a nearest f32")
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

/// `erf(x)`, rounded to the number type.
fn erf<F: NdFloat>(x: F) -> F {
    F::from(exact_erf(x.to_f64().expect("f64 holds every f32"))).expect("erf lies between -1 and 1")
}

/// `erf(x) = 2/√π ∫₀ˣ exp(-t²) dt` by its Maclaurin series for `|x| < 3`, by the continued fraction of its complement beyond.
fn exact_erf(x: f64) -> f64 {
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
