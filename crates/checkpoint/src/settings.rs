//! The strict reader of settings: every key is read, refused, or ignored with a reason.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::error::{CheckpointError, Fault, Place, Unread, UnreadKey, clip};
use crate::harmless;
use crate::value::Value;

/// Which format the settings come from; the key names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointKind {
    /// A Hugging Face folder: keys of `config.json`, nested keys joined by dots (`rope_scaling.factor`).
    HuggingFace,
    /// A GGUF file: metadata keys (`llama.block_count`).
    Gguf,
}

/// A key that the user declares harmless: `--allow-unread KEY=REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The key, with dots for nesting; covers everything below it.
    pub key: String,
    /// Why it is harmless, for the run record.
    pub reason: String,
}

/// A setting that was not used, and why that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// The key, with dots for nesting.
    pub key: String,
    /// Its value, shortened.
    pub value: String,
    /// Why it does not matter.
    pub reason: String,
    /// Whether the user said so (`--allow-unread`), rather than a table of this program.
    pub allowed_by_user: bool,
}

/// A value that [`Settings::must_be`] admits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// A text.
    Text(&'static str),
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// `[]` or `{}`.
    Empty,
    /// Nothing but an absent or null key.
    Absent,
}

/// The settings of a model, read strictly.
///
/// Every getter marks its key as read. [`Settings::finish`] refuses the file where a key is neither read nor ignored with a
/// reason. A key whose value is `null` counts as absent. A [`Settings::section`] sees the keys below a prefix and shares the marks.
///
/// Messages name the file, the key, what was wanted and what was found.
#[derive(Clone, Debug)]
pub struct Settings {
    source: Arc<Source>,
    marks: Rc<RefCell<Marks>>,
    prefix: String,
}

/// What a file says; shared by all readers of one checkpoint.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) kind: CheckpointKind,
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) allowances: Vec<Allowance>,
}

