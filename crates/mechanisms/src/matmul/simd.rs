//! The dot product of contract 1 on AVX2: the same bits as `fast.rs` in portable code.
//!
//! Two shapes: [`dot_rows`] keeps decoded numbers in registers (one token), [`dot_tile`] multiplies rows that are already `f32`.
#![expect(unsafe_code, reason = "AVX2 loads, stores and dispatch")]

use std::arch::x86_64::*;

use glassbox_tensor::StorageType;

use super::octets::{Octets, with_decoder};

/// Whether this machine can run this file.
pub(super) fn available() -> bool {
    crate::elementary::avx2_fma() && std::arch::is_x86_feature_detected!("f16c")
}

/// Rows of stored bytes times one token: `R` dot products. Rows lie `R` row lengths apart from the next call's, which is prefetched.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn dot_rows<const R: usize>(storage: StorageType, rows: [&[u8]; R], x: &[f32]) -> [f32; R] {
    sums(with_decoder!(storage, lanes_of_rows[R](rows, x)))
}

/// Decodes a row of stored bytes.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn decode(storage: StorageType, row: &[u8], out: &mut [f32]) {
    with_decoder!(storage, decode_with[](row, out));
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lanes_of_rows<const R: usize, const BYTES: usize, const GROUPS: usize, S: Copy + Default>(
    rows: [&[u8]; R],
    x: &[f32],
    open: impl Fn(&[u8; BYTES]) -> S,
    group: impl Fn(&S, &[u8; BYTES], usize) -> Octets,
) -> [__m256; R] {
    let mut lanes = [_mm256_setzero_ps(); R];
    let mut blocks: [&[[u8; BYTES]]; R] = [&[]; R];
    let mut rests: [&[u8]; R] = [&[]; R];
    for r in 0..R {
        (blocks[r], rests[r]) = rows[r].as_chunks::<BYTES>();
    }
    let (x, x_rest) = x.as_chunks::<32>();
    let count = x.len() / GROUPS;
    assert!(blocks.iter().all(|blocks| blocks.len() == count), "rows are as long as the token");
    let ahead = R * rows[0].len();
    for i in 0..count {
        let mut shared = [S::default(); R];
        for r in 0..R {
            prefetch(&blocks[r][i], ahead);
            shared[r] = open(&blocks[r][i]);
        }
        for g in 0..GROUPS {
            let x = &x[i * GROUPS + g];
            for r in 0..R {
                let w = group(&shared[r], &blocks[r][i], g);
                for o in 0..4 {
                    lanes[r] = _mm256_fmadd_ps(w[o], load(&x[8 * o..]), lanes[r]);
                }
            }
        }
    }
    if !x_rest.is_empty() {
        let mut last_x = [0.0; 32];
        last_x[..x_rest.len()].copy_from_slice(x_rest);
        for r in 0..R {
            let w = group(&S::default(), &padded(rests[r]), 0);
            for o in 0..x_rest.len().div_ceil(8) {
                let next = _mm256_fmadd_ps(w[o], load(&last_x[8 * o..]), lanes[r]);
                lanes[r] = _mm256_blendv_ps(lanes[r], next, first_lanes(x_rest.len() - 8 * o));
            }
        }
    }
    lanes
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn decode_with<const BYTES: usize, const GROUPS: usize, S: Copy + Default>(
    row: &[u8],
    out: &mut [f32],
    open: impl Fn(&[u8; BYTES]) -> S,
    group: impl Fn(&S, &[u8; BYTES], usize) -> Octets,
) {
    let (blocks, rest) = row.as_chunks::<BYTES>();
    let (out, out_rest) = out.as_chunks_mut::<32>();
    assert_eq!(blocks.len() * GROUPS, out.len(), "a row has as many numbers as its blocks hold");
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(GROUPS)) {
        let shared = open(block);
        for (g, out) in out.iter_mut().enumerate() {
            let w = group(&shared, block, g);
            for o in 0..4 {
                store(w[o], &mut out[8 * o..]);
            }
        }
    }
    if !out_rest.is_empty() {
        let mut last = [0.0; 32];
        let w = group(&S::default(), &padded(rest), 0);
        for o in 0..4 {
            store(w[o], &mut last[8 * o..]);
        }
        out_rest.copy_from_slice(&last[..out_rest.len()]);
    }
}

