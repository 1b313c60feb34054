//! The definition, in `f64`.
#![forbid(unsafe_code)]

use ndarray::Array2;

use super::KeyRange;

/// The mask as a matrix `[query, key]`: 0 where the query sees the key, minus infinity where it does not.
///
/// A causal query sees `key <= query`; a window of `W` adds `query - key < W` (and `key - query < W` without causality).
#[must_use]
pub fn matrix(rule: &KeyRange, queries: usize, keys: usize) -> Array2<f64> {
    Array2::from_shape_fn((queries, keys), |(query, key)| {
        let not_later = !rule.causal || key <= query;
        let near = rule.window.is_none_or(|window| query.abs_diff(key) < window.get());
        if not_later && near { 0.0 } else { f64::NEG_INFINITY }
    })
}

/// Adds the mask to scores `[query, key]`; after scale and soft-cap, before softmax.
pub fn apply(scores: &mut Array2<f64>, mask: &Array2<f64>) {
    *scores += mask;
}
