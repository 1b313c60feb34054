//! A model written again as GGUF in another storage type, with the error that this makes.
//!
//! - [`quantize`]: reads a checkpoint, writes a file, and sums up what it did
//! - [`Target`]: what the matrices become
//! - [`Summary`]: tensors, bytes and errors by storage type, and what had to be stored otherwise
//!
//! Invariant: the file is whole and was read back before it stands under its name.

mod error;
mod metadata;
mod plan;
mod source;
mod store;
mod summary;

use std::path::Path;

use glassbox_checkpoint::{Checkpoint, GgufWriter};

pub use error::QuantizeError;
pub use plan::Target;
pub use summary::{Fallback, Summary, TypeSummary};

use source::Source;
use store::{Stored, store};

/// Writes `checkpoint` to `out`, its matrices as `target`.
///
/// - `threads`   that encode; the result does not depend on them
/// - `progress`  is told of each tensor before it is encoded: its name, its number from 0, and how many there are
///
/// # Errors
///
/// Where the model cannot be read, cannot be described in GGUF, holds a weight that the type cannot hold, or the file cannot be written.
pub fn quantize(
    checkpoint: &Checkpoint,
    target: Target,
    out: &Path,
    threads: usize,
    progress: &mut dyn FnMut(&str, usize, usize),
) -> Result<Summary, QuantizeError> {
    let source = Source::of(checkpoint)?;
    let mut writer = GgufWriter::new();
    metadata::write(&source, target, &mut writer)?;
    let mut summary = Summary::new(target, &source);
    let plans: Vec<plan::Plan> = source.tensors.iter().map(|tensor| plan::plan(&tensor.name, &tensor.shape, target)).collect();
    for (tensor, plan) in source.tensors.iter().zip(&plans) {
        writer.tensor(&tensor.name, &tensor.shape, plan.storage).map_err(|error| QuantizeError::tensor(&tensor.name, error))?;
        summary.fallbacks.extend(plan.fallback(&tensor.name, target));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(QuantizeError::Threads)?;
    let data = |index: usize| {
        let (tensor, plan) = (&source.tensors[index], &plans[index]);
        progress(&tensor.name, index, source.tensors.len());
        let Stored { bytes, squared_error, squared } = pool.install(|| store(&tensor.name, &tensor.matrix, plan))?;
        summary.add(plan.storage, tensor.matrix.rows() * tensor.matrix.columns(), bytes.len(), squared_error, squared);
        Ok(bytes)
    };
    writer.write(out, data, |unfinished| source.check(&Checkpoint::open(unfinished)?))?;
    summary.file_bytes = writer.file_bytes();
    summary.finish();
    Ok(summary)
}
