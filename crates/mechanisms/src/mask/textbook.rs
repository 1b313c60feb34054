//! The definition, in `f64`.
#![forbid(unsafe_code)]

use ndarray::Array2;

use super::{Hidden, KeyRange, Text};

/// The mask as a matrix `[query, key]`: 0 where the query sees the key, minus infinity where it does not.
///
/// A causal query sees `key <= query`, or any key of a prefix that both belong to; a window of `W` adds `|query - key| < W`; texts add that both are in
/// the same one.
///
/// - `texts`           `None` where one text fills all positions
/// - `first_position`  position of the first query; keys begin at position 0
#[must_use]
pub fn matrix(rule: &KeyRange, texts: Option<&[Text]>, first_position: usize, queries: usize, keys: usize) -> Array2<f64> {
    Array2::from_shape_fn((queries, keys), |(query, key)| {
        let query = first_position + query;
        let holds = |text: &Text, position: usize| text.positions.start <= position && position < text.positions.end;
        let in_prefix = |text: &Text, position: usize| holds(text, position) && position - text.positions.start < text.prefix;
        let together = texts.is_none_or(|texts| texts.iter().any(|text| holds(text, query) && holds(text, key)));
        let both_in_prefix = texts.is_some_and(|texts| texts.iter().any(|text| in_prefix(text, query) && in_prefix(text, key)));
        let not_later = !rule.causal || key <= query || both_in_prefix;
        let near = rule.window.is_none_or(|window| query.abs_diff(key) < window.get());
        if together && not_later && near { 0.0 } else { f64::NEG_INFINITY }
    })
}

/// Adds the mask to scores `[query, key]`; after scale and soft-cap, before softmax. Of a hidden key's score nothing is left, not even NaN.
pub fn apply(scores: &mut Array2<f64>, mask: &Array2<f64>) {
    scores.zip_mut_with(mask, |score, &mask| *score = if mask == 0.0 { *score } else { mask });
}

/// Hides from some queries of a mask `[query, key]` the keys that an edit takes from them.
///
/// - `first_position`  position of the first query
pub fn hide(mask: &mut Array2<f64>, hidden: &Hidden, first_position: usize) {
    for ((query, key), mask) in mask.indexed_iter_mut() {
        if hidden.queries.contains(&(first_position + query)) && hidden.keys.contains(&key) {
            *mask = f64::NEG_INFINITY;
        }
    }
}
