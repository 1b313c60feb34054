//! The sums behind the statistics, taken tile by tile beside the running softmax: the matrix of weights is never held.

use std::ops::Range;

use super::first_of;
use super::lanes::{RowState, TileRow};
use super::statistics::{Asked, DISTANCE_CLASSES, distance_class};
use crate::cache::TILE;
use crate::elementary::{exp, ln_f64};
use crate::softmax::{Running, finite_base, fold};

/// What the kernel tells of every row of every tile of a chunk. For [`Nobody`] all of it vanishes.
pub(super) trait Watch: Send + Sized {
    const ON: bool;
    /// For `rows` rows of `heads` over the keys `keys` of a chunk.
    fn new(asked: &Asked<'_>, rows: usize, heads: Range<usize>, keys: Range<usize>) -> Self;
    /// The next tile begins, at position `first_key`; `stored` keys are in the layer.
    fn enter(&mut self, asked: &Asked<'_>, first_key: usize, stored: usize);
    fn add(&mut self, row: Watched, tile: &Weighed<'_>);
    /// Nothing where nobody asked.
    fn finish(self) -> Option<Sums>;
}

/// A row of a block, and where its query is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) index: usize,
    pub(super) head: usize,
    pub(super) position: usize,
}

/// A row in a tile, after its scores have become weights.
pub(super) struct Weighed<'a> {
    /// Minus infinity for hidden keys.
    pub(super) scores: &'a TileRow,
    /// `exp(score - max)`, 0 for hidden keys.
    pub(super) weights: &'a TileRow,
    /// Their sums in eight lanes.
    pub(super) sums: [f32; 8],
    /// The largest score of the tile.
    pub(super) highest: f32,
    /// What everything before was multiplied by, `exp(max_before - max)`.
    pub(super) factor: f32,
    /// What the row remembered before the tile, and its largest score now.
    pub(super) before: RowState,
    pub(super) max: f32,
}

/// Nobody asked.
pub(super) struct Nobody;

impl Watch for Nobody {
    const ON: bool = false;
    #[inline(always)]
    fn new(_: &Asked<'_>, _: usize, _: Range<usize>, _: Range<usize>) -> Self {
        Self
    }
    #[inline(always)]
    fn enter(&mut self, _: &Asked<'_>, _: usize, _: usize) {}
    #[inline(always)]
    fn add(&mut self, _: Watched, _: &Weighed<'_>) {}
    #[inline(always)]
    fn finish(self) -> Option<Sums> {
        None
    }
}

/// Eight lanes, summed up at the end of a chunk.
type Lanes8 = [f32; 8];

/// A key among the largest of its row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Top {
    score: f32,
    key: usize,
}

impl Top {
    const NONE: Self = Self { score: f32::NEG_INFINITY, key: usize::MAX };

    /// Puts a key in its place; earlier keys go before later ones of the same score.
    #[inline(always)]
    fn insert(all: &mut [Self], new: Self) {
        let place = all.partition_point(|held| held.score >= new.score);
        if place < all.len() && new.score > f32::NEG_INFINITY {
            all[place..].rotate_right(1);
            all[place] = new;
        }
    }
}

/// Sums of the rows of a block over a chunk, relative to the largest score of each row so far, as the weights are.
pub(super) struct Sums {
    heads: Range<usize>,
    stride: usize,
    /// `[row, stride]`: `Σ w (s - m)`, `Σ w²`, `Σ w |i - j|`, `w_0`; the classes of distance; the spans; for each measure all of it, and the spans.
    lanes: Vec<Lanes8>,
    top_keys: usize,
    /// `[row, top_keys]`.
    top: Vec<Top>,
    /// The spans that have keys in the chunk, by their number among all.
    spans: Vec<(usize, Range<usize>)>,
    measures: usize,
    tile: Tile,
}

/// The tile at hand.
#[derive(Default)]
struct Tile {
    first_key: usize,
    /// Spans with keys in it: which of the chunk's, and those keys, counted from the tile's first.
    spans: Vec<(usize, Range<usize>)>,
    /// `[measure, head of the block]`, 0 beyond the last key.
    measures: Vec<TileRow>,
}

const CLASSES: usize = 4;
const SPANS: usize = CLASSES + DISTANCE_CLASSES;

#[cfg(test)]
impl Sums {
    /// A fault: spans of the chunk are taken for the first of all.
    pub(super) fn with_spans_counted_in_the_chunk(mut self) -> Self {
        self.spans.iter_mut().enumerate().for_each(|(here, span)| span.0 = here);
        self
    }
}

impl Watch for Sums {
    const ON: bool = true;

