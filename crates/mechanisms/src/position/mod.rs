//! Positions: how a token says where it stands. Added vectors (sinusoidal, learned) and turned pairs (rotary).

mod fast;
pub mod textbook;

#[cfg(test)]
mod checks;

pub use fast::Turns;

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

/// How the angles of a model were stretched after its first training, to reach longer texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    /// As in the paper.
    None,
    /// Every angle is divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3.1: long wavelengths are divided by `factor`, short ones kept, those between blended.
    ByWavelength {
        /// The divisor for long wavelengths.
        factor: f64,
        /// Wavelengths over `original_context / low_frequency_factor` are divided.
        low_frequency_factor: f64,
        /// Wavelengths under `original_context / high_frequency_factor` are kept.
        high_frequency_factor: f64,
        /// Tokens of context before the stretching.
        original_context: f64,
    },
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
    pairing: Pairing,
    /// Radians per position, one a pair.
    inv_freq: Vec<f64>,
    /// Whether an angle is a product in `f32`.
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
        check(scaling)?;
        #[expect(clippy::cast_precision_loss, reason = "a width of a head is far below 2^53")]
        let frequency = |pair: usize| scale(scaling, 1.0 / pow_f64(theta, 2.0 * pair as f64 / width as f64));
        Ok(Self { d_head, pairing, inv_freq: (0..width / 2).map(frequency).collect(), single: false })
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
        let exact = Self::new(d_head, width, theta, scaling, pairing)?;
        let frequency = |pair| f64::from(scale_in_f32(scaling, frequency_in_f32(theta, pair, width)));
        let inv_freq: Vec<f64> = (0..width / 2).map(frequency).collect();
        match inv_freq.iter().find(|frequency| !frequency.is_finite()) {
            Some(_) => {
                Err(MechanismError::RotarySetting { name: "theta", value: theta, wanted: "a number whose powers are finite in f32" })
            }
            None => Ok(Self { inv_freq, single: true, ..exact }),
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
        if divisors.len() != self.inv_freq.len() {
            let (wanted, found) = (self.inv_freq.len(), divisors.len());
            return Err(MechanismError::WrongLength { name: "divisors", axes: "pair", wanted, found });
        }
        for (frequency, divisor) in self.inv_freq.iter_mut().zip(divisors) {
            let value = f64::from(*divisor);
            if !(value.is_finite() && value > 0.0) {
                return Err(MechanismError::RotarySetting { name: "divisor", value, wanted: "a positive number" });
            }
            *frequency = if self.single { f64::from(*frequency as f32 / divisor) } else { *frequency / value };
        }
        Ok(self)
    }

    /// Radians per position, one a pair of channels, after scaling.
    #[must_use]
    pub fn inv_freq(&self) -> &[f64] {
        &self.inv_freq
    }

    /// Channels of a head.
    #[must_use]
    pub fn d_head(&self) -> usize {
        self.d_head
    }

    /// The sines and cosines of some positions; made once for a pass, they serve every layer with the same settings.
    #[must_use]
    pub fn turns(&self, positions: Range<usize>) -> Turns {
        Turns::new(self, positions)
    }

    /// Turns every head of every token.
    ///
    /// - `x`               `[token, head, d_head]`, changed in place
    /// - `heads`           heads of a token
    /// - `first_position`  position of the first token; the others follow it
    ///
    /// The result of a token depends on its position and values only, whatever comes with it.
    ///
    /// # Errors
    ///
    /// Where `x` is not whole tokens.
    pub fn rotate_in_place(&self, x: &mut [f32], heads: usize, first_position: usize) -> Result<(), MechanismError> {
        let width = (heads * self.d_head).max(1);
        let tokens = x.len() / width;
        self.turns(first_position..first_position + tokens).rotate_in_place(x, heads)
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

/// The sinusoidal vectors of positions `0..positions`, `[position, d_model]`, to be added like learned ones.
///
/// Channel `2i` is `sin(position / 10000^(2i / d_model))`, channel `2i + 1` the cosine; computed in `f64`, rounded once.
///
/// Source: Vaswani et al. 2017, section 3.5 (arXiv:1706.03762).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "positions and widths are far below 2^53")]
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
pub fn sinusoidal(positions: usize, d_model: usize) -> Vec<f32> {
    let frequencies: Vec<f64> = (0..d_model.div_ceil(2)).map(|i| 1.0 / pow_f64(1e4, 2.0 * i as f64 / d_model as f64)).collect();
    let mut table = Vec::with_capacity(positions * d_model);
    for position in 0..positions {
        for channel in 0..d_model {
            let (sin, cos) = sin_cos(position as f64 * frequencies[channel / 2]);
            table.push(if channel % 2 == 0 { sin as f32 } else { cos as f32 });
        }
    }
    table
}

fn check(scaling: Scaling) -> Result<(), MechanismError> {
    let positive = |name, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(())
        } else {
            Err(MechanismError::RotarySetting { name, value, wanted: "a positive number" })
        }
    };
    match scaling {
        Scaling::None => Ok(()),
        Scaling::Linear { factor } => positive("factor", factor),
        Scaling::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => {
            positive("factor", factor)?;
            positive("low_freq_factor", low_frequency_factor)?;
            positive("original_max_position_embeddings", original_context)?;
            if high_frequency_factor.is_finite() && high_frequency_factor > low_frequency_factor {
                return Ok(());
            }
            let wanted = "a number above low_freq_factor";
            Err(MechanismError::RotarySetting { name: "high_freq_factor", value: high_frequency_factor, wanted })
        }
    }
}

fn scale(scaling: Scaling, inv_freq: f64) -> f64 {
    match scaling {
        Scaling::None => inv_freq,
        Scaling::Linear { factor } => inv_freq / factor,
        Scaling::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => {
            let turns_in_context = original_context * inv_freq / std::f64::consts::TAU;
            let keep = (turns_in_context - low_frequency_factor) / (high_frequency_factor - low_frequency_factor);
            let keep = keep.clamp(0.0, 1.0);
            keep * inv_freq + (1.0 - keep) * inv_freq / factor
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a width of a head is far below 2^24")]
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
fn frequency_in_f32(theta: f64, pair: usize, width: usize) -> f32 {
    let exponent = 2.0 * pair as f32 / width as f32;
    let power = pow_f64(f64::from(theta as f32), f64::from(exponent)) as f32;
    1.0 / power
}

/// The steps of [`scale`] in the order, and with the rounding, of `transformers`' `modeling_rope_utils.py`.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
fn scale_in_f32(scaling: Scaling, inv_freq: f32) -> f32 {
    match scaling {
        Scaling::None => inv_freq,
        Scaling::Linear { factor } => inv_freq / factor as f32,
        Scaling::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => {
            let wavelength = (1.0 / inv_freq) * std::f32::consts::TAU;
            if wavelength < (original_context / high_frequency_factor) as f32 {
                return inv_freq;
            }
            if wavelength > (original_context / low_frequency_factor) as f32 {
                return inv_freq / factor as f32;
            }
            let turns_in_context = (1.0 / wavelength) * original_context as f32;
            let keep = (turns_in_context - low_frequency_factor as f32) / (high_frequency_factor - low_frequency_factor) as f32;
            (1.0 - keep) * inv_freq / factor as f32 + keep * inv_freq
        }
    }
}
