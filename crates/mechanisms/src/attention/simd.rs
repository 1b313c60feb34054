//! The steps of a tile with AVX2 and fused multiply-add.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_load_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps};
use std::ops::Range;

use super::lanes::{Bend, Lanes, ROWS, RowState, TileRow, bend_here, merge_here, weigh_here};
use super::watch::{Watch, Watched};
use crate::cache::{LANES, Line, TILE};
use crate::softmax::Running;

/// Only to be used where [`crate::elementary::avx2_fma`] says yes.
pub(super) struct Avx2;

#[expect(unsafe_code, reason = "calling functions compiled for AVX2")]
impl Lanes for Avx2 {
    fn dots(rows: usize, q: &[f32], keys: &[Line], quarters: Range<usize>, scores: &mut [TileRow; ROWS]) {
        // SAFETY: the caller of this module found AVX2 and FMA on this machine.
        unsafe {
            // One and two rows take more keys at a time, so that enough independent sums hide the latency of each.
            match rows {
                1 => dots_wide::<1, 4>(q, keys, quarters, scores),
                2 => dots_wide::<2, 2>(q, keys, quarters, scores),
                3 => dots_wide::<3, 1>(q, keys, quarters, scores),
                4 => dots_wide::<4, 1>(q, keys, quarters, scores),
                5 => dots_wide::<5, 1>(q, keys, quarters, scores),
                _ => dots_wide::<6, 1>(q, keys, quarters, scores),
            }
        }
    }

    fn weigh<W: Watch>(scores: &mut TileRow, visible: Range<usize>, bend: Bend, row: &mut RowState, watch: (&mut W, Watched)) -> f32 {
        // SAFETY: the caller of this module found AVX2 and FMA on this machine.
        unsafe { weigh(scores, visible, bend, row, watch) }
    }

    fn bend(scores: &mut TileRow, bend: Bend) {
        // SAFETY: the caller of this module found AVX2 and FMA on this machine.
        unsafe { bend_tile(scores, bend) }
    }

    fn mix(weights: &[TileRow], keys: Range<usize>, values: &[Line], mixed: &mut [f32]) {
        // SAFETY: the caller of this module found AVX2 and FMA on this machine.
        unsafe {
            match weights.len() {
                0 => {}
                1 => mix_wide::<1, 4>(weights, keys, values, mixed),
                2 => mix_wide::<2, 2>(weights, keys, values, mixed),
                3 => mix_wide::<3, 1>(weights, keys, values, mixed),
                4 => mix_wide::<4, 1>(weights, keys, values, mixed),
                5 => mix_wide::<5, 1>(weights, keys, values, mixed),
                _ => mix_wide::<6, 1>(weights, keys, values, mixed),
            }
        }
    }

    fn merge(running: &mut Running, total: &mut [f32], later: &RowState, added: &[f32]) {
        // SAFETY: the caller of this module found AVX2 and FMA on this machine.
        unsafe { merge(running, total, later, added) }
    }
}

#[target_feature(enable = "avx2,fma")]
fn merge(running: &mut Running, total: &mut [f32], later: &RowState, added: &[f32]) {
    merge_here(running, total, later, added);
}

#[target_feature(enable = "avx2,fma")]
fn weigh<W: Watch>(scores: &mut TileRow, visible: Range<usize>, bend: Bend, row: &mut RowState, watch: (&mut W, Watched)) -> f32 {
    weigh_here(scores, visible, bend, row, watch)
}

#[target_feature(enable = "avx2,fma")]
fn bend_tile(scores: &mut TileRow, bend: Bend) {
    bend_here(scores, bend);
}

#[target_feature(enable = "avx2,fma")]
fn dots_wide<const R: usize, const Q: usize>(q: &[f32], keys: &[Line], mut quarters: Range<usize>, scores: &mut [TileRow; ROWS]) {
    while quarters.len() >= Q {
        dots_block::<R, Q>(q, keys, quarters.start, scores);
        quarters.start += Q;
    }
    for quarter in quarters {
        dots_block::<R, 1>(q, keys, quarter, scores);
    }
}