    fn new(asked: &Asked<'_>, rows: usize, heads: Range<usize>, keys: Range<usize>) -> Self {
        let here = |span: &Range<usize>| span.start.max(keys.start) < span.end.min(keys.end);
        let spans: Vec<_> = asked.spans.iter().cloned().enumerate().filter(|(_, span)| here(span)).collect();
        let measures = asked.measures.len();
        let stride = SPANS + spans.len() + measures * (1 + spans.len());
        let (lanes, top) = (vec![[0.0; 8]; rows * stride], vec![Top::NONE; rows * asked.top_keys]);
        Self { heads, stride, lanes, top_keys: asked.top_keys, top, spans, measures, tile: Tile::default() }
    }

    fn enter(&mut self, asked: &Asked<'_>, first_key: usize, stored: usize) {
        let inside = |position: usize| position.saturating_sub(first_key).min(TILE);
        let here = self.spans.iter().map(|(_, span)| inside(span.start)..inside(span.end)).enumerate();
        self.tile.first_key = first_key;
        self.tile.spans.clear();
        self.tile.spans.extend(here.filter(|(_, keys)| !keys.is_empty()));
        self.tile.measures.clear();
        for measure in asked.measures {
            for head in self.heads.clone() {
                let mut row = [0.0; TILE];
                row.iter_mut().zip(&measure[head * stored + first_key..(head + 1) * stored]).for_each(|(to, from)| *to = *from);
                self.tile.measures.push(row);
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "positions are below 2^24")]
    fn add(&mut self, row: Watched, tile: &Weighed<'_>) {
        let (spans, first_key) = (self.spans.len(), self.tile.first_key);
        let lanes = &mut self.lanes[row.index * self.stride..][..self.stride];
        if tile.factor != 1.0 && tile.before.seen {
            rescale(lanes, tile);
        }
        moments(lanes, tile, first_key as f32 - row.position as f32);
        if first_key == 0 {
            lanes[3][0] += tile.weights[0];
        }
        let last_key = first_key + TILE - 1;
        let farthest = distance_class(row.position.abs_diff(first_key));
        if last_key <= row.position && distance_class(row.position - last_key) == farthest {
            add_lanes(&mut lanes[CLASSES + farthest], &tile.sums);
        } else {
            classes(first_key, row.position).for_each(|(class, keys)| add_keys(&mut lanes[CLASSES + class], tile.weights, keys));
        }
        for (span, keys) in &self.tile.spans {
            add_span(&mut lanes[SPANS + span], tile.weights, &tile.sums, keys);
        }
        for measure in 0..self.measures {
            let numbers = &self.tile.measures[measure * self.heads.len() + row.head - self.heads.start];
            let (products, sums) = products(tile.weights, numbers);
            let lanes = &mut lanes[SPANS + spans + measure * (1 + spans)..][..1 + spans];
            add_lanes(&mut lanes[0], &sums);
            for (span, keys) in &self.tile.spans {
                add_span(&mut lanes[1 + span], &products, &sums, keys);
            }
        }
        let top = &mut self.top[row.index * self.top_keys..][..self.top_keys];
        if top.last().is_some_and(|last| tile.highest > last.score) {
            for (key, score) in tile.scores.iter().enumerate() {
                if *score > top[top.len() - 1].score {
                    Top::insert(top, Top { score: *score, key: first_key + key });
                }
            }
        }
    }

    fn finish(self) -> Option<Sums> {
        Some(self)
    }
}

/// After the largest score rose.
#[inline(always)]
fn rescale(lanes: &mut [Lanes8], tile: &Weighed<'_>) {
    let shift = shift(tile.before.max, tile.max);
    let [centred, squares, rest @ ..] = lanes else { return };
    for (centred, before) in centred.iter_mut().zip(tile.before.lanes) {
        *centred = tile.factor * shift.mul_add(before, *centred);
    }
    squares.iter_mut().for_each(|lane| *lane *= tile.factor * tile.factor);
    rest.iter_mut().flatten().for_each(|lane| *lane *= tile.factor);
}

/// `Σ w (s - m)`, `Σ w²` and `Σ w |distance|` of a tile. A score is cut at 104 below the largest, where its weight is 0.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a key of a tile is below 64")]
fn moments(lanes: &mut [Lanes8], tile: &Weighed<'_>, first_distance: f32) {
    let base = finite_base(tile.max);
    let mut sums = [lanes[0], lanes[1], lanes[2]];
    for (eight, (weights, scores)) in tile.weights.as_chunks::<8>().0.iter().zip(tile.scores.as_chunks::<8>().0).enumerate() {
        for l in 0..8 {
            let centred = scores[l] - base;
            let centred = if centred > -104.0 { centred } else { -104.0 };
            let distance = (first_distance + (eight * 8 + l) as f32).abs();
            sums[0][l] = weights[l].mul_add(centred, sums[0][l]);
            sums[1][l] = weights[l].mul_add(weights[l], sums[1][l]);
            sums[2][l] = weights[l].mul_add(distance, sums[2][l]);
        }
    }
    lanes[..3].copy_from_slice(&sums);
}

/// `w g` of each key, and their sums. A key without weight takes nothing, whatever its number is.
#[inline(always)]
fn products(weights: &TileRow, numbers: &TileRow) -> (TileRow, Lanes8) {
    let (mut products, mut sums) = ([0.0; TILE], [0.0; 8]);
    for key in 0..TILE {
        products[key] = if weights[key] == 0.0 { 0.0 } else { weights[key] * numbers[key] };
    }
    for eight in products.as_chunks::<8>().0 {
        add_lanes(&mut sums, eight);
    }
    (products, sums)
}

#[inline(always)]
fn add_lanes(lanes: &mut Lanes8, added: &Lanes8) {
    lanes.iter_mut().zip(added).for_each(|(lane, added)| *lane += added);
}

/// Adds what a span has in a tile; one that covers it takes the sums of all.
#[inline(always)]
fn add_span(lanes: &mut Lanes8, of_keys: &TileRow, sums: &Lanes8, keys: &Range<usize>) {
    if *keys == (0..TILE) {
        add_lanes(lanes, sums);
    } else {
        add_keys(lanes, of_keys, keys.clone());
    }
}

#[inline(always)]
fn add_keys(lanes: &mut Lanes8, of_keys: &TileRow, keys: Range<usize>) {
    for eight in keys.start / 8..keys.end.div_ceil(8) {
        for (l, lane) in lanes.iter_mut().enumerate() {
            let key = eight * 8 + l;
            *lane += if key >= keys.start && key < keys.end { of_keys[key] } else { 0.0 };
        }
    }
}

/// The classes of distance in a tile, each with its keys, counted from the tile's first; a class may come twice, before and after the query.
#[inline(always)]
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

/// How far the largest score rose; 0 where nothing had been seen.
#[inline(always)]
fn shift(before: f32, after: f32) -> f32 {
    if before == f32::NEG_INFINITY { 0.0 } else { before - after }
}

/// Sums of the rows of a block over all chunks so far.
pub(super) struct Totals {
    spans: usize,
    stride: usize,
    /// As [`Sums::lanes`], with all spans.
    values: Vec<f64>,
    top_keys: usize,
    top: Vec<Top>,
}

impl Totals {
    pub(super) fn new(asked: &Asked<'_>, rows: usize) -> Self {
        let spans = asked.spans.len();
        let stride = SPANS + spans + asked.measures.len() * (1 + spans);
        let (values, top) = (vec![0.0; rows * stride], vec![Top::NONE; rows * asked.top_keys]);
        Self { spans, stride, values, top_keys: asked.top_keys, top }
    }

