//! A page: keys and values of one tile of 64 tokens, all key-value heads of a layer, in one of the storage types.
//!
//! Scores want 16 keys side by side (one fused multiply-add serves eight of them, no horizontal sum), so keys are stored transposed in
//! quarters of 16 tokens. Mixing wants 16 channels of a value side by side, and then the same channels of the next token: values are
//! stored in panels of 16 channels. Both kernels thus read memory in rising order. The smaller types lie in the same order, and are
//! widened a tile at a time.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::blocks::{self, BLOCK};
use super::pool::{Pool, Taken};
use super::{KvType, LANES, LayerShape, Line, TILE, value_panels};
use crate::MechanismError;

/// Keys and values of 64 tokens of a layer.
#[derive(Debug)]
pub(super) struct Page {
    shape: LayerShape,
    kv_type: KvType,
    taken: Taken,
    numbers: Numbers,
}

/// Keys are `[kv_head, quarter, d_head]` lines of 16 tokens, values `[kv_head, panel, token]` lines of 16 channels.
#[derive(Clone, Debug)]
enum Numbers {
    F32 { keys: Vec<Line>, values: Vec<Line> },
    F16 { keys: Vec<[f16; LANES]>, values: Vec<[f16; LANES]> },
    Q8_0 { keys: Vec<[i8; LANES]>, values: Vec<[i8; LANES]>, scales: Scales },
}

/// Of keys `[kv_head, quarter, block]` lines of 16 tokens, of values `[kv_head, block, token]`.
#[derive(Clone, Debug)]
struct Scales {
    keys: Vec<[f16; LANES]>,
    values: Vec<f16>,
}

impl Page {
    /// Bytes of a page's numbers.
    pub(super) fn bytes_of(shape: LayerShape, kv_type: KvType) -> Option<usize> {
        let keys = key_lines(shape)?;
        let values = value_lines(shape)?;
        let lines = keys.checked_add(values)?;
        match kv_type {
            KvType::F32 => lines.checked_mul(size_of::<Line>()),
            KvType::F16 => lines.checked_mul(size_of::<[f16; LANES]>()),
            KvType::Q8_0 => {
                let scales = scales_of(shape)?.checked_mul(2 * size_of::<f16>())?;
                lines.checked_mul(size_of::<[i8; LANES]>())?.checked_add(scales)
            }
        }
    }

    pub(super) fn new(shape: LayerShape, kv_type: KvType, pool: &Pool) -> Result<Self, MechanismError> {
        let bytes = Self::bytes_of(shape, kv_type).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(u64::MAX);
        let taken = pool.take(bytes)?;
        let (key_lines, value_lines) = (key_lines(shape).unwrap_or(usize::MAX), value_lines(shape).unwrap_or(usize::MAX));
        let numbers = match kv_type {
            KvType::F32 => {
                let zero = Line([0.0; LANES]);
                Numbers::F32 { keys: filled(zero, key_lines, bytes)?, values: filled(zero, value_lines, bytes)? }
            }
            KvType::F16 => {
                let zero = [f16::ZERO; LANES];
                Numbers::F16 { keys: filled(zero, key_lines, bytes)?, values: filled(zero, value_lines, bytes)? }
            }
            KvType::Q8_0 => {
                let scales = scales_of(shape).unwrap_or(usize::MAX);
                Numbers::Q8_0 {
                    keys: filled([0; LANES], key_lines, bytes)?,
                    values: filled([0; LANES], value_lines, bytes)?,
                    scales: Scales { keys: filled([f16::ZERO; LANES], scales / LANES, bytes)?, values: filled(f16::ZERO, scales, bytes)? },
                }
            }
        };
        Ok(Self { shape, kv_type, taken, numbers })
    }

    /// Another page with the same numbers, from the same pool.
    pub(super) fn copy(&self) -> Result<Self, MechanismError> {
        let mut copy = Self::new(self.shape, self.kv_type, self.taken.pool())?;
        copy.numbers.clone_from(&self.numbers);
        Ok(copy)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.taken.bytes()
    }

