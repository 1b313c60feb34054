use glassbox_tensor::{Matrix, StorageType};

use super::Panels;

/// The weight of a linear layer, and with it what its tokens meet: exact rows, or panels that want rounded activations.
#[derive(Clone, Debug)]
pub enum Weight {
    /// As stored; tokens are multiplied as they are.
    Rows(Matrix),
    /// Rows in panels; tokens are rounded to signed bytes first, as [`Panels::rounded`] says.
    Panels(Panels),
}

impl Weight {
    /// Number of rows (outputs).
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.rows(),
            Self::Panels(panels) => panels.rows(),
        }
    }

    /// Length of a row (inputs).
    #[must_use]
    pub fn columns(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.columns(),
            Self::Panels(panels) => panels.columns(),
        }
    }

    /// How the numbers are stored.
    #[must_use]
    pub fn storage(&self) -> StorageType {
        match self {
            Self::Rows(rows) => rows.storage(),
            Self::Panels(panels) => panels.storage(),
        }
    }

    /// Decodes row `row` into `out`, exactly as [`Matrix::decode_row`] does.
    pub fn decode_row(&self, row: usize, out: &mut [f32]) {
        match self {
            Self::Rows(rows) => rows.decode_row(row, out),
            Self::Panels(panels) => panels.decode_row(row, out),
        }
    }
}

impl From<Matrix> for Weight {
    fn from(rows: Matrix) -> Self {
        Self::Rows(rows)
    }
}
