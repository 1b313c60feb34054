//! Attention: every query mixes the values of the keys it sees, weighted by the softmax of their scaled dot products.
//!
//! - [`attend`]: the everyday door; never holds a matrix of scores
//! - [`attend_watched`]: the same, and tells of every row where its attention went, from inside the tiles
//! - [`scores`], [`pattern`]: that matrix for chosen queries, recomputed on the side with the same dot products
//! - [`mix`]: values mixed by given weights, for edited patterns and as a self-check

mod fast;
mod lanes;
pub mod measures;
pub mod received;
mod simd;
mod statistics;
#[cfg(test)]
mod statistics_checks;
pub mod steps;
pub mod textbook;
mod watch;

#[cfg(test)]
mod alibi_checks;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod hidden_checks;
#[cfg(test)]
mod packed_checks;
#[cfg(test)]
mod received_checks;

use std::ops::Range;

use self::fast::Results;
pub use self::statistics::{Asked, DISTANCE_CLASSES, Layout, Measured, RowStatistics, Statistics, distance_class};
use self::watch::{Nobody, Sums};
use crate::cache::LayerView;
use crate::heads::Heads;
use crate::mask::{Hidden, KeyRange, Text};
use crate::position::Alibi;
use crate::softmax::softmax_in_place;
use crate::{Kernels, MechanismError, Workers};

/// What happens to a dot product on its way to a weight: times `scale`, then soft-cap, then less by distance, then only
/// the keys in range, then softmax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Which keys a query sees.
    pub keys: KeyRange,
    /// Factor of the dot product; `1 / sqrt(d_head)` in the paper.
    pub scale: f32,
    /// Bends scores into `(-cap, cap)`; `None`, or 0, is off.
    pub soft_cap: Option<f32>,
    /// What distance takes from a score; `None` where positions enter in another way.
    pub alibi: Option<Alibi>,
}

/// Rotated queries of consecutive tokens.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// `[token, head, d_head]`.
    pub values: &'a [f32],
    /// Heads and their sharing.
    pub heads: Heads,
    /// Absolute position of the first token.
    pub first_position: usize,
    /// The texts that lie one after another in the layer; `None` where one fills it. Positions in none are padding.
    pub texts: Option<&'a [Text]>,
    /// Keys that an edit takes from some of the queries; `None` in a pass as the model was made.
    pub hidden: Option<&'a Hidden>,
}

impl Queries<'_> {
    /// How many tokens.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.values.len() / self.heads.query_width()
    }

    /// The keys that one of them sees, among `len` stored ones.
    fn keys(&self, rule: &Rule, token: usize, len: usize) -> Range<usize> {
        let position = self.first_position + token;
        match self.texts {
            None => rule.keys.keys(position, len),
            Some(texts) => rule.keys.keys_among(texts, position, len),
        }
    }

    /// The same in two parts, before and behind what is hidden from it; mostly all of it is in the first.
    fn key_parts(&self, rule: &Rule, token: usize, len: usize) -> [Range<usize>; 2] {
        let keys = self.keys(rule, token, len);
        match self.hidden {
            None => [keys, 0..0],
            Some(hidden) => hidden.parts(self.first_position + token, keys),
        }
    }

    fn query(&self, token: usize, head: usize) -> &[f32] {
        let first = token * self.heads.query_width() + head * self.heads.d_head();
        &self.values[first..first + self.heads.d_head()]
    }
}

