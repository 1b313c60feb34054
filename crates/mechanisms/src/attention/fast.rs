//! The everyday kernel: blocks of query rows walk the keys in tiles of 64 and chunks of 512, and never hold more than a tile of scores.
//!
//! Blocks, and chunks where there are few blocks, go to different threads; chunks of a row are merged in rising order by whoever comes last.

use std::ops::Range;
use std::sync::Mutex;

use super::lanes::{Bend, Lanes, Portable, ROWS, RowState, TileRow};
#[cfg(target_arch = "x86_64")]
use super::simd::Avx2;
use super::statistics::{Asked, Statistics};
use super::watch::{self, Sums, Watch, Watched};
use super::{Queries, Rule};
use crate::Workers;
use crate::cache::{LANES, LayerView, Line, TILE, value_panels};
#[cfg(target_arch = "x86_64")]
use crate::elementary::avx2_fma;
use crate::softmax::Running;

/// Keys of a chunk. In decoding, chunks are what threads share; merging them costs one step in eight tiles.
const CHUNK: usize = 512;
const TILES_OF_CHUNK: usize = CHUNK / TILE;

/// Query rows of a block: eight groups of six read each tile of keys and values while it is in the caches.
const BLOCK: usize = 8 * ROWS;

/// Below this many products of queries and keys (some 5 microseconds) sharing them out costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 17;

pub(super) fn attend<W: Watch>(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, results: Results<'_>, workers: &Workers) {
    let work = queries.values.len().saturating_mul(layer.len());
    let here = Workers::inline();
    let workers = if work < WORTH_A_THREAD { &here } else { workers };
    #[cfg(target_arch = "x86_64")]
    if avx2_fma() {
        return attend_with::<Avx2, W>(queries, layer, rule, results, workers);
    }
    attend_with::<Portable, W>(queries, layer, rule, results, workers);
}

/// Scores of some tokens, `[head, query, key]`: the dot products of [`attend`], bit for bit.
pub(super) fn scores(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, tokens: Range<usize>) -> Vec<f32> {
    #[cfg(target_arch = "x86_64")]
    if avx2_fma() {
        return scores_with::<Avx2>(queries, layer, rule, tokens);
    }
    scores_with::<Portable>(queries, layer, rule, tokens)
}

/// [`attend`] with given steps, on all workers however small the work.
pub(super) fn attend_with<L: Lanes, W: Watch>(
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    results: Results<'_>,
    workers: &Workers,
) {
    let asked = results.asked;
    let heads = &queries.heads;
    let rows_of_kv_head = queries.tokens() * heads.group();
    let blocks_of_kv_head = rows_of_kv_head.div_ceil(BLOCK);
    let blocks = heads.kv_heads() * blocks_of_kv_head;
    let block = |index: usize| {
        let first = index % blocks_of_kv_head * BLOCK;
        Block::new(queries, layer, rule, index / blocks_of_kv_head, first..(first + BLOCK).min(rows_of_kv_head))
    };
    let door = Mutex::new(Door { queries, results });
    let write = |block: &Block<'_>, totals: &Totals| {
        door.lock().expect("a thread that panicked ends the pass").write(block, totals);
    };

    let chunks = layer.len().div_ceil(CHUNK);
    if workers.threads() == 1 || blocks >= 2 * workers.threads() || chunks == 1 {
        workers.split(blocks, 1, |range| {
            for block in range.map(block) {
                let mut totals = Totals::new::<W>(&block, &asked);
                for chunk in block.chunks() {
                    totals.merge::<L>(&block.walk::<L, W>(chunk, &asked));
                }
                write(&block, &totals);
            }
        });
    } else {
        let walked: Vec<Mutex<Option<Chunk>>> = (0..blocks * chunks).map(|_| Mutex::new(None)).collect();
        let slot = |index: usize, chunk: usize| walked[index * chunks + chunk].lock().expect("a thread that panicked ends the pass");
        workers.split(blocks * chunks, 1, |range| {
            for (index, chunk) in range.map(|unit| (unit / chunks, unit % chunks)) {
                let block = block(index);
                if block.chunks().contains(&chunk) {
                    *slot(index, chunk) = Some(block.walk::<L, W>(chunk, &asked));
                }
            }
        });
        workers.split(blocks, 1, |range| {
            for index in range {
                let block = block(index);
                let mut totals = Totals::new::<W>(&block, &asked);
                (0..chunks).filter_map(|chunk| slot(index, chunk).take()).for_each(|chunk| totals.merge::<L>(&chunk));
                write(&block, &totals);
            }
        });
    }
}

