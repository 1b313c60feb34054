//! The definitions, in `f64`.
#![forbid(unsafe_code)]

/// The safe softmax: `w_i = exp(s_i - m) / Σ_j exp(s_j - m)` with `m = max_j s_j`.
///
/// Subtracting the maximum changes nothing (numerator and denominator shrink alike) and keeps `exp` from overflowing. A row whose
/// scores are all minus infinity attends to nothing: zeros.
#[must_use]
pub fn softmax(scores: &[f64]) -> Vec<f64> {
    let m = max(scores);
    if scores.iter().all(|&s| s == f64::NEG_INFINITY) {
        return vec![0.0; scores.len()];
    }
    let sum: f64 = scores.iter().map(|s| (s - m).exp()).sum();
    scores.iter().map(|s| (s - m).exp() / sum).collect()
}

/// `ln Σ exp(s_i)`.
#[must_use]
pub fn log_sum_exp(scores: &[f64]) -> f64 {
    let m = max(scores);
    if scores.iter().all(|&s| s == f64::NEG_INFINITY) {
        return f64::NEG_INFINITY;
    }
    m + scores.iter().map(|s| (s - m).exp()).sum::<f64>().ln()
}

/// `cap tanh(s / cap)`.
#[must_use]
pub fn soft_cap(cap: f64, score: f64) -> f64 {
    cap * (score / cap).tanh()
}

/// The running form of maximum and sum.
///
/// `m` is the largest score so far and `l = Σ exp(s - m)`. A new maximum rescales the sum by `exp(m_old - m_new)`, so one pass is enough.
///
/// Source: Milakov and Gimelshein 2018 (arXiv:1805.02867).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Online {
    /// Largest score so far.
    pub m: f64,
    /// `Σ exp(s - m)`.
    pub l: f64,
}

impl Online {
    /// No score seen.
    pub const EMPTY: Self = Self { m: f64::NEG_INFINITY, l: 0.0 };

    /// One more score.
    #[must_use]
    pub fn push(self, score: f64) -> Self {
        self.merge(Self { m: score, l: 1.0 })
    }

    /// Both halves together.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let m = max(&[self.m, other.m]);
        let scaled = |half: Self| if half.m == f64::NEG_INFINITY { 0.0 } else { half.l * (half.m - m).exp() };
        Self { m, l: scaled(self) + scaled(other) }
    }

    /// The weight of a score among all that were seen.
    #[must_use]
    pub fn weight(self, score: f64) -> f64 {
        if self.m == f64::NEG_INFINITY { 0.0 } else { (score - self.m).exp() / self.l }
    }
}

/// The softmax in one pass over the scores, and a second one that only divides.
#[must_use]
pub fn online_softmax(scores: &[f64]) -> Vec<f64> {
    let seen = scores.iter().fold(Online::EMPTY, |seen, &score| seen.push(score));
    scores.iter().map(|&score| seen.weight(score)).collect()
}

/// The same numbers in `f64`.
#[must_use]
pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Rounds `from` into `to`.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
pub fn round_into(from: &[f64], to: &mut [f32]) {
    for (from, to) in from.iter().zip(to) {
        *to = *from as f32;
    }
}

/// The largest value; NaN if any is NaN.
fn max(values: &[f64]) -> f64 {
    values.iter().fold(f64::NEG_INFINITY, |m, &value| if value > m || value.is_nan() { value } else { m })
}
