//! One model's folder in the cache, as `huggingface_hub` lays it out.
//!
//! ```text
//! models--org--name/
//!   blobs/<etag>                 content, named by its checksum
//!   blobs/<etag>.incomplete      what has come of it
//!   refs/main                    a commit
//!   snapshots/<commit>/<file>    a relative link to the blob
//! .locks/models--org--name/<etag>.lock
//! ```
//!
//! Source: `huggingface_hub`, "Manage your cache" and `file_download.py`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use glassbox_checkpoint::repository_folder;

use crate::error::HubError;
use crate::watch::{Watch, wait};

pub(crate) struct Store {
    repository: PathBuf,
    locks: PathBuf,
}

/// As long as this lives, no other process fetches the same content.
pub(crate) struct Lock {
    _file: Option<File>,
}

impl Store {
    pub(crate) fn new(cache: &Path, name: &str) -> Self {
        let folder = repository_folder(name);
        Self { locks: cache.join(".locks").join(&folder), repository: cache.join(folder) }
    }

    pub(crate) fn blob(&self, tag: &str) -> PathBuf {
        self.repository.join("blobs").join(tag)
    }

    pub(crate) fn incomplete(&self, tag: &str) -> PathBuf {
        self.repository.join("blobs").join(format!("{tag}.incomplete"))
    }

    /// A file of a snapshot.
    pub(crate) fn file(&self, commit: &str, file: &str) -> PathBuf {
        self.repository.join("snapshots").join(commit).join(file)
    }

    /// Waits until no other process fetches the content `tag`. The lock is the one that `huggingface_hub` takes. Where the file
    /// system knows no locks there is none: then the checksum alone keeps two writers from doing harm.
    pub(crate) fn lock(&self, tag: &str, file: &str, watch: &mut dyn Watch) -> Result<Lock, HubError> {
        const AGAIN: Duration = Duration::from_millis(200);
        let path = self.locks.join(format!("{tag}.lock"));
        make_folder_of(&path)?;
        let lock = File::options().create(true).append(true).open(&path).map_err(|source| HubError::io(&path, "open it", source))?;
        let mut told = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Lock { _file: Some(lock) }),
                Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(_)) => return Ok(Lock { _file: None }),
            }
            if !told {
                watch.remark(&format!("another process is fetching {file}; waiting for it"));
                told = true;
            }
            wait(watch, AGAIN)?;
        }
    }

    /// Makes `snapshots/<commit>/<file>` lead to the content `tag`: by a link, or by a copy where the file system has no links.
    pub(crate) fn link(&self, commit: &str, file: &str, tag: &str) -> Result<(), HubError> {
        let path = self.file(commit, file);
        let up = "../".repeat(2 + file.matches('/').count());
        let target = PathBuf::from(format!("{up}blobs/{tag}"));
        if fs::read_link(&path).is_ok_and(|known| known == target) {
            return Ok(());
        }
        make_folder_of(&path)?;
        let new = path.with_file_name(format!(".{tag}.{}.new", std::process::id()));
        let made = link(&target, &new).or_else(|_| fs::copy(self.blob(tag), &new).map(|_| ()));
        made.and_then(|()| fs::rename(&new, &path)).map_err(|source| {
            let _ = fs::remove_file(&new);
            HubError::io(&path, "link it to its content", source)
        })
    }

    /// Makes the branch or tag `revision` mean `commit`. A commit needs no reference.
    pub(crate) fn refer(&self, revision: &str, commit: &str) -> Result<(), HubError> {
        if commit.starts_with(revision) {
            return Ok(());
        }
        let path = self.repository.join("refs").join(revision);
        make_folder_of(&path)?;
        let new = path.with_file_name(format!(".{commit}.{}.new", std::process::id()));
        fs::write(&new, commit).and_then(|()| fs::rename(&new, &path)).map_err(|source| {
            let _ = fs::remove_file(&new);
            HubError::io(&path, "write it", source)
        })
    }
}

/// Makes the folder in which `path` lies, and those around it.
pub(crate) fn make_folder_of(path: &Path) -> Result<(), HubError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| HubError::io(folder, "make this folder", source))
}

#[cfg(unix)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_target: &Path, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
