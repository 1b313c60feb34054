//! Scores that fall with distance.

use crate::MechanismError;
use crate::elementary::pow_f64;

/// ALiBi: from the score of every key, `slope · |query - key|` is taken, with another slope for each head. Nothing is learned.
///
/// For a number of heads `n` that is a power of two, slopes are `2^(-max_bias · h / n)` for `h = 1..=n`. For other numbers they are those of the
/// power of two `p` below, then every other one of `2p`, from its first on.
///
/// Programs that add `slope · key` instead differ by a constant in each row, which the softmax takes out again.
///
/// Source: Press et al. 2021 (arXiv:2108.12409), section 3, and the authors' program for other numbers of heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alibi {
    max_bias: f64,
}

impl Alibi {
    /// - `max_bias`  8 in the paper: the last of the slopes is `2^-8`
    ///
    /// # Errors
    ///
    /// Where it is not a positive number.
    pub fn new(max_bias: f64) -> Result<Self, MechanismError> {
        if max_bias.is_finite() && max_bias > 0.0 {
            return Ok(Self { max_bias });
        }
        Err(MechanismError::PositionSetting { name: "max_bias", value: max_bias, wanted: "a positive number" })
    }

    /// What a score loses for each position between query and key, in head `head` of `heads`; positive.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "heads are few")]
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
    pub fn slope(&self, head: usize, heads: usize) -> f32 {
        let power = (heads + 1).next_power_of_two() / 2;
        let (index, count) = if head < power { (head + 1, power) } else { (2 * (head - power) + 1, 2 * power) };
        pow_f64(2.0, -self.max_bias * index as f64 / count as f64) as f32
    }
}