    /// Stores the key and the value of one head of one token.
    ///
    /// - `token`  inside the page
    pub(super) fn write(&mut self, kv_head: usize, token: usize, key: &[f32], value: &[f32]) {
        let shape = self.shape;
        let quarter = (kv_head * (TILE / LANES) + token / LANES) * shape.d_head;
        let (quarter, lane) = (quarter..quarter + shape.d_head, token % LANES);
        let line = kv_head * TILE * value_panels(shape.d_head) + token;
        match &mut self.numbers {
            Numbers::F32 { keys, values } => {
                keys[quarter].iter_mut().zip(key).for_each(|(line, &channel)| line.0[lane] = channel);
                for (line, channels) in values[line..].iter_mut().step_by(TILE).zip(value.chunks(LANES)) {
                    line.0[..channels.len()].copy_from_slice(channels);
                }
            }
            Numbers::F16 { keys, values } => {
                keys[quarter].iter_mut().zip(key).for_each(|(line, &channel)| line[lane] = f16::from_f32(channel));
                for (line, channels) in values[line..].iter_mut().step_by(TILE).zip(value.chunks(LANES)) {
                    line[..channels.len()].convert_from_f32_slice(channels);
                }
            }
            Numbers::Q8_0 { keys, values, scales } => {
                let blocks = shape.d_head.div_ceil(BLOCK);
                let mut codes = [0; BLOCK];
                for (block, channels) in key.chunks(BLOCK).enumerate() {
                    let scale = blocks::encode(channels, &mut codes);
                    scales.keys[(kv_head * (TILE / LANES) + token / LANES) * blocks + block][lane] = scale;
                    let lines = &mut keys[quarter.clone()][block * BLOCK..];
                    lines.iter_mut().zip(&codes[..channels.len()]).for_each(|(line, &code)| line[lane] = code);
                }
                for (block, channels) in value.chunks(BLOCK).enumerate() {
                    scales.values[(kv_head * blocks + block) * TILE + token] = blocks::encode(channels, &mut codes);
                    let lines = values[line + block * (BLOCK / LANES) * TILE..].iter_mut().step_by(TILE);
                    for (line, codes) in lines.zip(codes[..channels.len()].chunks(LANES)) {
                        line[..codes.len()].copy_from_slice(codes);
                    }
                }
            }
        }
    }

    /// Keys of one head, `[quarter, d_head]` lines of 16 tokens; in `widened` where they are not stored as `f32`.
    pub(super) fn keys<'s>(&'s self, kv_head: usize, widened: &'s mut Vec<Line>) -> &'s [Line] {
        let count = TILE / LANES * self.shape.d_head;
        let range = kv_head * count..(kv_head + 1) * count;
        match &self.numbers {
            Numbers::F32 { keys, .. } => &keys[range],
            Numbers::F16 { keys, .. } => widen(&keys[range], widened),
            Numbers::Q8_0 { keys, scales, .. } => {
                let blocks = TILE / LANES * self.shape.d_head.div_ceil(BLOCK);
                widened.resize(count, Line([0.0; LANES]));
                blocks::decode_keys(&keys[range], &scales.keys[kv_head * blocks..(kv_head + 1) * blocks], self.shape.d_head, widened);
                widened
            }
        }
    }

    /// Values of one head, `[panel, token]` lines of 16 channels; in `widened` where they are not stored as `f32`.
    pub(super) fn values<'s>(&'s self, kv_head: usize, widened: &'s mut Vec<Line>) -> &'s [Line] {
        let count = TILE * value_panels(self.shape.d_head);
        let range = kv_head * count..(kv_head + 1) * count;
        match &self.numbers {
            Numbers::F32 { values, .. } => &values[range],
            Numbers::F16 { values, .. } => widen(&values[range], widened),
            Numbers::Q8_0 { values, scales, .. } => {
                let blocks = TILE * self.shape.d_head.div_ceil(BLOCK);
                widened.resize(count, Line([0.0; LANES]));
                blocks::decode_values(&values[range], &scales.values[kv_head * blocks..(kv_head + 1) * blocks], widened);
                widened
            }
        }
    }

    /// Fills everything, used or not, with 1e4 or as near as the storage comes: what lies beyond the stored tokens must not matter.
    #[cfg(test)]
    pub(super) fn poison(&mut self) {
        match &mut self.numbers {
            Numbers::F32 { keys, values } => [keys, values].map(|lines| lines.fill(Line([1e4; LANES]))),
            Numbers::F16 { keys, values } => [keys, values].map(|lines| lines.fill([f16::from_f32(1e4); LANES])),
            Numbers::Q8_0 { keys, values, scales } => {
                scales.keys.fill([f16::from_f32(100.0); LANES]);
                scales.values.fill(f16::from_f32(100.0));
                [keys, values].map(|lines| lines.fill([100; LANES]))
            }
        };
    }
}

fn widen<'s>(lines: &[[f16; LANES]], widened: &'s mut Vec<Line>) -> &'s [Line] {
    widened.resize(lines.len(), Line([0.0; LANES]));
    widened.iter_mut().zip(lines).for_each(|(wide, line)| line.convert_to_f32_slice(&mut wide.0));
    widened
}

/// `count` times `value`, without room for more; the system may refuse.
fn filled<T: Clone>(value: T, count: usize, page_bytes: u64) -> Result<Vec<T>, MechanismError> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| MechanismError::OutOfMemory { bytes: page_bytes })?;
    values.resize(count, value);
    Ok(values)
}

fn key_lines(shape: LayerShape) -> Option<usize> {
    (TILE / LANES).checked_mul(shape.d_head)?.checked_mul(shape.kv_heads)
}

fn value_lines(shape: LayerShape) -> Option<usize> {
    TILE.checked_mul(value_panels(shape.d_head))?.checked_mul(shape.kv_heads)
}

/// Scales of a page's keys, and as many of its values.
fn scales_of(shape: LayerShape) -> Option<usize> {
    TILE.checked_mul(shape.d_head.div_ceil(BLOCK))?.checked_mul(shape.kv_heads)
}
