//! The definition, in `f64`, with the whole matrix of scores.
#![forbid(unsafe_code)]

use std::ops::Range;

use ndarray::{Array1, Array2};

use super::{Asked, DISTANCE_CLASSES, Queries, Rule, Statistics, distance_class};
use crate::cache::LayerView;
use crate::heads::Heads;
use crate::mask::textbook::{apply as mask, hide, matrix};
use crate::mask::{Hidden, Text};
use crate::softmax::textbook::{log_sum_exp, soft_cap, softmax};

/// Attention of one head: `softmax(mask(cap(scale Q Kᵀ) - slope distance)) V`.
///
/// - `q`     `[query, d_head]`, at positions `first_position..`
/// - `k`     `[key, d_head]`, at positions `0..`
/// - `v`     `[key, d_head]`
/// - `texts`  those that lie one after another, `None` where one fills all positions
/// - `slope`  what a score loses for each position between query and key, for ALiBi; else 0
///
/// Returns the mixed values `[query, d_head]` and `ln Σ exp(score)` of each row.
///
/// Source: Vaswani et al. 2017, eq. 1 (arXiv:1706.03762).
#[must_use]
pub fn attend(
    q: &Array2<f64>,
    k: &Array2<f64>,
    v: &Array2<f64>,
    first_position: usize,
    rule: &Rule,
    texts: Option<&[Text]>,
    slope: f64,
) -> (Array2<f64>, Array1<f64>) {
    let scores = scores(q, k, first_position, rule, texts, slope);
    let weights = pattern(&scores);
    let sums = scores.rows().into_iter().map(|row| log_sum_exp(&row.to_vec())).collect();
    (mix(&weights, v), sums)
}

/// `mask(cap(scale Q Kᵀ) - slope distance)`, `[query, key]`: minus infinity where the query does not see the key.
#[must_use]
pub fn scores(q: &Array2<f64>, k: &Array2<f64>, first_position: usize, rule: &Rule, texts: Option<&[Text]>, slope: f64) -> Array2<f64> {
    let mut scores = q.dot(&k.t());
    for ((query, key), score) in scores.indexed_iter_mut() {
        *score *= f64::from(rule.scale);
        if let Some(cap) = rule.soft_cap.filter(|&cap| cap != 0.0) {
            *score = soft_cap(f64::from(cap), *score);
        }
        *score -= slope * (first_position + query).abs_diff(key) as f64;
    }
    mask(&mut scores, &matrix(&rule.keys, texts, first_position, q.nrows(), k.nrows()));
    scores
}

/// Scores in which an edit hides keys: minus infinity before the softmax, so that what is left adds up to 1 again.
///
/// Source: Geva et al. 2023, section 4 (attention knockout; arXiv:2304.14767).
pub fn knock_out(scores: &mut Array2<f64>, hidden: &Hidden, first_position: usize) {
    let mut edit = Array2::zeros(scores.dim());
    hide(&mut edit, hidden, first_position);
    mask(scores, &edit);
}

/// Softmax of every row.
#[must_use]
pub fn pattern(scores: &Array2<f64>) -> Array2<f64> {
    let mut weights = scores.to_owned();
    for mut row in weights.rows_mut() {
        let weighed = Array1::from(softmax(&row.to_vec()));
        row.assign(&weighed);
    }
    weights
}

/// `Σ_j w_j v_j` for every row of weights. A weight of 0 takes nothing from its value, whatever that is.
#[must_use]
pub fn mix(weights: &Array2<f64>, v: &Array2<f64>) -> Array2<f64> {
    let mut mixed = Array2::zeros((weights.nrows(), v.ncols()));
    for ((query, key), &weight) in weights.indexed_iter() {
        if weight != 0.0 {
            mixed.row_mut(query).scaled_add(weight, &v.row(key));
        }
    }
    mixed
}

