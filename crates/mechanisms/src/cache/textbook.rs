//! The definitions.
#![forbid(unsafe_code)]

/// Bytes of a cache: `2 layers kv_heads d_head tokens bytes_per_number`, the 2 for keys and values.
///
/// Not `heads`: query heads that share a key-value head share its cache, which is the point of grouped queries.
#[must_use]
pub fn cache_bytes(layers: u64, kv_heads: u64, d_head: u64, tokens: u64, bytes_per_number: u64) -> u64 {
    2 * layers * kv_heads * d_head * tokens * bytes_per_number
}

/// A cache without any cleverness: a list of keys and a list of values, `[token][kv_head * d_head]`.
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
