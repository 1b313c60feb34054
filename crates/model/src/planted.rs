//! Unit tests only: kernels with a fault, in the place of those that the forward pass calls. The checker of `tests/same_bits` must find each
//! of them (`checks.rs`). No build of the product has this file; `lib.rs` chooses between these two functions and the sound ones.

mod checks;

use std::cell::Cell;

use glassbox_mechanisms::attention::{self, Queries, Rule, pattern};
use glassbox_mechanisms::cache::LayerView;
use glassbox_mechanisms::matmul::Weight;
use glassbox_mechanisms::{Kernels, MechanismError, Workers, matmul};

/// What is planted: the order in which a kernel adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// Both kernels, in another order than contract 1 states, which depends on the row and on absolute positions alone: no fault.
    BothSound,
    /// A product sums in two parts where it has several rows, as a kernel with blocks along the sum does, and at once where it has one.
    ProductByRows,
    /// A product sums in two parts for the rows that groups of four leave over.
    ProductByPlaceInTheBatch,
    /// A product sums in a part for each thread.
    ProductByThreads,
    /// Attention mixes the keys cached before the pass apart from those of the pass itself.
    AttentionByPass,
    /// Attention mixes in chunks of 512 keys, counted from the first one that the cache still holds.
    AttentionByWhatIsHeld,
}

impl Planted {
    /// Runs `work` with the planted kernels on this thread.
    pub(crate) fn while_running<R>(self, work: impl FnOnce() -> R) -> R {
        PLANTED.set(Some(self));
        let result = work();
        PLANTED.set(None);
        result
    }

    /// In how many parts a product of row `row` of `rows` is summed; none where the kernel is not planted.
    fn parts(self, row: usize, rows: usize, workers: &Workers) -> Option<usize> {
        Some(match self {
            Self::BothSound => 2,
            Self::ProductByRows => rows.min(2),
            Self::ProductByPlaceInTheBatch => 1 + usize::from(rows > 1 && row >= rows / 4 * 4),
            Self::ProductByThreads => workers.threads(),
            Self::AttentionByPass | Self::AttentionByWhatIsHeld => return None,
        })
    }

    /// The key at which mixing begins anew; none where the kernel is not planted.
    fn cut(self, queries: &Queries<'_>, layer: &LayerView<'_>) -> Option<usize> {
        match self {
            Self::BothSound => Some(512),
            Self::AttentionByPass => Some(queries.first_position),
            Self::AttentionByWhatIsHeld => Some(layer.first() + 512),
            Self::ProductByRows | Self::ProductByPlaceInTheBatch | Self::ProductByThreads => None,
        }
    }
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// In the place of [`matmul::project`], with its arguments.
pub(crate) fn project(kernels: Kernels, weight: &Weight, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], workers: &Workers) {
    matmul::project(kernels, weight, x, bias, out, workers);
    let (outputs, inputs) = (weight.rows(), weight.columns());
    let (rows, mut weights) = (x.len() / inputs, vec![0.0; inputs]);
    let Some(planted) = PLANTED.get() else { return };
    for output in 0..outputs {
        weight.decode_row(output, &mut weights);
        for (row, x) in x.chunks_exact(inputs).enumerate() {
            let Some(parts) = planted.parts(row, rows, workers) else { return };
            let part = inputs.div_ceil(parts);
            let sum: f32 = weights.chunks(part).zip(x.chunks(part)).map(|(weights, x)| matmul::dot(weights, x)).sum();
            out[row * outputs + output] = sum + bias.map_or(0.0, |bias| bias[output]);
        }
    }
}

/// In the place of [`attention::attend`], with its arguments; a pass never asks for `log_sum_exp`.
pub(crate) fn attend(
    kernels: Kernels,
    queries: &Queries<'_>,
    layer: &LayerView<'_>,
    rule: &Rule,
    out: &mut [f32],
    log_sum_exp: Option<&mut [f32]>,
    workers: &Workers,
) -> Result<(), MechanismError> {
    let Some(cut) = PLANTED.get().and_then(|planted| planted.cut(queries, layer)) else {
        return attention::attend(kernels, queries, layer, rule, out, log_sum_exp, workers);
    };
    let (heads, tokens) = (&queries.heads, queries.tokens());
    let weights = pattern(kernels, queries, layer, rule, 0..tokens)?;
    for head in 0..heads.heads() {
        let values: Vec<Vec<f32>> = (layer.first()..layer.len()).map(|key| layer.value(heads.kv_head_of(head), key)).collect();
        for token in 0..tokens {
            let weights = &weights[(head * tokens + token) * layer.len()..][layer.first()..layer.len()];
            let mut mixed = [vec![0.0; heads.d_head()], vec![0.0; heads.d_head()]];
            for (key, (weight, value)) in (layer.first()..).zip(weights.iter().zip(&values)).filter(|(_, (weight, _))| **weight > 0.0) {
                mixed[usize::from(key >= cut)].iter_mut().zip(value).for_each(|(mixed, value)| *mixed += weight * value);
            }
            let out = &mut out[token * heads.query_width() + head * heads.d_head()..][..heads.d_head()];
            out.iter_mut().zip(&mixed[0]).zip(&mixed[1]).for_each(|((out, before), after)| *out = before + after);
        }
    }
    Ok(())
}
