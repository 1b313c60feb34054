//! How the angles of a rotary model were stretched after its first training, to reach longer texts.

use std::f64::consts::TAU;

use crate::MechanismError;
use crate::elementary::{ln_f64, pow_f64};

/// How the angles of a model were stretched after its first training, to reach longer texts.
///
/// Two of them ask how long the whole sequence may become, because a sequence has one set of angles: keys turned by one set cannot be
/// compared with queries turned by another.
#[derive(Clone, Debug, PartialEq)]
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
    /// A larger base for sequences of more than `original_context` tokens: `theta · (factor · L / original - (factor - 1))^(width / (width - 2))`
    /// for a sequence of `L`.
    DynamicNtk {
        /// How fast the base grows.
        factor: f64,
        /// Longest sequence with the plain base, in tokens.
        original_context: f64,
    },
    /// YaRN: pairs that turn often are kept, those that turn rarely divided by `factor`, those between blended by their index; sines and
    /// cosines are multiplied by `attention_factor`.
    ///
    /// Source: Peng et al. 2023 (arXiv:2309.00071), section 3.
    Yarn {
        /// The divisor for long wavelengths.
        factor: f64,
        /// Turns in the original context from which on a pair is kept; 32 in the paper.
        beta_fast: f64,
        /// Turns below which a pair is divided; 1 in the paper.
        beta_slow: f64,
        /// Tokens of context before the stretching.
        original_context: f64,
        /// Whether the blend begins and ends at whole pairs.
        whole_pairs: bool,
        /// Factor of every sine and cosine; see [`yarn_attention_factor`].
        attention_factor: f64,
    },
    /// LongRoPE: each pair is divided by its own number, of one list for short sequences and of another for long ones.
    ///
    /// Source: Ding et al. 2024 (arXiv:2402.13753).
    LongRope {
        /// Divisors for sequences up to `original_context`, one a pair.
        short: Vec<f32>,
        /// Divisors for longer sequences, one a pair.
        long: Vec<f32>,
        /// Longest sequence with the short divisors, in tokens.
        original_context: f64,
        /// Factor of every sine and cosine, for both lists; see [`longrope_attention_factor`].
        attention_factor: f64,
    },
}

/// By what YaRN multiplies sines and cosines where a file does not say: `0.1 · weight · ln(factor) + 1`, or 1 without stretching.
///
/// - `weight`  1 in the paper; files call it `mscale`
#[must_use]
pub fn yarn_attention_factor(factor: f64, weight: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * weight * ln_f64(factor) + 1.0 }
}

/// By what LongRoPE multiplies sines and cosines where a file does not say: `√(1 + ln(factor) / ln(original_context))`, or 1 without stretching.
///
/// - `factor`  the context of the model over the one before the stretching
#[must_use]
pub fn longrope_attention_factor(factor: f64, original_context: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { (1.0 + ln_f64(factor) / ln_f64(original_context)).sqrt() }
}

impl Scaling {
    /// Factor of every sine and cosine; 1 for all but YaRN and LongRoPE.
    #[must_use]
    pub fn attention_factor(&self) -> f64 {
        match self {
            Self::Yarn { attention_factor, .. } | Self::LongRope { attention_factor, .. } => *attention_factor,
            _ => 1.0,
        }
    }

    pub(super) fn check(&self, theta: f64, width: usize) -> Result<(), MechanismError> {
        match self {
            Self::None => Ok(()),
            Self::Linear { factor } => positive("factor", *factor),
            Self::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => {
                positive("factor", *factor)?;
                positive("low_freq_factor", *low_frequency_factor)?;
                positive("original_max_position_embeddings", *original_context)?;
                if high_frequency_factor > low_frequency_factor {
                    return positive("high_freq_factor", *high_frequency_factor);
                }
                refuse("high_freq_factor", *high_frequency_factor, "a number above low_freq_factor")
            }
            Self::DynamicNtk { factor, original_context } => {
                if !(factor.is_finite() && *factor >= 1.0) {
                    return refuse("factor", *factor, "a number of at least 1");
                }
                positive("original_max_position_embeddings", *original_context)?;
                if width == 2 {
                    return refuse("width", 2.0, "more than 2 channels that turn, because the exponent is width / (width - 2)");
                }
                Ok(())
            }
            Self::Yarn { factor, beta_fast, beta_slow, original_context, whole_pairs: _, attention_factor } => {
                positive("factor", *factor)?;
                positive("beta_slow", *beta_slow)?;
                positive("beta_fast", *beta_fast)?;
                if beta_fast < beta_slow {
                    return refuse("beta_fast", *beta_fast, "a number of at least beta_slow");
                }
                positive("original_max_position_embeddings", *original_context)?;
                positive("attention_factor", *attention_factor)?;
                if theta == 1.0 { refuse("theta", theta, "another number than 1, whose logarithm divides") } else { Ok(()) }
            }
            Self::LongRope { short, long, original_context, attention_factor } => {
                positive("original_max_position_embeddings", *original_context)?;
                positive("attention_factor", *attention_factor)?;
                for (name, divisors) in [("short_factor", short), ("long_factor", long)] {
                    if divisors.len() != width / 2 {
                        return Err(MechanismError::WrongLength { name, axes: "pair", wanted: width / 2, found: divisors.len() });
                    }
                    divisors.iter().try_for_each(|divisor| positive(name, f64::from(*divisor)))?;
                }
                Ok(())
            }
        }
    }

