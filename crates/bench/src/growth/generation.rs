//! A whole model that generates, with and without its cache.

use std::hint::black_box;

use glassbox_mechanisms::Workers;
use glassbox_model::{Model, Rows};

use crate::BenchError;

/// Each step reads one token after those that the cache holds.
pub(super) fn cached(model: &Model, n: usize, workers: &Workers) -> Result<(), BenchError> {
    let mut cache = model.new_cache(n, u64::MAX)?;
    for id in ids(model, n) {
        black_box(model.forward(&[id], &mut cache, Rows::Last, workers)?);
    }
    Ok(())
}

/// Each step reads all tokens so far, with a new cache.
pub(super) fn uncached(model: &Model, n: usize, workers: &Workers) -> Result<(), BenchError> {
    (1..=n).try_for_each(|tokens| uncached_step(model, tokens, workers))
}

/// One such step, the last of `n`: no other takes more memory.
pub(super) fn uncached_step(model: &Model, n: usize, workers: &Workers) -> Result<(), BenchError> {
    let mut cache = model.new_cache(n, u64::MAX)?;
    black_box(model.forward(&ids(model, n), &mut cache, Rows::Last, workers)?);
    Ok(())
}

/// Bytes that the cache holds after `n` tokens, keys and values as `f32`.
pub(super) fn cache_bytes(model: &Model, n: usize) -> Result<u64, BenchError> {
    let mut cache = model.new_cache(n, u64::MAX)?;
    model.forward(&ids(model, n), &mut cache, Rows::None, &Workers::inline())?;
    Ok(cache.bytes())
}

fn ids(model: &Model, n: usize) -> Vec<u32> {
    let vocab = u32::try_from(model.blueprint().vocab).unwrap_or(u32::MAX).max(1);
    (0..n as u32).map(|index| index.wrapping_mul(2_654_435_761) % vocab).collect()
}
