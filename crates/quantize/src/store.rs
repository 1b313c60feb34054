//! One tensor, encoded row by row and decoded again.

use glassbox_tensor::{Bytes, Matrix, encode};
use rayon::prelude::*;

use crate::QuantizeError;
use crate::plan::Plan;

/// A stored tensor and what the storing did to it.
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    /// Sum of squared differences between the weights and what is stored.
    pub(crate) squared_error: f64,
    /// Sum of squared weights.
    pub(crate) squared: f64,
}

/// Stores every row; rows are independent, so the result is the same on any number of threads.
pub(crate) fn store(tensor: &str, matrix: &Matrix, plan: &Plan) -> Result<Stored, QuantizeError> {
    let rows: Result<Vec<Stored>, QuantizeError> =
        (0..matrix.rows()).into_par_iter().map(|row| store_row(tensor, matrix, row, plan)).collect();
    let rows = rows?;
    let mut all = Stored { bytes: Vec::with_capacity(rows.iter().map(|row| row.bytes.len()).sum()), squared_error: 0.0, squared: 0.0 };
    for row in rows {
        all.bytes.extend(row.bytes);
        all.squared_error += row.squared_error;
        all.squared += row.squared;
    }
    Ok(all)
}

fn store_row(tensor: &str, matrix: &Matrix, row: usize, plan: &Plan) -> Result<Stored, QuantizeError> {
    let mut weights = vec![0.0; matrix.columns()];
    matrix.decode_row(row, &mut weights);
    if let Some(found) = weights.iter().copied().find(|weight| !weight.is_finite()) {
        return Err(QuantizeError::NotFinite { tensor: tensor.to_owned(), row, found });
    }
    let rounded = plan.simulated.map(|largest| round_to_channel(&weights, largest));
    let wrong = |error| QuantizeError::tensor(tensor, error);
    let bytes = encode(plan.storage, rounded.as_deref().unwrap_or(&weights)).map_err(wrong)?;
    let mut stored = vec![0.0; weights.len()];
    Matrix::new(1, weights.len(), plan.storage, Bytes::new(bytes.clone())).map_err(wrong)?.decode_row(0, &mut stored);
    if !stored.iter().all(|stored| stored.is_finite()) {
        let largest = weights.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
        return Err(QuantizeError::TooLarge { tensor: tensor.to_owned(), row, largest, storage: plan.storage });
    }
    let squared_error = weights.iter().zip(&stored).map(|(weight, stored)| (f64::from(*weight) - f64::from(*stored)).powi(2)).sum();
    let squared = weights.iter().map(|weight| f64::from(*weight).powi(2)).sum();
    Ok(Stored { bytes, squared_error, squared })
}

/// Every weight as a whole multiple of the row's scale, the largest size / `largest`; ties go away from zero.
fn round_to_channel(weights: &[f32], largest: f32) -> Vec<f32> {
    let scale = weights.iter().fold(0.0_f32, |most, weight| most.max(weight.abs())) / largest;
    if scale == 0.0 {
        return vec![0.0; weights.len()];
    }
    weights.iter().map(|weight| (weight / scale).round().clamp(-largest, largest) * scale).collect()
}
