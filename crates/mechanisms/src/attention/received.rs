//! What keys and distances receive over all queries: a second sweep, once the log-sum-exp of every row is known.

use super::fast::{Row, pack, union, within};
use super::lanes::{Lanes, Portable, ROWS, TileRow};
use super::{Queries, Rule, check_held, check_layer, length, textbook};
use crate::cache::{LANES, LayerView, TILE};
use crate::elementary::exp;
use crate::elementary::simd::vector_twin;
use crate::{Kernels, MechanismError, Workers};

/// Sums over queries, of as many calls of [`receive`] as a text comes in.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    heads: usize,
    tokens: usize,
    /// `[head, key and then distance]`.
    sums: Vec<f64>,
    /// `[key and then distance]`: how many queries saw it.
    queries: Vec<u32>,
}

impl Received {
    /// Nothing yet, for texts of up to `tokens` tokens.
    #[must_use]
    pub fn new(heads: usize, tokens: usize) -> Self {
        Self { heads, tokens, sums: vec![0.0; 2 * heads * tokens], queries: vec![0; 2 * tokens] }
    }

    /// `Σ_i a_i p_ij` of each key `j`, with the weights `a` of the queries.
    ///
    /// # Panics
    ///
    /// Where there is no such head.
    #[must_use]
    pub fn key_sums(&self, head: usize) -> &[f64] {
        &self.sums[2 * head * self.tokens..][..self.tokens]
    }

    /// `Σ_i a_i p_ij` over the pairs with `i - j` = distance, of each distance from 0 on.
    ///
    /// # Panics
    ///
    /// Where there is no such head.
    #[must_use]
    pub fn distance_sums(&self, head: usize) -> &[f64] {
        &self.sums[(2 * head + 1) * self.tokens..][..self.tokens]
    }

    /// Column mass: what a key got of the queries that see it, in the mean. `None` where none does.
    #[must_use]
    pub fn column_mass(&self, head: usize, key: usize) -> Option<f64> {
        let queries = *self.queries[..self.tokens].get(key)?;
        (head < self.heads && queries > 0).then(|| self.key_sums(head)[key] / f64::from(queries))
    }

    /// Diagonal mass: what the key at a distance before them got of the queries that see it, in the mean. `None` where none does.
    #[must_use]
    pub fn diagonal_mass(&self, head: usize, distance: usize) -> Option<f64> {
        let queries = *self.queries[self.tokens..].get(distance)?;
        (head < self.heads && queries > 0).then(|| self.distance_sums(head)[distance] / f64::from(queries))
    }
}

/// Adds what the keys of a layer get from some queries: `p_ij = exp(s_ij - L_i)`, with the scores of [`attend`](super::attend), bit for bit.
///
/// - `log_sum_exp`  `[head, token]`, as [`attend`](super::attend) gives them
/// - `weights`      `[token]`, of the queries; without them, 1 for all
///
/// Memory grows with the tokens. Sums run query after query, for each head by itself, so that no bit depends on the number of workers.
///
/// # Errors
///
/// Where the slices do not fit the axes, the layer has other heads, a ring no longer holds what a query sees, or `received` has other heads or
/// fewer tokens than the layer.
#[expect(clippy::too_many_arguments, reason = "what attention takes, and what is summed")]
pub fn receive(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    log_sum_exp: &[f32],
    weights: Option<&[f32]>,
    received: &mut Received,
    workers: &Workers,
) -> Result<(), MechanismError> {
    let (heads, tokens) = (queries.heads.heads(), queries.tokens());
    check_layer(queries, layer)?;
    check_held(queries, layer, rule, 0..tokens)?;
    length("log_sum_exp", "head x token", heads * tokens, log_sum_exp.len())?;
    length("weights", "token", tokens, weights.map_or(tokens, <[f32]>::len))?;
    length("received", "head", heads, received.heads)?;
    length("received", "token", received.tokens.max(layer.len()), received.tokens)?;
    for token in 0..tokens {
        let position = queries.first_position + token;
        let (of_keys, of_distances) = received.queries.split_at_mut(received.tokens);
        for keys in queries.key_parts(rule, token, layer.len()) {
            of_keys[keys.clone()].iter_mut().for_each(|count| *count += 1);
            let before = keys.start..keys.end.min(position + 1);
            before.for_each(|key| of_distances[position - key] += 1);
        }
    }
    let all = vec![1.0; tokens];
    let weights = weights.unwrap_or(&all);
    match kernels {
        Kernels::Textbook => textbook::receive_exactly(queries, layer, rule, weights, 2 * received.tokens, &mut received.sums),
        #[cfg(target_arch = "x86_64")]
        Kernels::Fast if crate::elementary::avx2_fma() => {
            receive_with::<super::simd::Avx2>(queries, layer, rule, (log_sum_exp, weights), received, workers);
        }
        Kernels::Fast | Kernels::Portable => receive_with::<Portable>(queries, layer, rule, (log_sum_exp, weights), received, workers),
    }
    Ok(())
}