/// [`attend`] for all heads, on the slices and the cache of the everyday kernel; rounded to `f32` at the end.
pub(super) fn attend_rounded(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, out: &mut [f32], mut sums: Option<&mut [f32]>) {
    let (heads, tokens) = (&queries.heads, queries.tokens());
    for head in 0..heads.heads() {
        let (k, v) = stored(layer, heads.kv_head_of(head));
        let scores = scores_of(queries, &k, rule, head, 0..tokens);
        for ((token, channel), &value) in mix(&pattern(&scores), &v).indexed_iter() {
            out[token * heads.query_width() + head * heads.d_head() + channel] = round(value);
        }
        if let Some(sums) = &mut sums {
            for (token, scores) in scores.rows().into_iter().enumerate() {
                sums[head * tokens + token] = round(log_sum_exp(&scores.to_vec()));
            }
        }
    }
}

/// What a row of weights says: its entropy, effective support and mean distance, the first key's share, the share of each class of distance,
/// that of each span; the keys with the largest weights, and these; then, for each measure `g`, `Σ w g` over all keys, over each span, and of each of
/// those keys alone.
///
/// - `weights`  `[key]`, as [`pattern`] gives them
/// - `head`     to which measures belong
/// - `query`    position of the query
#[must_use]
pub fn statistics(weights: &[f64], head: usize, query: usize, asked: &Asked<'_>) -> Vec<f64> {
    let share = |keys: &dyn Fn(usize) -> bool| weights.iter().enumerate().filter(|(key, _)| keys(*key)).map(|(_, p)| p).sum::<f64>();
    let entropy = weights.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
    let squares: f64 = weights.iter().map(|p| p * p).sum();
    let distance = weights.iter().enumerate().map(|(key, p)| p * key.abs_diff(query) as f64).sum();
    let support = if squares > 0.0 { 1.0 / squares } else { 0.0 };
    let mut row = vec![entropy, support, distance, share(&|key| key == 0)];
    row.extend((0..DISTANCE_CLASSES).map(|class| share(&|key| distance_class(key.abs_diff(query)) == class)));
    row.extend(asked.spans.iter().map(|span| share(&|key| span.contains(&key))));

    let mut top: Vec<usize> = (0..weights.len()).filter(|key| weights[*key] > 0.0).collect();
    top.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    let of_top = |none: f64, number: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..asked.top_keys).map(|index| top.get(index).map_or(none, |key| number(*key))).collect()
    };
    row.extend(of_top(-1.0, &|key| key as f64));
    row.extend(of_top(0.0, &|key| weights[key]));
    for measure in asked.measures {
        // A key without weight takes nothing, whatever its number is.
        let part = |key: usize| if weights[key] == 0.0 { 0.0 } else { weights[key] * f64::from(measure[head * weights.len() + key]) };
        row.push((0..weights.len()).map(part).sum());
        row.extend(asked.spans.iter().map(|span| (span.start..span.end.min(weights.len())).map(part).sum::<f64>()));
        row.extend(of_top(0.0, &part));
    }
    row
}

/// [`statistics`] of all rows, rounded.
pub(super) fn statistics_rounded(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, asked: &Asked<'_>, out: &mut Statistics) {
    for head in 0..queries.heads.heads() {
        let (k, _) = stored(layer, queries.heads.kv_head_of(head));
        let scores = scores_of(queries, &k, rule, head, 0..queries.tokens());
        for (token, (scores, weights)) in scores.rows().into_iter().zip(pattern(&scores).rows()).enumerate() {
            let row = out.row_mut(head, token);
            let seen: Vec<usize> = (0..scores.len()).filter(|key| scores[*key] > f64::NEG_INFINITY).collect();
            row[0] = round(log_sum_exp(&scores.to_vec()));
            row[1] = seen.first().copied().unwrap_or(0) as f32;
            row[2] = seen.len() as f32;
            let told = statistics(&weights.to_vec(), head, queries.first_position + token, asked);
            row[3..].iter_mut().zip(told).for_each(|(row, told)| *row = round(told));
        }
    }
}

