//! The feed-forward layer's own parts: activations and the gate. Its linear maps are `matmul`. The room's page is `README.md`.

#[cfg(test)]
mod checks;
mod fast;
pub mod textbook;

use crate::Kernels;

/// The function between the two linear maps of a feed-forward layer.
///
/// The names that model files use are not these: `gelu` there is [`Activation::GeluErf`]; `gelu_new`, `gelu_fast` and
/// `gelu_pytorch_tanh` are [`Activation::GeluTanh`]; `swish` is [`Activation::Silu`]; `relu2` is [`Activation::ReluSquared`].
///
/// On a gate they have names of their own: GLU (sigmoid), ReGLU, `GeGLU`, `SwiGLU` (Shazeer 2020, arXiv:2002.05202).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `max(x, 0)`
    Relu,
    /// `max(x, 0)²`
    ReluSquared,
    /// `x Φ(x) = x/2 (1 + erf(x/√2))`, the definition of GELU
    GeluErf,
    /// `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`, an approximation of GELU, up to 4.8e-4 away from it
    GeluTanh,
    /// `x / (1 + exp(-x))`
    Silu,
    /// `1 / (1 + exp(-x))`, the gate of the first gated layers
    Sigmoid,
}

impl Activation {
    /// Every activation, in the order of the enum.
    pub const ALL: [Self; 6] = [Self::Relu, Self::ReluSquared, Self::GeluErf, Self::GeluTanh, Self::Silu, Self::Sigmoid];
}

/// Replaces every number by its activation.
///
/// - `x`  `[any]`, changed in place
pub fn activate_in_place(kernels: Kernels, activation: Activation, x: &mut [f32]) {
    match kernels {
        Kernels::Textbook => x.iter_mut().for_each(|x| *x = textbook::activate(activation, f64::from(*x)) as f32),
        Kernels::Fast => fast::activate_in_place(activation, x),
        Kernels::Portable => fast::activate_each(activation, x),
    }
}

/// The gate of a gated feed-forward layer: `up = act(gate) · up`, number by number.
///
/// - `gate`  `[any]`, the gate projection
/// - `up`    `[the same]`, the up projection; overwritten
///
/// # Panics
///
/// Where the two differ in length.
pub fn gate_in_place(kernels: Kernels, activation: Activation, gate: &[f32], up: &mut [f32]) {
    assert_eq!(gate.len(), up.len(), "a gate has one number for each of the numbers it gates");
    match kernels {
        Kernels::Textbook => {
            for (gate, up) in gate.iter().zip(up) {
                *up = (textbook::activate(activation, f64::from(*gate)) * f64::from(*up)) as f32;
            }
        }
        Kernels::Fast => fast::gate_in_place(activation, gate, up),
        Kernels::Portable => fast::gate_each(activation, gate, up),
    }
}
