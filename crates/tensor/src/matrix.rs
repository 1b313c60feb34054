use crate::{Bytes, StorageType, TensorError, blocks};

/// The rows of a weight as they are stored: `rows` outputs, each a dot product over `columns` inputs.
///
/// Sizes are checked here, once; afterwards every row decodes without failing.
#[derive(Clone, Debug)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    storage: StorageType,
    bytes: Bytes,
}

impl Matrix {
    /// A matrix over stored bytes.
    ///
    /// # Errors
    ///
    /// Where a row is no whole number of blocks, or `bytes` is not exactly rows × columns long.
    pub fn new(rows: usize, columns: usize, storage: StorageType, bytes: Bytes) -> Result<Self, TensorError> {
        let row = storage.bytes_for(columns).ok_or(TensorError::PartialBlock { columns, storage })?;
        let wanted = row.checked_mul(rows).ok_or(TensorError::TooLarge { rows, columns })?;
        if bytes.len() != wanted {
            return Err(TensorError::WrongByteCount { rows, columns, storage, wanted, found: bytes.len() });
        }
        Ok(Self { rows, columns, storage, bytes })
    }

    /// A matrix of `f32` values in row order.
    ///
    /// # Errors
    ///
    /// Where `values` is not exactly rows × columns long.
    pub fn from_f32(rows: usize, columns: usize, values: &[f32]) -> Result<Self, TensorError> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        Self::new(rows, columns, StorageType::F32, Bytes::new(bytes))
    }

    /// Number of rows (outputs).
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row (inputs).
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How the numbers are stored.
    #[must_use]
    pub fn storage(&self) -> StorageType {
        self.storage
    }

    /// The stored bytes of row `row`.
    #[must_use]
    pub fn row_bytes(&self, row: usize) -> &[u8] {
        let len = self.bytes.len() / self.rows.max(1);
        &self.bytes[row * len..(row + 1) * len]
    }

    /// Says that the stored bytes are not needed for now, as [`Bytes::release`] does.
    pub fn release(&self) {
        self.bytes.release();
    }

    /// Decodes row `row` into `out`, which is `columns` long. This is the definition that every fast decoder must equal bit for bit.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.columns, "a row has `columns` numbers");
        blocks::decode(self.storage, self.row_bytes(row), out);
    }

    /// The values as they lie in memory, where they are stored as aligned `f32` on a little-endian machine.
    #[must_use]
    pub fn as_f32(&self) -> Option<&[f32]> {
        if self.storage != StorageType::F32 || cfg!(target_endian = "big") {
            return None;
        }
        bytemuck::try_cast_slice(&self.bytes).ok()
    }

    /// The rows `range` as a matrix over the same memory; `None` where `range` reaches past the end.
    #[must_use]
    pub fn slice_rows(&self, range: std::ops::Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.rows {
            return None;
        }
        let len = self.bytes.len() / self.rows.max(1);
        let bytes = self.bytes.slice(range.start * len..range.end * len)?;
        Some(Self { rows: range.len(), bytes, ..self.clone() })
    }
}
