//! What each row does with its attention, summed tile by tile beside the running softmax: the matrix of weights is never held.

use std::ops::Range;

use super::lanes::{RowState, TileRow};
use crate::cache::TILE;
use crate::elementary::ln_f64;
use crate::elementary::simd::vector_twin;
use crate::softmax::{Running, fold};

/// Classes of distance between query and key: 0, 1, 2 to 3, 4 to 7, and so on by powers of two; the last holds 16384 and more.
pub const DISTANCE_CLASSES: usize = 16;

/// The class of a distance in tokens.
#[must_use]
pub fn distance_class(distance: usize) -> usize {
    ((usize::BITS - distance.leading_zeros()) as usize).min(DISTANCE_CLASSES - 1)
}

/// What to learn of every row beside what is always learned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Spans of absolute key positions, whose shares are wanted; they may overlap.
    pub spans: &'a [Range<usize>],
}

/// Statistics of all rows of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    heads: usize,
    width: usize,
    /// `[token, head, width]`, as [`RowStatistics::of`] reads them.
    values: Vec<f32>,
}

/// Those of one row, with weights `p_j` over the keys `j` that its query at `i` sees. A row that sees nothing has
/// the log-sum-exp minus infinity, and else zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowStatistics<'a> {
    /// `ln Σ exp(score)`.
    pub log_sum_exp: f32,
    /// Position of the first key that the query sees.
    pub first_key: f32,
    /// How many keys it sees, which lie side by side; exact below 2^24.
    pub visible_keys: f32,
    /// `-Σ p ln p`, nats: `ln l - Σ exp(s - m) (s - m) / l`, with `m` the largest score and `l = Σ exp(s - m)`.
    pub entropy_nats: f32,
    /// `1 / Σ p²`: as many keys with equal weights are as concentrated.
    pub effective_support: f32,
    /// `Σ p |i - j|`.
    pub mean_distance_tokens: f32,
    /// `p_0`: the share of the first token of all.
    pub sink_mass: f32,
    /// Share of each class of distance, [`DISTANCE_CLASSES`] of them.
    pub distances: &'a [f32],
    /// Share of each span that was asked for.
    pub spans: &'a [f32],
}

const ALWAYS: usize = 7;

impl Statistics {
    pub(super) fn new(heads: usize, tokens: usize, asked: &Asked<'_>) -> Self {
        let width = ALWAYS + DISTANCE_CLASSES + asked.spans.len();
        Self { heads, width, values: vec![0.0; heads * tokens * width] }
    }

    /// Numbers of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// `[token, head, width]`: rows as [`RowStatistics::of`] reads them.
    #[must_use]
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Those of a head and a token, counted from the first of the call.
    #[must_use]
    pub fn row(&self, head: usize, token: usize) -> RowStatistics<'_> {
        let row = &self.values[(token * self.heads + head) * self.width..][..self.width];
        RowStatistics::of(row).expect("a row is as wide as a row")
    }

    pub(super) fn row_mut(&mut self, head: usize, token: usize) -> &mut [f32] {
        &mut self.values[(token * self.heads + head) * self.width..][..self.width]
    }
}

impl<'a> RowStatistics<'a> {
    /// The keys that the query sees, absolute positions.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are whole numbers from 0 to 2^24")]
    pub fn visible(&self) -> Range<usize> {
        let first = self.first_key as usize;
        first..first + self.visible_keys as usize
    }

    /// Entropy as a share of `ln(visible keys)`: 0 is one key, 1 is uniform. `None` where the query has no choice.
    #[must_use]
    pub fn normalised_entropy(&self) -> Option<f64> {
        (self.visible_keys > 1.0).then(|| f64::from(self.entropy_nats) / f64::from(self.visible_keys).ln())
    }

    /// `exp(entropy)`: as many keys with equal weights have the same entropy.
    #[must_use]
    pub fn perplexity_keys(&self) -> f64 {
        f64::from(self.entropy_nats).exp()
    }

    /// Reads a row as `attn.stats` shows it; `None` where it is too short to be one.
    #[must_use]
    pub fn of(row: &'a [f32]) -> Option<Self> {
        let (always, shares) = row.split_first_chunk::<ALWAYS>()?;
        let &[log_sum_exp, first_key, visible_keys, entropy_nats, effective_support, mean_distance_tokens, sink_mass] = always;
        let (distances, spans) = shares.split_at_checked(DISTANCE_CLASSES)?;
        let exact = Self {
            log_sum_exp,
            first_key,
            visible_keys,
            entropy_nats,
            effective_support,
            mean_distance_tokens,
            sink_mass,
            distances,
            spans,
        };
        Some(exact)
    }
}

