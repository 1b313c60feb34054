//! Positions: how a token says where it stands. Added vectors (sinusoidal, learned), turned pairs (rotary)
//! and scores that fall with distance (ALiBi).

mod distance;
mod fast;
mod scaling;
pub mod textbook;

#[cfg(test)]
mod checks;
#[cfg(test)]
mod scaling_checks;

pub use distance::Alibi;
pub use fast::Turns;
pub use scaling::{Scaling, longrope_attention_factor, yarn_attention_factor};

use std::ops::Range;

use crate::MechanismError;
use crate::elementary::{pow_f64, sin_cos};

/// Which two channels of a head turn together.
///
/// The two differ by a permutation of the weights; mixing them up is silent, because at position 0 both change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Channel `i` with `i + width / 2`: `transformers`, and GGUF files of qwen2, gemma, phi and others.
    Halves,
    /// Channel `2i` with `2i + 1`: the paper, and GGUF files of the llama family.
    Neighbours,
}

/// Rotary positions: pairs of channels are turned by an angle that grows with the position, so that the dot product of two
/// turned vectors depends only on the distance between them.
///
/// Pair `i` turns by `position * theta^(-2i / width)`, stretched by [`Scaling`]. Angles and their sines are computed in `f64` from
/// the position alone, so there is no table to outgrow; the sines are rounded to `f32` once.
///
/// Source: Su et al. 2021, RoFormer (arXiv:2104.09864).
#[derive(Clone, Debug, PartialEq)]
pub struct Rotary {
    d_head: usize,
    width: usize,
    theta: f64,
    scaling: Scaling,
    pairing: Pairing,
    /// One a pair, or none.
    divisors: Vec<f32>,
    /// Whether frequencies and angles are rounded to `f32` step by step.
    single: bool,
}

impl Rotary {
    /// Rotary positions for heads of `d_head` channels, whose first `width` channels turn.
    ///
    /// - `width`  equal to `d_head` for most models; less for a partial rotary
    /// - `theta`  base of the wavelengths, dimensionless; 10 000 in the paper
    ///
    /// # Errors
    ///
    /// Where `width` is odd, zero or above `d_head`, or a number gives no finite angle.
    pub fn new(d_head: usize, width: usize, theta: f64, scaling: Scaling, pairing: Pairing) -> Result<Self, MechanismError> {
        if width == 0 || width > d_head || !width.is_multiple_of(2) {
            return Err(MechanismError::RotaryWidth { d_head, width });
        }
        if !(theta.is_finite() && theta > 0.0) {
            return Err(MechanismError::RotarySetting { name: "theta", value: theta, wanted: "a positive number" });
        }
        scaling.check(theta, width)?;
        Ok(Self { d_head, width, theta, scaling, pairing, divisors: Vec::new(), single: false })
    }

    /// As [`Rotary::new`], with frequencies and angles in `f32`, each step rounded as `transformers` rounds it.
    ///
    /// A model of `transformers` is defined with this rounding in it. Compared with exact angles it is 1e-5 radians at position 128 and
    /// 2e-4 at 4096, which moves sharp attention weights by 1e-5 already at 128 tokens. Sines and cosines of the rounded angle are
    /// computed in `f64`.
    ///
    /// # Errors
    ///
    /// As [`Rotary::new`].
    pub fn in_single_precision(
        d_head: usize,
        width: usize,
        theta: f64,
        scaling: Scaling,
        pairing: Pairing,
    ) -> Result<Self, MechanismError> {
        let rotary = Self { single: true, ..Self::new(d_head, width, theta, scaling, pairing)? };
        match [0, usize::MAX].into_iter().all(|sequence| rotary.frequencies(sequence).iter().all(|frequency| frequency.is_finite())) {
            true => Ok(rotary),
            false => Err(MechanismError::RotarySetting { name: "theta", value: theta, wanted: "a number whose powers are finite in f32" }),
        }
    }

