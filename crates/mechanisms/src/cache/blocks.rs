//! The storage type q8_0: codes of 8 bits and a scale for every 32 channels of a token.

use half::f16;

use super::{LANES, Line, TILE};
use crate::elementary::simd::vector_twin;

/// Channels of a block.
pub(super) const BLOCK: usize = 32;

/// Codes of up to 32 channels, and their scale: the smallest f16 that is not below `max |x| / 127`, so that no code is cut off and
/// `|x - scale code| <= scale / 2`. A NaN or an infinity makes the scale NaN, and so everything in the block.
pub(super) fn encode(channels: &[f32], codes: &mut [i8; BLOCK]) -> f16 {
    codes.fill(0);
    let finite = channels.iter().all(|x| x.is_finite());
    let largest = channels.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let scale = if finite { not_below(f64::from(largest) / 127.0) } else { f16::NAN };
    if finite && scale > f16::ZERO {
        let scale = f64::from(scale);
        for (code, &x) in codes.iter_mut().zip(channels) {
            // Adding and taking away 1.5 · 2^52 rounds to a whole number, ties to even.
            const ROUNDING: f64 = 6_755_399_441_055_744.0;
            *code = (f64::from(x) / scale + ROUNDING - ROUNDING) as i8;
        }
    }
    scale
}

/// The smallest f16 that is not below `x`, which is not negative.
fn not_below(x: f64) -> f16 {
    let nearest = f16::from_f64(x);
    if f64::from(nearest) < x { f16::from_bits(nearest.to_bits() + 1) } else { nearest }
}

vector_twin! {
    /// Keys `[quarter, d_head]`, scales `[quarter, block]`.
    pub(super) fn decode_keys(codes: &[[i8; LANES]], scales: &[[f16; LANES]], d_head: usize, out: &mut [Line]) = keys_here
}
vector_twin! {
    /// Values `[panel, token]`, scales `[block, token]`.
    pub(super) fn decode_values(codes: &[[i8; LANES]], scales: &[f16], out: &mut [Line]) = values_here
}

#[inline(always)]
fn keys_here(codes: &[[i8; LANES]], scales: &[[f16; LANES]], d_head: usize, out: &mut [Line]) {
    let blocks = d_head.div_ceil(BLOCK);
    let quarters = codes.chunks_exact(d_head).zip(out.chunks_exact_mut(d_head));
    for ((codes, out), scales) in quarters.zip(scales.chunks_exact(blocks)) {
        for ((codes, out), scales) in codes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).zip(scales) {
            let scales = scales.map(f16::to_f32);
            for (codes, out) in codes.iter().zip(out) {
                for ((out, code), scale) in out.0.iter_mut().zip(codes).zip(scales) {
                    *out = f32::from(*code) * scale;
                }
            }
        }
    }
}

#[inline(always)]
fn values_here(codes: &[[i8; LANES]], scales: &[f16], out: &mut [Line]) {
    const LINES: usize = TILE * (BLOCK / LANES);
    for ((codes, out), scales) in codes.chunks(LINES).zip(out.chunks_mut(LINES)).zip(scales.chunks_exact(TILE)) {
        let mut wide = [0.0; TILE];
        wide.iter_mut().zip(scales).for_each(|(wide, scale)| *wide = scale.to_f32());
        for (codes, out) in codes.chunks_exact(TILE).zip(out.chunks_exact_mut(TILE)) {
            for ((codes, out), scale) in codes.iter().zip(out).zip(wide) {
                out.0.iter_mut().zip(codes).for_each(|(out, code)| *out = f32::from(*code) * scale);
            }
        }
    }
}
