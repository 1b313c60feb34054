//! The three steps of a tile, each in a fixed order of operations: as portable code here, with AVX2 in `simd.rs`, the same bits.

use std::ops::Range;

use super::watch::{Watch, Watched, Weighed};
use crate::cache::{LANES, Line, TILE};
use crate::elementary::{exp, tanh};
use crate::softmax::{Running, finite_base, fold};

/// Query rows that go through a tile together. Six rows of sixteen keys are twelve accumulators, which with two registers of keys and one of
/// queries is what AVX2's sixteen registers hold.
pub(super) const ROWS: usize = 6;

/// Scores, later weights, of one row for the keys of one tile.
pub(super) type TileRow = [f32; TILE];

/// From a dot product to a score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bend {
    pub(super) scale: f32,
    /// 0 is off.
    pub(super) cap: f32,
    /// What a score loses for each position between query and key; 0 is off.
    pub(super) slope: f32,
    /// Position of the tile's first key, minus that of the query.
    pub(super) first_distance: f32,
}

/// What a row remembers inside a chunk of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowState {
    pub(super) max: f32,
    /// Sums of weights, by key mod 8.
    pub(super) lanes: [f32; 8],
    /// Whether the chunk held a key that the row sees.
    pub(super) seen: bool,
}

impl RowState {
    pub(super) const EMPTY: Self = Self { max: f32::NEG_INFINITY, lanes: [0.0; 8], seen: false };

    /// The lanes added up.
    pub(super) fn running(&self) -> Running {
        Running { max: self.max, sum: fold(self.lanes) }
    }
}

/// The steps of a tile.
pub(super) trait Lanes {
    /// Dot products of some rows with the keys of some quarters of a tile: `scores[row][key] = Σ q[row][channel] k[channel][key]`, one
    /// fused multiply-add after the other in rising channel, from +0.
    ///
    /// - `q`     `[channel, ROWS]`, of which the first `rows` rows are used
    /// - `keys`  the tile, `[quarter, channel]` lines of 16 keys
    fn dots(rows: usize, q: &[f32], keys: &[Line], quarters: Range<usize>, scores: &mut [TileRow; ROWS]);

    /// Turns the dot products of one row into scores and these into weights against the running maximum, and updates what the row remembers.
    ///
    /// Keys outside `visible` get weight 0 whatever their dot product. Returns the factor by which what was mixed before must be multiplied.
    /// `watch` is told of the row that stands beside it.
    fn weigh<W: Watch>(scores: &mut TileRow, visible: Range<usize>, bend: Bend, row: &mut RowState, watch: (&mut W, Watched)) -> f32;

    /// Scores of one row of dot products, without softmax.
    fn bend(scores: &mut TileRow, bend: Bend);

    /// Mixes values into rows: `mixed[row] += Σ weights[row][key] v[key]`, one fused multiply-add a key, in rising key.
    ///
    /// - `weights`  one a row
    /// - `values`   the tile, `[panel, key]` lines of 16 channels
    /// - `mixed`    `[row, panel * 16]`
    fn mix(weights: &[TileRow], keys: Range<usize>, values: &[Line], mixed: &mut [f32]);

    /// Merges what a row got from the next chunk into what it got before: maxima and sums as [`Running::merge`] says, mixed values by
    /// `fma(total, factor, added * later_factor)`.
    fn merge(running: &mut Running, total: &mut [f32], later: &RowState, added: &[f32]);
}

/// The definition.
pub(super) struct Portable;

impl Lanes for Portable {
    fn dots(rows: usize, q: &[f32], keys: &[Line], quarters: Range<usize>, scores: &mut [TileRow; ROWS]) {
        let d_head = q.len() / ROWS;
        for quarter in quarters {
            for (row, scores) in scores.iter_mut().enumerate().take(rows) {
                let mut sums = [0.0; LANES];
                for (channel, line) in keys[quarter * d_head..(quarter + 1) * d_head].iter().enumerate() {
                    for (sum, key) in sums.iter_mut().zip(line.0) {
                        *sum = q[channel * ROWS + row].mul_add(key, *sum);
                    }
                }
                scores[quarter * LANES..(quarter + 1) * LANES].copy_from_slice(&sums);
            }
        }
    }