    /// The same, with the angle of each pair divided by its own number, for files that list a stretching instead of naming its formula.
    ///
    /// - `divisors`  one a pair of channels, each positive
    ///
    /// # Errors
    ///
    /// Where there are more or fewer, or one is not positive.
    pub fn divided_by(mut self, divisors: &[f32]) -> Result<Self, MechanismError> {
        if divisors.len() != self.width / 2 {
            let (wanted, found) = (self.width / 2, divisors.len());
            return Err(MechanismError::WrongLength { name: "divisors", axes: "pair", wanted, found });
        }
        if let Some(divisor) = divisors.iter().find(|divisor| !(divisor.is_finite() && **divisor > 0.0)) {
            let value = f64::from(*divisor);
            return Err(MechanismError::RotarySetting { name: "divisor", value, wanted: "a positive number" });
        }
        self.divisors = divisors.to_vec();
        Ok(self)
    }

    /// Radians per position, one a pair of channels, after scaling.
    ///
    /// - `sequence`  tokens that the whole sequence may come to; only [`Scaling::DynamicNtk`] and [`Scaling::LongRope`] ask
    #[must_use]
    pub fn frequencies(&self, sequence: usize) -> Vec<f64> {
        let (theta, width) = (self.theta, self.width);
        let mut frequencies = match self.single {
            true => self.scaling.frequencies_in_f32(theta, width, sequence).into_iter().map(f64::from).collect(),
            false => self.scaling.frequencies(theta, width, sequence),
        };
        for (frequency, divisor) in frequencies.iter_mut().zip(&self.divisors) {
            *frequency = if self.single { f64::from(*frequency as f32 / divisor) } else { *frequency / f64::from(*divisor) };
        }
        frequencies
    }

    /// Channels of a head.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.d_head
    }

    /// The sines and cosines of some positions; made once for a pass, they serve every layer with the same settings.
    ///
    /// - `sequence`  as in [`Rotary::frequencies`]: the same for all passes over one sequence, or its keys and queries do not fit together
    #[must_use]
    pub fn turns(&self, positions: Range<usize>, sequence: usize) -> Turns {
        Turns::new(self, positions, sequence)
    }
}

/// Adds a learned vector to each token: row `first_position + t` of `table` `[position, d_model]` to row `t` of `x` `[token, d_model]`.
///
/// # Errors
///
/// Where a position lies beyond the table: learned positions cannot be extended.
pub fn add_learned(x: &mut [f32], table: &[f32], d_model: usize, first_position: usize) -> Result<(), MechanismError> {
    let rows = table.len() / d_model.max(1);
    let tokens = x.len() / d_model.max(1);
    let end = first_position.saturating_add(tokens);
    if end > rows {
        return Err(MechanismError::PositionOutOfTable { first: first_position, end, rows });
    }
    for (value, position) in x.iter_mut().zip(&table[first_position * d_model..]) {
        *value += position;
    }
    Ok(())
}

/// The sinusoidal vectors of `positions`, `[position, d_model]`, to be added like learned ones.
///
/// Channel `2i` is `sin(position / 10000^(2i / d_model))`, channel `2i + 1` the cosine; computed in `f64`, rounded once.
///
/// Source: Vaswani et al. 2017, section 3.5 (arXiv:1706.03762).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "positions and widths are far below 2^53")]
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
pub fn sinusoidal(positions: Range<usize>, d_model: usize) -> Vec<f32> {
    let frequencies: Vec<f64> = (0..d_model.div_ceil(2)).map(|i| 1.0 / pow_f64(1e4, 2.0 * i as f64 / d_model as f64)).collect();
    let mut table = Vec::with_capacity(positions.len() * d_model);
    for position in positions {
        for channel in 0..d_model {
            let (sin, cos) = sin_cos(position as f64 * frequencies[channel / 2]);
            table.push(if channel % 2 == 0 { sin as f32 } else { cos as f32 });
        }
    }
    table
}
