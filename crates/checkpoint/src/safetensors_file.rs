//! One safetensors file: the header through the `safetensors` crate, and the checks that it leaves to others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use glassbox_tensor::{Bytes, StorageType};
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::error::{CheckpointError, Fault, Place, clip};
use crate::recognise::recognise;
use crate::tensor::{Announced, StoredAs};

const LENGTH_BYTES: usize = 8; // the header's length, little-endian, before the header

/// The tensors of one file by name. `file` is its index among the weight files.
///
/// # Errors
///
/// Where the header is not JSON or longer than the file, gives a name twice, or where shapes, types and byte ranges contradict
/// each other, overlap, or leave bytes over.
pub(crate) fn read(label: &str, bytes: &Bytes, file: usize) -> Result<BTreeMap<String, Announced>, CheckpointError> {
    let (header_len, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| match error {
        SafeTensorError::InvalidOffset(_) => refuse_duplicates(label, bytes).err().unwrap_or_else(|| explain(label, bytes, &error)),
        error => explain(label, bytes, &error),
    })?;
    refuse_duplicates(label, bytes)?;
    let data = LENGTH_BYTES + header_len;
    let mut tensors = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let (start, end) = info.data_offsets;
        let range = bytes.slice(data + start..data + end).ok_or_else(|| {
            malformed(
                label,
                Place::Tensor(name.clone()),
                "bytes inside the file",
                format!("bytes {start} to {end} of the data"),
                "download the file again",
            )
        })?;
        let announced = Announced { stored_as: stored_as(info.dtype), shape: info.shape.clone(), bytes: range, file };
        tensors.insert(name, announced);
    }
    Ok(tensors)
}

fn stored_as(dtype: Dtype) -> StoredAs {
    match dtype {
        Dtype::F32 => StoredAs::Read(StorageType::F32),
        Dtype::F16 => StoredAs::Read(StorageType::F16),
        Dtype::BF16 => StoredAs::Read(StorageType::Bf16),
        Dtype::BOOL => StoredAs::NotRead("BOOL"),
        Dtype::F4 => StoredAs::NotRead("F4"),
        Dtype::F6_E2M3 => StoredAs::NotRead("F6_E2M3"),
        Dtype::F6_E3M2 => StoredAs::NotRead("F6_E3M2"),
        Dtype::U8 => StoredAs::NotRead("U8"),
        Dtype::I8 => StoredAs::NotRead("I8"),
        Dtype::F8_E5M2 => StoredAs::NotRead("F8_E5M2"),
        Dtype::F8_E4M3 => StoredAs::NotRead("F8_E4M3"),
        Dtype::F8_E8M0 => StoredAs::NotRead("F8_E8M0"),
        Dtype::F8_E4M3FNUZ => StoredAs::NotRead("F8_E4M3FNUZ"),
        Dtype::F8_E5M2FNUZ => StoredAs::NotRead("F8_E5M2FNUZ"),
        Dtype::I16 => StoredAs::NotRead("I16"),
        Dtype::U16 => StoredAs::NotRead("U16"),
        Dtype::I32 => StoredAs::NotRead("I32"),
        Dtype::U32 => StoredAs::NotRead("U32"),
        Dtype::C64 => StoredAs::NotRead("C64"),
        Dtype::F64 => StoredAs::NotRead("F64"),
        Dtype::I64 => StoredAs::NotRead("I64"),
        Dtype::U64 => StoredAs::NotRead("U64"),
        _ => StoredAs::NotRead("a type newer than this program"),
    }
}

/// The crate keeps the last of two equal names, which its own hole check notices only by luck.
fn refuse_duplicates(label: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
    let Some(header) = header(bytes) else { return Ok(()) }; // such a file is refused for its length
    let mut deserializer = serde_json::Deserializer::from_slice(header);
    deserializer.deserialize_map(UniqueNames).map_err(|error| {
        malformed(
            label,
            Place::Byte(LENGTH_BYTES as u64),
            "a header with each tensor name once",
            clip(&error.to_string()),
            "write the file again with a safetensors library",
        )
    })
}

struct UniqueNames;