/// One query row: a head of a token.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) token: usize,
    head: usize,
    pub(super) position: usize,
    /// The keys that it sees, in two parts where some in the middle are hidden.
    pub(super) keys: [Range<usize>; 2],
    bend: Bend,
}

impl Row {
    pub(super) fn new(queries: &Queries<'_>, rule: &Rule, keys: usize, token: usize, head: usize) -> Self {
        let position = queries.first_position + token;
        let slope = rule.alibi.map_or(0.0, |alibi| alibi.slope(head, queries.heads.heads()));
        let bend = Bend { scale: rule.scale, cap: rule.soft_cap.unwrap_or(0.0), slope, first_distance: 0.0 };
        Self { token, head, position, keys: queries.key_parts(rule, token, keys), bend }
    }

    /// From dot products to scores in one tile. Distances are whole numbers below 2^24, which are exact.
    #[expect(clippy::cast_precision_loss, reason = "positions are below 2^24")]
    pub(super) fn bend(&self, tile: usize) -> Bend {
        Bend { first_distance: (tile * TILE) as f32 - self.position as f32, ..self.bend }
    }
}

/// Query rows that read the same key-value head, token by token and within a token head by head.
struct Block<'a> {
    layer: &'a LayerView<'a>,
    kv_head: usize,
    /// The query heads that read it.
    heads: Range<usize>,
    rows: Vec<Row>,
    /// Parts that the keys of a row come in: two where some are hidden.
    parts: usize,
    /// `[group of ROWS, channel, ROWS]`.
    packed: Vec<f32>,
}

impl<'a> Block<'a> {
    fn new(queries: &Queries<'_>, layer: &'a LayerView<'a>, rule: &Rule, kv_head: usize, rows: Range<usize>) -> Self {
        let (group, d_head) = (queries.heads.group(), queries.heads.d_head());
        let row = |index: usize| Row::new(queries, rule, layer.len(), index / group, kv_head * group + index % group);
        let rows: Vec<Row> = rows.map(row).collect();
        let heads = kv_head * group..(kv_head + 1) * group;
        let mut packed = vec![0.0; rows.len().div_ceil(ROWS) * d_head * ROWS];
        for (index, row) in rows.iter().enumerate() {
            let (group, _) = packed[index / ROWS * d_head * ROWS..][..d_head * ROWS].as_chunks_mut::<ROWS>();
            for (channel, &x) in group.iter_mut().zip(queries.query(row.token, row.head)) {
                channel[index % ROWS] = x;
            }
        }
        Self { layer, kv_head, heads, rows, parts: 1 + usize::from(queries.hidden.is_some()), packed }
    }

    /// The chunks in which some row sees a key.
    fn chunks(&self) -> Range<usize> {
        let keys = union(self.rows.iter().flat_map(|row| row.keys.clone()));
        keys.start / CHUNK..keys.end.div_ceil(CHUNK)
    }

    /// Every row over the keys of one chunk.
    fn walk<L: Lanes, W: Watch>(&self, chunk: usize, asked: &Asked<'_>) -> Chunk {
        let d_head = self.layer.shape().d_head;
        let width = value_panels(d_head) * LANES;
        let mut states = vec![RowState::EMPTY; self.rows.len()];
        let mut mixed = vec![0.0; self.rows.len() * width];
        let mut watched = W::new(asked, self.rows.len(), self.heads.clone(), chunk * CHUNK..(chunk + 1) * CHUNK);
        let seen = union(self.rows.iter().flat_map(|row| row.keys.clone()));
        let (mut wide_keys, mut wide_values) = (Vec::new(), Vec::new());
        for tile in (seen.start / TILE).max(chunk * TILES_OF_CHUNK)..seen.end.div_ceil(TILE).min((chunk + 1) * TILES_OF_CHUNK) {
            let stored = Tile {
                index: tile,
                keys: self.layer.key_tile(self.kv_head, tile, &mut wide_keys),
                values: self.layer.value_tile(self.kv_head, tile, &mut wide_values),
            };
            watched.enter(asked, tile * TILE, self.layer.len());
            let groups = (0..self.rows.len()).step_by(ROWS).zip(self.packed.chunks(d_head * ROWS));
            let sums = states.chunks_mut(ROWS).zip(mixed.chunks_mut(ROWS * width));
            for ((first, q), (states, mixed)) in groups.zip(sums) {
                for part in 0..self.parts {
                    self.step::<L, W>(&stored, part, (first, q), (states, mixed), &mut watched);
                }
            }
        }
        Chunk { states, mixed, watched: watched.finish() }
    }

