//! Activations as signed bytes: what a token is rounded to before it meets weights in panels.

use crate::Workers;
use crate::elementary::simd::vector_twin;

/// Numbers that a [`Run`] holds.
pub(super) const RUN: usize = 32;

/// 32 neighbouring numbers of a token, each `scale` times its code.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct Run {
    /// -127 to 127.
    pub(super) codes: [i8; RUN],
    /// Common factor; NaN where one of the numbers is not finite.
    pub(super) scale: f32,
    /// `scale` times the sum of the codes, rounded once.
    pub(super) scaled_sum: f32,
    /// Sum of the codes.
    pub(super) sum: i32,
    /// Sums of the first and of the last sixteen codes.
    pub(super) sums: [i16; 2],
}

impl Run {
    const ZERO: Self = Self { codes: [0; RUN], scale: 0.0, scaled_sum: 0.0, sum: 0, sums: [0; 2] };
}

/// Rounds `x` in runs of 32 numbers.
///
/// In each run the largest magnitude becomes 127, and every number goes to the nearest code, the even one of two. A run with a number
/// that is not finite has the scale NaN, so that nothing computed from it can pass for a result.
///
/// - `x`  whole runs
pub(super) fn round(x: &[f32], workers: &Workers) -> Vec<Run> {
    let mut runs = vec![Run::ZERO; x.len() / RUN];
    workers.split_rows(&mut runs, 1, 2048, |first, runs| round_runs(&x[first * RUN..], runs));
    runs
}

vector_twin! {
    /// Rounds as many runs as there is room for.
    fn round_runs(x: &[f32], runs: &mut [Run]) = each
}

#[inline(always)]
fn each(x: &[f32], runs: &mut [Run]) {
    for (x, run) in x.as_chunks::<RUN>().0.iter().zip(runs) {
        let (scale, inverse) = scale(x);
        for (x, code) in x.iter().zip(&mut run.codes) {
            *code = (x * inverse).round_ties_even() as i32 as i8;
        }
        let sum_of = |codes: &[i8]| codes.iter().map(|code| i16::from(*code)).sum::<i16>();
        run.sums = [sum_of(&run.codes[..16]), sum_of(&run.codes[16..])];
        run.sum = i32::from(run.sums[0]) + i32::from(run.sums[1]);
        run.scale = scale;
        run.scaled_sum = scale * run.sum as f32;
    }
}

/// The factor of a run, and what its numbers are multiplied by to become codes.
#[inline(always)]
fn scale(x: &[f32; RUN]) -> (f32, f32) {
    let (mut largest, mut poison) = ([0.0_f32; 8], [0.0_f32; 8]);
    for x in x.as_chunks::<8>().0 {
        for l in 0..8 {
            largest[l] = if x[l].abs() > largest[l] { x[l].abs() } else { largest[l] };
            poison[l] += x[l] * 0.0; // NaN once a number is not finite, else zero
        }
    }
    let largest = largest.iter().fold(0.0_f32, |a, b| if *b > a { *b } else { a });
    if poison.iter().sum::<f32>().is_nan() {
        return (f32::NAN, 0.0);
    }
    let inverse = 127.0 / largest;
    // Zeros, and numbers so small that the factor leaves f32: all codes are zero.
    if inverse.is_finite() { (largest / 127.0, inverse) } else { (0.0, 0.0) }
}
