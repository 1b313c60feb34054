//! One file of a repository into the cache: asked about, fetched from where an earlier attempt ended, checked, and only then named.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::digest::Checksum;
use crate::error::{HubError, fault};
use crate::store::{Store, make_folder_of};
use crate::watch::Watch;
use crate::web::{Answer, Ask, Failed, Retries, Web};

/// A file as the hub describes it.
#[derive(Debug)]
pub(crate) struct Remote {
    /// `org/name: file`, for messages.
    pub(crate) subject: String,
    pub(crate) file: String,
    pub(crate) address: String,
    /// The name of its content.
    pub(crate) tag: String,
    pub(crate) size: Option<u64>,
    pub(crate) checksum: Option<Checksum>,
}

const TRUST: &str = "check HF_ENDPOINT and the proxy: something between here and the hub changes what it says";

impl Remote {
    /// Asks the hub about a file of a commit.
    pub(crate) fn ask(
        web: &Web,
        retries: &mut Retries,
        name: &str,
        commit: &str,
        file: &str,
        watch: &mut dyn Watch,
    ) -> Result<Self, HubError> {
        let subject = format!("{name}: {file}");
        let mut parts: Vec<&str> = name.split('/').collect();
        parts.extend(["resolve", commit]);
        parts.extend(file.split('/'));
        let address = web.address(&parts);
        let answer = loop {
            match web.ask(&subject, &address, Ask::About) {
                Ok(answer) => break answer,
                Err(failed) => retries.after(failed, &subject, watch)?,
            }
        };
        retries.progress();
        if let Some(other) = answer.commit.filter(|found| found != commit) {
            return Err(HubError::Malformed(fault(&subject, format!("an answer about commit {commit}"), format!("{other:?}"), TRUST)));
        }
        let Some(tag) = answer.tag else {
            return Err(HubError::Malformed(fault(&subject, "the name of its content (ETag)", "none that can be used", TRUST)));
        };
        Ok(Self { subject, file: file.to_owned(), address, checksum: Checksum::of_tag(&tag), tag, size: answer.size })
    }

    /// Whether its content is in the cache. A blob of another size is damaged, and removed.
    pub(crate) fn is_in(&self, store: &Store) -> Result<bool, HubError> {
        let blob = store.blob(&self.tag);
        let Ok(metadata) = fs::metadata(&blob) else { return Ok(false) };
        if metadata.is_file() && self.size.is_none_or(|size| size == metadata.len()) {
            return Ok(true);
        }
        fs::remove_file(&blob).map_err(|source| HubError::io(&blob, "remove this damaged file", source))?;
        Ok(false)
    }

    /// Fetches its content into the cache; says whether that was necessary.
    pub(crate) fn fetch(&self, web: &Web, retries: &mut Retries, store: &Store, watch: &mut dyn Watch) -> Result<bool, HubError> {
        let _lock = store.lock(&self.tag, &self.file, watch)?;
        if self.is_in(store)? {
            return Ok(false);
        }
        let path = store.incomplete(&self.tag);
        make_folder_of(&path)?;
        let mut coming = Coming::open(&path)?;
        watch.begin(&self.file, coming.bytes);
        let mut resumed = coming.bytes > 0;
        // Only what goes beyond all earlier attempts is progress: a server may send the same again and again.
        let mut furthest = coming.bytes;
        loop {
            if let Err(failed) = self.more(web, &mut coming, watch) {
                if coming.bytes > furthest {
                    furthest = coming.bytes;
                    retries.progress();
                }
                retries.after(failed, &self.subject, watch)?;
                continue;
            }
            retries.progress();
            coming.file.sync_all().map_err(|source| HubError::io(&path, "write it to the disk", source))?;
            let Some((wanted, found)) = self.mismatch(&path)? else { break };
            watch.advance(-i64::try_from(coming.bytes).unwrap_or(i64::MAX));
            if resumed {
                // What an earlier attempt has left may be to blame, and what has come since is not.
                watch.remark(&format!("{}: the checksum does not fit what was kept; fetching it again from the start", self.subject));
                coming.restart()?;
                resumed = false;
                continue;
            }
            fs::remove_file(&path).map_err(|source| HubError::io(&path, "remove this damaged file", source))?;
            let remedy = format!("it has been removed; do it again, and if that does not help, {TRUST}");
            return Err(HubError::Checksum(fault(&self.subject, wanted, found, remedy)));
        }
        let blob = store.blob(&self.tag);
        fs::rename(&path, &blob).map_err(|source| HubError::io(&blob, "give the finished file its name", source))?;
        Ok(true)
    }

