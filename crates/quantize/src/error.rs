use glassbox_checkpoint::CheckpointError;
use glassbox_model::ModelError;
use glassbox_tensor::{StorageType, TensorError};

/// Why a model cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantizeError {
    /// The source cannot be read, or the file cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The model cannot be described in GGUF.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tokenizer cannot be described in GGUF.
    #[error(transparent)]
    Text(#[from] glassbox_text::Error),
    /// A tensor cannot be stored.
    #[error("tensor `{tensor}`: {error}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// Why.
        error: TensorError,
    },
    /// A weight is no number.
    #[error(
        "tensor `{tensor}`, row {row}: wanted finite weights, found {found}; the model is damaged, or was saved after training diverged"
    )]
    NotFinite {
        /// Its name.
        tensor: String,
        /// The row.
        row: usize,
        /// The weight.
        found: f32,
    },
    /// A weight is too large for the type.
    #[error("tensor `{tensor}`, row {row}: wanted weights that {storage} can hold, found one of size {largest}; choose another type")]
    TooLarge {
        /// Its name.
        tensor: String,
        /// The row.
        row: usize,
        /// The largest size in the row.
        largest: f32,
        /// The type.
        storage: StorageType,
    },
    /// The written file is not what it was meant to be.
    #[error("the written file lacks tensor `{tensor}`; nothing was put in its place, please report this")]
    Lost {
        /// The tensor.
        tensor: String,
    },
    /// The system gives no threads.
    #[error("cannot start the threads: {0}")]
    Threads(rayon::ThreadPoolBuildError),
}

impl QuantizeError {
    pub(crate) fn tensor(tensor: &str, error: TensorError) -> Self {
        Self::Tensor { tensor: tensor.to_owned(), error }
    }
}