/// A row in a tile, after its scores have become weights.
pub(super) struct WeighedTile<'a> {
    /// `exp(score - max)`, 0 for hidden keys.
    pub(super) weights: &'a TileRow,
    /// `score - max`, not below -104, where `exp` is 0.
    pub(super) centred: &'a TileRow,
    /// Position of the tile's first key.
    pub(super) first_key: usize,
    /// Position of the query.
    pub(super) query: usize,
    /// What everything before was multiplied by, `exp(max_before - max)`.
    pub(super) factor: f32,
    /// What the row remembered before the tile, and its largest score now.
    pub(super) before: RowState,
    pub(super) max: f32,
    /// The spans that have keys in the tile, with those keys counted from its first.
    pub(super) spans: &'a [(usize, Range<usize>)],
}

impl Asked<'_> {
    /// The spans that have keys in the tile from `first_key` on, with those keys.
    pub(super) fn in_tile(&self, first_key: usize) -> Vec<(usize, Range<usize>)> {
        let inside = |position: usize| position.saturating_sub(first_key).min(TILE);
        let here = self.spans.iter().map(|span| inside(span.start)..inside(span.end)).enumerate();
        here.filter(|(_, keys)| !keys.is_empty()).collect()
    }
}

/// What the kernel tells of every row of every tile. For [`Nobody`] all of it vanishes.
pub(super) trait Watch: Clone + Send {
    const ON: bool;
    fn new(asked: &Asked<'_>) -> Self;
    fn add(&mut self, tile: &WeighedTile<'_>);
    /// Adds what a later chunk saw; both ran with the sums that are given.
    fn merge(&mut self, running: Running, later: &Self, later_running: Running);
    fn write(&self, running: Running, keys: &Range<usize>, row: &mut [f32]);
}

/// Nobody asked.
#[derive(Clone)]
pub(super) struct Nobody;

impl Watch for Nobody {
    const ON: bool = false;
    fn new(_: &Asked<'_>) -> Self {
        Self
    }
    fn add(&mut self, _: &WeighedTile<'_>) {}
    fn merge(&mut self, _: Running, _: &Self, _: Running) {}
    fn write(&self, _: Running, _: &Range<usize>, _: &mut [f32]) {}
}

/// Sums of one row, relative to the largest score so far as the weights are.
#[derive(Clone)]
pub(super) struct Sums {
    /// `Σ exp(s - m) (s - m)`.
    centred: f64,
    /// `Σ exp(s - m)²`.
    squares: f64,
    /// `Σ exp(s - m) |i - j|`.
    distance: f64,
    sink: f64,
    /// By class of distance, then by span.
    shares: Vec<f64>,
}

impl Sums {
    fn scale(&mut self, factor: f64, shift: f64, sum: f64) {
        self.centred = factor * (self.centred + shift * sum);
        self.squares *= factor * factor;
        self.distance *= factor;
        self.sink *= factor;
        self.shares.iter_mut().for_each(|share| *share *= factor);
    }
}

impl Watch for Sums {
    const ON: bool = true;

    fn new(asked: &Asked<'_>) -> Self {
        Self { centred: 0.0, squares: 0.0, distance: 0.0, sink: 0.0, shares: vec![0.0; DISTANCE_CLASSES + asked.spans.len()] }
    }

    fn add(&mut self, tile: &WeighedTile<'_>) {
        if tile.factor != 1.0 {
            let Running { max, sum } = tile.before.running();
            self.scale(f64::from(tile.factor), shift(max, tile.max), f64::from(sum));
        }
        let first_distance = tile.first_key as f32 - tile.query as f32;
        let [centred, squares, distance, sum] = tile_sums(tile.weights, tile.centred, first_distance).map(f64::from);
        self.centred += centred;
        self.squares += squares;
        self.distance += distance;
        if tile.first_key == 0 {
            self.sink += f64::from(tile.weights[0]);
        }
        let sum_of = |keys: Range<usize>| if keys == (0..TILE) { sum } else { f64::from(sum_of(&tile.weights[keys])) };
        let farthest = distance_class(tile.query.abs_diff(tile.first_key));
        let last_key = tile.first_key + TILE - 1;
        if last_key <= tile.query && distance_class(tile.query - last_key) == farthest {
            self.shares[farthest] += sum;
        } else {
            classes(tile.first_key, tile.query).for_each(|(class, keys)| self.shares[class] += sum_of(keys));
        }
        for (span, keys) in tile.spans {
            self.shares[DISTANCE_CLASSES + span] += sum_of(keys.clone());
        }
    }

    fn merge(&mut self, running: Running, later: &Self, later_running: Running) {
        let (merged, factor, later_factor) = running.merge(later_running);
        let mut later = later.clone();
        self.scale(f64::from(factor), shift(running.max, merged.max), f64::from(running.sum));
        later.scale(f64::from(later_factor), shift(later_running.max, merged.max), f64::from(later_running.sum));
        self.centred += later.centred;
        self.squares += later.squares;
        self.distance += later.distance;
        self.sink += later.sink;
        self.shares.iter_mut().zip(later.shares).for_each(|(share, later)| *share += later);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounding to f32 is meant; positions are below 2^24")]
    fn write(&self, running: Running, keys: &Range<usize>, row: &mut [f32]) {
        row[..3].copy_from_slice(&[running.log_sum_exp(), keys.start as f32, keys.len() as f32]);
        let sum = f64::from(running.sum);
        if sum == 0.0 {
            return;
        }
        row[3] = (ln_f64(sum) - self.centred / sum) as f32;
        row[4] = (sum * sum / self.squares) as f32;
        row[5] = (self.distance / sum) as f32;
        row[6] = (self.sink / sum) as f32;
        row[ALWAYS..].iter_mut().zip(&self.shares).for_each(|(row, share)| *row = (share / sum) as f32);
    }
}

/// How far the largest score rose; 0 where nothing had been seen.
fn shift(before: f32, after: f32) -> f64 {
    if before == f32::NEG_INFINITY { 0.0 } else { f64::from(before) - f64::from(after) }
}

/// The classes of distance in a tile, each with its keys, counted from the tile's first; a class may come twice, before and after the query.
fn classes(first_key: usize, query: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut key = first_key;
    std::iter::from_fn(move || {
        if key >= first_key + TILE {
            return None;
        }
        let class = distance_class(key.abs_diff(query));
        let (nearest, next) = if class < 2 { (class, class + 1) } else { (1 << (class - 1), 1 << class) };
        // Distances fall towards the query and rise behind it.
        let end = match key <= query {
            true => query - nearest + 1,
            false if class == DISTANCE_CLASSES - 1 => usize::MAX,
            false => query + next,
        };
        let start = key;
        key = end.min(first_key + TILE);
        Some((class, start - first_key..key - first_key))
    })
}

vector_twin! {
    /// `Σ w c`, `Σ w²`, `Σ w |distance|` and `Σ w`, each in eight lanes.
    fn tile_sums(weights: &TileRow, centred: &TileRow, first_distance: f32) -> [f32; 4] = tile_sums_here
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a key of a tile is below 64")]
fn tile_sums_here(weights: &TileRow, centred: &TileRow, first_distance: f32) -> [f32; 4] {
    let mut lanes = [[0.0_f32; 8]; 4];
    for (eight, (weights, centred)) in weights.as_chunks::<8>().0.iter().zip(centred.as_chunks::<8>().0).enumerate() {
        for l in 0..8 {
            let distance = (first_distance + (eight * 8 + l) as f32).abs();
            lanes[0][l] = weights[l].mul_add(centred[l], lanes[0][l]);
            lanes[1][l] = weights[l].mul_add(weights[l], lanes[1][l]);
            lanes[2][l] = weights[l].mul_add(distance, lanes[2][l]);
            lanes[3][l] += weights[l];
        }
    }
    lanes.map(fold)
}

vector_twin! {
    /// The sum in eight lanes.
    fn sum_of(weights: &[f32]) -> f32 = sum_of_here
}

#[inline(always)]
fn sum_of_here(weights: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (eights, rest) = weights.as_chunks::<8>();
    for eight in eights {
        for l in 0..8 {
            lanes[l] += eight[l];
        }
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, weight)| *lane += weight);
    fold(lanes)
}
