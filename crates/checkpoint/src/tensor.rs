use glassbox_tensor::{Bytes, Matrix, StorageType};

use crate::CheckpointError;
use crate::error::{Fault, Place};

/// A tensor as it lies in its file.
#[derive(Clone, Debug)]
pub struct StoredTensor {
    /// Its name in the file.
    pub name: String,
    /// How its numbers are stored.
    pub storage: StorageType,
    /// Sizes of the axes, the slowest first: `[out, in]` for a linear layer, in safetensors and GGUF alike. Empty for a scalar.
    pub shape: Vec<usize>,
    /// The stored numbers, in row order.
    pub bytes: Bytes,
    pub(crate) file: String,
}

impl StoredTensor {
    /// The tensor as rows: the last axis is the row, all others are its index. A vector is one row, a scalar one row of one number.
    ///
    /// # Errors
    ///
    /// Never for a tensor of an opened checkpoint, whose sizes were checked; the sizes are checked again here.
    pub fn matrix(&self) -> Result<Matrix, CheckpointError> {
        let columns = self.shape.last().copied().unwrap_or(1);
        let rows = self.shape.iter().rev().skip(1).product();
        Matrix::new(rows, columns, self.storage, self.bytes.clone()).map_err(|error| {
            CheckpointError::Malformed(Box::new(Fault {
                file: self.file.clone(),
                place: Place::Tensor(self.name.clone()),
                wanted: format!("{rows} rows of {columns} {} numbers", self.storage),
                found: error.to_string(),
                remedy: "download the file again".to_owned(),
            }))
        })
    }

    /// All numbers in row order, decoded.
    ///
    /// # Errors
    ///
    /// As [`StoredTensor::matrix`].
    pub fn values(&self) -> Result<Vec<f32>, CheckpointError> {
        let matrix = self.matrix()?;
        let mut values = vec![0.0; matrix.rows() * matrix.columns()];
        if matrix.columns() > 0 {
            for (row, out) in values.chunks_exact_mut(matrix.columns()).enumerate() {
                matrix.decode_row(row, out);
            }
        }
        Ok(values)
    }

    /// The file that holds the tensor.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// A tensor as a file announces it, checked against the file's length, before anybody asks for its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    pub(crate) stored_as: StoredAs,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Bytes,
    /// Index of the file among the checkpoint's weight files.
    pub(crate) file: usize,
}

/// How a file says that a tensor is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredAs {
    Read(StorageType),
    /// Known to the format, but not decoded here; the format's own name.
    NotRead(&'static str),
}

impl StoredAs {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read(storage) => storage.name(),
            Self::NotRead(name) => name,
        }
    }
}
