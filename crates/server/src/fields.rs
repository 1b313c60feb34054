use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The fields of a request, read one by one. A field that is `null` is a field that was left out.
pub(crate) struct Fields(Map<String, Value>);

/// What is done with a field that a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heed {
    /// It is read.
    Read,
    /// It cannot change an answer.
    Ignored,
    /// It would change the answer and is not served: only a value that asks for nothing is taken.
    Nothing,
}

impl Fields {
    /// The fields of the object in `body`; each must be among `known`, and no field may ask for what is not served.
    pub(crate) fn parse(body: &[u8], known: &[(&'static str, Heed)]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| Refusal::request("the body is not UTF-8; wanted a JSON object in UTF-8"))?;
        let value: Value = serde_json::from_str(text).map_err(|error| {
            Refusal::request(format!("the body is not JSON (line {}, column {}); wanted a JSON object", error.line(), error.column()))
        })?;
        let Value::Object(object) = value else {
            return Err(Refusal::request("the body is not a JSON object; wanted one, as {\"model\": ...}"));
        };
        for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            let Some((name, heed)) = known.iter().find(|(field, _)| field == name) else { return Err(unknown(name, known)) };
            if *heed == Heed::Nothing && !asks_for_nothing(value) {
                return Err(Refusal::field(name, "this is not served; leave it out"));
            }
        }
        Ok(Self(object))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong(name, "a string", value))).transpose()
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Refusal> {
        self.get(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(|| wrong(name, "true or false", value)))
    }

    /// A number that `f32` can hold.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<f32>, Refusal> {
        let number = |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        self.get(name).map(|value| number(value).ok_or_else(|| wrong(name, "a number", value))).transpose()
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn whole(&self, name: &'static str, least: usize, most: usize) -> Result<Option<usize>, Refusal> {
        let whole = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let within = |number: &usize| (least..=most).contains(number);
        let wanted = || format!("a whole number from {least} to {most}");
        self.get(name).map(|value| whole(value).filter(within).ok_or_else(|| wrong(name, &wanted(), value))).transpose()
    }
}

/// What stands in place of what was wanted. Of a text only that it is one: its bytes are the caller's.
pub(crate) fn wrong(field: &'static str, wanted: &str, found: &Value) -> Refusal {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Refusal::field(field, format!("wanted {wanted}, found {found}"))
}

fn unknown(name: &str, known: &[(&'static str, Heed)]) -> Refusal {
    let plain = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let name = if plain { format!("`{name}`") } else { "that is no name".to_owned() };
    let read: Vec<&str> = known.iter().filter(|(_, heed)| *heed == Heed::Read).map(|(field, _)| *field).collect();
    Refusal::request(format!("there is a field {name}, which this server does not know; it reads {}", read.join(", ")))
}

fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.as_str(), "" | "none" | "auto"),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty() || (object.len() == 1 && object.get("type") == Some(&Value::from("text"))),
    }
}
