use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::RecordError;

/// Writes a whole file so that a reader sees the old content or the new one, never a part.
///
/// The bytes go to a neighbour with the ending `.tmp`, are forced to the disk, and the neighbour takes the name. On an error the
/// neighbour is removed and the old file is as it was. A process that is killed cannot remove its neighbour: the next one to write the
/// same file does. A device or a pipe, such as `/dev/stdout`, takes the bytes as they come: a file
/// must not take its name.
///
/// Errors: anything the file system refuses, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return File::options()
            .write(true)
            .open(path)
            .and_then(|mut device| device.write_all(bytes))
            .map_err(RecordError::io("write", path));
    }
    remove_left_behind(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let neighbour = path.with_file_name(name);
    let write = || write_and_sync(&neighbour, bytes).and_then(|()| fs::rename(&neighbour, path));
    // Between its birth and its lock a neighbour looks like one that was left behind: who loses it then writes it once more.
    let written = write().or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { write() } else { Err(error) });
    if let Err(error) = written {
        // The first error is the one to tell; a neighbour that cannot be removed is only litter.
        let _ = fs::remove_file(&neighbour);
        return Err(RecordError::io("write", path)(error));
    }
    sync_folder(path);
    Ok(())
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    // Says that the writer lives; the system takes it back however the writer dies. Where a file system knows no locks, nobody else can
    // take one either, and nothing is ever removed.
    let _ = file.try_lock();
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes the neighbours of `path` whose writers are dead: those that nobody holds locked.
fn remove_left_behind(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What cannot be listed, opened or removed is only litter; whether `path` can be written is told by writing it.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let middle = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp"));
        let of_a_process = middle.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
        if of_a_process && File::options().write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Forces the new name to the disk. Not every system can open a folder, and then the name is as safe as that system makes it.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|parent| File::open(parent).ok()) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("verdicts.json");
        for text in ["first", "second, which is longer", "3"] {
            write_whole(&path, text.as_bytes()).expect("the folder is writable");
            assert_eq!(fs::read_to_string(&path).expect("just written"), text);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }

    #[test]
    fn what_a_dead_writer_left_is_removed_and_what_a_living_one_writes_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, b"half").expect("the folder is writable");
            path
        };
        let left = [put("big.html.1.tmp"), put("big.html.4194304.tmp")];
        let others = [put("big.html.tmp"), put("big.html.x1.tmp"), put("other.html.1.tmp"), put("big.html.1.tmp.old")];
        let living = put("big.html.2.tmp");
        let writer = File::options().write(true).open(&living).expect("just written");
        writer.try_lock().expect("nobody else holds it");
        write_whole(&folder.path().join("big.html"), b"whole").expect("the folder is writable");
        assert!(left.iter().all(|path| !path.exists()), "{left:?}");
        assert!(others.iter().chain([&living]).all(|path| path.exists()), "{others:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_keeps_its_name_and_a_full_one_says_so() {
        write_whole(Path::new("/dev/null"), b"x").expect("takes everything");
        let error = write_whole(Path::new("/dev/full"), b"x").expect_err("has no room");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        for device in ["/dev/null", "/dev/full"] {
            assert!(!fs::metadata(device).expect("a device").is_file(), "{device} is still a device");
        }
    }

    #[test]
    fn a_refused_write_names_the_file_and_leaves_the_old_content() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("missing").join("verdicts.json");
        let error = write_whole(&path, b"x").expect_err("the folder does not exist");
        assert!(error.to_string().contains("verdicts.json"), "{error}");

        // A folder in the way of the rename: the write succeeds, the rename does not.
        let blocked = folder.path().join("blocked");
        fs::create_dir_all(blocked.join("inside")).expect("the folder is writable");
        write_whole(&blocked, b"x").expect_err("a folder is in the way");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "no neighbour is left");
    }
}