    fn weigh<W: Watch>(scores: &mut TileRow, visible: Range<usize>, bend: Bend, row: &mut RowState, watch: (&mut W, Watched)) -> f32 {
        weigh_here(scores, visible, bend, row, watch)
    }

    fn bend(scores: &mut TileRow, bend: Bend) {
        bend_here(scores, bend);
    }

    fn mix(weights: &[TileRow], keys: Range<usize>, values: &[Line], mixed: &mut [f32]) {
        let width = mixed.len() / weights.len();
        for (weights, mixed) in weights.iter().zip(mixed.chunks_exact_mut(width)) {
            for (panel, mixed) in values.chunks_exact(TILE).zip(mixed.chunks_exact_mut(LANES)) {
                for key in keys.clone() {
                    for (mixed, value) in mixed.iter_mut().zip(panel[key].0) {
                        *mixed = weights[key].mul_add(value, *mixed);
                    }
                }
            }
        }
    }

    fn merge(running: &mut Running, total: &mut [f32], later: &RowState, added: &[f32]) {
        merge_here(running, total, later, added);
    }
}

#[inline(always)]
pub(super) fn merge_here(running: &mut Running, total: &mut [f32], later: &RowState, added: &[f32]) {
    let (merged, factor, later_factor) = running.merge(later.running());
    *running = merged;
    for (total, added) in total.iter_mut().zip(added) {
        *total = total.mul_add(factor, added * later_factor);
    }
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a key of a tile is below 64")]
pub(super) fn bend_here(scores: &mut TileRow, bend: Bend) {
    scores.iter_mut().for_each(|score| *score *= bend.scale);
    if bend.cap != 0.0 {
        scores.iter_mut().for_each(|score| *score = bend.cap * tanh(*score / bend.cap));
    }
    if bend.slope != 0.0 {
        for (key, score) in scores.iter_mut().enumerate() {
            let distance = (bend.first_distance + key as f32).abs();
            *score = distance.mul_add(-bend.slope, *score);
        }
    }
}

#[inline(always)]
pub(super) fn weigh_here<W: Watch>(
    scores: &mut TileRow,
    visible: Range<usize>,
    bend: Bend,
    row: &mut RowState,
    (watch, of): (&mut W, Watched),
) -> f32 {
    bend_here(scores, bend);
    if visible != (0..TILE) {
        for (key, score) in scores.iter_mut().enumerate() {
            *score = if visible.contains(&key) { *score } else { f32::NEG_INFINITY };
        }
    }

    let highest = highest(scores);
    let max = larger(row.max, highest);
    let base = finite_base(max);

    let bent = W::ON.then_some(*scores);
    scores.iter_mut().for_each(|score| *score = exp(*score - base));
    let mut sums = [0.0; 8];
    for eight in scores.as_chunks::<8>().0 {
        for (sum, weight) in sums.iter_mut().zip(eight) {
            *sum += weight;
        }
    }
    let factor = exp(row.max - base);
    if let Some(bent) = bent {
        watch.add(of, &Weighed { scores: &bent, weights: scores, sums, highest, factor, before: *row, max });
    }
    for (lane, sum) in row.lanes.iter_mut().zip(sums) {
        *lane = lane.mul_add(factor, sum);
    }
    row.max = max;
    row.seen = true;
    factor
}

/// The largest score, by halving; a NaN is passed over and shows in the weights.
#[inline(always)]
fn highest(scores: &TileRow) -> f32 {
    let mut left = *scores;
    for half in [32, 16, 8, 4, 2, 1] {
        for key in 0..half {
            left[key] = larger(left[key], left[key + half]);
        }
    }
    left[0]
}

/// `a`, unless `b` is larger: never NaN unless `a` is.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}
