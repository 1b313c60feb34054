use std::fs::File;
use std::ops::Range;
use std::path::Path;

use glassbox_tensor::{Bytes, Owner};

use crate::CheckpointError;

/// A file mapped into memory: pages are read when they are first touched, and shared between processes.
///
/// # Errors
///
/// Where the file cannot be opened or mapped.
pub(crate) fn map(path: &Path) -> Result<Bytes, CheckpointError> {
    let file = File::open(path).map_err(|source| CheckpointError::io(path, "open it", source))?;
    let metadata = file.metadata().map_err(|source| CheckpointError::io(path, "read its size", source))?;
    if metadata.len() == 0 {
        return Ok(Bytes::new(Vec::new())); // an empty map is an error on some systems
    }
    #[expect(
        unsafe_code,
        reason = "mapping a file is unsafe because another process may change it; reading gigabytes instead is no option"
    )]
    // SAFETY: the map is read-only and lives as long as the `Bytes` that own it. Whoever changes or cuts the file while it is
    // mapped changes the bytes read here (or ends the process with a bus error); that is documented on `Checkpoint::open`. No
    // invariant of this program rests on the bytes staying the same: headers are parsed into owned values once, and every later
    // read is checked against the length of the map.
    let map = unsafe { memmap2::Mmap::map(&file) };
    map.map(|map| Bytes::lent_by(Mapped(map))).map_err(|source| CheckpointError::io(path, "map it into memory", source))
}

struct Mapped(memmap2::Mmap);

impl Owner for Mapped {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(unix)]
    fn release(&self, range: Range<usize>) {
        #[expect(
            unsafe_code,
            reason = "this advice could change memory that is written to; a map of a file that is only read stays what it is"
        )]
        // SAFETY: the map is read-only and shared with its file: pages that are let go are read again when they are touched.
        // Where the system refuses, nothing is let go.
        let _ = unsafe { self.0.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) };
    }

    #[cfg(not(unix))]
    fn release(&self, _: Range<usize>) {}
}
