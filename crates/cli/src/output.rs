//! Files that a command writes: checked before the work begins, then written whole or not at all.

use std::io::ErrorKind;
use std::path::Path;

use glassbox_record::write_whole;

use crate::exit::Failure;
use crate::terminal;

/// Refuses a path whose folder is missing, before hours of work end at it.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = |error: std::io::Error| {
        let context = format!("cannot write `{}`", path.display());
        Err(Failure::output(anyhow::Error::new(error).context(context)))
    };
    match std::fs::metadata(folder) {
        Err(error) => wrong(error),
        Ok(folder) if !folder.is_dir() => wrong(ErrorKind::NotADirectory.into()),
        Ok(_) if path.is_dir() => wrong(ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(()),
    }
}

/// Writes the file whole and says so.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(Failure::output)?;
    terminal::remark(&format!("wrote {}", path.display()));
    Ok(())
}
