//! The definitions.
#![forbid(unsafe_code)]

use super::KvType;

/// Bytes of a cache: `2 layers kv_heads d_head tokens bytes_per_number`, the 2 for keys and values.
///
/// Not `heads`: query heads that share a key-value head share its cache, which is the point of grouped queries.
#[must_use]
pub fn cache_bytes(layers: u64, kv_heads: u64, d_head: u64, tokens: u64, bytes_per_number: u64) -> u64 {
    2 * layers * kv_heads * d_head * tokens * bytes_per_number
}

/// A key or value `[d_head]` of one head of one token, as it is read back.
///
/// - `F16`: the nearest multiple of `2^(e - 10)`, ties to even, where `2^e <= |x|` and `e >= -14`
/// - `Q8_0`: for every 32 channels a scale, the smallest f16 that is not below `max |x| / 127`; then `scale round(x / scale)`, ties to even
#[must_use]
pub fn stored(kv_type: KvType, channels: &[f32]) -> Vec<f64> {
    let exact: Vec<f64> = channels.iter().map(|&x| f64::from(x)).collect();
    match kv_type {
        KvType::F32 => exact,
        KvType::F16 => exact.into_iter().map(|x| half(x, f64::round_ties_even)).collect(),
        KvType::Q8_0 => exact.chunks(32).flat_map(block).collect(),
    }
}

fn block(channels: &[f64]) -> Vec<f64> {
    if !channels.iter().all(|x| x.is_finite()) {
        return vec![f64::NAN; channels.len()];
    }
    let scale = half(channels.iter().fold(0.0, |largest: f64, x| largest.max(x.abs())) / 127.0, f64::ceil);
    channels.iter().map(|x| if scale == 0.0 { 0.0 } else { scale * (x / scale).round_ties_even() }).collect()
}

/// `x` with the 11 significant bits of an f16, rounded by `round`.
fn half(x: f64, round: impl Fn(f64) -> f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let mut exponent = -14;
    while x.abs() >= f64::powi(2.0, exponent + 1) {
        exponent += 1;
    }
    let step = f64::powi(2.0, exponent - 10);
    let rounded = step * round(x / step);
    if rounded.abs() > 65504.0 { f64::INFINITY.copysign(x) } else { rounded }
}

/// A cache without any cleverness: a list of keys and a list of values, `[token][kv_head * d_head]`. A fork is a clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainCache {
    /// One a token.
    pub keys: Vec<Vec<f32>>,
    /// One a token.
    pub values: Vec<Vec<f32>>,
}

impl PlainCache {
    /// Adds one token.
    pub fn append(&mut self, key: &[f32], value: &[f32]) {
        self.keys.push(key.to_vec());
        self.values.push(value.to_vec());
    }

    /// Forgets all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.keys.truncate(len);
        self.values.truncate(len);
    }
}