impl<'de> Visitor<'de> for UniqueNames {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, IgnoredAny)) = access.next_entry::<String, IgnoredAny>()? {
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("`{}` twice", clip(&twice))));
            }
        }
        Ok(())
    }
}

fn explain(label: &str, bytes: &[u8], error: &SafeTensorError) -> CheckpointError {
    if let Some(other) = recognise(bytes).filter(|other| !other.what.contains("safetensors")) {
        return CheckpointError::OtherFormat(Box::new(Fault {
            file: label.to_owned(),
            place: Place::Whole,
            wanted: "a safetensors file".to_owned(),
            found: other.what.to_owned(),
            remedy: other.remedy.to_owned(),
        }));
    }
    let len = bytes.len();
    let again = "download the file again, or write it again with a safetensors library";
    let header_len = bytes.first_chunk::<8>().map_or(0, |len| u64::from_le_bytes(*len));
    let (place, wanted, found) = match error {
        SafeTensorError::HeaderTooSmall => (Place::Byte(0), "8 bytes of header length".to_owned(), format!("a file of {len} bytes")),
        SafeTensorError::HeaderTooLarge | SafeTensorError::InvalidHeaderLength => (
            Place::Byte(0),
            format!("a header that fits into the {len} bytes of the file (100,000,000 at most)"),
            format!("a header length of {header_len}"),
        ),
        SafeTensorError::InvalidHeader(error) => {
            (Place::Byte((LENGTH_BYTES + error.valid_up_to()) as u64), "a header in UTF-8".to_owned(), error.to_string())
        }
        SafeTensorError::InvalidHeaderDeserialization(error) => (
            Place::Byte(LENGTH_BYTES as u64),
            "a header that lists name, dtype, shape and data_offsets".to_owned(),
            clip(&error.to_string()),
        ),
        SafeTensorError::InvalidOffset(name) => (
            Place::Tensor(name.clone()),
            "byte ranges that follow each other without a gap or an overlap".to_owned(),
            "a range that starts elsewhere or ends before it starts".to_owned(),
        ),
        SafeTensorError::TensorInvalidInfo | SafeTensorError::ValidationOverflow | SafeTensorError::MisalignedSlice => (
            misshapen(bytes).map_or(Place::Byte(LENGTH_BYTES as u64), Place::Tensor),
            "a byte range as long as the shape times the size of a number".to_owned(),
            "another length".to_owned(),
        ),
        SafeTensorError::MetadataIncompleteBuffer => {
            (Place::Whole, "a file that ends where its last tensor ends".to_owned(), format!("a file of {len} bytes, longer or cut off"))
        }
        other => (Place::Byte(LENGTH_BYTES as u64), "a valid safetensors header".to_owned(), clip(&other.to_string())),
    };
    malformed(label, place, &wanted, found, again)
}

/// The first tensor whose range is not as long as its shape says; the crate's error does not name it.
fn misshapen(bytes: &[u8]) -> Option<String> {
    let entries: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(header(bytes)?).ok()?;
    let lies = |entry: &serde_json::Value| {
        let Ok(info) = serde_json::from_value::<TensorInfo>(entry.clone()) else { return false };
        let bits = info.shape.iter().try_fold(info.dtype.bitsize(), |product, size| product.checked_mul(*size));
        let range = info.data_offsets.1.checked_sub(info.data_offsets.0).and_then(|len| len.checked_mul(8));
        bits.is_none() || bits != range
    };
    entries.into_iter().find(|(_, entry)| lies(entry)).map(|(name, _)| name)
}

/// The header's bytes, where its length fits into the file.
fn header(bytes: &[u8]) -> Option<&[u8]> {
    let len = usize::try_from(u64::from_le_bytes(*bytes.first_chunk::<LENGTH_BYTES>()?)).ok()?;
    bytes.get(LENGTH_BYTES..LENGTH_BYTES.checked_add(len)?)
}

fn malformed(label: &str, place: Place, wanted: &str, found: String, remedy: &str) -> CheckpointError {
    CheckpointError::Malformed(Box::new(Fault {
        file: label.to_owned(),
        place,
        wanted: wanted.to_owned(),
        found,
        remedy: remedy.to_owned(),
    }))
}