    /// Fetches what is missing, as far as one answer brings it.
    fn more(&self, web: &Web, coming: &mut Coming, watch: &mut dyn Watch) -> Result<(), Failed> {
        if self.size.is_some_and(|size| coming.bytes > size) {
            self.drop_all(coming, watch)?;
        }
        if coming.bytes > 0 && self.size == Some(coming.bytes) {
            return Ok(());
        }
        let answer = web.ask(&self.subject, &self.address, Ask::Content { from: coming.bytes })?;
        if let Some(other) =
            answer.tag.as_ref().filter(|tag| **tag != self.tag && Checksum::of_tag(tag).is_some() == self.checksum.is_some())
        {
            let wanted = format!("the content {}", self.tag);
            let found = format!("{other}: the file has changed in the meantime");
            return Err(HubError::Malformed(fault(&self.subject, wanted, found, "do it again")).into());
        }
        match (answer.status, answer.range) {
            (206, Some((first, total))) if first == coming.bytes && (total.is_none() || self.size.is_none() || total == self.size) => {}
            // The whole file comes, whatever was asked for.
            (200, _) => self.drop_all(coming, watch)?,
            _ => {
                self.drop_all(coming, watch)?;
                return Err(Failed::Again("an answer about another part of the file than was asked for".to_owned(), None));
            }
        }
        self.take(answer, coming, watch)?;
        match self.size {
            Some(size) if coming.bytes < size => Err(Failed::Again(format!("the end after {} of {size} bytes", coming.bytes), None)),
            _ => Ok(()),
        }
    }

    /// Writes what comes, and no more than was announced.
    fn take(&self, answer: Answer, coming: &mut Coming, watch: &mut dyn Watch) -> Result<(), Failed> {
        let mut reader = answer.body.into_reader();
        let mut buffer = vec![0; 1 << 17];
        loop {
            if watch.interrupted() {
                return Err(HubError::Interrupted.into());
            }
            let bytes = match reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => bytes,
                Err(error) => return Err(Failed::Again(error.to_string(), None)),
            };
            if let Some(size) = self.size.filter(|size| coming.bytes + bytes as u64 > *size) {
                self.drop_all(coming, watch)?;
                let wanted = format!("{size} bytes");
                let remedy = format!("it has been removed; {TRUST}");
                return Err(HubError::Checksum(fault(&self.subject, wanted, "more", remedy)).into());
            }
            coming.file.write_all(&buffer[..bytes]).map_err(|source| HubError::io(coming.path, "write to it", source))?;
            coming.bytes += bytes as u64;
            watch.advance(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    fn drop_all(&self, coming: &mut Coming, watch: &mut dyn Watch) -> Result<(), HubError> {
        watch.advance(-i64::try_from(coming.bytes).unwrap_or(i64::MAX));
        coming.restart()
    }

    /// Wanted and found, where the checksum of `path` is not what it should be.
    fn mismatch(&self, path: &Path) -> Result<Option<(String, String)>, HubError> {
        let Some(wanted) = &self.checksum else { return Ok(None) };
        let found = wanted.found(path)?;
        Ok((found != *wanted).then(|| (wanted.wanted(), found.wanted())))
    }
}

/// The file that grows.
struct Coming<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
}

impl<'a> Coming<'a> {
    fn open(path: &'a Path) -> Result<Self, HubError> {
        let wrong = |source| HubError::io(path, "open it for writing", source);
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(wrong)?;
        let bytes = file.metadata().map_err(wrong)?.len();
        Ok(Self { path, file, bytes })
    }

    fn restart(&mut self) -> Result<(), HubError> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.file.set_len(0).map_err(|source| HubError::io(self.path, "empty it", source))?;
        self.bytes = 0;
        Ok(())
    }
}
