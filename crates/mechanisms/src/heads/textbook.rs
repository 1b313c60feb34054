//! The definitions, in `f64`.
#![forbid(unsafe_code)]

use ndarray::{Array2, Array3};

use super::Heads;

/// Cuts the width of every token into heads: `[token, head * d_head]` to `[head, token, d_head]`.
///
/// # Panics
///
/// Where the width is no multiple of `d_head`.
#[must_use]
pub fn split(x: &Array2<f64>, d_head: usize) -> Array3<f64> {
    let (tokens, width) = x.dim();
    assert!(width.is_multiple_of(d_head), "a width of {width} is no whole number of heads of {d_head}");
    Array3::from_shape_fn((width / d_head, tokens, d_head), |(head, token, channel)| x[[token, head * d_head + channel]])
}

/// Puts the heads side by side again: `[head, token, d_head]` to `[token, head * d_head]`.
#[must_use]
pub fn merge(x: &Array3<f64>) -> Array2<f64> {
    let (heads, tokens, d_head) = x.dim();
    Array2::from_shape_fn((tokens, heads * d_head), |(token, column)| x[[column / d_head, token, column % d_head]])
}

/// Weights of the four projections without bias: queries and output `d_model × heads d_head`, keys and values `d_model × kv_heads d_head`.
#[must_use]
pub fn parameters(heads: &Heads, d_model: usize) -> usize {
    2 * d_model * heads.query_width() + 2 * d_model * heads.kv_width()
}
