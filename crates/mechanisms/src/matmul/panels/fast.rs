//! Panels times rounded tokens on AVX2: a register holds four neighbouring codes of eight rows, and meets the same four codes of a token
//! in every lane. The bits of `portable.rs`: integers are exact in any order, and the few floating-point steps are the same.
#![expect(unsafe_code, reason = "vector loads by pointer; the lengths are checked where slices become pointers")]

use std::arch::x86_64::*;

use glassbox_tensor::StorageType;

use super::layout::ROWS;
use super::rounding::Run;
use super::simd::{Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, Step};

/// Panels of some rows times rounded tokens. Only where [`super::super::simd::available`] says that the machine has AVX2, FMA and F16C.
///
/// - `panels`  of as many rows as each part of `out` has
/// - `tokens`  [token, run]
/// - `out`     for each token, the outputs of these rows
pub(super) fn project(storage: StorageType, panels: &[u8], tokens: &[Run], decoded: &mut Vec<__m256i>, out: &mut [&mut [f32]]) {
    // SAFETY: `Instructions::Avx2`, of which this is the kernel, is made only where `available()` found the features.
    unsafe {
        match storage {
            StorageType::Q4_0 => some_tokens::<Q4_0>(panels, tokens, decoded, out),
            StorageType::Q4_1 => some_tokens::<Q4_1>(panels, tokens, decoded, out),
            StorageType::Q5_0 => some_tokens::<Q5_0>(panels, tokens, decoded, out),
            StorageType::Q5_1 => some_tokens::<Q5_1>(panels, tokens, decoded, out),
            StorageType::Q8_0 => some_tokens::<Q8_0>(panels, tokens, decoded, out),
            StorageType::Q4K => some_tokens::<Q4K>(panels, tokens, decoded, out),
            StorageType::Q5K => some_tokens::<Q5K>(panels, tokens, decoded, out),
            StorageType::Q6K => some_tokens::<Q6K>(panels, tokens, decoded, out),
            other => unreachable!("{other} has no panels"),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn some_tokens<F: Format>(panels: &[u8], tokens: &[Run], decoded: &mut Vec<__m256i>, out: &mut [&mut [f32]]) {
    match out {
        [out] => one_token::<F>(panels, tokens, out),
        out => many_tokens::<F>(panels, tokens, decoded, out),
    }
}

/// One token: every panel is read once, in order, and decoded in registers.
///
/// - `panels`  of `out.len()` rows, eight a panel
/// - `out`     one number a row
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn one_token<F: Format>(panels: &[u8], token: &[Run], out: &mut [f32]) {
    let blocks = token.len() / F::STEPS;
    assert!(token.len().is_multiple_of(F::STEPS) && panels.len() >= out.len().div_ceil(ROWS) * blocks * F::BYTES, "whole panels");
    for (panel, out) in panels.chunks_exact((blocks * F::BYTES).max(1)).zip(out.chunks_mut(ROWS)) {
        let mut sums = [_mm256_setzero_ps()];
        for b in 0..blocks {
            // SAFETY: `panel` holds `blocks` blocks and `token` as many times `STEPS` runs.
            unsafe {
                let block = panel.as_ptr().add(b * F::BYTES);
                for line in 0..F::BYTES.div_ceil(64) {
                    _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(AHEAD + 64 * line).cast());
                }
                let open = F::open(block);
                for s in 0..F::STEPS {
                    F::step(&open, block, s).add([token.as_ptr().add(b * F::STEPS + s)], &mut sums);
                }
            }
        }
        write(sums[0], out);
    }
}

const AHEAD: usize = 4096; // bytes between what is used and what is asked for: some 0.4 µs of memory traffic

/// Many tokens: some panels are decoded into `decoded`, which the cache holds, and meet every token.
///
/// - `panels`  of as many rows as each part of `out` has
/// - `tokens`  [token, run]
/// - `out`     for each token, the outputs of these rows
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn many_tokens<F: Format>(panels: &[u8], tokens: &[Run], decoded: &mut Vec<__m256i>, out: &mut [&mut [f32]]) {
    let (runs, rows) = (tokens.len() / out.len(), out[0].len());
    let (blocks, groups) = (runs / F::STEPS, rows.div_ceil(ROWS));
    let bytes = blocks * F::BYTES;
    assert!(runs.is_multiple_of(F::STEPS) && tokens.len() == runs * out.len() && panels.len() >= groups * bytes, "whole panels");
    let wide = size_of::<F::Step>() / size_of::<__m256i>();
    let pass = DEPTH.next_multiple_of(F::STEPS);
    for start in (0..runs).step_by(pass) {
        let depth = pass.min(runs - start);
        decoded.resize(decoded.len().max(groups * depth * wide), _mm256_setzero_si256());
        let steps: *mut F::Step = decoded.as_mut_ptr().cast();
        for g in 0..groups {
            for b in 0..depth / F::STEPS {
                // SAFETY: block `start / STEPS + b` of panel `g` lies inside `panels`, step `s` of it inside `decoded`, which is aligned for
                // registers, of which a `Step` consists.
                unsafe {
                    let block = panels.as_ptr().add(g * bytes + (start / F::STEPS + b) * F::BYTES);
                    let open = F::open(block);
                    for s in 0..F::STEPS {
                        steps.add(g * depth + b * F::STEPS + s).write(F::step(&open, block, s));
                    }
                }
            }
        }
        // SAFETY: the loops above wrote these steps.
        let steps = unsafe { std::slice::from_raw_parts(steps.cast_const(), groups * depth) };
        for first in (0..out.len()).step_by(TOKENS) {
            let end = (first + TOKENS).min(out.len());
            for (g, steps) in steps.chunks_exact(depth).enumerate() {
                let mut token = first;
                while token < end {
                    let tile = Tile { steps, tokens, runs, start, output: g * ROWS };
                    token += match end - token {
                        1 => tile.run::<1>(token, out),
                        2 | 5 => tile.run::<2>(token, out),
                        3 => tile.run::<3>(token, out),
                        _ => tile.run::<4>(token, out),
                    };
                }
            }
        }
    }
}

const DEPTH: usize = 64; // runs of 32: 64 x 288 bytes = 18 KiB of decoded steps, half of a first-level cache
const TOKENS: usize = 64; // 64 tokens x 64 runs x 48 bytes = 192 KiB; with eight decoded panels 340 of the 512 KiB of a second-level cache

/// A panel over one pass of the inputs.
struct Tile<'a, S> {
    steps: &'a [S],
    tokens: &'a [Run],
    runs: usize,
    start: usize,
    output: usize,
}

impl<S: Step> Tile<'_, S> {
    /// Multiplies with `C` tokens from `token` on, and returns `C`. From the second pass on the sums go on from what `out` holds.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn run<const C: usize>(&self, token: usize, out: &mut [&mut [f32]]) -> usize {
        let (mut sums, mut x) = ([_mm256_setzero_ps(); C], [std::ptr::null(); C]);
        for c in 0..C {
            let runs = &self.tokens[(token + c) * self.runs..][self.start..self.start + self.steps.len()];
            x[c] = runs.as_ptr();
            if self.start > 0 {
                sums[c] = read(&out[token + c][self.output..]);
            }
        }
        for step in self.steps {
            // SAFETY: every `x` starts with as many runs as there are steps.
            unsafe {
                step.add(x, &mut sums);
                x = x.map(|x| x.add(1));
            }
        }
        for c in 0..C {
            write(sums[c], &mut out[token + c][self.output..]);
        }
        C
    }
}

/// Writes eight numbers, or as many as there is room for.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn write(sums: __m256, out: &mut [f32]) {
    if let Some(out) = out.first_chunk_mut::<ROWS>() {
        // SAFETY: eight numbers are writable at `out`.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sums) };
        return;
    }
    let mut all = [0.0_f32; ROWS];
    // SAFETY: eight numbers are writable at `all`.
    unsafe { _mm256_storeu_ps(all.as_mut_ptr(), sums) };
    out.copy_from_slice(&all[..out.len()]);
}

/// Eight numbers, or as many as there are, then zeros.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn read(sums: &[f32]) -> __m256 {
    if let Some(sums) = sums.first_chunk::<ROWS>() {
        // SAFETY: eight numbers are readable at `sums`.
        return unsafe { _mm256_loadu_ps(sums.as_ptr()) };
    }
    let mut all = [0.0_f32; ROWS];
    all[..sums.len()].copy_from_slice(sums);
    // SAFETY: eight numbers are readable at `all`.
    unsafe { _mm256_loadu_ps(all.as_ptr()) }
}
