//! Items: what is asked, what is right, and which documents there are. One JSON object a line.

use std::collections::BTreeMap;

use glassbox_record::{DataIdentity, Digest};
use serde::Deserialize;

use crate::compare::{contains_value, normalised};
use crate::{Place, SuiteError};

/// An item of a data file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Unique in the file and in the suite.
    pub id: String,
    /// Language, such as `en`; names the prompt.
    pub lang: String,
    /// The question.
    pub question: String,
    /// The right value.
    pub answer: String,
    /// Other ways to say it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The document that holds the answer.
    pub gold: String,
    /// Documents that do not.
    pub distractors: Vec<String>,
    /// Documents that answer the question differently.
    #[serde(default)]
    pub contradictory: Vec<String>,
    /// The value that the contradictory documents state.
    #[serde(default)]
    pub counter_answer: Option<String>,
    /// Where the item comes from, such as `fictional`.
    #[serde(default)]
    pub kind: Option<String>,
    /// What the question is about.
    #[serde(default)]
    pub entity: Option<String>,
    /// What is asked of it.
    #[serde(default)]
    pub attribute: Option<String>,
}

/// The items of a data file, and which file it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// For the manifest.
    pub identity: DataIdentity,
    /// The items, in the order of the file.
    pub items: Vec<Item>,
}

impl Data {
    /// Reads the lines of a data file and refuses items that cannot measure anything.
    ///
    /// - `name`   under which the suite knows it
    /// - `path`   for messages and the manifest
    /// - `bytes`  the file
    ///
    /// Errors, with the line: not JSON, a missing or unknown field, an empty text, an id that occurs twice, a gold document without the
    /// answer, another document with it.
    pub fn parse(name: &str, path: &str, bytes: &[u8]) -> Result<Self, SuiteError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| SuiteError::refused(Place::new(path, 0, 0), format!("not UTF-8 text after {} bytes", error.valid_up_to())))?;
        let mut items: Vec<Item> = Vec::new();
        let mut lines_of_ids: BTreeMap<String, u64> = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines()).filter(|(_, content)| !content.trim().is_empty()) {
            let refused = |message: String| SuiteError::refused(Place::new(path, line, 0), message);
            let item: Item = serde_json::from_str(content).map_err(|error| {
                let message = error.to_string();
                refused(message.split(" at line ").next().unwrap_or("unreadable").to_owned())
            })?;
            if let Some(fault) = item.fault() {
                return Err(refused(format!("item `{}`: {fault}", item.id)));
            }
            if let Some(earlier) = lines_of_ids.insert(item.id.clone(), line) {
                return Err(refused(format!("the id `{}` occurs twice, first in line {earlier}", item.id)));
            }
            items.push(item);
        }
        if items.is_empty() {
            return Err(SuiteError::refused(Place::new(path, 0, 0), "no items: wanted one JSON object a line"));
        }
        let hash = Digest::of_bytes(bytes);
        Ok(Self { identity: DataIdentity { name: name.to_owned(), path: path.to_owned(), hash, items: items.len() }, items })
    }
}

impl Item {
    /// Every way to say the right value.
    pub(crate) fn right_values(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.answer.as_str()).chain(self.aliases.iter().map(String::as_str))
    }

    /// The contradictory documents with what they state, where that is known.
    pub fn counters(&self) -> impl Iterator<Item = (&str, &str)> {
        let value = self.counter_answer.as_deref();
        self.contradictory.iter().filter_map(move |text| Some((text.as_str(), value?)))
    }

    fn fault(&self) -> Option<String> {
        for (name, text) in
            [("id", &self.id), ("lang", &self.lang), ("question", &self.question), ("answer", &self.answer), ("gold", &self.gold)]
        {
            if text.trim().is_empty() {
                return Some(format!("`{name}` is empty"));
            }
        }
        if normalised(&self.answer).is_empty() {
            return Some(format!("the answer `{}` is nothing but punctuation or articles, so no comparison can find it", self.answer));
        }
        if !self.right_values().any(|value| contains_value(&self.gold, value)) {
            return Some(format!("the gold document does not hold the answer `{}`", self.answer));
        }
        if let Some(counter) = &self.counter_answer
            && let Some(text) = self.contradictory.iter().find(|text| !contains_value(text, counter))
        {
            return Some(format!("the contradictory document `{text}` does not hold `{counter}`, which it is to state"));
        }
        let others = self
            .distractors
            .iter()
            .map(|text| ("distractor", text))
            .chain(self.contradictory.iter().map(|text| ("contradictory document", text)));
        for (role, text) in others {
            if text.trim().is_empty() {
                return Some(format!("an empty {role}"));
            }
            if let Some(value) = self.right_values().find(|value| contains_value(text, value)) {
                return Some(format!("the {role} `{text}` holds the answer `{value}`: an answer could not tell which document was read"));
            }
        }
        None
    }
}
