//! Attention alone, where the power of `n` shows undisturbed.

use std::hint::black_box;

use glassbox_mechanisms::attention::{Queries, Rule, attend};
use glassbox_mechanisms::cache::{Cache, CachePlan, KvType, LayerShape, Pool};
use glassbox_mechanisms::heads::Heads;
use glassbox_mechanisms::mask::KeyRange;
use glassbox_mechanisms::{Kernels, MechanismError, Workers};
use glassbox_model::ModelError;

use crate::BenchError;

/// Width of the one head.
const D_HEAD: usize = 64;

/// Queries, keys and values of `n` tokens, one head.
struct Layer {
    heads: Heads,
    queries: Vec<f32>,
    cache: Cache,
}

impl Layer {
    fn new(n: usize) -> Result<Self, BenchError> {
        let heads = Heads::new(1, 1, D_HEAD).map_err(refused)?;
        let mut cache = Cache::new(&[LayerShape { kv_heads: 1, d_head: D_HEAD }], n, u64::MAX).map_err(refused)?;
        let queries = numbers(n * D_HEAD, 1);
        cache.append(0, &numbers(n * D_HEAD, 2), &numbers(n * D_HEAD, 3)).map_err(refused)?;
        Ok(Self { heads, queries, cache })
    }

    /// The queries of tokens `first..end` over the keys up to each of them.
    fn attend(&self, kernels: Kernels, first: usize, end: usize, out: &mut [f32], workers: &Workers) -> Result<(), BenchError> {
        let queries = Queries {
            values: &self.queries[first * D_HEAD..end * D_HEAD],
            heads: self.heads,
            first_position: first,
            texts: None,
            hidden: None,
        };
        let rule = Rule { keys: KeyRange::causal(), scale: 1.0 / (D_HEAD as f32).sqrt(), soft_cap: None, alibi: None };
        let layer = self.cache.layer(0).map_err(refused)?;
        attend(kernels, &queries, &layer, &rule, &mut out[first * D_HEAD..end * D_HEAD], None, workers).map_err(refused)?;
        black_box(out);
        Ok(())
    }
}

/// Step `t` attends with one query over `t` keys.
pub(super) fn of_all_steps(n: usize, workers: &Workers) -> Result<(), BenchError> {
    let (layer, mut out) = (Layer::new(n)?, vec![0.0; n * D_HEAD]);
    (0..n).try_for_each(|token| layer.attend(Kernels::Fast, token, token + 1, &mut out, workers))
}

/// Step `t` attends with all its `t` queries over `t` keys, because nothing was kept.
pub(super) fn of_all_steps_again(n: usize, workers: &Workers) -> Result<(), BenchError> {
    let (layer, mut out) = (Layer::new(n)?, vec![0.0; n * D_HEAD]);
    (1..=n).try_for_each(|end| layer.attend(Kernels::Fast, 0, end, &mut out, workers))
}

/// All queries at once, by the definition.
pub(super) fn textbook(n: usize) -> Result<(), BenchError> {
    Layer::new(n)?.attend(Kernels::Textbook, 0, n, &mut vec![0.0; n * D_HEAD], &Workers::inline())
}

/// All queries at once, in tiles.
pub(super) fn tiled(n: usize, workers: &Workers) -> Result<(), BenchError> {
    Layer::new(n)?.attend(Kernels::Fast, 0, n, &mut vec![0.0; n * D_HEAD], workers)
}

/// Bytes that a cache of one layer takes once it holds `n` tokens of `kv_heads` heads of 128 channels, stored as f16.
pub(super) fn cache_bytes(kv_heads: usize, n: usize) -> Result<u64, BenchError> {
    const D_HEAD: usize = 128;
    let plan = CachePlan { kv_type: KvType::F16, ..CachePlan::growing(&[LayerShape { kv_heads, d_head: D_HEAD }], n) };
    let mut cache = Cache::planned(&plan, &Pool::new(u64::MAX)).map_err(refused)?;
    let row = numbers(kv_heads * D_HEAD, 4);
    for _ in 0..n {
        cache.append(0, &row, &row).map_err(refused)?;
        cache.advance(1).map_err(refused)?;
    }
    Ok(cache.bytes())
}

/// Numbers between -2 and 2.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn refused(error: MechanismError) -> BenchError {
    ModelError::from(error).into()
}
