//! The everyday activations, on our own `exp`, `tanh` and `erf`.

use super::Activation;
use crate::elementary::{erf, exp, tanh};

/// The activation of one number; every step is one rounding of one operation, so the bits are the same on every machine.
#[inline(always)]
fn activate(activation: Activation, x: f32) -> f32 {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    match activation {
        Activation::Relu => {
            if x > 0.0 || x.is_nan() {
                x
            } else {
                0.0
            }
        }
        Activation::GeluErf => (0.5 * x) * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            let cubed = (0.044_715 * x * x).mul_add(x, x);
            (0.5 * x) * (1.0 + tanh(ROOT_2_OVER_PI * cubed))
        }
        Activation::Silu => x / (1.0 + exp(-x)),
    }
}

pub(super) fn activate_in_place(activation: Activation, x: &mut [f32]) {
    for x in x {
        *x = activate(activation, *x);
    }
}

pub(super) fn gate_in_place(activation: Activation, gate: &[f32], up: &mut [f32]) {
    for (gate, up) in gate.iter().zip(up) {
        *up *= activate(activation, *gate);
    }
}
