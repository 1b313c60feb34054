//! A model in several GGUF files: `stem-00001-of-00003.gguf` and its siblings, each with some of the tensors.
//!
//! The first part holds the metadata of all; every part says in `split.no` which one it is (counted from 0), in `split.count` how many
//! there are, and in `split.tensors.count` how many tensors all parts hold together. Each claim is held against the others, the names
//! and the files that are there.
//!
//! Source: `gguf-split` of llama.cpp.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glassbox_tensor::Bytes;

use super::{Gguf, RawPairs, read};
use crate::error::{CheckpointError, Fault, Place, clip};
use crate::mapped::map;
use crate::sharded::Weights;
use crate::value::Value;

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// A whole model, of one GGUF file or of several.
pub(crate) struct Joined {
    /// The first part, or the only file.
    pub(crate) path: PathBuf,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) pairs: RawPairs,
    pub(crate) weights: Weights,
}

/// Opens the file at `path` and, where it is one part of several, its siblings.
///
/// # Errors
///
/// As [`read`]; where a part is missing, is not the one that its name says, or belongs to another model.
pub(crate) fn open(path: &Path) -> Result<Joined, CheckpointError> {
    let label = path.display().to_string();
    let bytes = map(path)?;
    let gguf = read(&label, &bytes)?;
    let Some(parts) = parts(&label, &gguf)? else {
        let weights = Weights { files: vec![(label, bytes)], tensors: gguf.tensors };
        return Ok(Joined { path: path.to_owned(), metadata: gguf.metadata, pairs: gguf.pairs, weights });
    };
    join(path, parts)
}

/// The file `bytes` alone, which has no siblings to look for.
///
/// # Errors
///
/// As [`read`]; where it is one part of several.
pub(crate) fn whole(label: &str, bytes: &Bytes) -> Result<Gguf, CheckpointError> {
    let gguf = read(label, bytes)?;
    match parts(label, &gguf)? {
        None => Ok(gguf),
        Some(count) => Err(CheckpointError::Unsupported(Box::new(Fault {
            file: label.to_owned(),
            place: Place::Key(COUNT.to_owned()),
            wanted: "a model in one file".to_owned(),
            found: format!("one part of {count}"),
            remedy: "open a part by its path, beside the others, or join the parts with `llama-gguf-split --merge`".to_owned(),
        }))),
    }
}

/// In how many parts the model lies; `None` for one file.
fn parts(label: &str, gguf: &Gguf) -> Result<Option<usize>, CheckpointError> {
    Ok(number(label, gguf, COUNT)?.filter(|count| *count > 1))
}

fn number(label: &str, gguf: &Gguf, key: &str) -> Result<Option<usize>, CheckpointError> {
    match gguf.metadata.get(key) {
        None => Ok(None),
        Some(value) => match value.integer().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(foreign(label, Place::Key(key.to_owned()), "a whole number, 0 or more".to_owned(), value.describe())),
        },
    }
}

fn join(path: &Path, count: usize) -> Result<Joined, CheckpointError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let label = path.display().to_string();
    let Some(name) = PartName::of(&file_name).filter(|name| name.count == count) else {
        let wanted = format!("a name that ends in `-NNNNN-of-{count:05}.gguf`, as the other parts have, for one part of {count}");
        return Err(foreign(&label, Place::Key(COUNT.to_owned()), wanted, format!("the name `{}`", clip(&file_name))));
    };
    const NAMED: usize = 8; // of the missing parts: a name can claim 99,999
    let is_missing = |number: &usize| !path.with_file_name(name.sibling(*number)).is_file();
    let missing = (1..=count).filter(is_missing).count();
    if missing > 0 {
        let named: Vec<String> = (1..=count).filter(is_missing).take(NAMED).map(|number| name.sibling(number)).collect();
        return Err(CheckpointError::NotFound(Box::new(Fault {
            file: label,
            place: Place::Whole,
            wanted: format!("all {count} parts of the model in one folder"),
            found: format!("{missing} missing: {}", clip(&named.join(", "))),
            remedy: "download the missing parts into the folder".to_owned(),
        })));
    }
    let mut joined: Option<Joined> = None;
    let mut wanted_tensors = None;
    for number in 1..=count {
        let path = path.with_file_name(name.sibling(number));
        let label = path.display().to_string();
        let bytes = map(&path)?;
        let gguf = read(&label, &bytes)?;
        check_place(&label, &gguf, number, count)?;
        let tensors = self::number(&label, &gguf, TENSORS)?;
        let Some(joined) = &mut joined else {
            wanted_tensors = tensors;
            let weights = Weights { files: vec![(label, bytes)], tensors: gguf.tensors };
            joined = Some(Joined { path, metadata: gguf.metadata, pairs: gguf.pairs, weights });
            continue;
        };
        if tensors != wanted_tensors {
            let shown = |count: Option<usize>| count.map_or_else(|| "nothing".to_owned(), |count| count.to_string());
            let wanted = format!("{} tensors in all parts, as the first part says", shown(wanted_tensors));
            return Err(foreign(&label, Place::Key(TENSORS.to_owned()), wanted, shown(tensors)));
        }
        add(joined, &label, bytes, gguf)?;
    }
    let joined = joined.expect("there are two parts or more");
    match wanted_tensors {
        Some(wanted) if wanted != joined.weights.tensors.len() => Err(foreign(
            &joined.path.display().to_string(),
            Place::Key(TENSORS.to_owned()),
            format!("{wanted} tensors in all parts"),
            joined.weights.tensors.len().to_string(),
        )),
        _ => Ok(joined),
    }
}