/// Attention of the queries over one layer of the cache, their own keys and values included.
///
/// For each query and head, over the keys `j` in its range:
/// `s_j = cap(scale q·k_j) - slope |query - j|`, `w = softmax(s)`, `out = Σ w_j v_j`.
///
/// - `out`          `[token, head, d_head]`, written
/// - `log_sum_exp`  `[head, token]`, written where given: `ln Σ exp(s_j)`
///
/// A query without a visible key gives zeros and minus infinity. NaN and infinite scores show as NaN. The bits of a row depend on the
/// row, its position and the keys alone (`README.md` states the order of every sum).
///
/// # Errors
///
/// Where the slices do not fit the axes, the layer has other heads, or a ring no longer holds what a query sees.
pub fn attend(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    out: &mut [f32],
    log_sum_exp: Option<&mut [f32]>,
    workers: &Workers,
) -> Result<(), MechanismError> {
    check_layer(queries, layer)?;
    check_held(queries, layer, rule, 0..queries.tokens())?;
    length("out", "token x head x d_head", queries.values.len(), out.len())?;
    if let Some(log_sum_exp) = &log_sum_exp {
        length("log_sum_exp", "head x token", queries.tokens() * queries.heads.heads(), log_sum_exp.len())?;
    }
    let results = Results { asked: Asked::default(), out, log_sum_exp, statistics: None };
    match kernels {
        Kernels::Fast => fast::attend::<Nobody>(queries, layer, rule, results, workers),
        Kernels::Portable => fast::attend_with::<lanes::Portable, Nobody>(queries, layer, rule, results, workers),
        Kernels::Textbook => textbook::attend_rounded(queries, layer, rule, results.out, results.log_sum_exp),
    }
    Ok(())
}

/// As [`attend`], the same bits, and tells what every row did with its attention. Memory grows with the rows, never with rows times keys.
///
/// # Errors
///
/// As [`attend`]; where a measure is not `[head, key]`.
pub fn attend_watched(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    asked: Asked<'_>,
    out: &mut [f32],
    workers: &Workers,
) -> Result<Statistics, MechanismError> {
    check_layer(queries, layer)?;
    check_held(queries, layer, rule, 0..queries.tokens())?;
    length("out", "token x head x d_head", queries.values.len(), out.len())?;
    asked.check(queries.heads.heads(), layer.len())?;
    let mut statistics = Statistics::new(queries.heads.heads(), queries.tokens(), &asked);
    let results = Results { asked, out, log_sum_exp: None, statistics: Some(&mut statistics) };
    match kernels {
        Kernels::Fast => fast::attend::<Sums>(queries, layer, rule, results, workers),
        Kernels::Portable => fast::attend_with::<lanes::Portable, Sums>(queries, layer, rule, results, workers),
        Kernels::Textbook => {
            textbook::attend_rounded(queries, layer, rule, results.out, None);
            textbook::statistics_rounded(queries, layer, rule, &asked, &mut statistics);
        }
    }
    Ok(statistics)
}

/// Scores after scale, soft-cap and distance, minus infinity for keys that may not be seen.
///
/// - `tokens`  which of the queries, counted from the first given
///
/// Returns `[head, query, key]` with one key for each stored position; the dot products are those of [`attend`], bit for bit.
///
/// # Errors
///
/// Where `tokens` goes beyond the queries, the layer has other heads, or a ring no longer holds what a query sees.
pub fn scores(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    tokens: Range<usize>,
) -> Result<Vec<f32>, MechanismError> {
    check_layer(queries, layer)?;
    if tokens.end > queries.tokens() || tokens.start > tokens.end {
        return Err(MechanismError::WrongLength { name: "tokens", axes: "token", wanted: queries.tokens(), found: tokens.end });
    }
    check_held(queries, layer, rule, tokens.clone())?;
    Ok(match kernels {
        Kernels::Fast => fast::scores(queries, layer, rule, tokens),
        Kernels::Portable => fast::scores_with::<lanes::Portable>(queries, layer, rule, tokens),
        Kernels::Textbook => textbook::scores_rounded(queries, layer, rule, tokens),
    })
}

/// Attention weights `[head, query, key]`: the softmax of [`scores`], row by row. A row sums to 1, or is zero where nothing is seen.
///
/// # Errors
///
/// As [`scores`].
pub fn pattern(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    tokens: Range<usize>,
) -> Result<Vec<f32>, MechanismError> {
    let mut rows = scores(kernels, queries, layer, rule, tokens)?;
    if !layer.is_empty() {
        rows.chunks_exact_mut(layer.len()).for_each(|row| softmax_in_place(kernels, row));
    }
    Ok(rows)
}

