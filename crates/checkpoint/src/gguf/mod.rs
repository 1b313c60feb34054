//! The GGUF format, versions 2 and 3, little-endian.
//!
//! A file is a header (magic, version, two counts), metadata (key, type, value), tensor infos (name, dimensions, type, offset), and
//! after padding the tensor data. Nothing that the file claims is believed: every count and length is held against the bytes that
//! are left before anything is allocated or skipped.
//!
//! Source: the GGUF specification, `docs/gguf.md` of ggml.

mod cursor;
mod metadata;
pub(crate) mod parts;
mod tensor_type;
mod tensors;
mod writer;

use std::collections::BTreeMap;

use glassbox_tensor::Bytes;

use crate::error::{CheckpointError, Fault, Place};
use crate::recognise::recognise;
use crate::tensor::Announced;
use crate::value::Value;
use cursor::Cursor;
pub(crate) use metadata::Array;
pub use metadata::Strings;
pub use writer::{GgufValue, GgufWriter};

const MAGIC: &[u8; 4] = b"GGUF";
const DEFAULT_ALIGNMENT: usize = 32; // bytes; the specification's value where `general.alignment` is absent

/// Every key with the bytes of its pair (key, type and value as they lie in the file), in the file's order.
pub(crate) type RawPairs = Vec<(String, Bytes)>;

/// What a GGUF file holds.
#[derive(Debug)]
pub(crate) struct Gguf {
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) pairs: RawPairs,
    pub(crate) tensors: BTreeMap<String, Announced>,
}

/// Reads header, metadata and tensor infos; touches no tensor data.
///
/// # Errors
///
/// Where the file is no GGUF file of a version read here, is cut, or contradicts itself.
pub(crate) fn read(label: &str, bytes: &Bytes) -> Result<Gguf, CheckpointError> {
    let mut cursor = Cursor::new(label, bytes);
    check_magic(label, bytes)?;
    cursor.skip(MAGIC.len(), "the magic number")?;
    check_version(label, cursor.u32("the version")?)?;
    let tensor_count = cursor.count("tensors", tensors::SHORTEST_INFO)?;
    let key_count = cursor.count("metadata keys", metadata::SHORTEST_PAIR)?;
    let (metadata, pairs) = metadata::read(&mut cursor, key_count)?;
    let alignment = alignment(label, &metadata)?;
    let tensors = tensors::read(&mut cursor, tensor_count, alignment)?;
    Ok(Gguf { metadata, pairs, tensors })
}

fn check_magic(label: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
    if bytes.starts_with(MAGIC) {
        return Ok(());
    }
    let fault = |found: String, remedy: &str| {
        Box::new(Fault {
            file: label.to_owned(),
            place: Place::Byte(0),
            wanted: "a GGUF file, which starts with `GGUF`".to_owned(),
            found,
            remedy: remedy.to_owned(),
        })
    };
    if let Some(other) = recognise(bytes) {
        return Err(CheckpointError::OtherFormat(fault(other.what.to_owned(), other.remedy)));
    }
    let first = &bytes[..bytes.len().min(MAGIC.len())];
    Err(CheckpointError::OtherFormat(fault(
        format!("`{}`", first.escape_ascii()),
        "check that this is the model's file, or download it again",
    )))
}

fn check_version(label: &str, version: u32) -> Result<(), CheckpointError> {
    let (found, remedy) = match version {
        2 | 3 => return Ok(()),
        1 => ("version 1".to_owned(), "convert the original model again with a current converter"),
        _ if (1..=3).contains(&version.swap_bytes()) => (
            format!("a big-endian file of version {}", version.swap_bytes()),
            "convert it with `gguf-convert-endian`, or download the little-endian file",
        ),
        _ => (format!("version {version}"), "use a newer glassbox, or convert the model to GGUF version 3"),
    };
    Err(CheckpointError::Unsupported(Box::new(Fault {
        file: label.to_owned(),
        place: Place::Byte(MAGIC.len() as u64),
        wanted: "GGUF version 2 or 3, little-endian".to_owned(),
        found,
        remedy: remedy.to_owned(),
    })))
}

fn alignment(label: &str, metadata: &BTreeMap<String, Value>) -> Result<usize, CheckpointError> {
    const KEY: &str = "general.alignment";
    let found = match metadata.get(KEY) {
        None => return Ok(DEFAULT_ALIGNMENT),
        Some(Value::Integer(value)) => match usize::try_from(*value) {
            Ok(alignment) if alignment.is_power_of_two() && alignment <= 1 << 20 => return Ok(alignment),
            _ => value.to_string(),
        },
        Some(other) => other.describe(),
    };
    Err(CheckpointError::Malformed(Box::new(Fault {
        file: label.to_owned(),
        place: Place::Key(KEY.to_owned()),
        wanted: "a power of two up to 1,048,576".to_owned(),
        found,
        remedy: "convert the model again".to_owned(),
    })))
}