/// Whether the file says of itself what its name says.
fn check_place(label: &str, gguf: &Gguf, number: usize, count: usize) -> Result<(), CheckpointError> {
    let found = self::number(label, gguf, COUNT)?;
    if found != Some(count) {
        let found = found.map_or_else(|| "no such key".to_owned(), |found| found.to_string());
        return Err(foreign(label, Place::Key(COUNT.to_owned()), format!("{count}, as in its name"), found));
    }
    let found = self::number(label, gguf, NUMBER)?;
    if found != Some(number - 1) {
        let found =
            found.map_or_else(|| "no such key".to_owned(), |found| format!("{found} (part {} of {count})", found.saturating_add(1)));
        return Err(foreign(label, Place::Key(NUMBER.to_owned()), format!("{}, because its name says part {number}", number - 1), found));
    }
    Ok(())
}

/// Adds a later part: its tensors, and no key that the first part does not have with the same value.
fn add(joined: &mut Joined, label: &str, bytes: Bytes, gguf: Gguf) -> Result<(), CheckpointError> {
    let of_the_first: BTreeMap<&str, &[u8]> = joined.pairs.iter().map(|(key, pair)| (key.as_str(), &**pair)).collect();
    for (key, pair) in gguf.pairs.iter().filter(|(key, _)| !key.starts_with("split.")) {
        let first = of_the_first.get(key.as_str());
        if first.is_none_or(|first| **first != **pair) {
            let found = if first.is_some() { "another value" } else { "a key that the first part lacks" };
            let wanted = format!("the metadata of {}", clip(&joined.weights.files[0].0));
            return Err(foreign(label, Place::Key(key.clone()), wanted, found.to_owned()));
        }
    }
    let file = joined.weights.files.len();
    for (name, mut tensor) in gguf.tensors {
        if let Some(first) = joined.weights.tensors.get(&name) {
            let found = format!("it in {} too", clip(&joined.weights.files[first.file].0));
            return Err(foreign(label, Place::Tensor(name), "each tensor in one part".to_owned(), found));
        }
        tensor.file = file;
        joined.weights.tensors.insert(name, tensor);
    }
    joined.weights.files.push((label.to_owned(), bytes));
    Ok(())
}

fn foreign(label: &str, place: Place, wanted: String, found: String) -> CheckpointError {
    let remedy = "the parts are from different models or were renamed: download all of them again".to_owned();
    CheckpointError::Malformed(Box::new(Fault { file: label.to_owned(), place, wanted, found, remedy }))
}

/// The name of one part, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartName<'a> {
    pub(crate) stem: &'a str,
    /// Which part, counted from 1.
    number: usize,
    pub(crate) count: usize,
}

impl<'a> PartName<'a> {
    /// Takes apart `model-00001-of-00003.gguf`; `None` for another name.
    pub(crate) fn of(name: &'a str) -> Option<Self> {
        const DIGITS: usize = 5;
        const EXTENSION: &str = ".gguf";
        let stem = name.get(..name.len().checked_sub(EXTENSION.len())?)?;
        let (stem, count) = stem.rsplit_once("-of-").filter(|_| name[stem.len()..].eq_ignore_ascii_case(EXTENSION))?;
        let (stem, number) = stem.rsplit_once('-')?;
        let digits = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        let name = (digits(number) && digits(count)).then_some(Self { stem, number: number.parse().ok()?, count: count.parse().ok()? })?;
        (1..=name.count).contains(&name.number).then_some(name)
    }

    fn sibling(&self, number: usize) -> String {
        format!("{}-{number:05}-of-{:05}.gguf", self.stem, self.count)
    }
}

/// File names without the later parts of a model whose first part is among them: one name a model.
pub(crate) fn first_parts(names: &[String]) -> Vec<String> {
    let is_later =
        |name: &String| PartName::of(name).is_some_and(|part| part.number > 1 && names.iter().any(|other| *other == part.sibling(1)));
    names.iter().filter(|name| !is_later(name)).cloned().collect()
}
