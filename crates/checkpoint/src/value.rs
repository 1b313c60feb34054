use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::clip;
use crate::gguf::Array;

/// One setting, from JSON or from GGUF metadata.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    /// A GGUF string that is no UTF-8.
    BrokenText,
    List(List),
    /// `{}`; objects with keys are flattened, so only this one is left as a value.
    EmptyObject,
}

/// A list, as its format keeps it.
#[derive(Clone, Debug)]
pub(crate) enum List {
    Json(Vec<serde_json::Value>),
    Gguf(Array),
}

impl List {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(list) => list.len(),
            Self::Gguf(array) => array.len(),
        }
    }

    /// The values in order; strings of GGUF arrays are copied. `None` where elements are lists, objects or broken strings.
    pub(crate) fn values(&self) -> Option<Vec<Value>> {
        match self {
            Self::Json(list) => list.iter().map(scalar).collect(),
            Self::Gguf(array) if array.is_text() => Some(array.strings()?.iter().map(|text| Value::Text(text.to_owned())).collect()),
            Self::Gguf(array) => Some(array.fixed()?.collect()),
        }
    }
}

impl Value {
    /// The value as a message shows it: short, and with its type where two could be confused.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::Text(value) => format!("the text \"{}\"", clip(value)),
            Self::BrokenText => "a text that is no UTF-8".to_owned(),
            Self::List(list) => match list.values() {
                Some(values) if values.len() <= 4 => {
                    format!("[{}]", values.iter().map(Self::describe).collect::<Vec<_>>().join(", "))
                }
                _ => format!("a list of {}", list.len()),
            },
            Self::EmptyObject => "{}".to_owned(),
        }
    }

    /// The value as a whole number, where it is one exactly: `1000000`, `1e6`, never `"1000000"`.
    pub(crate) fn integer(&self) -> Option<i128> {
        const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: above it, neighbouring f64 are more than 1 apart
        match self {
            Self::Integer(value) => Some(*value),
            #[expect(clippy::cast_possible_truncation, reason = "whole and within ±2^53")]
            Self::Float(value) if value.fract() == 0.0 && value.abs() <= EXACT => Some(*value as i128),
            _ => None,
        }
    }

    /// The value as a finite number.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "a setting written as a huge whole number is wanted as the nearest f64")]
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) if value.is_finite() => Some(*value),
            _ => None,
        }
    }
}

/// Why an object cannot be flattened, with the key where it shows.
pub(crate) enum Tangled {
    /// Two paths lead to one key: `{"a.b": 1, "a": {"b": 2}}`.
    Twice(String),
    /// The keys with their paths are longer than any settings need: a file can make them the square of its own length.
    TooLong(String),
}

const LONGEST_KEYS: usize = 4 << 20; // bytes of all keys with their paths; a configuration has a few thousand

/// Flattens a JSON object into keys with dots: `{"a": {"b": 1}}` becomes `a.b`.
pub(crate) fn flatten(object: &serde_json::Map<String, serde_json::Value>) -> Result<BTreeMap<String, Value>, Tangled> {
    let mut flat = BTreeMap::new();
    flatten_into("", object, &mut flat, &mut 0)?;
    Ok(flat)
}

/// Recursion is bounded by the 128 levels that the JSON parser admits.
fn flatten_into(
    prefix: &str,
    object: &serde_json::Map<String, serde_json::Value>,
    flat: &mut BTreeMap<String, Value>,
    key_bytes: &mut usize,
) -> Result<(), Tangled> {
    for (key, value) in object {
        let key = format!("{prefix}{key}");
        *key_bytes += key.len();
        if *key_bytes > LONGEST_KEYS {
            return Err(Tangled::TooLong(key));
        }
        let value = match value {
            serde_json::Value::Object(inner) if inner.is_empty() => Value::EmptyObject,
            serde_json::Value::Object(inner) => {
                flatten_into(&format!("{key}."), inner, flat, key_bytes)?;
                continue;
            }
            serde_json::Value::Array(list) => Value::List(List::Json(list.clone())),
            other => scalar(other).unwrap_or(Value::Null),
        };
        match flat.entry(key) {
            Entry::Vacant(entry) => entry.insert(value),
            Entry::Occupied(entry) => return Err(Tangled::Twice(entry.key().clone())),
        };
    }
    Ok(())
}

fn scalar(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Null => Some(Value::Null),
        serde_json::Value::Bool(value) => Some(Value::Bool(*value)),
        serde_json::Value::String(value) => Some(Value::Text(value.clone())),
        serde_json::Value::Number(number) => number
            .as_u64()
            .map(|value| Value::Integer(value.into()))
            .or_else(|| number.as_i64().map(|value| Value::Integer(value.into())))
            .or_else(|| number.as_f64().map(Value::Float)),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}
