use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use glassbox_tensor::Bytes;

use super::RawPairs;
use super::cursor::Cursor;
use crate::CheckpointError;
use crate::error::{Place, clip};
use crate::value::{List, Value};

/// Bytes of the shortest pair: an empty key (8 bytes of length), a type (4), a value of one byte.
pub(super) const SHORTEST_PAIR: usize = 13;
const DEEPEST_ARRAY: usize = 4; // arrays inside arrays; no writer is known that nests at all

/// The type of a metadata value, by its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    const BY_NUMBER: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::Text,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    fn from_number(number: u32) -> Option<Self> {
        Self::BY_NUMBER.get(usize::try_from(number).ok()?).copied()
    }

    /// The number in the file.
    pub(super) fn number(self) -> u32 {
        (0..).zip(Self::BY_NUMBER).find_map(|(number, value_type)| (value_type == self).then_some(number)).expect("the list is complete")
    }

    /// Bytes of one value; `None` for strings and arrays, whose length is written before them.
    fn bytes(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Text | Self::Array => None,
        }
    }

    /// Bytes that one value takes at least.
    fn shortest(self) -> usize {
        match self {
            Self::Text => 8,
            Self::Array => 12,
            fixed => fixed.bytes().unwrap_or(1),
        }
    }

    /// Decodes one value of fixed size.
    fn decode(self, bytes: &[u8]) -> Value {
        let wide = |signed: bool| {
            let negative = signed && bytes.last().is_some_and(|byte| *byte >= 0x80);
            let mut all = [if negative { 0xFF } else { 0 }; 16];
            all[..bytes.len()].copy_from_slice(bytes);
            Value::Integer(i128::from_le_bytes(all))
        };
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => wide(false),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => wide(true),
            Self::F32 => Value::Float(bytes.try_into().map_or(f64::NAN, |bytes| f64::from(f32::from_le_bytes(bytes)))),
            Self::F64 => Value::Float(bytes.try_into().map_or(f64::NAN, f64::from_le_bytes)),
            Self::Bool => Value::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
            Self::Text | Self::Array => Value::Null, // not of fixed size; callers go by `bytes`
        }
    }
}

/// An array of the metadata, left in the file until somebody reads it.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    element: ValueType,
    len: usize,
    bytes: Bytes,
}

impl Array {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_text(&self) -> bool {
        self.element == ValueType::Text
    }

    /// The values of an array of numbers or booleans; `None` for strings and for arrays of arrays.
    pub(crate) fn fixed(&self) -> Option<impl Iterator<Item = Value> + '_> {
        let size = self.element.bytes()?;
        Some(self.bytes.chunks_exact(size).map(|bytes| self.element.decode(bytes)))
    }

    /// The strings of an array of strings; `None` for other arrays and where one string is no UTF-8.
    pub(crate) fn strings(&self) -> Option<Strings> {
        let strings = Strings { len: self.len, bytes: self.bytes.clone() };
        (self.is_text() && strings.raw().all(|bytes| std::str::from_utf8(bytes).is_ok())).then_some(strings)
    }
}

/// Strings that stay in the file: a vocabulary of 262,144 tokens costs nothing until it is walked. Known to be UTF-8.
#[derive(Clone, Debug)]
pub struct Strings {
    len: usize,
    bytes: Bytes,
}

impl Strings {
    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The strings in their order. Walking is linear; collect them where they are needed by index.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.raw().map(|bytes| std::str::from_utf8(bytes).expect("checked when the strings were handed out"))
    }

    fn raw(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest: &[u8] = &self.bytes;
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let (text, after) = after.split_at_checked(len)?;
            rest = after;
            Some(text)
        })
        .take(self.len)
    }
}

pub(super) fn read(cursor: &mut Cursor<'_>, count: usize) -> Result<(BTreeMap<String, Value>, RawPairs), CheckpointError> {
    let mut metadata = BTreeMap::new();
    let mut pairs = RawPairs::new();
    for _ in 0..count {
        let start = cursor.at();
        let key = cursor.text("a metadata key")?.to_owned();
        let value_type = value_type(cursor)?;
        let value = value(cursor, value_type, &key)?;
        pairs.push((key.clone(), cursor.file().slice(start..cursor.at()).expect("the cursor has walked these bytes")));
        match metadata.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(entry) => {
                let found = format!("`{}` a second time at byte {start}", clip(entry.key()));
                let fault = cursor.fault(
                    Place::Key(entry.key().clone()),
                    "each metadata key once",
                    found,
                    "which of the two counts is unknown: convert the model again",
                );
                return Err(CheckpointError::Malformed(Box::new(fault)));
            }
        }
    }
    Ok((metadata, pairs))
}

fn value_type(cursor: &mut Cursor<'_>) -> Result<ValueType, CheckpointError> {
    let number = cursor.u32("a value type")?;
    ValueType::from_number(number).ok_or_else(|| {
        cursor.malformed("a metadata value type from 0 to 12", format!("type {number}"), "use a newer glassbox, or download the file again")
    })
}

fn value(cursor: &mut Cursor<'_>, value_type: ValueType, key: &str) -> Result<Value, CheckpointError> {
    match value_type {
        ValueType::Text => {
            let bytes = cursor.raw_text(key)?;
            Ok(std::str::from_utf8(bytes).map_or(Value::BrokenText, |text| Value::Text(text.to_owned())))
        }
        ValueType::Array => array(cursor, key, 1).map(|array| Value::List(List::Gguf(array))),
        fixed => {
            let bytes = cursor.take(fixed.shortest(), key)?;
            if fixed == ValueType::Bool && bytes[0] > 1 {
                let found = format!("the byte {}", bytes[0]);
                return Err(cursor.malformed(&format!("0 or 1 for `{}`", clip(key)), found, "convert the model again"));
            }
            Ok(fixed.decode(bytes))
        }
    }
}

fn array(cursor: &mut Cursor<'_>, key: &str, depth: usize) -> Result<Array, CheckpointError> {
    if depth > DEEPEST_ARRAY {
        let wanted = format!("arrays nested at most {DEEPEST_ARRAY} deep in `{}`", clip(key));
        return Err(cursor.malformed(&wanted, "a deeper array".to_owned(), "convert the model again"));
    }
    let element = value_type(cursor)?;
    let len = cursor.count(&format!("elements of `{}`", clip(key)), element.shortest())?;
    let start = cursor.at();
    match element {
        ValueType::Text => {
            for _ in 0..len {
                cursor.raw_text(key)?;
            }
        }
        ValueType::Array => {
            for _ in 0..len {
                array(cursor, key, depth + 1)?;
            }
        }
        fixed => cursor.skip(len * fixed.shortest(), key)?, // `count` has shown that the product fits into the file
    }
    let bytes = cursor.file().slice(start..cursor.at()).expect("the cursor has walked these bytes");
    Ok(Array { element, len, bytes })
}
