use crate::StorageType;

/// What can be wrong with numbers and their storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// A row is no whole number of blocks.
    #[error("a row of {columns} numbers cannot be stored as {storage}, whose blocks hold {}", .storage.block_len())]
    PartialBlock {
        /// Length of a row.
        columns: usize,
        /// The storage type asked for.
        storage: StorageType,
    },
    /// The bytes given do not match rows × columns.
    #[error("{rows} rows of {columns} {storage} numbers need {wanted} bytes, found {found}")]
    WrongByteCount {
        /// Number of rows.
        rows: usize,
        /// Length of a row.
        columns: usize,
        /// The storage type.
        storage: StorageType,
        /// Bytes that rows × columns need.
        wanted: usize,
        /// Bytes given.
        found: usize,
    },
    /// Nothing here writes this type.
    #[error("numbers cannot be stored as {storage} here: use F32, F16, Q8_0, Q5_0, Q4_0, Q4_K or Q6_K")]
    NoEncoder {
        /// The storage type asked for.
        storage: StorageType,
    },
    /// rows × columns does not fit into memory addresses.
    #[error("{rows} rows of {columns} numbers are more than can be addressed")]
    TooLarge {
        /// Number of rows.
        rows: usize,
        /// Length of a row.
        columns: usize,
    },
    /// Axes were asked for that a view does not have.
    #[error("wanted axes {wanted:?}, found {found:?}")]
    WrongAxes {
        /// The names asked for.
        wanted: Vec<&'static str>,
        /// The names of the view.
        found: Vec<&'static str>,
    },
    /// The values given do not match the sizes of the axes.
    #[error("axes {axes:?} of sizes {sizes:?} hold {wanted} numbers, found {found}")]
    WrongLength {
        /// Names of the axes.
        axes: Vec<&'static str>,
        /// Their sizes.
        sizes: Vec<usize>,
        /// The product of the sizes.
        wanted: usize,
        /// Numbers given.
        found: usize,
    },
}
