//! Tokens become vectors: row lookup in the embedding table. The room's page is `README.md`.

#[cfg(test)]
mod checks;
pub mod textbook;

use crate::matmul::Weight;

/// Writes the embedding of every token, times `scale`.
///
/// - `table`  `[vocab, d_model]`, in any storage type, in rows or panels; decoded exactly as `Matrix::decode_row` defines
/// - `ids`    `[token]`
/// - `scale`  1 for most models; the square root of d_model, rounded as the family says, for some
/// - `out`    `[token, d_model]`, overwritten
///
/// There is one version only: a lookup has no sum, so its definition is already its fastest form.
///
/// # Panics
///
/// Where an id is not below the vocabulary (the model turns that away at its door), or `out` does not fit.
pub fn look_up(table: &Weight, ids: &[u32], scale: f32, out: &mut [f32]) {
    let (vocab, d_model) = (table.rows(), table.columns());
    assert_eq!(out.len(), ids.len() * d_model, "out holds {} tokens of {d_model} numbers", ids.len());
    for (id, vector) in ids.iter().zip(out.chunks_exact_mut(d_model.max(1))) {
        let row = usize::try_from(*id).unwrap_or(usize::MAX);
        assert!(row < vocab, "token id {id} is outside the vocabulary of {vocab}");
        table.decode_row(row, vector);
        if scale != 1.0 {
            for value in vector {
                *value *= scale;
            }
        }
    }
}