/// The statistics of given weights, as they define them, in `f64`; for edited patterns.
///
/// - `pattern`      `[head, token, key]`, one row for each query
/// - `log_sum_exp`  `[head, token]`, of the scores that the weights come from
/// - `rule`         which tells what the queries see
///
/// # Panics
///
/// Where `pattern`, `log_sum_exp` and the measures do not hold whole rows for the queries.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounding to f32 is meant; positions are below 2^24")]
pub fn statistics_of(pattern: &[f32], log_sum_exp: &[f32], queries: &Queries<'_>, rule: &Rule, asked: Asked<'_>) -> Statistics {
    let (heads, tokens) = (queries.heads.heads(), queries.tokens());
    assert_eq!(log_sum_exp.len(), heads * tokens, "one log-sum-exp for each head and token");
    let mut statistics = Statistics::new(heads, tokens, &asked);
    for (index, weights) in pattern.chunks_exact((pattern.len() / log_sum_exp.len().max(1)).max(1)).enumerate() {
        let (head, token) = (index / tokens, index % tokens);
        let weights: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
        let told = textbook::statistics(&weights, head, queries.first_position + token, &asked);
        let row = statistics.row_mut(head, token);
        let keys = queries.key_parts(rule, token, weights.len());
        row[..3].copy_from_slice(&[log_sum_exp[index], first_of(&keys) as f32, (keys[0].len() + keys[1].len()) as f32]);
        row[3..].iter_mut().zip(told).for_each(|(row, told)| *row = told as f32);
    }
    statistics
}

/// Values mixed by given weights, in `f64`: `out[t, h] = Σ_j pattern[h, t, j] v_j`.
///
/// - `pattern`  `[head, token, key]`, one key for each stored position
/// - `out`      `[token, head, d_head]`, written
///
/// # Errors
///
/// Where the slices do not fit the axes, or the layer has other heads.
pub fn mix(pattern: &[f32], heads: &Heads, layer: &LayerView<'_>, out: &mut [f32]) -> Result<(), MechanismError> {
    let tokens = out.len() / heads.query_width();
    length("out", "token x head x d_head", tokens * heads.query_width(), out.len())?;
    length("pattern", "head x token x key", heads.heads() * tokens * layer.len(), pattern.len())?;
    check_layer(&Queries { values: &[], heads: *heads, first_position: 0, texts: None, hidden: None }, layer)?;
    textbook::mix_rounded(pattern, heads, layer, out);
    Ok(())
}

fn check_layer(queries: &Queries<'_>, layer: &LayerView<'_>) -> Result<(), MechanismError> {
    let heads = &queries.heads;
    length("layer", "kv_head x d_head", heads.kv_width(), layer.shape().kv_heads * layer.shape().d_head)?;
    length("heads of the layer", "kv_head", heads.kv_heads(), layer.shape().kv_heads)?;
    length("queries", "token x head x d_head", queries.tokens() * heads.query_width(), queries.values.len())
}

/// The first key that is seen; where none is, where it would be.
fn first_of(parts: &[Range<usize>; 2]) -> usize {
    if parts[0].is_empty() && !parts[1].is_empty() { parts[1].start } else { parts[0].start }
}

/// Whether a ring still holds what the queries see.
fn check_held(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, tokens: Range<usize>) -> Result<(), MechanismError> {
    let held = layer.first();
    if held == 0 {
        return Ok(());
    }
    let seen = tokens.map(|token| queries.keys(rule, token, layer.len())).filter(|keys| !keys.is_empty());
    match seen.map(|keys| keys.start).min() {
        Some(wanted) if wanted < held => Err(MechanismError::NotHeld { wanted, held }),
        _ => Ok(()),
    }
}

fn length(name: &'static str, axes: &'static str, wanted: usize, found: usize) -> Result<(), MechanismError> {
    if wanted == found { Ok(()) } else { Err(MechanismError::WrongLength { name, axes, wanted, found }) }
}