    /// Radians per position of every pair, exactly.
    ///
    /// - `sequence`  tokens that the whole sequence may come to
    #[expect(clippy::cast_precision_loss, reason = "widths and sequences are far below 2^53")]
    pub(super) fn frequencies(&self, theta: f64, width: usize, sequence: usize) -> Vec<f64> {
        let power = |base: f64, pair: usize| pow_f64(base, 2.0 * pair as f64 / width as f64);
        let each = |frequency: &dyn Fn(usize) -> f64| (0..width / 2).map(frequency).collect();
        match self {
            Self::None => each(&|pair| 1.0 / power(theta, pair)),
            Self::Linear { factor } => each(&|pair| 1.0 / power(theta, pair) / factor),
            Self::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => each(&|pair| {
                let plain = 1.0 / power(theta, pair);
                let turns_in_context = original_context * plain / TAU;
                let keep = (turns_in_context - low_frequency_factor) / (high_frequency_factor - low_frequency_factor);
                let keep = keep.clamp(0.0, 1.0);
                keep * plain + (1.0 - keep) * plain / factor
            }),
            Self::DynamicNtk { factor, original_context } => {
                let sequence = (sequence as f64).max(*original_context);
                let stretch = factor * sequence / original_context - (factor - 1.0);
                let theta = theta * pow_f64(stretch, width as f64 / (width as f64 - 2.0));
                each(&|pair| 1.0 / power(theta, pair))
            }
            Self::Yarn { factor, beta_fast, beta_slow, original_context, whole_pairs, .. } => {
                let (first, last) = blend(theta, width, [*beta_fast, *beta_slow], *original_context, *whole_pairs);
                each(&|pair| {
                    let plain = 1.0 / power(theta, pair);
                    let divide = ((pair as f64 - first) / (last - first)).clamp(0.0, 1.0);
                    plain / factor * divide + plain * (1.0 - divide)
                })
            }
            Self::LongRope { short, long, original_context, .. } => {
                let divisors = if sequence as f64 <= *original_context { short } else { long };
                each(&|pair| 1.0 / (f64::from(divisors[pair]) * power(theta, pair)))
            }
        }
    }

    /// As [`Scaling::frequencies`], each step in the order, and with the rounding, of `transformers`' `modeling_rope_utils.py`.
    #[expect(clippy::cast_precision_loss, reason = "a width of a head is far below 2^24; a sequence is rounded there too")]
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
    pub(super) fn frequencies_in_f32(&self, theta: f64, width: usize, sequence: usize) -> Vec<f32> {
        let power_of = |base: f32, exponent: f32| pow_f64(f64::from(base), f64::from(exponent)) as f32;
        let power = |pair: usize| power_of(theta as f32, 2.0 * pair as f32 / width as f32);
        let each = |frequency: &dyn Fn(usize) -> f32| (0..width / 2).map(frequency).collect();
        match self {
            Self::None => each(&|pair| 1.0 / power(pair)),
            Self::Linear { factor } => each(&|pair| 1.0 / power(pair) / *factor as f32),
            Self::ByWavelength { factor, low_frequency_factor, high_frequency_factor, original_context } => each(&|pair| {
                let plain = 1.0 / power(pair);
                let wavelength = (1.0 / plain) * std::f32::consts::TAU;
                if wavelength < (original_context / high_frequency_factor) as f32 {
                    return plain;
                }
                if wavelength > (original_context / low_frequency_factor) as f32 {
                    return plain / *factor as f32;
                }
                let turns_in_context = (1.0 / wavelength) * *original_context as f32;
                let keep = (turns_in_context - *low_frequency_factor as f32) / (high_frequency_factor - low_frequency_factor) as f32;
                (1.0 - keep) * plain / *factor as f32 + keep * plain
            }),
            Self::DynamicNtk { factor, original_context } => {
                if sequence as f64 <= *original_context {
                    return each(&|pair| 1.0 / power(pair));
                }
                let stretch = *factor as f32 * sequence as f32 / *original_context as f32 - (factor - 1.0) as f32;
                let theta = theta as f32 * power_of(stretch, (width as f64 / (width as f64 - 2.0)) as f32);
                each(&|pair| 1.0 / power_of(theta, 2.0 * pair as f32 / width as f32))
            }
            Self::Yarn { factor, beta_fast, beta_slow, original_context, whole_pairs, .. } => {
                let (first, last) = blend(theta, width, [*beta_fast, *beta_slow], *original_context, *whole_pairs);
                each(&|pair| {
                    let (kept, divided) = (1.0 / power(pair), 1.0 / (*factor as f32 * power(pair)));
                    let keep = 1.0 - ((pair as f32 - first as f32) / (last - first) as f32).clamp(0.0, 1.0);
                    divided * (1.0 - keep) + kept * keep
                })
            }
            Self::LongRope { short, long, original_context, .. } => {
                let divisors = if sequence as f64 <= *original_context { short } else { long };
                each(&|pair| 1.0 / (divisors[pair] * power(pair)))
            }
        }
    }
}

/// The first and the last pair of YaRN's blend: those that turn `betas` times in the original context, fast and slow.
#[expect(clippy::cast_precision_loss, reason = "a width of a head is far below 2^53")]
fn blend(theta: f64, width: usize, betas: [f64; 2], original_context: f64, whole_pairs: bool) -> (f64, f64) {
    let [first, last] = betas.map(|turns| width as f64 * ln_f64(original_context / (turns * TAU)) / (2.0 * ln_f64(theta)));
    let (first, last) = if whole_pairs { (first.floor(), last.ceil()) } else { (first, last) };
    let (first, last) = (first.max(0.0), last.min(width as f64 - 1.0));
    // A blend over no pair would divide by zero; `transformers` widens it by as much.
    if first == last { (first, last + 0.001) } else { (first, last) }
}

fn positive(name: &'static str, value: f64) -> Result<(), MechanismError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { refuse(name, value, "a positive number") }
}

fn refuse(name: &'static str, value: f64, wanted: &'static str) -> Result<(), MechanismError> {
    Err(MechanismError::RotarySetting { name, value, wanted })
}