    /// Adds what a row got from a later chunk; both ran with the sums that are given.
    pub(super) fn merge(&mut self, row: usize, running: Running, later: &Sums, later_running: Running) {
        let (merged, factor, later_factor) = running.merge(later_running);
        let (factor, later_factor) = (f64::from(factor), f64::from(later_factor));
        let values = &mut self.values[row * self.stride..][..self.stride];
        values[0] += f64::from(shift(running.max, merged.max)) * f64::from(running.sum);
        values[1] *= factor;
        values.iter_mut().for_each(|value| *value *= factor);
        let added = &later.lanes[row * later.stride..][..later.stride];
        let added = |index: usize| f64::from(fold(added[index])) * later_factor;
        values[0] += added(0) + f64::from(shift(later_running.max, merged.max)) * f64::from(later_running.sum) * later_factor;
        values[1] += added(1) * later_factor;
        (2..SPANS).for_each(|index| values[index] += added(index));
        for (here, (span, _)) in later.spans.iter().enumerate() {
            values[SPANS + span] += added(SPANS + here);
        }
        for measure in 0..later.measures {
            let (to, from) =
                (SPANS + self.spans + measure * (1 + self.spans), SPANS + later.spans.len() + measure * (1 + later.spans.len()));
            values[to] += added(from);
            for (here, (span, _)) in later.spans.iter().enumerate() {
                values[to + 1 + span] += added(from + 1 + here);
            }
        }
        let top = &mut self.top[row * self.top_keys..][..self.top_keys];
        later.top[row * self.top_keys..][..self.top_keys].iter().for_each(|new| Top::insert(top, *new));
    }

