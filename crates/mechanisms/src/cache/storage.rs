//! How one key-value head lies in memory.
//!
//! Scores want 16 keys side by side (one fused multiply-add serves eight of them, no horizontal sum), so keys are stored transposed in
//! quarters of 16 tokens. Mixing wants 16 channels of a value side by side, and then the same channels of the next token: values are
//! stored in panels of 16 channels. Both kernels thus read memory in rising order. Appending never moves what is stored, except when
//! memory grows.

use crate::MechanismError;

/// Tokens of a tile: a softmax step takes 64 scores of a row at a time (eight registers of eight), and 64 keys and values of 64 channels
/// are 32 KiB, what a first-level cache holds.
pub const TILE: usize = 64;

/// Sixteen numbers that start a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Line(pub [f32; LANES]);

/// Numbers of a line.
pub(crate) const LANES: usize = 16;

/// Keys and values of one key-value head, whole tiles.
#[derive(Debug)]
pub(super) struct HeadStore {
    d_head: usize,
    /// `[tile, quarter, d_head]` lines of 16 tokens.
    keys: Vec<Line>,
    /// `[tile, panel, token]` lines of 16 channels.
    values: Vec<Line>,
}

impl HeadStore {
    pub(super) fn new(d_head: usize) -> Self {
        Self { d_head, keys: Vec::new(), values: Vec::new() }
    }

    /// Bytes of one tile of keys and values.
    pub(super) fn tile_bytes(d_head: usize) -> Option<usize> {
        let lines = key_lines(d_head).checked_add(TILE.checked_mul(value_panels(d_head))?)?;
        lines.checked_mul(size_of::<Line>())
    }

    pub(super) fn bytes(&self) -> u64 {
        ((self.keys.capacity() + self.values.capacity()) * size_of::<Line>()) as u64
    }

    /// Makes room for `tokens`, half as much again in advance, but never beyond `capacity`.
    pub(super) fn reserve(&mut self, tokens: usize, capacity: usize) -> Result<(), MechanismError> {
        let wanted = tokens.div_ceil(TILE);
        let tiles = (wanted + wanted / 2).min(capacity.div_ceil(TILE));
        for (lines, per_tile) in [(&mut self.keys, key_lines(self.d_head)), (&mut self.values, TILE * value_panels(self.d_head))] {
            if lines.len() >= wanted * per_tile {
                continue;
            }
            let more = tiles * per_tile - lines.len();
            let bytes = (tiles * per_tile * size_of::<Line>()) as u64;
            lines.try_reserve_exact(more).map_err(|_| MechanismError::OutOfMemory { bytes })?;
            lines.resize(tiles * per_tile, Line([0.0; LANES]));
        }
        Ok(())
    }

    pub(super) fn write(&mut self, position: usize, key: &[f32], value: &[f32]) {
        let (quarter, lane) = (position / LANES * self.d_head, position % LANES);
        for (line, &channel) in self.keys[quarter..quarter + self.d_head].iter_mut().zip(key) {
            line.0[lane] = channel;
        }
        let first = self.value_line(position);
        for (line, channels) in self.values[first..].iter_mut().step_by(TILE).zip(value.chunks(LANES)) {
            line.0[..channels.len()].copy_from_slice(channels);
        }
    }

    pub(super) fn key_tile(&self, tile: usize) -> &[Line] {
        let lines = key_lines(self.d_head);
        &self.keys[tile * lines..(tile + 1) * lines]
    }

    pub(super) fn value_tile(&self, tile: usize) -> &[Line] {
        let lines = TILE * value_panels(self.d_head);
        &self.values[tile * lines..(tile + 1) * lines]
    }

    pub(super) fn key(&self, position: usize) -> Vec<f32> {
        let quarter = position / LANES * self.d_head;
        self.keys[quarter..quarter + self.d_head].iter().map(|line| line.0[position % LANES]).collect()
    }

    pub(super) fn value(&self, position: usize) -> Vec<f32> {
        let lines = self.values[self.value_line(position)..].iter().step_by(TILE);
        lines.flat_map(|line| line.0).take(self.d_head).collect()
    }

    /// Line of the first 16 channels of a value; the next 16 lie `TILE` lines on.
    fn value_line(&self, position: usize) -> usize {
        position / TILE * TILE * value_panels(self.d_head) + position % TILE
    }

    /// Fills everything, used or not, with `value`: what lies beyond the stored tokens must not matter.
    #[cfg(test)]
    pub(super) fn poison(&mut self, value: f32) {
        self.keys.fill(Line([value; LANES]));
        self.values.fill(Line([value; LANES]));
    }
}

fn key_lines(d_head: usize) -> usize {
    TILE / LANES * d_head
}

/// Panels of 16 channels that hold a value.
pub(crate) fn value_panels(d_head: usize) -> usize {
    d_head.div_ceil(LANES)
}
