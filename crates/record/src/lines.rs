//! Files of JSON lines: a header line, then one value a line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::reader::FileKind;
use crate::{Digest, RecordError, Timestamp};

/// First line of every file of lines.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u64,
    pub(crate) run: String,
    /// In a derived file: the hash of the whole lines of `trials.jsonl` from which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) derived_from: Option<Digest>,
}

impl Header {
    pub(crate) fn new(kind: &FileKind, run: &str) -> Self {
        Self { format: kind.format.to_owned(), version: u64::from(kind.version), run: run.to_owned(), derived_from: None }
    }
}

/// One line for a value, with its end.
pub(crate) fn line_of<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, RecordError> {
    let mut line = serde_json::to_vec(value).map_err(|source| RecordError::NotJson { what, source })?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the values of a file of lines, one at a time.
///
/// A last line that was not written to its end is left out: [`Lines::whole_bytes`] tells where it begins.
pub(crate) struct Lines<T> {
    reader: BufReader<File>,
    path: PathBuf,
    line: usize,
    whole_bytes: u64,
    derived_from: Option<Digest>,
    pending: Vec<u8>,
    value: PhantomData<T>,
}

impl<T: DeserializeOwned> Lines<T> {
    /// Opens a file and checks its header.
    pub(crate) fn open(path: &Path, kind: &FileKind) -> Result<Self, RecordError> {
        let file = File::open(path).map_err(RecordError::io("open", path))?;
        let mut lines = Self {
            reader: BufReader::new(file),
            path: path.to_owned(),
            line: 0,
            whole_bytes: 0,
            derived_from: None,
            pending: Vec::new(),
            value: PhantomData,
        };
        let first = lines.next_whole()?.ok_or_else(|| lines.damaged("the header line is missing".to_owned()))?;
        let header: Header = serde_json::from_slice(&first).map_err(|error| lines.damaged(format!("the header is unreadable: {error}")))?;
        if header.version > u64::from(kind.version) {
            return Err(RecordError::Newer { path: path.to_owned(), found: header.version, newest: kind.version });
        }
        if header.format != kind.format {
            return Err(lines.damaged(format!("wanted format `{}`, found `{}`", kind.format, header.format)));
        }
        lines.derived_from = header.derived_from;
        Ok(lines)
    }

    /// What the header says that the file was made from.
    pub(crate) fn derived_from(&self) -> Option<&Digest> {
        self.derived_from.as_ref()
    }

    /// Length of the file up to the end of the last whole line read.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// Number of the last line read, counted from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn damaged(&self, reason: String) -> RecordError {
        RecordError::Damaged { path: self.path.clone(), line: self.line.max(1), reason }
    }

    fn next_whole(&mut self) -> Result<Option<Vec<u8>>, RecordError> {
        self.pending.clear();
        let read = self.reader.read_until(b'\n', &mut self.pending).map_err(RecordError::io("read", &self.path))?;
        if read == 0 || self.pending.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.line += 1;
        self.whole_bytes += read as u64;
        self.pending.pop();
        Ok(Some(std::mem::take(&mut self.pending)))
    }

    fn at_end(&mut self) -> Result<bool, RecordError> {
        Ok(self.reader.fill_buf().map_err(RecordError::io("read", &self.path))?.is_empty())
    }

    fn read_next(&mut self) -> Result<Option<T>, RecordError> {
        let before = self.whole_bytes;
        let Some(line) = self.next_whole()? else { return Ok(None) };
        match serde_json::from_slice(&line) {
            Ok(value) => Ok(Some(value)),
            // After a power cut the last line may hold anything, its end included; earlier lines were forced to the disk before it.
            Err(_) if self.at_end()? => {
                self.whole_bytes = before;
                Ok(None)
            }
            Err(error) => Err(self.damaged(format!("unreadable: {error}"))),
        }
    }
}

impl<T: DeserializeOwned> Iterator for Lines<T> {
    type Item = Result<T, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_next().transpose()
    }
}

/// Appends lines. A line that could not be written to its end is taken back.
#[derive(Debug)]
pub(crate) struct Appender {
    file: File,
    path: PathBuf,
    whole_bytes: u64,
    last_sync: Timestamp,
    unsynced: bool,
}

/// How much an answer may age before it is forced to the disk. A killed process loses nothing; a power cut loses this much.
const SYNC_EVERY_MS: u64 = 1_000;

impl Appender {
    /// Opens a file for more lines after cutting everything behind `whole_bytes`.
    pub(crate) fn open(path: &Path, whole_bytes: u64, now: Timestamp) -> Result<Self, RecordError> {
        let failed = || RecordError::io("open", path);
        let mut file = OpenOptions::new().write(true).open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        if length > whole_bytes {
            file.set_len(whole_bytes).map_err(RecordError::io("cut the torn last line of", path))?;
        }
        file.seek(SeekFrom::Start(whole_bytes)).map_err(failed())?;
        Ok(Self { file, path: path.to_owned(), whole_bytes, last_sync: now, unsynced: false })
    }

    /// Appends one line.
    pub(crate) fn append(&mut self, line: &[u8], now: Timestamp) -> Result<(), RecordError> {
        // One call for the whole line, past any buffer of ours: once it returns, a killed process cannot take it back.
        if let Err(error) = self.file.write_all(line) {
            self.take_back();
            return Err(RecordError::io("write", &self.path)(error));
        }
        self.whole_bytes += line.len() as u64;
        self.unsynced = true;
        if now.ms_since(self.last_sync) >= SYNC_EVERY_MS {
            self.sync(now)?;
        }
        Ok(())
    }

    /// The hash of all whole lines of the file.
    pub(crate) fn digest(&self) -> Result<Digest, RecordError> {
        Digest::of_file(&self.path, self.whole_bytes)
    }

    /// Forces what was appended to the disk.
    pub(crate) fn sync(&mut self, now: Timestamp) -> Result<(), RecordError> {
        if self.unsynced {
            self.file.sync_data().map_err(RecordError::io("write", &self.path))?;
            self.unsynced = false;
        }
        self.last_sync = now;
        Ok(())
    }

    /// Cuts a half-written line. Should that fail too, the next reader sees a torn line and leaves it out.
    fn take_back(&mut self) {
        let cut: io::Result<u64> = self.file.set_len(self.whole_bytes).and_then(|()| self.file.seek(SeekFrom::Start(self.whole_bytes)));
        drop(cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named_with_its_file_and_its_remedy() {
        // This device refuses every write as a full disk does.
        let path = Path::new("/dev/full");
        let mut appender = Appender::open(path, 0, Timestamp::default()).expect("the device opens");
        let error = appender.append(b"{}\n", Timestamp::default()).expect_err("the device is full");
        assert_eq!(error.to_string(), "cannot write `/dev/full`: the disk is full; free some space");
        assert_eq!(appender.whole_bytes, 0);
    }

    #[test]
    fn a_half_written_line_is_taken_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lines.jsonl");
        std::fs::write(&path, b"whole\n").expect("writable");
        let mut appender = Appender::open(&path, 6, Timestamp::default()).expect("the file opens");
        appender.file.write_all(b"{\"half").expect("writable");
        appender.take_back();
        appender.append(b"next\n", Timestamp::default()).expect("writable");
        assert_eq!(std::fs::read(&path).expect("readable"), b"whole\nnext\n");
    }
}
