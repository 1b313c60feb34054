//! The definitions, in `f64`.
#![forbid(unsafe_code)]

/// Rotates one head's vector by its position, so that a dot product of two rotated vectors depends only on the distance between
/// their positions.
///
/// With angle `a_i = position * inv_freq_i` and `h` the number of pairs:
///
/// ```text
/// x'_i     = x_i cos(a_i) - x_{i+h} sin(a_i)
/// x'_{i+h} = x_i sin(a_i) + x_{i+h} cos(a_i)
/// ```
///
/// - `x`         `[d_head]`, changed in place; channels from `2h` on stay as they are
/// - `position`  tokens since the start of the sequence; 0 for the first
/// - `inv_freq`  radians per position, one a pair: `theta^(-2i / width)`
///
/// Pairs are halves (`i` with `i + h`), as in `transformers`; the paper pairs neighbours.
///
/// Source: Su et al. 2021, RoFormer, eq. 34 (arXiv:2104.09864).
pub fn rotate_halves(x: &mut [f64], position: usize, inv_freq: &[f64]) {
    let h = inv_freq.len();
    for i in 0..h {
        let (sin, cos) = (position as f64 * inv_freq[i]).sin_cos();
        (x[i], x[i + h]) = (x[i] * cos - x[i + h] * sin, x[i] * sin + x[i + h] * cos);
    }
}

/// As [`rotate_halves`], with pairs of neighbours: `2i` with `2i + 1`.
pub fn rotate_neighbours(x: &mut [f64], position: usize, inv_freq: &[f64]) {
    for (i, frequency) in inv_freq.iter().enumerate() {
        let (sin, cos) = (position as f64 * frequency).sin_cos();
        (x[2 * i], x[2 * i + 1]) = (x[2 * i] * cos - x[2 * i + 1] * sin, x[2 * i] * sin + x[2 * i + 1] * cos);
    }
}

/// `theta^(-2i / width)` for every pair.
#[must_use]
pub fn inv_freq(width: usize, theta: f64) -> Vec<f64> {
    (0..width / 2).map(|i| theta.powf(-2.0 * i as f64 / width as f64)).collect()
}

/// The sinusoidal vector of one position.
#[must_use]
pub fn sinusoidal(position: usize, d_model: usize) -> Vec<f64> {
    let angle = |channel: usize| position as f64 / 10_000_f64.powf((channel - channel % 2) as f64 / d_model as f64);
    (0..d_model).map(|channel| if channel % 2 == 0 { angle(channel).sin() } else { angle(channel).cos() }).collect()
}

/// `theta` for a sequence of `sequence` tokens under dynamic-NTK scaling: unchanged up to `original` tokens, larger beyond.
#[must_use]
pub fn dynamic_theta(theta: f64, width: usize, factor: f64, original: f64, sequence: f64) -> f64 {
    let stretch = factor * sequence.max(original) / original - (factor - 1.0);
    theta * stretch.powf(width as f64 / (width as f64 - 2.0))
}

/// YaRN's frequencies. With `r_i` the turns of pair `i` in the original context, pairs of `r >= beta_fast` are kept and those of `r <= beta_slow`
/// divided by `factor`; between, the share of the divided frequency grows evenly with the pair's index.
///
/// Source: Peng et al. 2023 (arXiv:2309.00071), section 3.2; its ramp is over the index, as in the authors' program.
#[must_use]
pub fn yarn_inv_freq(width: usize, theta: f64, factor: f64, original: f64, betas: (f64, f64)) -> Vec<f64> {
    let index_of = |turns: f64| width as f64 / 2.0 * (original / (turns * std::f64::consts::TAU)).log(theta);
    let (first, last) = (index_of(betas.0).floor().max(0.0), index_of(betas.1).ceil().min(width as f64 - 1.0));
    let share = |pair: usize| ((pair as f64 - first) / (last - first)).clamp(0.0, 1.0);
    inv_freq(width, theta).into_iter().enumerate().map(|(pair, plain)| plain * (1.0 - share(pair) + share(pair) / factor)).collect()
}

/// LongRoPE's frequencies: each divided by its own number.
#[must_use]
pub fn longrope_inv_freq(width: usize, theta: f64, divisors: &[f64]) -> Vec<f64> {
    inv_freq(width, theta).into_iter().zip(divisors).map(|(plain, divisor)| plain / divisor).collect()
}

/// ALiBi's slopes for `heads` heads, as the authors' program finds them: a geometric sequence where their number is a power of two; else the
/// sequence of the power below, followed by every other member of the sequence of twice that power.
#[must_use]
pub fn alibi_slopes(heads: usize, max_bias: f64) -> Vec<f64> {
    if heads.is_power_of_two() {
        let ratio = 0.5_f64.powf(max_bias / heads as f64);
        return (1..=heads).map(|h| ratio.powi(h as i32)).collect();
    }
    let below = 1 << heads.ilog2();
    let mut slopes = alibi_slopes(below, max_bias);
    slopes.extend(alibi_slopes(2 * below, max_bias).into_iter().step_by(2).take(heads - below));
    slopes
}