/// Rows of `f32` weights times many tokens.
///
/// - `panel`  `[row, in]`, small enough for the second-level cache
/// - `x`      `[token, in]`
/// - `out`    for every token its outputs, one for each row of the panel
///
/// Four rows meet three tokens in twelve registers of lanes. Long rows are walked in passes of [`DEPTH`], between which the lanes
/// wait in memory: the order of additions stays that of the whole row.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn multiply(panel: &[f32], inputs: usize, x: &[f32], out: &mut [&mut [f32]]) {
    let rows = panel.len() / inputs;
    let passes = inputs.div_ceil(DEPTH);
    let mut waiting: Vec<[__m256; ROWS]> = Vec::new();
    for (x, out) in x.chunks(TOKENS * inputs).zip(out.chunks_mut(TOKENS)) {
        let tokens = out.len();
        if passes > 1 {
            waiting.clear();
            waiting.resize(rows.div_ceil(ROWS) * tokens, [_mm256_setzero_ps(); ROWS]);
        }
        for pass in 0..passes {
            let depth = pass * DEPTH..((pass + 1) * DEPTH).min(inputs);
            for row in (0..rows).step_by(ROWS) {
                let mut w: [&[f32]; ROWS] = [&[]; ROWS];
                for (r, w) in w.iter_mut().enumerate() {
                    let row = (row + r).min(rows - 1); // past the end the last row is computed again, and not written
                    *w = &panel[row * inputs..][depth.clone()];
                }
                let tile = Tile { w, x, inputs, depth: depth.clone(), last: pass + 1 == passes };
                let waiting = if passes > 1 { &mut waiting[row / ROWS * tokens..][..tokens] } else { &mut [] };
                let mut token = 0;
                while token < tokens {
                    let at = (token, row, rows - row);
                    token += match tokens - token {
                        1 => tile.run::<1>(at, waiting, out),
                        2 | 4 => tile.run::<2>(at, waiting, out),
                        _ => tile.run::<3>(at, waiting, out),
                    };
                }
            }
        }
    }
}

const ROWS: usize = 4; // 4 rows x 3 tokens = 12 registers of lanes, 3 of tokens and 1 of weights: all 16
const TOKENS: usize = 48; // 48 tokens x 1024 x 4 bytes = 192 KiB: with a panel 424 of the 512 KiB of a second-level cache
const DEPTH: usize = 1024; // 4 rows x 1024 x 4 bytes = 16 KiB: half of a 32 KiB first-level cache

/// Four weight rows over one pass of the inputs.
struct Tile<'a> {
    w: [&'a [f32]; ROWS],
    x: &'a [f32],
    inputs: usize,
    depth: std::ops::Range<usize>,
    last: bool,
}

impl Tile<'_> {
    /// Multiplies with `T` tokens from `token` on; writes the outputs from `output` on, `rows` at most, after the last pass. Returns `T`.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn run<const T: usize>(
        &self,
        (token, output, rows): (usize, usize, usize),
        waiting: &mut [[__m256; ROWS]],
        out: &mut [&mut [f32]],
    ) -> usize {
        let mut lanes = [[_mm256_setzero_ps(); ROWS]; T];
        let mut x: [&[f32]; T] = [&[]; T];
        for t in 0..T {
            x[t] = &self.x[(token + t) * self.inputs..][self.depth.clone()];
            if self.depth.start > 0 {
                lanes[t] = waiting[token + t];
            }
        }
        lanes_of_tile(self.w, x, &mut lanes);
        for t in 0..T {
            if self.last {
                let mut sums = [0.0; 4];
                store_4(sum_four(lanes[t][0], lanes[t][1], lanes[t][2], lanes[t][3]), &mut sums);
                let rows = rows.min(ROWS);
                out[token + t][output..output + rows].copy_from_slice(&sums[..rows]);
            } else {
                waiting[token + t] = lanes[t];
            }
        }
        T
    }
}

