//! The definition of an embedding: a one-hot row times the table.
#![forbid(unsafe_code)]

use glassbox_tensor::Matrix;
use ndarray::{Array2, NdFloat};

use crate::matmul::textbook::exact;

/// The embeddings of `ids` as a matrix product, which is what a lookup abbreviates.
///
/// ```text
/// E = scale · onehot(ids) · W,   onehot[t, v] = 1 where v = ids[t], else 0
/// ```
///
/// - `table`  `[vocab, d_model]`
/// - `ids`    `[token]`
/// - `scale`  factor on every number
///
/// Returns `[token, d_model]`.
pub fn look_up<F: NdFloat>(table: &Matrix, ids: &[u32], scale: f32) -> Array2<F> {
    let (vocab, d_model) = (table.rows(), table.columns());
    let one_hot = Array2::from_shape_fn((ids.len(), vocab), |(t, v)| if ids[t] as usize == v { F::one() } else { F::zero() });
    let mut row = vec![0.0_f32; d_model];
    let mut w = Array2::zeros((vocab, d_model));
    for v in 0..vocab {
        table.decode_row(v, &mut row);
        for (i, value) in row.iter().enumerate() {
            w[[v, i]] = exact::<F>(*value);
        }
    }
    one_hot.dot(&w) * exact::<F>(scale)
}