    /// Up to six rows, from `first` on, over what one part of their keys has in a tile.
    fn step<L: Lanes, W: Watch>(
        &self,
        tile: &Tile<'_>,
        part: usize,
        (first, q): (usize, &[f32]),
        (states, mixed): (&mut [RowState], &mut [f32]),
        watched: &mut W,
    ) {
        let rows = &self.rows[first..first + states.len()];
        let mut visible: [Range<usize>; ROWS] = Default::default();
        for (visible, row) in visible.iter_mut().zip(rows) {
            *visible = within(&row.keys[part], tile.index);
        }
        let visible = &visible[..rows.len()];
        let some = union(visible.iter().cloned());
        if some.is_empty() {
            return;
        }
        let mut weights = [[0.0; TILE]; ROWS];
        L::dots(rows.len(), q, tile.keys, some.start / LANES..some.end.div_ceil(LANES), &mut weights);

        let width = mixed.len() / rows.len();
        for (row, state) in states.iter_mut().enumerate().filter(|(row, _)| !visible[*row].is_empty()) {
            let of = Watched { index: first + row, head: rows[row].head, position: rows[row].position };
            let factor = L::weigh(&mut weights[row], visible[row].clone(), rows[row].bend(tile.index), state, (watched, of));
            if factor != 1.0 {
                mixed[row * width..(row + 1) * width].iter_mut().for_each(|mixed| *mixed *= factor);
            }
        }
        mix::<L>(tile.values, visible, &weights[..rows.len()], mixed);
    }
}

/// Keys and values of a tile, as one key-value head holds them.
struct Tile<'a> {
    index: usize,
    keys: &'a [Line],
    values: &'a [Line],
}

/// Mixes the values of a tile: those that every row sees for all rows at once, what single rows see before and after for these alone.
fn mix<L: Lanes>(values: &[Line], visible: &[Range<usize>], weights: &[TileRow], mixed: &mut [f32]) {
    let width = mixed.len() / weights.len();
    let start = visible.iter().map(|keys| keys.start).max().unwrap_or(0);
    let end = visible.iter().map(|keys| keys.end).min().unwrap_or(0).max(start);
    let alone = |part: &dyn Fn(&Range<usize>) -> Range<usize>, mixed: &mut [f32]| {
        for (row, keys) in visible.iter().map(part).enumerate().filter(|(_, keys)| !keys.is_empty()) {
            L::mix(&weights[row..=row], keys, values, &mut mixed[row * width..(row + 1) * width]);
        }
    };
    if start == end {
        alone(&|keys| keys.clone(), mixed);
    } else {
        alone(&|keys| keys.start..start, mixed);
        L::mix(weights, start..end, values, mixed);
        alone(&|keys| end..keys.end, mixed);
    }
}

/// What the rows of a block got from one chunk.
struct Chunk {
    states: Vec<RowState>,
    /// `[row, panels * 16]`.
    mixed: Vec<f32>,
    watched: Option<Sums>,
}

/// What the rows of a block got from the chunks merged so far.
struct Totals {
    running: Vec<Running>,
    seen: Vec<bool>,
    mixed: Vec<f32>,
    watched: Option<watch::Totals>,
}

impl Totals {
    fn new<W: Watch>(block: &Block<'_>, asked: &Asked<'_>) -> Self {
        let (rows, width) = (block.rows.len(), value_panels(block.layer.shape().d_head) * LANES);
        Self {
            running: vec![Running::EMPTY; rows],
            seen: vec![false; rows],
            mixed: vec![0.0; rows * width],
            watched: W::ON.then(|| watch::Totals::new(asked, rows)),
        }
    }

    /// Adds the next chunk. The first that a row sees is taken as it is, one in which it sees nothing is passed over.
    fn merge<L: Lanes>(&mut self, chunk: &Chunk) {
        let width = self.mixed.len() / self.running.len();
        for (row, state) in chunk.states.iter().enumerate().filter(|(_, state)| state.seen) {
            let (total, added) = (&mut self.mixed[row * width..(row + 1) * width], &chunk.mixed[row * width..(row + 1) * width]);
            if let (Some(totals), Some(sums)) = (&mut self.watched, &chunk.watched) {
                totals.merge(row, self.running[row], sums, state.running());
            }
            if self.seen[row] {
                L::merge(&mut self.running[row], total, state, added);
            } else {
                self.running[row] = state.running();
                self.seen[row] = true;
                total.copy_from_slice(added);
            }
        }
    }
}

