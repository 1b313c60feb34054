//! The everyday activations, on our own `exp`, `tanh` and `erf`.

use super::Activation;
use crate::elementary::simd::vector_twin;
use crate::elementary::{erf, exp, tanh};

vector_twin! {
    /// Every number by its activation.
    pub(super) fn activate_in_place(activation: Activation, x: &mut [f32]) = activate_each
}
vector_twin! {
    /// `up = act(gate) · up`.
    pub(super) fn gate_in_place(activation: Activation, gate: &[f32], up: &mut [f32]) = gate_each
}

// The activation is chosen outside the loop, so that each loop is one formula over eight numbers at a time.

#[inline(always)]
pub(super) fn activate_each(activation: Activation, x: &mut [f32]) {
    match activation {
        Activation::Relu => x.iter_mut().for_each(|x| *x = relu(*x)),
        Activation::ReluSquared => x.iter_mut().for_each(|x| *x = relu_squared(*x)),
        Activation::GeluErf => x.iter_mut().for_each(|x| *x = gelu_erf(*x)),
        Activation::GeluTanh => x.iter_mut().for_each(|x| *x = gelu_tanh(*x)),
        Activation::Silu => x.iter_mut().for_each(|x| *x = silu(*x)),
        Activation::Sigmoid => x.iter_mut().for_each(|x| *x = sigmoid(*x)),
    }
}

#[inline(always)]
pub(super) fn gate_each(activation: Activation, gate: &[f32], up: &mut [f32]) {
    let pairs = gate.iter().zip(up);
    match activation {
        Activation::Relu => pairs.for_each(|(gate, up)| *up *= relu(*gate)),
        Activation::ReluSquared => pairs.for_each(|(gate, up)| *up *= relu_squared(*gate)),
        Activation::GeluErf => pairs.for_each(|(gate, up)| *up *= gelu_erf(*gate)),
        Activation::GeluTanh => pairs.for_each(|(gate, up)| *up *= gelu_tanh(*gate)),
        Activation::Silu => pairs.for_each(|(gate, up)| *up *= silu(*gate)),
        Activation::Sigmoid => pairs.for_each(|(gate, up)| *up *= sigmoid(*gate)),
    }
}

/// `max(x, 0)`; a NaN stays a NaN, where `f32::max` would swallow it.
#[inline(always)]
fn relu(x: f32) -> f32 {
    if x <= 0.0 { 0.0 } else { x }
}

/// `max(x, 0)²`
#[inline(always)]
fn relu_squared(x: f32) -> f32 {
    relu(x) * relu(x)
}

/// `(x/2) (1 + erf(x/√2))`
#[inline(always)]
fn gelu_erf(x: f32) -> f32 {
    (0.5 * x) * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// `(x/2) (1 + tanh(√(2/π) (x + 0.044715 x³)))`
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    let inner = (0.044_715 * x * x).mul_add(x, x);
    (0.5 * x) * (1.0 + tanh(ROOT_2_OVER_PI * inner))
}

/// `x / (1 + exp(-x))`; for `x` far below zero the divisor is infinite and the result -0.
#[inline(always)]
fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `1 / (1 + exp(-x))`; for `x` far below zero the divisor is infinite and the result 0.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}
