//! The everyday kernel: the dot product of contract 1, for one token as for many.

use std::cell::RefCell;

use glassbox_tensor::Matrix;

#[cfg(target_arch = "x86_64")]
use super::simd;
use crate::Workers;

/// The definition of [`super::dot`]; inlined, so that it is compiled with the instructions of its caller.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0_f32; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            lanes[l] = a[l].mul_add(b[l], lanes[l]);
        }
    }
    for (l, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[l] = a.mul_add(*b, lanes[l]);
    }
    sum_lanes(lanes)
}

/// The fixed final tree over the eight lanes of a sum.
#[inline(always)]
pub(crate) fn sum_lanes(l: [f32; 8]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// What the kernel is made of. The bits of a result do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instructions {
    /// `f32::mul_add` on any machine.
    Portable,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Instructions {
    /// The fastest that this machine has.
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if super::simd::available() {
            return Self::Avx2;
        }
        Self::Portable
    }
}

/// `out = x Wᵀ + b`; see [`super::project`].
pub(super) fn project(instructions: Instructions, weight: &Matrix, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], workers: &Workers) {
    let (outputs, inputs) = (weight.rows(), weight.columns());
    if out.is_empty() {
        return;
    }
    if x.len() == inputs {
        workers.split_rows(out, 1, rows_a_piece(outputs, inputs, workers), |first, out| {
            one_token(instructions, weight, x, first, out);
            add_bias(bias, first, out);
        });
    } else {
        workers.split_columns(out, outputs, rows_a_panel(outputs, inputs, x.len() / inputs, workers), |first, strip| {
            many_tokens(instructions, weight, x, first, strip);
            strip.iter_mut().for_each(|out| add_bias(bias, first, out));
        });
    }
}

const SMALLEST_PIECE: usize = 1 << 17; // multiplications: some 10 µs, about what waking a thread costs
const PANEL_BYTES: usize = 232 << 10; // 12 rows of 4864, 56 of 1024; with a block of tokens it fills most of a 512 KiB second-level cache

/// Rows for one piece of one-token work: a few pieces a thread, none too small to be worth waking one.
fn rows_a_piece(outputs: usize, inputs: usize, workers: &Workers) -> usize {
    if workers.threads() == 1 {
        return outputs;
    }
    let fair = outputs.div_ceil(4 * workers.threads());
    fair.max(SMALLEST_PIECE.div_ceil(inputs)).next_multiple_of(4)
}

/// Weight rows that are decoded together and then meet all tokens: as many as the cache holds, fewer where a thread would go without.
fn rows_a_panel(outputs: usize, inputs: usize, tokens: usize, workers: &Workers) -> usize {
    if outputs * inputs * tokens <= SMALLEST_PIECE {
        return outputs;
    }
    let cached = (PANEL_BYTES / 4 / inputs / 4 * 4).clamp(4, 64);
    if workers.threads() == 1 { cached } else { cached.min(outputs.div_ceil(2 * workers.threads()).next_multiple_of(4)) }
}

/// Outputs `first..` of one token.
fn one_token(instructions: Instructions, weight: &Matrix, x: &[f32], first: usize, out: &mut [f32]) {
    match instructions {
        Instructions::Portable => {
            let mut row = vec![0.0; x.len()];
            for (o, out) in out.iter_mut().enumerate() {
                weight.decode_row(first + o, &mut row);
                *out = dot(&row, x);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => {
            let row = |o: usize| weight.row_bytes(first + o);
            let (fours, rest) = out.as_chunks_mut::<4>();
            let done = 4 * fours.len();
            #[expect(unsafe_code, reason = "calling functions compiled for AVX2")]
            // SAFETY: `Instructions::Avx2` is made only where `simd::available()` found the features.
            unsafe {
                for (o, out) in fours.iter_mut().enumerate() {
                    *out = simd::dot_rows(weight.storage(), [row(4 * o), row(4 * o + 1), row(4 * o + 2), row(4 * o + 3)], x);
                }
                for (o, out) in rest.iter_mut().enumerate() {
                    [*out] = simd::dot_rows(weight.storage(), [row(done + o)], x);
                }
            }
        }
    }
}

/// Outputs `first..` of every token; `strip` holds for each token those outputs.
fn many_tokens(instructions: Instructions, weight: &Matrix, x: &[f32], first: usize, strip: &mut [&mut [f32]]) {
    let inputs = weight.columns();
    let rows = first..first + strip[0].len();
    match weight.as_f32() {
        Some(values) => multiply(instructions, &values[rows.start * inputs..rows.end * inputs], inputs, x, strip),
        None => PANEL.with_borrow_mut(|panel| {
            panel.resize(rows.len() * inputs, 0.0);
            for (row, out) in rows.zip(panel.chunks_exact_mut(inputs)) {
                decode_row(instructions, weight, row, out);
            }
            multiply(instructions, panel, inputs, x, strip);
        }),
    }
}

thread_local! {
    /// Decoded weight rows of the panel in work; kept, because fresh memory costs more than the decoding.
    static PANEL: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// `Matrix::decode_row`, faster: the same bits.
pub(super) fn decode_row(instructions: Instructions, weight: &Matrix, row: usize, out: &mut [f32]) {
    match instructions {
        Instructions::Portable => weight.decode_row(row, out),
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calling a function compiled for AVX2")]
        // SAFETY: `Instructions::Avx2` is made only where `simd::available()` found the features.
        Instructions::Avx2 => unsafe { simd::decode(weight.storage(), weight.row_bytes(row), out) },
    }
}

/// Every row of `panel` times every token.
fn multiply(instructions: Instructions, panel: &[f32], inputs: usize, x: &[f32], out: &mut [&mut [f32]]) {
    match instructions {
        Instructions::Portable => {
            for (o, row) in panel.chunks_exact(inputs).enumerate() {
                for (x, out) in x.chunks_exact(inputs).zip(out.iter_mut()) {
                    out[o] = dot(row, x);
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calling a function compiled for AVX2")]
        // SAFETY: `Instructions::Avx2` is made only where `simd::available()` found the features.
        Instructions::Avx2 => unsafe { simd::multiply(panel, inputs, x, out) },
    }
}

pub(super) fn add_bias(bias: Option<&[f32]>, first: usize, out: &mut [f32]) {
    if let Some(bias) = bias {
        for (out, bias) in out.iter_mut().zip(&bias[first..]) {
            *out += bias;
        }
    }
}