#[derive(Debug, Default)]
struct Marks {
    read: BTreeSet<String>,
    /// Asked for, and absent: candidates for "did you mean".
    missed: BTreeSet<String>,
    /// Key or prefix to reason.
    ignored: BTreeMap<String, String>,
    ignored_prefixes: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self { source, marks: Rc::default(), prefix: String::new() }
    }

    /// Which format the settings come from.
    #[must_use]
    pub fn kind(&self) -> CheckpointKind {
        self.source.kind
    }

    /// The file the settings come from, as messages name it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.source.file
    }

    /// Whether `key`, or a key below it, is there and not null. Marks nothing.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        let key = self.full(key);
        self.source.values.get(&key).is_some_and(|value| !matches!(value, Value::Null)) || self.has_below(&key)
    }

    /// Whether `key` is there with the value null, which some keys tell apart from being absent. Marks it as read.
    #[must_use]
    pub fn is_null(&self, key: &str) -> bool {
        matches!(self.source.values.get(&self.full(key)), Some(Value::Null)) && self.look(key).is_none()
    }

    /// The keys of this section that are there, relative to it, in alphabetical order. Marks nothing.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.source.values.keys().filter_map(|key| key.strip_prefix(&self.prefix))
    }

    /// The settings below `key`: a nested object of `config.json` (`rope_scaling`), or the keys `key.…` of GGUF metadata.
    ///
    /// `None` where `key` is absent or null.
    ///
    /// # Errors
    ///
    /// Where `key` has a value that is no object.
    pub fn section(&self, key: &str) -> Result<Option<Self>, CheckpointError> {
        let full = self.full(key);
        let section = Self { prefix: format!("{full}."), ..self.clone() };
        match self.look(key) {
            None => Ok(self.has_below(&full).then_some(section)),
            Some(Value::EmptyObject) => Ok(Some(section)),
            Some(other) => Err(self.wrong(key, "an object", &other.describe())),
        }
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// Where it is absent or something else.
    pub fn str(&self, key: &str) -> Result<&str, CheckpointError> {
        self.optional_str(key)?.ok_or_else(|| self.missing(key, "a text"))
    }

    /// A text, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_str(&self, key: &str) -> Result<Option<&str>, CheckpointError> {
        self.typed(key, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// A whole number, 0 or more. `1e6` is one, `"1000000"` is not.
    ///
    /// # Errors
    ///
    /// Where it is absent or something else.
    pub fn usize(&self, key: &str) -> Result<usize, CheckpointError> {
        self.optional_usize(key)?.ok_or_else(|| self.missing(key, WHOLE))
    }

    /// A whole number, 0 or more, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_usize(&self, key: &str) -> Result<Option<usize>, CheckpointError> {
        self.typed(key, WHOLE, whole)
    }

    /// A finite number. `1e6` and `1000000` are the same, `"1000000"` is refused. GGUF's f32 values are widened exactly.
    ///
    /// # Errors
    ///
    /// Where it is absent or something else.
    pub fn f64(&self, key: &str) -> Result<f64, CheckpointError> {
        self.optional_f64(key)?.ok_or_else(|| self.missing(key, NUMBER))
    }

    /// A finite number, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_f64(&self, key: &str) -> Result<Option<f64>, CheckpointError> {
        self.typed(key, NUMBER, Value::number)
    }

    /// A truth value; 0 and 1 are none.
    ///
    /// # Errors
    ///
    /// Where it is absent or something else.
    pub fn bool(&self, key: &str) -> Result<bool, CheckpointError> {
        self.optional_bool(key)?.ok_or_else(|| self.missing(key, "true or false"))
    }

    /// A truth value, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_bool(&self, key: &str) -> Result<Option<bool>, CheckpointError> {
        self.typed(key, "true or false", |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// A list of texts, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_str_list(&self, key: &str) -> Result<Option<Vec<String>>, CheckpointError> {
        self.list(key, "a list of texts", |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// A list of whole numbers, 0 or more, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_usize_list(&self, key: &str) -> Result<Option<Vec<usize>>, CheckpointError> {
        self.list(key, "a list of whole numbers, 0 or more", whole)
    }

    /// A list of finite numbers, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_f64_list(&self, key: &str) -> Result<Option<Vec<f64>>, CheckpointError> {
        self.list(key, "a list of numbers", Value::number)
    }

    /// A list of truth values, or `None` where it is absent or null.
    ///
    /// # Errors
    ///
    /// Where it is something else.
    pub fn optional_bool_list(&self, key: &str) -> Result<Option<Vec<bool>>, CheckpointError> {
        self.list(key, "a list of true and false", |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// One whole number that holds for all layers, or a list with one for each (GGUF writes both), as a list of `layers` numbers.
    ///
    /// # Errors
    ///
    /// Where it is something else, or a list of another length.
    pub fn optional_usize_per_layer(&self, key: &str, layers: usize) -> Result<Option<Vec<usize>>, CheckpointError> {
        const WANTED: &str = "a whole number, or a list with one for each layer";
        match self.look(key) {
            None => Ok(None),
            Some(Value::List(_)) => match self.list(key, WANTED, whole)? {
                Some(list) if list.len() != layers => {
                    Err(self.wrong(key, &format!("{layers} numbers, one for each layer"), &format!("{} numbers", list.len())))
                }
                list => Ok(list),
            },
            Some(value) => whole(value).map(|value| Some(vec![value; layers])).ok_or_else(|| self.wrong(key, WANTED, &value.describe())),
        }
    }

    /// Refuses every value of `key` that is not in `allowed`, because running it would give wrong numbers. Absent and null are
    /// always admitted: the caller knows that its own reading is then the format's default. So is a key that was declared not to matter.
    ///
    /// # Errors
    ///
    /// Where the value is another one; the message ends with `why`.
    pub fn must_be(&self, key: &str, allowed: &[Expected], why: &str) -> Result<(), CheckpointError> {
        let full = self.full(key);
        let value = self.look(key);
        if self.marks.borrow().ignored.contains_key(&full) || (value.is_none() && !self.has_below(&full)) {
            return Ok(());
        }
        if value.is_some_and(|value| allowed.iter().any(|expected| expected.admits(value))) {
            return Ok(());
        }
        let wanted: Vec<String> = allowed.iter().map(Expected::describe).collect();
        let found = value.map_or_else(|| "an object".to_owned(), Value::describe);
        Err(CheckpointError::Unsupported(Box::new(Fault {
            file: self.source.file.clone(),
            place: Place::Key(full),
            wanted: wanted.join(" or "),
            found,
            remedy: why.to_owned(),
        })))
    }

    /// Declares `key`, and everything below it, not to matter; `reason` says why.
    pub fn ignore(&self, key: &str, reason: &str) {
        let key = self.full(key);
        self.marks.borrow_mut().ignored.insert(key, reason.to_owned());
    }

    /// Declares every key that starts with `prefix` not to matter; `reason` says why.
    pub fn ignore_prefix(&self, prefix: &str, reason: &str) {
        let prefix = self.full(prefix);
        self.marks.borrow_mut().ignored_prefixes.insert(prefix, reason.to_owned());
    }

    /// Ends the reading: refuses the file where a key was neither read nor ignored nor allowed by the user.
    ///
    /// Looks at the whole file, also when called on a section. Keys that no program needs for the forward pass (`torch_dtype`,
    /// `general.license`, …) are ignored by a table of this crate.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Unread`] with every such key, its value and the nearest key that was asked for in vain;
    /// [`CheckpointError::Unsupported`] where a key says that the model needs something else (`quantization_config`, `auto_map`).
    pub fn finish(&self) -> Result<Vec<IgnoredSetting>, CheckpointError> {
        let root = Self { prefix: String::new(), ..self.clone() };
        harmless::require(&root)?;
        root.finish_with(|key| harmless::reason(self.source.kind, key))
    }

    /// As [`Settings::finish`], for the keys of this section alone and without the table of harmless keys.
    pub(crate) fn finish_section(&self) -> Result<Vec<IgnoredSetting>, CheckpointError> {
        self.finish_with(|_| None)
    }

    fn finish_with(&self, table: impl Fn(&str) -> Option<&'static str>) -> Result<Vec<IgnoredSetting>, CheckpointError> {
        let marks = self.marks.borrow();
        let mut ignored = Vec::new();
        let mut unread = Vec::new();
        for (key, value) in &self.source.values {
            if !key.starts_with(&self.prefix) || matches!(value, Value::Null) || marks.read.contains(key) {
                continue;
            }
            let by_program = marks.reason(key).or_else(|| table(key));
            let by_user = self.source.allowances.iter().find(|allowance| covers(&allowance.key, key));
            match (by_program, by_user) {
                (Some(reason), _) => ignored.push((key, value, reason, false)),
                (None, Some(allowance)) => ignored.push((key, value, allowance.reason.as_str(), true)),
                (None, None) => unread.push(UnreadKey { key: key.clone(), value: value.describe(), nearest: marks.nearest(key) }),
            }
        }
        if !unread.is_empty() {
            return Err(CheckpointError::Unread(Box::new(Unread { file: self.source.file.clone(), keys: unread })));
        }
        let setting = |(key, value, reason, allowed_by_user): (&String, &Value, &str, bool)| IgnoredSetting {
            key: key.clone(),
            value: value.describe(),
            reason: reason.to_owned(),
            allowed_by_user,
        };
        Ok(ignored.into_iter().map(setting).collect())
    }

    /// An error about `key` of this section, for rules that go over several keys.
    #[must_use]
    pub fn refuse(&self, key: &str, wanted: &str, found: &str, remedy: &str) -> CheckpointError {
        CheckpointError::Setting(Box::new(Fault {
            file: self.source.file.clone(),
            place: Place::Key(self.full(key)),
            wanted: wanted.to_owned(),
            found: found.to_owned(),
            remedy: remedy.to_owned(),
        }))
    }

    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Marks `key` as read and returns its value; null is absent.
    pub(crate) fn look(&self, key: &str) -> Option<&Value> {
        let key = self.full(key);
        let mut marks = self.marks.borrow_mut();
        match self.source.values.get(&key) {
            Some(Value::Null) => {
                marks.read.insert(key);
                None
            }
            Some(value) => {
                marks.read.insert(key);
                Some(value)
            }
            None => {
                marks.missed.insert(key);
                None
            }
        }
    }

    fn has_below(&self, full: &str) -> bool {
        let below = format!("{full}.");
        self.source.values.range(below.clone()..).next().is_some_and(|(key, _)| key.starts_with(&below))
    }

    fn typed<'a, T>(&'a self, key: &str, wanted: &str, get: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, CheckpointError> {
        match self.look(key) {
            None if self.has_below(&self.full(key)) => Err(self.wrong(key, wanted, "an object")),
            None => Ok(None),
            Some(value) => get(value).map(Some).ok_or_else(|| self.wrong(key, wanted, &value.describe())),
        }
    }

    fn list<T>(&self, key: &str, wanted: &str, get: impl Fn(&Value) -> Option<T>) -> Result<Option<Vec<T>>, CheckpointError> {
        self.typed(key, wanted, |value| match value {
            Value::List(list) => list.values()?.iter().map(&get).collect(),
            _ => None,
        })
    }

    pub(crate) fn wrong(&self, key: &str, wanted: &str, found: &str) -> CheckpointError {
        self.refuse(key, wanted, found, "correct the value in the file")
    }

    fn missing(&self, key: &str, wanted: &str) -> CheckpointError {
        let full = self.full(key);
        let marks = self.marks.borrow();
        let nearest = self
            .source
            .values
            .keys()
            .filter(|key| !marks.read.contains(*key) && key.starts_with(&self.prefix))
            .map(|key| (strsim::jaro_winkler(key, &full), key))
            .filter(|(likeness, _)| *likeness > ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let remedy = match nearest {
            Some((_, nearest)) => format!("the file has `{}`: is that the key under another spelling?", clip(nearest)),
            None => "the model cannot be built without it: use a complete file".to_owned(),
        };
        self.refuse(key, wanted, "no such key", &remedy)
    }
}

const WHOLE: &str = "a whole number, 0 or more";
const NUMBER: &str = "a finite number";
const ALIKE: f64 = 0.92; // Jaro-Winkler: `rope_thta` and `rope_theta` are at 0.98, `hidden_size` and `vocab_size` at 0.6

fn whole(value: &Value) -> Option<usize> {
    value.integer().and_then(|value| usize::try_from(value).ok())
}

/// Whether `key` is `parent` or lies below it.
fn covers(parent: &str, key: &str) -> bool {
    key.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Marks {
    fn reason(&self, key: &str) -> Option<&str> {
        let exact = self.ignored.iter().find(|(ignored, _)| covers(ignored, key));
        let prefix = || self.ignored_prefixes.iter().find(|(prefix, _)| key.starts_with(prefix.as_str()));
        exact.or_else(prefix).map(|(_, reason)| reason.as_str())
    }

    fn nearest(&self, key: &str) -> Option<String> {
        let alike = self.missed.iter().map(|missed| (strsim::jaro_winkler(missed, key), missed));
        alike.filter(|(likeness, _)| *likeness > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, missed)| missed.clone())
    }
}

impl Expected {
    fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(expected), Value::Text(found)) => expected == found,
            (Self::Bool(expected), Value::Bool(found)) => expected == found,
            (Self::Integer(expected), found) => found.integer() == Some(i128::from(*expected)),
            (Self::Float(expected), found) => found.number() == Some(*expected),
            (Self::Empty, Value::List(list)) => list.len() == 0,
            (Self::Empty, Value::EmptyObject) => true,
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{text}\""),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::Empty => "an empty list or object".to_owned(),
            Self::Absent => "no such key".to_owned(),
        }
    }
}