pub(super) fn receive_with<L: Lanes>(
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    (log_sum_exp, weights): (&[f32], &[f32]),
    received: &mut Received,
    workers: &Workers,
) {
    let (tokens, stored) = (queries.tokens(), received.tokens);
    if stored == 0 {
        return;
    }
    workers.split_rows(&mut received.sums, 2 * stored, 1, |first_head, sums| {
        for (head, sums) in (first_head..).zip(sums.chunks_exact_mut(2 * stored)) {
            let (of_keys, of_distances) = sums.split_at_mut(stored);
            for first in (0..tokens).step_by(ROWS) {
                let count = ROWS.min(tokens - first);
                let q = pack(queries, head, first, count);
                let rows: Vec<Row> = (first..first + count).map(|token| Row::new(queries, rule, layer.len(), token, head)).collect();
                let some = union(rows.iter().flat_map(|row| row.keys.clone()));
                let mut widened = Vec::new();
                for tile in some.start / TILE..some.end.div_ceil(TILE) {
                    let mut scores = [[0.0; TILE]; ROWS];
                    L::dots(count, &q, layer.key_tile(queries.heads.kv_head_of(head), tile, &mut widened), 0..TILE / LANES, &mut scores);
                    for (row, scores) in rows.iter().zip(&mut scores) {
                        if row.keys.iter().all(|keys| within(keys, tile).is_empty()) {
                            continue;
                        }
                        L::bend(scores, row.bend(tile));
                        shares(scores, log_sum_exp[head * tokens + row.token], weights[row.token]);
                        let first_key = tile * TILE;
                        for seen in row.keys.iter().map(|keys| within(keys, tile)) {
                            add(&mut of_keys[first_key + seen.start..first_key + seen.end], &scores[seen.clone()]);
                            let before = seen.start..seen.end.min((row.position + 1).saturating_sub(first_key));
                            if !before.is_empty() {
                                let nearest = row.position + 1 - first_key - before.end;
                                add_reversed(&mut of_distances[nearest..nearest + before.len()], &scores[before]);
                            }
                        }
                    }
                }
            }
        }
    });
}

vector_twin! {
    /// `exp(score - log_sum_exp)` times the weight.
    fn shares(scores: &mut TileRow, log_sum_exp: f32, weight: f32) = shares_here
}

#[inline(always)]
fn shares_here(scores: &mut TileRow, log_sum_exp: f32, weight: f32) {
    scores.iter_mut().for_each(|score| *score = weight * exp(*score - log_sum_exp));
}

vector_twin! {
    fn add(sums: &mut [f64], added: &[f32]) = add_here
}

#[inline(always)]
fn add_here(sums: &mut [f64], added: &[f32]) {
    sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += f64::from(*added));
}

vector_twin! {
    fn add_reversed(sums: &mut [f64], added: &[f32]) = add_reversed_here
}

#[inline(always)]
fn add_reversed_here(sums: &mut [f64], added: &[f32]) {
    sums.iter_mut().zip(added.iter().rev()).for_each(|(sum, added)| *sum += f64::from(*added));
}

/// What a pass left of one layer, for [`rollout`].
#[derive(Clone, Copy, Debug)]
pub struct Attended<'a> {
    /// All queries of the text, from position 0 on.
    pub queries: Queries<'a>,
    /// Its keys and values.
    pub layer: LayerView<'a>,
    /// How they met.
    pub rule: Rule,
    /// `[head, token]`.
    pub log_sum_exp: &'a [f32],
}

/// Attention rollout to one token: row `target` of the product of all `(mean over heads of P + I) / 2`, the last layer's first. The result
/// is `[token]`, sums to 1, and says how much of the target's last vector comes from each position if vectors were mixed by weights alone.
///
/// One row goes down through the layers, so memory grows with the tokens; each layer is swept once.
///
/// - `layers`  from the first
///
/// Source: Abnar and Zuidema 2020, section 3 (arXiv:2005.00928).
///
/// # Errors
///
/// As [`receive`]; where the layers have different numbers of tokens, or no token `target`.
pub fn rollout(kernels: Kernels, layers: &[Attended<'_>], target: usize, workers: &Workers) -> Result<Vec<f64>, MechanismError> {
    let tokens = layers.first().map_or(0, |layer| layer.queries.tokens());
    if target >= tokens {
        return Err(MechanismError::WrongLength { name: "target", axes: "token", wanted: tokens, found: target });
    }
    let mut row = vec![0.0; tokens];
    row[target] = 1.0;
    for Attended { queries, layer, rule, log_sum_exp } in layers.iter().rev() {
        length("queries of a layer", "token", tokens, queries.tokens())?;
        length("keys of a layer", "token", tokens, layer.len())?;
        let heads = queries.heads.heads();
        let weights: Vec<f32> = row.iter().map(|weight| *weight as f32).collect();
        let mut received = Received::new(heads, tokens);
        receive(kernels, queries, layer, rule, log_sum_exp, Some(&weights), &mut received, workers)?;
        for (token, weight) in row.iter_mut().enumerate() {
            let mean = (0..heads).map(|head| received.key_sums(head)[token]).sum::<f64>() / heads as f64;
            *weight = (*weight + mean) / 2.0;
        }
    }
    Ok(row)
}
