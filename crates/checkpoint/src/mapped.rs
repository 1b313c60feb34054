use std::fs::File;
use std::path::Path;

use glassbox_tensor::Bytes;

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
    map.map(Bytes::new).map_err(|source| CheckpointError::io(path, "map it into memory", source))
}