/// Where finished rows are written.
struct Door<'a> {
    queries: &'a Queries<'a>,
    results: Results<'a>,
}

/// What a call is to give, and where.
pub(super) struct Results<'a> {
    pub(super) asked: Asked<'a>,
    /// `[token, head, d_head]`.
    pub(super) out: &'a mut [f32],
    /// `[head, token]`.
    pub(super) log_sum_exp: Option<&'a mut [f32]>,
    pub(super) statistics: Option<&'a mut Statistics>,
}

impl Door<'_> {
    fn write(&mut self, block: &Block<'_>, totals: &Totals) {
        let (heads, width) = (&self.queries.heads, totals.mixed.len() / block.rows.len());
        for (index, (row, running)) in block.rows.iter().zip(&totals.running).enumerate() {
            let first = row.token * heads.query_width() + row.head * heads.d_head();
            let mixed = &totals.mixed[index * width..][..heads.d_head()];
            let out = &mut self.results.out[first..][..heads.d_head()];
            if running.sum == 0.0 {
                out.fill(0.0);
            } else {
                out.iter_mut().zip(mixed).for_each(|(out, mixed)| *out = mixed / running.sum);
            }
            if let Some(log_sum_exp) = &mut self.results.log_sum_exp {
                log_sum_exp[row.head * self.queries.tokens() + row.token] = running.log_sum_exp();
            }
            if let (Some(statistics), Some(watched)) = (&mut self.results.statistics, &totals.watched) {
                let of = Watched { index, head: row.head, position: row.position };
                let out = statistics.row_mut(row.head, row.token);
                watched.write(of, *running, &row.keys, &self.results.asked, block.layer.len(), out);
            }
        }
    }
}

pub(super) fn scores_with<L: Lanes>(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, tokens: Range<usize>) -> Vec<f32> {
    let (heads, keys) = (&queries.heads, layer.len());
    let mut all = vec![f32::NEG_INFINITY; heads.heads() * tokens.len() * keys];
    let rows_of_head = (tokens.len() * keys).max(1);
    for (head, rows_of_head) in all.chunks_exact_mut(rows_of_head).enumerate() {
        for (group, rows) in rows_of_head.chunks_mut(ROWS * keys).enumerate() {
            let first = tokens.start + group * ROWS;
            score_rows::<L>(queries, layer, rule, head, first, rows);
        }
    }
    all
}

/// Scores of up to six consecutive tokens of one head, from `first` on; `rows` is `[token, key]`, all minus infinity.
fn score_rows<L: Lanes>(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, head: usize, first: usize, rows: &mut [f32]) {
    let (heads, keys) = (&queries.heads, layer.len());
    let count = rows.len() / keys;
    let q = pack(queries, head, first, count);
    let queried: Vec<Row> = (0..count).map(|row| Row::new(queries, rule, keys, first + row, head)).collect();
    let some = union(queried.iter().flat_map(|row| row.keys.clone()));
    let mut widened = Vec::new();
    for tile in some.start / TILE..some.end.div_ceil(TILE) {
        let mut scores = [[0.0; TILE]; ROWS];
        L::dots(count, &q, layer.key_tile(heads.kv_head_of(head), tile, &mut widened), 0..TILE / LANES, &mut scores);
        for ((query, scores), row) in queried.iter().zip(&mut scores).zip(rows.chunks_exact_mut(keys)) {
            L::bend(scores, query.bend(tile));
            for seen in query.keys.iter().map(|keys| within(keys, tile)) {
                row[tile * TILE..].iter_mut().zip(&*scores).take(seen.end).skip(seen.start).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Queries of up to six consecutive tokens of one head, `[channel, ROWS]`.
pub(super) fn pack(queries: &Queries<'_>, head: usize, first: usize, count: usize) -> Vec<f32> {
    let mut q = vec![0.0; queries.heads.d_head() * ROWS];
    for row in 0..count {
        q[row..].iter_mut().step_by(ROWS).zip(queries.query(first + row, head)).for_each(|(to, &from)| *to = from);
    }
    q
}

/// The part of `keys` that lies in `tile`, counted from the tile's first key.
pub(super) fn within(keys: &Range<usize>, tile: usize) -> Range<usize> {
    let first = tile * TILE;
    keys.start.saturating_sub(first).min(TILE)..keys.end.saturating_sub(first).min(TILE)
}

/// The smallest range that holds all of `ranges`.
pub(super) fn union(ranges: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    ranges.filter(|range| !range.is_empty()).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
}
