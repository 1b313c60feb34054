//! Softmax: scores become weights that sum to 1; and its running form, which needs no second look at the scores.

mod fast;
pub mod textbook;

#[cfg(test)]
mod checks;

pub use fast::Running;
pub(crate) use fast::{finite_base, fold};

use crate::Kernels;

/// Replaces scores by weights: `w_i = exp(s_i - max) / Σ exp(s_j - max)`.
///
/// A score of minus infinity gets weight 0; a row of nothing else becomes zeros, because it attends to nothing. A NaN, or a score of
/// plus infinity, makes the whole row NaN: it is shown, not swallowed.
pub fn softmax_in_place(kernels: Kernels, scores: &mut [f32]) {
    match kernels {
        Kernels::Fast => fast::softmax_in_place(scores),
        Kernels::Portable => fast::softmax_here(scores),
        Kernels::Textbook => textbook::round_into(&textbook::softmax(&textbook::widen(scores)), scores),
    }
}

/// `ln Σ exp(s_i)`, without overflow; minus infinity for a row that attends to nothing.
#[must_use]
pub fn log_sum_exp(kernels: Kernels, scores: &[f32]) -> f32 {
    match kernels {
        Kernels::Fast => fast::log_sum_exp(scores),
        Kernels::Portable => fast::log_sum_exp_here(scores),
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
        Kernels::Textbook => textbook::log_sum_exp(&textbook::widen(scores)) as f32,
    }
}

/// Natural logarithm of the probability at temperature 1 that `logits` [vocab] give to token `id`; at most 0, and none where there is no
/// such token.
///
/// `logit - ln Σ exp(logit')`: one pass over the row, without the order of the others.
#[must_use]
pub fn log_probability(logits: &[f32], id: u32) -> Option<f64> {
    logits.get(id as usize).map(|logit| f64::from(*logit) - log_partition(logits))
}

/// `ln Σ exp(logit)` of a row of logits [vocab] in double precision: a logit less this is the logarithm of its probability.
#[must_use]
pub fn log_partition(logits: &[f32]) -> f64 {
    // Differences of f32 numbers are rounded; in f64 they are not.
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    largest + logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum::<f64>().ln()
}

/// Bends scores softly into `(-cap, cap)`: `s' = cap tanh(s / cap)`. A cap of 0 is off.
///
/// Order matters: scale, then cap, then mask, then softmax. A cap after the mask would turn minus infinity into `-cap` and let
/// hidden keys in.
///
/// Source: Gemma 2 (arXiv:2408.00118), section 2.
pub fn soft_cap_in_place(kernels: Kernels, cap: f32, scores: &mut [f32]) {
    if cap == 0.0 {
        return;
    }
    match kernels {
        Kernels::Fast => fast::soft_cap_in_place(cap, scores),
        Kernels::Portable => fast::soft_cap_here(cap, scores),
        Kernels::Textbook => {
            let capped: Vec<f64> = scores.iter().map(|&score| textbook::soft_cap(f64::from(cap), f64::from(score))).collect();
            textbook::round_into(&capped, scores);
        }
    }
}
