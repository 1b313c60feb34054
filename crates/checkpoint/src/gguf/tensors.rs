use std::collections::{BTreeMap, BTreeSet};

use super::cursor::Cursor;
use super::tensor_type::TensorType;
use crate::CheckpointError;
use crate::error::{Place, clip};
use crate::tensor::Announced;

/// Bytes of the shortest tensor info: an empty name (8), the number of dimensions (4), one dimension (8), type (4), offset (8).
pub(super) const SHORTEST_INFO: usize = 32;
const MOST_DIMENSIONS: u32 = 4; // GGML_MAX_DIMS

/// A tensor info before its bytes are known to exist.
struct Info {
    name: String,
    tensor_type: TensorType,
    /// Slowest axis first.
    shape: Vec<usize>,
    offset: usize,
    bytes: usize,
}

pub(super) fn read(cursor: &mut Cursor<'_>, count: usize, alignment: usize) -> Result<BTreeMap<String, Announced>, CheckpointError> {
    let mut infos = Vec::new();
    for _ in 0..count {
        infos.push(info(cursor, alignment)?);
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = infos.iter().find(|info| !names.insert(info.name.as_str())) {
        return Err(damaged(cursor, &twice.name, "each tensor name once", "the name twice".to_owned()));
    }
    place(cursor, infos, alignment)
}

fn info(cursor: &mut Cursor<'_>, alignment: usize) -> Result<Info, CheckpointError> {
    let name = cursor.text("a tensor name")?.to_owned();
    let shape = shape(cursor, &name)?;
    let tensor_type = tensor_type(cursor, &name)?;
    let bytes = size(cursor, &name, &shape, tensor_type)?;
    let offset = offset(cursor, &name, alignment)?;
    Ok(Info { name, tensor_type, shape, offset, bytes })
}

fn shape(cursor: &mut Cursor<'_>, name: &str) -> Result<Vec<usize>, CheckpointError> {
    let dimensions = cursor.u32("a number of dimensions")?;
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        let wanted = format!("1 to {MOST_DIMENSIONS} dimensions");
        return Err(damaged(cursor, name, &wanted, dimensions.to_string()));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = cursor.u64("a dimension")?;
        match usize::try_from(size) {
            Ok(size) if size > 0 => shape.push(size),
            _ => return Err(damaged(cursor, name, "dimensions of at least 1 that can be addressed", format!("a dimension of {size}"))),
        }
    }
    shape.reverse(); // GGUF writes the contiguous axis first
    Ok(shape)
}

fn tensor_type(cursor: &mut Cursor<'_>, name: &str) -> Result<TensorType, CheckpointError> {
    let number = cursor.u32("a tensor type")?;
    TensorType::from_number(number).ok_or_else(|| {
        let place = Place::Tensor(name.to_owned());
        let remedy = "the type is newer than this glassbox, or withdrawn, or the file is damaged: use a file stored as Q4_K_M, Q8_0 or F16";
        let wanted = "a tensor type that ggml defines (0 to 40)";
        CheckpointError::Unsupported(Box::new(cursor.fault(place, wanted, format!("tensor type {number}"), remedy)))
    })
}

/// Bytes that the tensor takes.
fn size(cursor: &Cursor<'_>, name: &str, shape: &[usize], tensor_type: TensorType) -> Result<usize, CheckpointError> {
    let columns = shape.last().copied().unwrap_or(1);
    if !columns.is_multiple_of(tensor_type.block_len) {
        let wanted = format!("rows of whole {} blocks ({} numbers)", tensor_type.stored_as.name(), tensor_type.block_len);
        return Err(damaged(cursor, name, &wanted, format!("rows of {columns} numbers")));
    }
    shape
        .iter()
        .try_fold(1_usize, |product, size| product.checked_mul(*size))
        .and_then(|numbers| (numbers / tensor_type.block_len).checked_mul(tensor_type.block_bytes))
        .ok_or_else(|| damaged(cursor, name, "a size that can be addressed", format!("the shape {shape:?}")))
}

fn offset(cursor: &mut Cursor<'_>, name: &str, alignment: usize) -> Result<usize, CheckpointError> {
    let offset = cursor.u64("a tensor offset")?;
    match usize::try_from(offset) {
        Ok(offset) if offset.is_multiple_of(alignment) => Ok(offset),
        _ => Err(damaged(
            cursor,
            name,
            &format!("an offset that is a multiple of the alignment {alignment}"),
            format!("the offset {offset}"),
        )),
    }
}

/// Finds every tensor's bytes in the data section, which starts at the next multiple of the alignment after the infos.
fn place(cursor: &Cursor<'_>, mut infos: Vec<Info>, alignment: usize) -> Result<BTreeMap<String, Announced>, CheckpointError> {
    let data = cursor.at().next_multiple_of(alignment);
    infos.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
    let mut tensors = BTreeMap::new();
    let mut taken = 0; // offset up to which the data section belongs to earlier tensors
    let mut before = String::new();
    for Info { name, tensor_type, shape, offset, bytes } in infos {
        let start = data.checked_add(offset);
        let end = start.and_then(|start| start.checked_add(bytes));
        let range = start.zip(end).and_then(|(start, end)| cursor.file().slice(start..end));
        let Some(range) = range else {
            let wanted = format!("{bytes} bytes from byte {data} + {offset}");
            let found = format!("a file of {} bytes", cursor.file().len());
            return Err(damaged(cursor, &name, &wanted, found));
        };
        if offset < taken {
            let found = format!("an offset of {offset}, before the end of `{}` at {taken}", clip(&before));
            return Err(damaged(cursor, &name, "bytes of its own", found));
        }
        taken = offset + bytes; // no overflow: the range lies in the file
        before.clone_from(&name);
        tensors.insert(name, Announced { stored_as: tensor_type.stored_as, shape, bytes: range, file: 0 });
    }
    Ok(tensors)
}

fn damaged(cursor: &Cursor<'_>, name: &str, wanted: &str, found: String) -> CheckpointError {
    let place = Place::Tensor(name.to_owned());
    CheckpointError::Malformed(Box::new(cursor.fault(place, wanted, found, "the file is cut off or damaged: download it again")))
}