    /// Writes the numbers of a row as `RowStatistics` reads them.
    ///
    /// - `keys`    those that the row sees, before and behind what is hidden from it
    /// - `stored`  how many the layer has
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounding to f32 is meant; positions are below 2^24")]
    pub(super) fn write(
        &self,
        row: Watched,
        running: Running,
        keys: &[Range<usize>; 2],
        asked: &Asked<'_>,
        stored: usize,
        out: &mut [f32],
    ) {
        out[..3].copy_from_slice(&[running.log_sum_exp(), first_of(keys) as f32, (keys[0].len() + keys[1].len()) as f32]);
        let (spans, top_keys) = (self.spans, self.top_keys);
        let shares = 7 + DISTANCE_CLASSES + spans;
        out[shares..][..top_keys].fill(-1.0);
        let sum = f64::from(running.sum);
        if sum == 0.0 {
            return;
        }
        let values = &self.values[row.index * self.stride..][..self.stride];
        out[3] = (ln_f64(sum) - values[0] / sum) as f32;
        out[4] = (sum * sum / values[1]) as f32;
        out[5] = (values[2] / sum) as f32;
        out[6] = (values[3] / sum) as f32;
        out[7..shares].iter_mut().zip(&values[CLASSES..]).for_each(|(out, value)| *out = (value / sum) as f32);
        let top = self.top[row.index * top_keys..][..top_keys].iter().take_while(|top| top.key != usize::MAX);
        for (index, top) in top.enumerate() {
            let weight = exp(top.score - finite_base(running.max)) / running.sum;
            out[shares + index] = top.key as f32;
            out[shares + top_keys + index] = weight;
            for (measure, numbers) in asked.measures.iter().enumerate() {
                out[shares + 2 * top_keys + measure * (1 + spans + top_keys) + 1 + spans + index] =
                    weight * numbers[row.head * stored + top.key];
            }
        }
        for measure in 0..asked.measures.len() {
            let to = &mut out[shares + 2 * top_keys + measure * (1 + spans + top_keys)..];
            let from = &values[SPANS + spans + measure * (1 + spans)..][..1 + spans];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = (from / sum) as f32);
        }
    }
}
