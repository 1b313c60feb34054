//! The product of panels and rounded tokens in portable code: the order of operations that vector code must give the bits of.

use glassbox_tensor::StorageType;
use half::f16;

use super::rounding::{RUN, Run};

/// 32 codes of a row and what turns them into numbers: number `k` is `scale · factors[k / 16] · codes[k] + added`.
pub(super) struct Step {
    codes: [i32; RUN],
    factors: [i32; 2],
    scale: f32,
    added: Option<f32>,
}

/// The dot product of a stored row with a rounded token.
///
/// Run after run: the integers are summed exactly; their sum is multiplied by the product of both scales and added by one fused
/// multiply-add, and then, for types with minima, the minimum times the scaled sum of the token's codes by another.
pub(super) fn dot(storage: StorageType, row: &[u8], token: &[Run]) -> f32 {
    let steps = storage.block_len() / RUN;
    let mut sum = 0.0_f32;
    for (block, runs) in row.chunks_exact(storage.block_bytes()).zip(token.chunks_exact(steps)) {
        for (at, run) in runs.iter().enumerate() {
            let step = step(storage, block, at);
            let products: i32 = (0..RUN).map(|k| step.factors[k / 16] * step.codes[k] * i32::from(run.codes[k])).sum();
            sum = (products as f32).mul_add(step.scale * run.scale, sum);
            if let Some(added) = step.added {
                sum = added.mul_add(run.scaled_sum, sum);
            }
        }
    }
    sum
}

/// Numbers `32 at ..` of a stored block.
fn step(storage: StorageType, block: &[u8], at: usize) -> Step {
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    let nibble = |from: usize, k: usize| i32::from(block[from + k % 16] >> (4 * (k / 16)) & 15);
    let fifth = |from: usize, k: usize| i32::from(block[from + k / 8] >> (k % 8) & 1) << 4;
    let plain = |codes, added| Step { codes, factors: [1, 1], scale: half(0), added };
    match storage {
        StorageType::Q4_0 => plain(std::array::from_fn(|k| nibble(2, k) - 8), None),
        StorageType::Q4_1 => plain(std::array::from_fn(|k| nibble(4, k)), Some(half(2))),
        StorageType::Q5_0 => plain(std::array::from_fn(|k| nibble(6, k) + fifth(2, k) - 16), None),
        StorageType::Q5_1 => plain(std::array::from_fn(|k| nibble(8, k) + fifth(4, k)), Some(half(2))),
        StorageType::Q8_0 => plain(std::array::from_fn(|k| i32::from(block[2 + k].cast_signed())), None),
        StorageType::Q4K => with_minimum(block, at, |k| i32::from(block[16 + 32 * (at / 2) + k] >> (4 * (at % 2)) & 15)),
        StorageType::Q5K => with_minimum(block, at, |k| {
            i32::from(block[48 + 32 * (at / 2) + k] >> (4 * (at % 2)) & 15) + (i32::from(block[16 + k] >> at & 1) << 4)
        }),
        StorageType::Q6K => {
            let (half_block, row) = (at / 4, at % 4);
            let low = |k: usize| block[64 * half_block + 32 * (row % 2) + k] >> (4 * (row / 2)) & 15;
            let high = |k: usize| block[128 + 32 * half_block + k] >> (2 * row) & 3;
            Step {
                codes: std::array::from_fn(|k| i32::from(low(k) | high(k) << 4) - 32),
                factors: [2 * at, 2 * at + 1].map(|at| i32::from(block[192 + at].cast_signed())),
                scale: half(208),
                added: None,
            }
        }
        other => unreachable!("{other} has no panels"),
    }
}

/// A sub-block of Q4_K or Q5_K, whose six-bit scales and minima share twelve bytes.
fn with_minimum(block: &[u8], at: usize, code: impl Fn(usize) -> i32) -> Step {
    let packed = &block[4..16];
    let (scale, minimum) = if at < 4 {
        (packed[at] & 63, packed[4 + at] & 63)
    } else {
        (packed[4 + at] & 15 | packed[at - 4] >> 6 << 4, packed[4 + at] >> 4 | packed[at] >> 6 << 4)
    };
    let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    Step {
        codes: std::array::from_fn(code),
        factors: [1, 1],
        scale: half(0) * f32::from(scale),
        added: Some(-(half(2) * f32::from(minimum))),
    }
}
