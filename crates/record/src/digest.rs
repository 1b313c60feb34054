use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::RecordError;

/// A BLAKE3 hash, written as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest {
    hex: String,
}

impl Digest {
    /// The hash of these bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { hex: blake3::hash(bytes).to_hex().to_string() }
    }

    /// The hash of the first `bytes` bytes of a file.
    ///
    /// Errors: a file that cannot be read.
    pub(crate) fn of_file(path: &Path, bytes: u64) -> Result<Self, RecordError> {
        let mut hasher = blake3::Hasher::new();
        let read = File::open(path).and_then(|file| hasher.update_reader(file.take(bytes)).map(drop));
        read.map_err(RecordError::io("read", path))?;
        Ok(Self { hex: hasher.finalize().to_hex().to_string() })
    }

    /// The hash of a value's canonical JSON: fields in the order of the type, no white space.
    ///
    /// Errors: a value that JSON cannot hold, such as a map whose keys are not text.
    pub fn of_content<T: Serialize>(content: &T) -> Result<Self, RecordError> {
        let json = serde_json::to_vec(content).map_err(|source| RecordError::NotJson { what: "content to be hashed", source })?;
        Ok(Self::of_bytes(&json))
    }

    /// A hash that was made elsewhere, given as hexadecimal digits.
    #[must_use]
    pub fn from_hex(hex: impl Into<String>) -> Self {
        Self { hex: hex.into() }
    }

    /// All hexadecimal digits.
    #[must_use]
    pub fn as_hex(&self) -> &str {
        &self.hex
    }

    /// The first digits: enough to tell things apart on a screen.
    #[must_use]
    pub fn short(&self) -> &str {
        self.hex.get(..12).unwrap_or(&self.hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex)
    }
}