/// The lanes of `R` weight rows times `T` tokens, all of one length: continues the sums in `lanes`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn lanes_of_tile<const R: usize, const T: usize>(w: [&[f32]; R], x: [&[f32]; T], lanes: &mut [[__m256; R]; T]) {
    let len = w[0].len();
    assert!(w.iter().chain(&x).all(|row| row.len() == len), "rows and tokens have one length");
    let (mut k, mut sums) = (0, *lanes);
    while k + 8 <= len {
        // SAFETY: k + 8 <= len, the length of every one of these slices.
        let (mut tokens, mut row);
        unsafe {
            tokens = [_mm256_setzero_ps(); T];
            for t in 0..T {
                tokens[t] = _mm256_loadu_ps(x[t].as_ptr().add(k));
            }
            for r in 0..R {
                row = _mm256_loadu_ps(w[r].as_ptr().add(k));
                for t in 0..T {
                    sums[t][r] = _mm256_fmadd_ps(row, tokens[t], sums[t][r]);
                }
            }
        }
        k += 8;
    }
    if k < len {
        let mask = first_lanes(len - k);
        for t in 0..T {
            let token = load_first(&x[t][k..]);
            for r in 0..R {
                let next = _mm256_fmadd_ps(load_first(&w[r][k..]), token, sums[t][r]);
                sums[t][r] = _mm256_blendv_ps(sums[t][r], next, mask);
            }
        }
    }
    *lanes = sums;
}

/// The fixed final tree, `((l0+l4)+(l2+l6)) + ((l1+l5)+(l3+l7))`, for four sums at once.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sum_four(a: __m256, b: __m256, c: __m256, d: __m256) -> __m128 {
    let ab = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)); // l0+l4 … l3+l7 of a, of b
    let cd = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d));
    let even_odd = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(ab, cd), _mm256_shuffle_ps::<0xEE>(ab, cd)); // of a, c; of b, d
    let sums = _mm256_add_ps(even_odd, _mm256_movehdup_ps(even_odd)); // a _ c _ b _ d _
    let (ac, bd) = (_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
    _mm_permute_ps::<0xD8>(_mm_shuffle_ps::<0x88>(ac, bd))
}

/// The fixed final tree, one sum after the other.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sums<const R: usize>(lanes: [__m256; R]) -> [f32; R] {
    let mut sums = [0.0; R];
    for r in 0..R {
        let mut l = [0.0; 8];
        store(lanes[r], &mut l);
        sums[r] = super::fast::sum_lanes(l);
    }
    sums
}

/// `bytes`, then zeros.
#[inline(always)]
fn padded<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    let mut block = [0; BYTES];
    block[..bytes.len()].copy_from_slice(bytes);
    block
}

/// All ones in the first `count` lanes (all eight where `count` is larger).
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn first_lanes(count: usize) -> __m256 {
    let index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(8) as i32), index))
}

/// Asks for the cache line `ahead` bytes after `block`, which may lie beyond the weight: a prefetch never faults.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn prefetch<const BYTES: usize>(block: &[u8; BYTES], ahead: usize) {
    for line in 0..BYTES.div_ceil(64) {
        _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(ahead + 64 * line).cast());
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load(x: &[f32]) -> __m256 {
    let x: &[f32; 8] = x.first_chunk().expect("callers pass eight numbers or more");
    // SAFETY: eight numbers are readable at `x`, and the load wants no alignment.
    unsafe { _mm256_loadu_ps(x.as_ptr()) }
}

/// The first numbers of `x`, at most eight, then zeros.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_first(x: &[f32]) -> __m256 {
    let mut padded = [0.0; 8];
    padded[..x.len()].copy_from_slice(x);
    load(&padded)
}

/// Writes eight numbers to the front of `out`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn store(value: __m256, out: &mut [f32]) {
    let out: &mut [f32; 8] = out.first_chunk_mut().expect("callers pass eight numbers or more");
    // SAFETY: eight numbers are writable at `out`, and the store wants no alignment.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_4(value: __m128, out: &mut [f32; 4]) {
    // SAFETY: four numbers are writable at `out`, and the store wants no alignment.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), value) }
}

/// 8 bytes, in the lower half.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load_8(bytes: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load_16(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are readable, and the load wants no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 32 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn load_32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are readable, and the load wants no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
