//! Fields of a JSON document that somebody else wrote: each read has the field's name ready for the message.

use glassbox_record::FailureClass;
use serde_json::Value;

use crate::failed::{Trouble, clip};

/// A value with its place in the document.
#[derive(Debug, Clone)]
pub(crate) struct Field<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> Field<'v> {
    /// The whole document.
    pub(crate) fn document(value: &'v Value) -> Self {
        Self { value, path: String::new() }
    }

    /// A field of an object; `None` where it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Field<'v>>, Trouble> {
        let object = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let dot = if self.path.is_empty() { "" } else { "." };
        let field = |value| Field { value, path: format!("{}{dot}{name}", self.path) };
        Ok(object.get(name).filter(|value| !value.is_null()).map(field))
    }

    /// A field that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<Field<'v>, Trouble> {
        self.get(name)?.ok_or_else(|| {
            let dot = if self.path.is_empty() { "" } else { "." };
            Trouble::malformed(format!("the answer has no field `{}{dot}{name}`", self.path))
        })
    }

    /// The entries of a list.
    pub(crate) fn list(&self) -> Result<Vec<Field<'v>>, Trouble> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        Ok(list.iter().enumerate().map(|(index, value)| Field { value, path: format!("{}[{index}]", self.path) }).collect())
    }

    /// The entries of an object.
    pub(crate) fn entries(&self) -> Result<Vec<(&'v str, Field<'v>)>, Trouble> {
        let object = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        Ok(object.iter().map(|(name, value)| (name.as_str(), Field { value, path: format!("{}.{name}", self.path) })).collect())
    }

    pub(crate) fn text(&self) -> Result<&'v str, Trouble> {
        self.value.as_str().ok_or_else(|| self.wrong("a text"))
    }

    pub(crate) fn count(&self) -> Result<usize, Trouble> {
        let count = self.value.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.wrong("a count"))
    }

    pub(crate) fn number(&self) -> Result<f64, Trouble> {
        self.value.as_f64().ok_or_else(|| self.wrong("a number"))
    }

    pub(crate) fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// A text, where the field is there.
    pub(crate) fn text_of(&self, name: &str) -> Result<Option<&'v str>, Trouble> {
        self.get(name)?.map(|field| field.text()).transpose()
    }

    /// A count, where the field is there.
    pub(crate) fn count_of(&self, name: &str) -> Result<Option<usize>, Trouble> {
        self.get(name)?.map(|field| field.count()).transpose()
    }

    fn wrong(&self, wanted: &str) -> Trouble {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number that is none of these",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let found = if matches!((wanted, self.value), ("a text" | "a list" | "an object", Value::Number(_))) { "a number" } else { found };
        let place = if self.path.is_empty() { "the answer".to_owned() } else { format!("the field `{}` of the answer", clip(&self.path)) };
        Trouble::finally(FailureClass::Internal, format!("{place} is wrong: wanted {wanted}, found {found}"))
    }
}

/// Reads a document. One that ends too early is a connection that broke; one that is no JSON is the endpoint's fault.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Trouble> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| {
        if error.is_eof() && !bytes.is_empty() {
            return Trouble::connection("the answer ended in the middle of its JSON");
        }
        let shown = clip(&String::from_utf8_lossy(&bytes[..bytes.len().min(400)]));
        let found = if shown.is_empty() { "nothing".to_owned() } else { format!("`{shown}`") };
        Trouble::malformed(format!("wanted an answer in JSON, found {found}"))
    })
}
