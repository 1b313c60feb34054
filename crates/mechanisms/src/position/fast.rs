use std::ops::Range;

use super::{Pairing, Rotary};
use crate::MechanismError;
use crate::elementary::sin_cos;

/// Sines and cosines of a range of positions, rounded to `f32`, times the attention factor of their scaling.
#[derive(Clone, Debug)]
pub struct Turns {
    d_head: usize,
    pairing: Pairing,
    first_position: usize,
    pairs: usize,
    attention_factor: f32,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Turns {
    #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
    pub(super) fn new(rotary: &Rotary, positions: Range<usize>, sequence: usize) -> Self {
        let frequencies = rotary.frequencies(sequence);
        let first_position = positions.start;
        let angle = |position: usize, frequency: f64| match rotary.single {
            true => f64::from(position as f32 * frequency as f32),
            false => position as f64 * frequency,
        };
        let angles = positions.flat_map(|position| frequencies.iter().map(move |frequency| angle(position, *frequency)));
        let attention_factor = rotary.scaling.attention_factor() as f32;
        let round = |(sin, cos): (f64, f64)| (sin as f32 * attention_factor, cos as f32 * attention_factor);
        let (sin, cos) = angles.map(sin_cos).map(round).unzip();
        let pairs = frequencies.len();
        Self { d_head: rotary.d_head, pairing: rotary.pairing, first_position, pairs, attention_factor, cos, sin }
    }

    /// Turns `x` `[token, head, d_head]` in place; token `t` stands at position `t` of the range these were made for.
    ///
    /// With `c`, `s` the cosine and sine of a pair `(x, y)`: `x' = x c - y s`, `y' = y c + x s`, every product and sum rounded by itself. Position 0
    /// turns nothing and, without an attention factor, is not touched.
    ///
    /// # Errors
    ///
    /// Where `x` is not the tokens of that range.
    pub fn rotate_in_place(&self, x: &mut [f32], heads: usize) -> Result<(), MechanismError> {
        let tokens = self.cos.len() / self.pairs;
        let wanted = tokens * heads * self.d_head;
        if x.len() != wanted {
            return Err(MechanismError::WrongLength { name: "x", axes: "token x head x d_head", wanted, found: x.len() });
        }
        if heads == 0 {
            return Ok(());
        }
        for (t, token) in x.chunks_exact_mut(heads * self.d_head).enumerate() {
            if self.first_position + t == 0 && self.attention_factor == 1.0 {
                continue;
            }
            let row = t * self.pairs..(t + 1) * self.pairs;
            let (cos, sin) = (&self.cos[row.clone()], &self.sin[row]);
            for head in token.chunks_exact_mut(self.d_head) {
                match self.pairing {
                    Pairing::Halves => rotate_halves(head, cos, sin),
                    Pairing::Neighbours => rotate_neighbours(head, cos, sin),
                }
            }
        }
        Ok(())
    }
}

fn rotate_halves(head: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (first, second) = head.split_at_mut(cos.len());
    for (((x, y), &c), &s) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*x, *y) = turn(*x, *y, c, s);
    }
}

fn rotate_neighbours(head: &mut [f32], cos: &[f32], sin: &[f32]) {
    for ((pair, &c), &s) in head.chunks_exact_mut(2).zip(cos).zip(sin) {
        (pair[0], pair[1]) = turn(pair[0], pair[1], c, s);
    }
}

#[inline(always)]
fn turn(x: f32, y: f32, c: f32, s: f32) -> (f32, f32) {
    (x * c - y * s, y * c + x * s)
}
