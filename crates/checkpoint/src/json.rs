//! JSON as model folders need it: a key that is given twice is an error, never the last one wins.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{CheckpointError, Fault, Place, clip};
use crate::recognise::recognise;

/// Parses one JSON text.
///
/// # Errors
///
/// Where it is no JSON (with line and column), nests deeper than 128 levels, or gives a key twice.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Value, CheckpointError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = Strict.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        let fault = |found: String, remedy: &str| {
            Box::new(Fault {
                file: file.to_owned(),
                place: Place::Whole,
                wanted: "JSON with each key once".to_owned(),
                found,
                remedy: remedy.to_owned(),
            })
        };
        match recognise(bytes) {
            Some(other) if !other.what.contains("JSON") => CheckpointError::OtherFormat(fault(other.what.to_owned(), other.remedy)),
            _ => CheckpointError::Malformed(fault(clip(&error.to_string()), "correct the file or download it again")),
        }
    })
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(Strict)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(Strict)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` twice", clip(&key))));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
