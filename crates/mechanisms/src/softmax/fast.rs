//! Eight lanes: lane `l` sums the exponentials whose index `i` has `i mod 8 = l`, in rising `i`; the lanes are added as in every
//! kernel here.

use crate::elementary::simd::vector_twin;
use crate::elementary::{exp, ln_f64, tanh};

/// What the running softmax remembers of the scores seen so far: their maximum, and the sum of `exp(score - max)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Running {
    /// The largest score; minus infinity before the first.
    pub max: f32,
    /// `Σ exp(score - max)`; 0 before the first.
    pub sum: f32,
}

impl Running {
    /// No score seen.
    pub const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    /// Both halves together, and the factors by which values that were mixed with the weights of either half must be multiplied.
    ///
    /// `max = max(a, b)`, factors `exp(max_a - max)` and `exp(max_b - max)`, `sum = fma(sum_a, factor_a, sum_b factor_b)`.
    #[must_use]
    #[inline(always)]
    pub fn merge(self, later: Self) -> (Self, f32, f32) {
        let max = if later.max > self.max { later.max } else { self.max };
        let base = finite_base(max);
        let (factor, later_factor) = (exp(self.max - base), exp(later.max - base));
        (Self { max, sum: self.sum.mul_add(factor, later.sum * later_factor) }, factor, later_factor)
    }

    /// `ln Σ exp(score)` of all scores seen: the logarithm in `f64`, rounded once.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
    pub fn log_sum_exp(self) -> f32 {
        (f64::from(finite_base(self.max)) + ln_f64(f64::from(self.sum))) as f32
    }
}

/// What is subtracted from scores before `exp`: the maximum, or 0 where every score is minus infinity, whose difference with itself
/// would be NaN.
#[inline(always)]
pub(crate) fn finite_base(max: f32) -> f32 {
    if max == f32::NEG_INFINITY { 0.0 } else { max }
}

/// `((0+4)+(2+6)) + ((1+5)+(3+7))`, as the lanes of a register fold.
#[inline(always)]
pub(crate) fn fold(lanes: [f32; 8]) -> f32 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

#[inline(always)]
pub(super) fn softmax_here(scores: &mut [f32]) {
    let base = finite_base(max_here(scores));
    scores.iter_mut().for_each(|score| *score = exp(*score - base));
    let sum = sum_here(scores);
    if sum != 0.0 {
        scores.iter_mut().for_each(|score| *score /= sum);
    }
}

#[inline(always)]
pub(super) fn log_sum_exp_here(scores: &[f32]) -> f32 {
    let max = max_here(scores);
    let base = finite_base(max);
    let mut lanes = [0.0; 8];
    let (many, rest) = scores.as_chunks::<64>();
    for scores in many {
        add_lanes(&mut lanes, &scores.map(|score| exp(score - base)));
    }
    for rest in rest.chunks(8) {
        for (lane, score) in lanes.iter_mut().zip(rest) {
            *lane += exp(*score - base);
        }
    }
    Running { max, sum: fold(lanes) }.log_sum_exp()
}

/// The sum in eight lanes.
#[inline(always)]
fn sum_here(weights: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (eights, rest) = weights.as_chunks::<8>();
    for eight in eights {
        add_lanes(&mut lanes, eight);
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, weight)| *lane += weight);
    fold(lanes)
}

#[inline(always)]
fn add_lanes(lanes: &mut [f32; 8], weights: &[f32]) {
    for eight in weights.as_chunks::<8>().0 {
        for lane in 0..8 {
            lanes[lane] += eight[lane];
        }
    }
}

#[inline(always)]
pub(super) fn soft_cap_here(cap: f32, scores: &mut [f32]) {
    scores.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
}

/// The largest score; a NaN is passed over here and shows in the sum.
#[inline(always)]
fn max_here(scores: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let (eights, rest) = scores.as_chunks::<8>();
    for eight in eights {
        for lane in 0..8 {
            lanes[lane] = if eight[lane] > lanes[lane] { eight[lane] } else { lanes[lane] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |max, &score| if score > max { score } else { max })
}

vector_twin! {
    /// Weights in place of scores.
    pub(super) fn softmax_in_place(scores: &mut [f32]) = softmax_here
}
vector_twin! {
    /// `ln Σ exp`.
    pub(super) fn log_sum_exp(scores: &[f32]) -> f32 = log_sum_exp_here
}
vector_twin! {
    /// `cap tanh(s / cap)`.
    pub(super) fn soft_cap_in_place(cap: f32, scores: &mut [f32]) = soft_cap_here
}
