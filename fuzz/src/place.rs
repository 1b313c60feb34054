//! Files that must lie on a disk to be read.

use std::path::PathBuf;
use std::sync::Mutex;

/// The file that the first byte of an input chooses among `files`, and what the input puts in its place; `None` for an empty input.
pub(crate) fn choose<'a, T>(files: &[T], input: &'a [u8]) -> Option<(usize, &'a [u8])> {
    let (choice, changed) = input.split_first()?;
    Some((usize::from(*choice) % files.len(), changed))
}

/// A folder with all of `files` as they are but the one numbered `chosen`, which holds `changed`. Only what differs from the call before
/// is written, so a process must always give the same `files`.
pub(crate) fn place(files: &[(&str, &[u8])], chosen: usize, changed: &[u8]) -> PathBuf {
    static BEFORE: Mutex<Option<usize>> = Mutex::new(None);
    let mut before = BEFORE.lock().expect("no panic is caught, so none can poison it");
    let folder = scratch();
    for (index, (name, whole)) in files.iter().enumerate() {
        let stale = before.is_none_or(|before| before == index);
        if index == chosen || stale {
            let content = if index == chosen { changed } else { whole };
            std::fs::write(folder.join(name), content).expect("the scratch folder can be written");
        }
    }
    *before = Some(chosen);
    folder
}

/// A folder of this process, on a disk of memory where there is one.
pub(crate) fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = base.join(format!("glassbox-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
    folder
}
