//! Writing a GGUF file of version 3: the metadata and tensor infos first, then the data as it is made.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use glassbox_tensor::{StorageType, TensorError};

use super::metadata::ValueType;
use super::tensor_type::TensorType;
use super::{DEFAULT_ALIGNMENT, MAGIC};
use crate::CheckpointError;

/// A GGUF file to be: what goes in front of the data.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    pairs: Vec<u8>,
    pair_count: u64,
    infos: Vec<u8>,
    sizes: Vec<usize>,
    end: usize,
}

/// A metadata value that can be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GgufValue {
    /// An unsigned number of 32 bits.
    U32(u32),
    /// A number in single precision.
    F32(f32),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Signed numbers of 32 bits.
    I32s(Vec<i32>),
    /// Numbers in single precision.
    F32s(Vec<f32>),
}

impl GgufWriter {
    /// A file without metadata and tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key. Keys are written in the order in which they are added; the caller adds each once.
    pub fn set(&mut self, key: &str, value: &GgufValue) {
        put_text(&mut self.pairs, key);
        let number = |value_type: ValueType| value_type.number().to_le_bytes();
        let mut array = |element: ValueType, len: usize| {
            self.pairs.extend(number(ValueType::Array));
            self.pairs.extend(number(element));
            self.pairs.extend((len as u64).to_le_bytes());
        };
        match value {
            GgufValue::Texts(values) => array(ValueType::Text, values.len()),
            GgufValue::I32s(values) => array(ValueType::I32, values.len()),
            GgufValue::F32s(values) => array(ValueType::F32, values.len()),
            GgufValue::U32(_) => self.pairs.extend(number(ValueType::U32)),
            GgufValue::F32(_) => self.pairs.extend(number(ValueType::F32)),
            GgufValue::Bool(_) => self.pairs.extend(number(ValueType::Bool)),
            GgufValue::Text(_) => self.pairs.extend(number(ValueType::Text)),
        }
        match value {
            GgufValue::U32(value) => self.pairs.extend(value.to_le_bytes()),
            GgufValue::F32(value) => self.pairs.extend(value.to_le_bytes()),
            GgufValue::Bool(value) => self.pairs.push(u8::from(*value)),
            GgufValue::Text(value) => put_text(&mut self.pairs, value),
            GgufValue::Texts(values) => values.iter().for_each(|value| put_text(&mut self.pairs, value)),
            GgufValue::I32s(values) => self.pairs.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            GgufValue::F32s(values) => self.pairs.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        }
        self.pair_count += 1;
    }

    /// Adds a key as it lies in another file: a pair of [`crate::Checkpoint::gguf_pairs`].
    pub fn set_pair(&mut self, pair: &[u8]) {
        self.pairs.extend(pair);
        self.pair_count += 1;
    }

    /// Announces the next tensor.
    ///
    /// - `shape`  sizes of the axes, the slowest first; at least one
    ///
    /// # Errors
    ///
    /// Where a row is no whole number of blocks, or the tensor is larger than can be addressed.
    pub fn tensor(&mut self, name: &str, shape: &[usize], storage: StorageType) -> Result<(), TensorError> {
        let columns = shape.last().copied().unwrap_or(1);
        let rows: Option<usize> = shape.iter().rev().skip(1).try_fold(1_usize, |rows, size| rows.checked_mul(*size));
        let row = storage.bytes_for(columns).ok_or(TensorError::PartialBlock { columns, storage })?;
        let too_large = TensorError::TooLarge { rows: rows.unwrap_or(usize::MAX), columns };
        let end = rows.and_then(|rows| rows.checked_mul(row)).and_then(|size| {
            self.sizes.push(size);
            self.end.checked_add(size)?.checked_next_multiple_of(DEFAULT_ALIGNMENT)
        });
        put_text(&mut self.infos, name);
        let dimensions = if shape.is_empty() { &[1] } else { shape };
        self.infos.extend((dimensions.len() as u32).to_le_bytes());
        self.infos.extend(dimensions.iter().rev().flat_map(|size| (*size as u64).to_le_bytes()));
        self.infos.extend(TensorType::number_of(storage).to_le_bytes());
        self.infos.extend((self.end as u64).to_le_bytes());
        self.end = end.ok_or(too_large)?;
        Ok(())
    }

