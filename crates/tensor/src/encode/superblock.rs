//! Blocks of 256 numbers with scales of their sub-blocks: a search for the least squared error.
//!
//! For every sub-block: start from codes by several step widths around the obvious one, fit the scale (and minimum) to these codes by
//! least squares, and keep the fit with the least error. Then the scales are stored with a few bits, which moves them; so the stored
//! neighbours of each are tried with fresh codes, the scale of scales is fitted to the outcome by least squares, and so on.

use super::{cut, f16, inverse, of_largest_size};

const ROUNDS: usize = 3; // of codes, then scales of scales, then codes again; the best counts
const STEPS: i32 = 10; // step widths tried on either side of the obvious one; more gained less than 0.1 % of the error on normal numbers

/// `(d s) code − (dmin m)`: see the decoder for the layout.
pub(super) fn q4_k(values: &[f32; 256], out: &mut [u8; 144]) {
    let (subs, _) = values.as_chunks::<32>();
    let mut fits = [Line::default(); 8];
    for (fit, sub) in fits.iter_mut().zip(subs) {
        *fit = fit_line(sub);
    }
    let most = |of: fn(&Line) -> f32| fits.iter().map(of).fold(0.0, f32::max);
    let mut d = stored(most(|fit| fit.scale) / 63.0);
    let mut d_min = stored(most(|fit| fit.minimum) / 63.0);
    let mut best = ([(0, 0, [0; 32]); 8], d, d_min);
    let mut least = f32::INFINITY;
    for _ in 0..ROUNDS {
        let mut chosen = [(0, 0, [0; 32]); 8];
        let mut error = 0.0;
        for ((chosen, fit), values) in chosen.iter_mut().zip(&fits).zip(subs) {
            let (nearest, its_error) = nearest_line(values, *fit, d, d_min);
            *chosen = nearest;
            error += its_error;
        }
        if error < least {
            (best, least) = ((chosen, d, d_min), error);
        }
        (d, d_min) = fit_both(subs, &chosen);
    }
    let (chosen, d, d_min) = best;
    out[..2].copy_from_slice(&f16(d));
    out[2..4].copy_from_slice(&f16(d_min));
    for (sub, (s, m, codes)) in chosen.into_iter().enumerate() {
        put_scale_and_minimum(&mut out[4..16], sub, s, m);
        for (j, code) in codes.iter().enumerate() {
            out[16 + sub / 2 * 32 + j] |= code << (4 * (sub % 2));
        }
    }
}

/// `(d s) (code − 32)`: see the decoder for the layout.
pub(super) fn q6_k(values: &[f32; 256], out: &mut [u8; 210]) {
    let (subs, _) = values.as_chunks::<16>();
    let mut scales = [0.0; 16];
    for (scale, sub) in scales.iter_mut().zip(subs) {
        *scale = fit_scale(sub);
    }
    let mut d = stored(of_largest_size(&scales) / -128.0); // the largest scale is the code −128, of which there is one more than of 127
    let mut best = ([(0, [32; 16]); 16], d);
    let mut least = f32::INFINITY;
    for _ in 0..ROUNDS {
        let mut chosen = [(0, [32; 16]); 16];
        let (mut error, mut with_value, mut with_self) = (0.0, 0.0, 0.0);
        for ((chosen, scale), values) in chosen.iter_mut().zip(scales).zip(subs) {
            let (nearest, its_error) = nearest_scale(values, scale, d);
            *chosen = nearest;
            error += its_error;
            for (value, code) in values.iter().zip(chosen.1) {
                let product = f32::from(chosen.0) * f32::from(i16::from(code) - 32);
                with_value += product * value;
                with_self += product * product;
            }
        }
        if error < least {
            (best, least) = ((chosen, d), error);
        }
        d = stored(with_value * inverse(with_self));
    }
    let (chosen, d) = best;
    out[208..].copy_from_slice(&f16(d));
    for (sub, (s, codes)) in chosen.into_iter().enumerate() {
        out[192 + sub] = s.cast_unsigned();
        for (j, code) in codes.iter().enumerate() {
            let (half, row, column) = (sub / 8, sub % 8 / 2, sub % 2 * 16 + j);
            out[half * 64 + row % 2 * 32 + column] |= (code & 0x0F) << (4 * (row / 2));
            out[128 + half * 32 + column] |= (code >> 4) << (2 * row);
        }
    }
}

/// `d` and `dmin`, 0 or more, with the least squared error for these scales, minima and codes.
fn fit_both(subs: &[[f32; 32]], chosen: &[(u8, u8, [u8; 32]); 8]) -> (f32, f32) {
    let (mut aa, mut ab, mut bb, mut av, mut bv) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (values, (s, m, codes)) in subs.iter().zip(chosen) {
        let b = -f32::from(*m);
        for (value, code) in values.iter().zip(codes) {
            let a = f32::from(*s) * f32::from(*code);
            aa += a * a;
            ab += a * b;
            bb += b * b;
            av += a * value;
            bv += b * value;
        }
    }
    let inverse_determinant = inverse(aa * bb - ab * ab);
    if inverse_determinant == 0.0 {
        return (stored((av * inverse(aa)).max(0.0)), stored((bv * inverse(bb)).max(0.0)));
    }
    let (d, d_min) = ((av * bb - bv * ab) * inverse_determinant, (bv * aa - av * ab) * inverse_determinant);
    (stored(d.max(0.0)), stored(d_min.max(0.0)))
}

/// `scale · code − minimum`, both 0 or more.
#[derive(Clone, Copy, Default)]
struct Line {
    scale: f32,
    minimum: f32,
}

impl Line {
    fn code(self, value: f32) -> u8 {
        cut((value + self.minimum) * inverse(self.scale) + 0.5).min(15)
    }