/// `R` rows against the 16 keys of each of `Q` quarters.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn dots_block<const R: usize, const Q: usize>(q: &[f32], keys: &[Line], quarter: usize, scores: &mut [TileRow; ROWS]) {
    let d_head = q.len() / ROWS;
    assert!(R <= ROWS && keys.len() >= (quarter + Q) * d_head && (quarter + Q) * LANES <= TILE);
    let (q, k) = (q.as_ptr(), keys[quarter * d_head..].as_ptr().cast::<f32>());
    let mut sums = [[[_mm256_setzero_ps(); 2]; Q]; R];
    for channel in 0..d_head {
        #[expect(unsafe_code, reason = "loads without a bounds check in the innermost loop")]
        // SAFETY: `channel < d_head`; `q` holds `d_head * ROWS` numbers and `R <= ROWS`; `keys` holds `Q * d_head` lines of 16
        // numbers from `quarter` on (asserted above), and a line is aligned to 64 bytes.
        unsafe {
            for j in 0..Q {
                let line = k.add((j * d_head + channel) * LANES);
                let (low, high) = (_mm256_load_ps(line), _mm256_load_ps(line.add(8)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let x = _mm256_set1_ps(*q.add(channel * ROWS + row));
                    sums[j][0] = _mm256_fmadd_ps(x, low, sums[j][0]);
                    sums[j][1] = _mm256_fmadd_ps(x, high, sums[j][1]);
                }
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (j, sums) in sums.iter().enumerate() {
            let sixteen = &mut scores[row][(quarter + j) * LANES..(quarter + j + 1) * LANES];
            #[expect(unsafe_code, reason = "stores of registers")]
            // SAFETY: `sixteen` is 16 numbers long.
            unsafe {
                _mm256_storeu_ps(sixteen.as_mut_ptr(), sums[0]);
                _mm256_storeu_ps(sixteen.as_mut_ptr().add(8), sums[1]);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn mix_wide<const R: usize, const P: usize>(weights: &[TileRow], keys: Range<usize>, values: &[Line], mixed: &mut [f32]) {
    let panels = values.len() / TILE;
    let mut panel = 0;
    while panel + P <= panels {
        mix_block::<R, P>(weights, keys.clone(), values, mixed, panel);
        panel += P;
    }
    for panel in panel..panels {
        mix_block::<R, 1>(weights, keys.clone(), values, mixed, panel);
    }
}

/// `R` rows of 16 channels of each of `P` panels.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn mix_block<const R: usize, const P: usize>(weights: &[TileRow], keys: Range<usize>, values: &[Line], mixed: &mut [f32], panel: usize) {
    let width = values.len() / TILE * LANES;
    assert!(weights.len() >= R && mixed.len() >= R * width && keys.end <= TILE && (panel + P) * TILE <= values.len());
    let v = values[panel * TILE..].as_ptr().cast::<f32>();
    let weights = weights.as_ptr().cast::<f32>();
    let mixed = mixed[panel * LANES..].as_mut_ptr();
    let mut sums = [[[_mm256_setzero_ps(); 2]; P]; R];
    #[expect(unsafe_code, reason = "loads and stores without a bounds check around the innermost loop")]
    // SAFETY: rows are below `R`, and `weights` and `mixed` hold `R` rows; keys are below `TILE`, and `values` holds `TILE` lines of 16
    // numbers for each of `P` panels from `panel` on, which end within `width` (all asserted above); a line is aligned to 64 bytes.
    unsafe {
        for (row, sums) in sums.iter_mut().enumerate() {
            for (j, sums) in sums.iter_mut().enumerate() {
                let at = mixed.add(row * width + j * LANES);
                *sums = [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))];
            }
        }
        for key in keys {
            for j in 0..P {
                let line = v.add((j * TILE + key) * LANES);
                let (low, high) = (_mm256_load_ps(line), _mm256_load_ps(line.add(8)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let weight = _mm256_set1_ps(*weights.add(row * TILE + key));
                    sums[j][0] = _mm256_fmadd_ps(weight, low, sums[j][0]);
                    sums[j][1] = _mm256_fmadd_ps(weight, high, sums[j][1]);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (j, sums) in sums.iter().enumerate() {
                let at = mixed.add(row * width + j * LANES);
                _mm256_storeu_ps(at, sums[0]);
                _mm256_storeu_ps(at.add(8), sums[1]);
            }
        }
    }
}
