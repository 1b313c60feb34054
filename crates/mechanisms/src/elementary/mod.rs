//! Our own exponential and its kin, so that every machine computes the same bits.
//!
//! A C library's `exp` differs between systems in its last bit, and a vector library's differs again. Contract 1 ("the same bits")
//! therefore needs functions whose every operation is written down: the scalar definitions here use only correctly rounded
//! operations (`+ - * /`, `f32::mul_add`), and `simd.rs` compiles these very definitions once more for AVX2.
//!
//! - one value: [`exp`], [`tanh`], [`erf`] in `f32`; [`sin_cos`], [`exp_f64`], [`ln_f64`], [`pow_f64`] for tables
//! - many values: [`exp_in_place`], [`tanh_in_place`], [`erf_in_place`]: the same bits, eight at a time
//!
//! Errors, ranges and special values: `README.md`.

mod double;
pub(crate) mod simd;
mod single;

#[cfg(test)]
mod checks;

pub use double::{exp_f64, ln_f64, pow_f64, sin_cos};
pub use simd::{avx2_fma, erf_in_place, exp_in_place, tanh_in_place};
pub use single::{erf, exp, tanh};