    /// Bytes of the whole file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        (self.header_bytes().next_multiple_of(DEFAULT_ALIGNMENT) + self.end) as u64
    }

    /// Writes the file to `path` in one step: under another name beside it first, so that no half file ever stands there, whatever
    /// goes wrong. A file that is there already is replaced.
    ///
    /// - `data`  gives the bytes of each tensor by its index, in the order of the announcements
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Io`] where the file cannot be written; and whatever `data` and `check` give. `check` sees the file under its
    /// other name before it is put in its place.
    pub fn write<E: From<CheckpointError>>(
        &self,
        path: &Path,
        data: impl FnMut(usize) -> Result<Vec<u8>, E>,
        check: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let io = |doing| move |source: io::Error| E::from(CheckpointError::io(path, doing, source));
        let (unfinished, file) = Unfinished::beside(path).map_err(io("make it"))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        self.write_parts(&mut out, data, io("write it"))?;
        let file = out.into_inner().map_err(|error| io("write it")(error.into_error()))?;
        file.sync_all().map_err(io("write it"))?;
        // Stays open, and with it the lock, until the file is in its place.
        check(&unfinished.0)?;
        fs::rename(&unfinished.0, path).map_err(io("put it in its place"))
    }

    /// The whole file in memory; `data` as in [`GgufWriter::write`].
    ///
    /// # Errors
    ///
    /// Whatever `data` gives.
    pub fn bytes<E>(&self, data: impl FnMut(usize) -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let mut out = Vec::new();
        self.write_parts(&mut out, data, |error| unreachable!("memory takes what is written: {error}"))?;
        Ok(out)
    }

    fn write_parts<E>(
        &self,
        out: &mut impl Write,
        mut data: impl FnMut(usize) -> Result<Vec<u8>, E>,
        wrong: impl Fn(io::Error) -> E,
    ) -> Result<(), E> {
        self.write_header(out).map_err(&wrong)?;
        for (index, size) in self.sizes.iter().enumerate() {
            let bytes = data(index)?;
            assert_eq!(bytes.len(), *size, "tensor {index} has the size that was announced");
            out.write_all(&bytes).and_then(|()| pad(out, bytes.len())).map_err(&wrong)?;
        }
        Ok(())
    }

    fn header_bytes(&self) -> usize {
        const FIXED: usize = 24; // magic, version, two counts
        FIXED + self.pairs.len() + self.infos.len()
    }

    fn write_header(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&3_u32.to_le_bytes())?;
        out.write_all(&(self.sizes.len() as u64).to_le_bytes())?;
        out.write_all(&self.pair_count.to_le_bytes())?;
        out.write_all(&self.pairs)?;
        out.write_all(&self.infos)?;
        pad(out, self.header_bytes())
    }
}

fn pad(out: &mut impl Write, len: usize) -> io::Result<()> {
    out.write_all(&[0; DEFAULT_ALIGNMENT][..len.next_multiple_of(DEFAULT_ALIGNMENT) - len])
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A file that goes away with this, unless it was moved to its place.
struct Unfinished(PathBuf);

impl Unfinished {
    /// A new file beside `path`; one that an earlier, killed writer left is written over, one that a living writer holds is not.
    fn beside(path: &Path) -> io::Result<(Self, File)> {
        let mut name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        name.push(".unfinished");
        let unfinished = path.with_file_name(name);
        let file = File::options().write(true).create(true).truncate(false).open(&unfinished)?;
        // Where a file system knows no locks, two writers are not told apart.
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing the same file"));
        }
        file.set_len(0)?;
        Ok((Self(unfinished), file))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // gone already where all went well
    }
}
