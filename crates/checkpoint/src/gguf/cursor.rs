use glassbox_tensor::Bytes;

use crate::error::{CheckpointError, Fault, Place, clip};

/// A reader that never passes the end: every read names what it wants, and fails with the byte where it stands.
pub(super) struct Cursor<'a> {
    label: &'a str,
    bytes: &'a Bytes,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(label: &'a str, bytes: &'a Bytes) -> Self {
        Self { label, bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn file(&self) -> &'a Bytes {
        self.bytes
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], CheckpointError> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            let found = format!("{} bytes up to the end of the file", self.remaining());
            return Err(self.malformed(&format!("{len} bytes of {}", clip(what)), found, "the file is cut off: download it again"));
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, len: usize, what: &str) -> Result<(), CheckpointError> {
        self.take(len, what).map(|_| ())
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], CheckpointError> {
        let taken = self.take(N, what)?;
        Ok(taken.try_into().expect("`take` returns as many bytes as asked for"))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, CheckpointError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, CheckpointError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count of things that take `shortest` bytes each at least; refused where the rest of the file cannot hold them.
    pub(super) fn count(&mut self, what: &str, shortest: usize) -> Result<usize, CheckpointError> {
        let start = self.at;
        let count = self.u64(what)?;
        let left = self.remaining();
        let most = left / shortest;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => {
                self.at = start;
                let wanted = format!("at most {most} (count or length of {}; {left} bytes are left)", clip(what));
                Err(self.malformed(&wanted, count.to_string(), "the file is cut off or damaged: download it again"))
            }
        }
    }

    /// A string with its length before it; must be UTF-8.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, CheckpointError> {
        let start = self.at;
        let bytes = self.raw_text(what)?;
        std::str::from_utf8(bytes).map_err(|error| {
            self.at = start;
            self.malformed(&format!("{what} in UTF-8"), error.to_string(), "convert the model again")
        })
    }

    /// A string with its length before it, of any bytes.
    pub(super) fn raw_text(&mut self, what: &str) -> Result<&'a [u8], CheckpointError> {
        let len = self.count(what, 1)?;
        self.take(len, what)
    }

    /// An error at the byte where the cursor stands.
    pub(super) fn malformed(&self, wanted: &str, found: String, remedy: &str) -> CheckpointError {
        CheckpointError::Malformed(Box::new(self.fault(Place::Byte(self.at as u64), wanted, found, remedy)))
    }

    pub(super) fn fault(&self, place: Place, wanted: &str, found: String, remedy: &str) -> Fault {
        Fault { file: self.label.to_owned(), place, wanted: wanted.to_owned(), found, remedy: remedy.to_owned() }
    }
}