    fn error(self, values: &[f32; 32], codes: &[u8; 32]) -> f32 {
        squared(values, codes.map(|code| self.scale * f32::from(code) - self.minimum))
    }
}

fn fit_line(values: &[f32; 32]) -> Line {
    let low = values.iter().fold(0.0_f32, |low, value| low.min(*value));
    let high = values.iter().fold(low, |high, value| high.max(*value));
    let mut best = Line { scale: 0.0, minimum: -low };
    let mut least = best.error(values, &[0; 32]);
    for step in -STEPS..=STEPS {
        let mut line = Line { scale: (high - low) / (15.0 + 0.2 * step as f32), minimum: -low };
        for _ in 0..ROUNDS {
            let codes = values.map(|value| line.code(value));
            let error = line.error(values, &codes);
            if error < least {
                (best, least) = (line, error);
            }
            line = least_squares(values, &codes);
        }
    }
    best
}

/// The line through (code, value) with the least squared error; where its minimum would be below 0, the one through 0.
fn least_squares(values: &[f32; 32], codes: &[u8; 32]) -> Line {
    let (mut sum_c, mut sum_cc, mut sum_v, mut sum_cv) = (0.0, 0.0, 0.0, 0.0);
    for (value, code) in values.iter().zip(codes) {
        let code = f32::from(*code);
        sum_c += code;
        sum_cc += code * code;
        sum_v += value;
        sum_cv += code * value;
    }
    let spread = 32.0 * sum_cc - sum_c * sum_c;
    let scale = (32.0 * sum_cv - sum_c * sum_v) * inverse(spread);
    let minimum = (scale * sum_c - sum_v) / 32.0;
    if minimum < 0.0 { Line { scale: (sum_cv * inverse(sum_cc)).max(0.0), minimum: 0.0 } } else { Line { scale: scale.max(0.0), minimum } }
}

/// Six-bit scale and minimum near `fit`, with the codes that suit them best and their squared error.
fn nearest_line(values: &[f32; 32], fit: Line, d: f32, d_min: f32) -> ((u8, u8, [u8; 32]), f32) {
    let (s, m) = (cut(fit.scale * inverse(d) + 0.5), cut(fit.minimum * inverse(d_min) + 0.5));
    let mut best = (0, 0, [0; 32]);
    let mut least = f32::INFINITY;
    for s in s.saturating_sub(1).min(63)..=s.saturating_add(1).min(63) {
        for m in m.saturating_sub(1).min(63)..=m.saturating_add(1).min(63) {
            let line = Line { scale: d * f32::from(s), minimum: d_min * f32::from(m) };
            let codes = values.map(|value| line.code(value));
            let error = line.error(values, &codes);
            if error < least {
                (best, least) = ((s, m, codes), error);
            }
        }
    }
    (best, least)
}

fn put_scale_and_minimum(packed: &mut [u8], sub: usize, scale: u8, minimum: u8) {
    if sub < 4 {
        packed[sub] |= scale;
        packed[sub + 4] |= minimum;
    } else {
        packed[sub + 4] |= scale & 0x0F | (minimum & 0x0F) << 4;
        packed[sub - 4] |= scale >> 4 << 6;
        packed[sub] |= minimum >> 4 << 6;
    }
}

fn fit_scale(values: &[f32; 16]) -> f32 {
    let largest = of_largest_size(values);
    let (mut best, mut least) = (0.0, squared(values, [0.0; 16]));
    for step in -STEPS..=STEPS {
        let start = -largest / (32.0 + 0.1 * step as f32); // the largest is the code −32, of which there is one more than of 31
        let codes = values.map(|value| centred_code(value, start));
        let (mut with_value, mut with_self) = (0.0, 0.0);
        for (value, code) in values.iter().zip(codes) {
            let code = f32::from(i16::from(code) - 32);
            with_value += code * value;
            with_self += code * code;
        }
        for scale in [start, with_value * inverse(with_self)] {
            let error = error_of_scale(values, scale, &values.map(|value| centred_code(value, scale)));
            if error < least {
                (best, least) = (scale, error);
            }
        }
    }
    best
}

/// Eight-bit scale near `scale`, with the codes that suit it best and their squared error.
fn nearest_scale(values: &[f32; 16], scale: f32, d: f32) -> ((i8, [u8; 16]), f32) {
    #[expect(clippy::cast_possible_truncation, reason = "−128 to 127 by the choice of d; a cast saturates")]
    let s = (scale * inverse(d)).round() as i8;
    let mut best = (0, [32; 16]);
    let mut least = f32::INFINITY;
    for s in s.saturating_sub(1)..=s.saturating_add(1) {
        let scale = d * f32::from(s);
        let codes = values.map(|value| centred_code(value, scale));
        let error = error_of_scale(values, scale, &codes);
        if error < least {
            (best, least) = ((s, codes), error);
        }
    }
    (best, least)
}

/// The code of `value`, 0 to 63, of which 32 stands for 0.
fn centred_code(value: f32, scale: f32) -> u8 {
    cut(value * inverse(scale) + 32.5).min(63)
}

fn error_of_scale(values: &[f32; 16], scale: f32, codes: &[u8; 16]) -> f32 {
    squared(values, codes.map(|code| scale * f32::from(i16::from(code) - 32)))
}

fn squared<const LEN: usize>(values: &[f32; LEN], decoded: [f32; LEN]) -> f32 {
    values.iter().zip(decoded).map(|(value, decoded)| (value - decoded) * (value - decoded)).sum()
}

/// What is left of a number after it is stored as f16.
fn stored(value: f32) -> f32 {
    half::f16::from_f32(value).to_f32()
}