/// What each key, and each distance before its query, gets from all queries: `Σ_i a_i p_ij` over columns and over diagonals.
///
/// - `weights`         `[query, key]`, as [`pattern`] gives them
/// - `of_queries`      `[query]`, the weights `a`
/// - `first_position`  of the queries
#[must_use]
pub fn received(weights: &Array2<f64>, of_queries: &[f64], first_position: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut keys, mut distances) = (vec![0.0; weights.ncols()], vec![0.0; weights.ncols()]);
    for ((query, key), weight) in weights.indexed_iter() {
        keys[key] += of_queries[query] * weight;
        if key <= first_position + query {
            distances[first_position + query - key] += of_queries[query] * weight;
        }
    }
    (keys, distances)
}

/// [`received`] for all heads, added to `sums`, each head's keys in the first half of `stride` numbers and its distances in the second.
pub(super) fn receive_exactly(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, weights: &[f32], stride: usize, sums: &mut [f64]) {
    let of_queries: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
    for (head, sums) in sums.chunks_exact_mut(stride).enumerate() {
        let (k, _) = stored(layer, queries.heads.kv_head_of(head));
        let scores = scores_of(queries, &k, rule, head, 0..queries.tokens());
        let (keys, distances) = received(&pattern(&scores), &of_queries, queries.first_position);
        let (to_keys, to_distances) = sums.split_at_mut(stride / 2);
        to_keys.iter_mut().zip(keys).chain(to_distances.iter_mut().zip(distances)).for_each(|(sum, added)| *sum += added);
    }
}

/// [`scores`] for all heads and some tokens, `[head, query, key]`, rounded.
pub(super) fn scores_rounded(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, tokens: Range<usize>) -> Vec<f32> {
    let mut all = Vec::new();
    for head in 0..queries.heads.heads() {
        let (k, _) = stored(layer, queries.heads.kv_head_of(head));
        all.extend(scores_of(queries, &k, rule, head, tokens.clone()).iter().map(|&score| round(score)));
    }
    all
}

/// [`mix`] for all heads, rounded.
pub(super) fn mix_rounded(pattern: &[f32], heads: &Heads, layer: &LayerView<'_>, out: &mut [f32]) {
    let (keys, tokens) = (layer.len(), out.len() / heads.query_width());
    for head in 0..heads.heads() {
        let (_, v) = stored(layer, heads.kv_head_of(head));
        let weights = Array2::from_shape_fn((tokens, keys), |(token, key)| f64::from(pattern[(head * tokens + token) * keys + key]));
        for ((token, channel), &value) in mix(&weights, &v).indexed_iter() {
            out[token * heads.query_width() + head * heads.d_head() + channel] = round(value);
        }
    }
}

/// [`scores`] of some tokens of one head, edits included.
fn scores_of(queries: &Queries<'_>, k: &Array2<f64>, rule: &Rule, head: usize, tokens: Range<usize>) -> Array2<f64> {
    let first = queries.first_position + tokens.start;
    let mut scores = scores(&head_of(queries, head, tokens), k, first, rule, queries.texts, slope_of(rule, head, &queries.heads));
    if let Some(hidden) = queries.hidden {
        knock_out(&mut scores, hidden, first);
    }
    scores
}

fn slope_of(rule: &Rule, head: usize, heads: &Heads) -> f64 {
    rule.alibi.map_or(0.0, |alibi| f64::from(alibi.slope(head, heads.heads())))
}

fn head_of(queries: &Queries<'_>, head: usize, tokens: Range<usize>) -> Array2<f64> {
    Array2::from_shape_fn((tokens.len(), queries.heads.d_head()), |(token, channel)| {
        f64::from(queries.query(tokens.start + token, head)[channel])
    })
}

/// What a ring no longer holds is NaN: the mask must hide it.
fn stored(layer: &LayerView<'_>, kv_head: usize) -> (Array2<f64>, Array2<f64>) {
    let matrix = |row: &dyn Fn(usize) -> Vec<f32>| {
        let gone = vec![f64::NAN; layer.first() * layer.shape().d_head];
        let rows = gone.into_iter().chain((layer.first()..layer.len()).flat_map(row).map(f64::from)).collect();
        Array2::from_shape_vec((layer.len(), layer.shape().d_head), rows).expect("every row is d_head long")
    };
    (matrix(&|position| layer.key(kv_head, position)), matrix(&|position| layer.value(kv_head, position)))
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
fn round(value: f64) -> f32 {
    value as f32
}
