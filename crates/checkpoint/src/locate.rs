//! What a MODEL argument means: a file, a folder, or a name in the Hugging Face cache.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{CachedModel, HubCache, Usable, is_name, usable};
use crate::error::{CheckpointError, Fault, Place, clip};
use crate::gguf::parts::first_parts;
use crate::gguf_choice::{NoChoice, choose_gguf, gguf_choices, gguf_files};
use crate::model_name::{ModelName, head};

/// Where a model is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A file or a folder that was given by its path.
    Path(PathBuf),
    /// A model of the Hugging Face cache.
    Cached {
        /// The snapshot.
        model: CachedModel,
        /// The file to open inside it, or the snapshot's folder.
        path: PathBuf,
    },
}

impl Location {
    /// What [`crate::Checkpoint::open`] takes.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) | Self::Cached { path, .. } => path,
        }
    }
}

/// A model file or folder found in a folder of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalModel {
    /// Its path.
    pub path: PathBuf,
    /// Whether it can be opened.
    pub usable: Usable,
}

/// Finds the model that `model` names. The grammar:
///
/// - a path that exists, or is written as one (`./x`, `/x`, `~/x`, `x.gguf`): the file or the folder
/// - `org/name`, `name`: the Hugging Face cache, branch `main`
/// - `org/name@revision`: a branch, a tag or a commit of it
/// - `org/name:Q4_K_M`, also after a revision: the GGUF file of the snapshot whose name ends with or contains this, in any case
///
/// The built-in model is the caller's matter.
///
/// # Errors
///
/// Where nothing is found; the message lists what was tried.
pub fn locate(model: &str, cache: &HubCache) -> Result<Location, CheckpointError> {
    let path = Path::new(model);
    if !model.is_empty() && path.exists() {
        return Ok(Location::Path(path.to_owned()));
    }
    if is_written_as_path(model) || !is_name(head(model)) {
        return Err(no_such_path(model, path));
    }
    let (model, path) = cache.find(&ModelName::parse(model)?).map_err(|error| with_path_tried(error, model))?;
    Ok(Location::Cached { model, path })
}

impl HubCache {
    /// The snapshot that a name means, and what to open of it: the file of the quantisation, or the snapshot's folder.
    ///
    /// # Errors
    ///
    /// Where the model, the revision or the quantisation is not in the cache; the message says how to get it.
    pub fn find(&self, model: &ModelName) -> Result<(CachedModel, PathBuf), CheckpointError> {
        let cached = self.snapshot(model)?;
        let path = file_of(&cached, model)?;
        Ok((cached, path))
    }
}

/// The GGUF files and model folders directly inside `folder`, in alphabetical order; none where `folder` does not exist.
///
/// # Errors
///
/// Where `folder` exists and cannot be listed.
pub fn models_in(folder: &Path) -> Result<Vec<LocalModel>, CheckpointError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut models = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| CheckpointError::io(folder, "list it", source))?.flatten() {
        let path = entry.path();
        if path.is_file() && is_gguf(&path) {
            let name = entry.file_name().to_string_lossy().into_owned();
            models.push(LocalModel { path, usable: Usable::Gguf(vec![name]) });
        } else if path.join(crate::checkpoint::CONFIG).is_file() {
            let usable = usable(&path);
            models.push(LocalModel { path, usable });
        }
    }
    models.sort_by(|a, b| a.path.cmp(&b.path));
    let names: Vec<String> = models.iter().filter_map(|model| Some(model.path.file_name()?.to_string_lossy().into_owned())).collect();
    let first = first_parts(&names);
    models.retain(|model| model.path.file_name().is_some_and(|name| first.iter().any(|first| name.to_string_lossy() == *first)));
    Ok(models)
}

fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

fn is_written_as_path(model: &str) -> bool {
    let starts = ["/", "./", "../", "~", "\\"].into_iter().any(|start| model.starts_with(start));
    let path = Path::new(model);
    let ends = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    starts || ends || is_gguf(path) || matches!(model, "." | "..") || model.ends_with('/')
}

/// The file of a snapshot that a quantisation names; the folder where none is named and the weights are safetensors.
fn file_of(cached: &CachedModel, model: &ModelName) -> Result<PathBuf, CheckpointError> {
    let quantisation = model.quantisation.as_deref();
    if cached.usable == Usable::Folder && quantisation.is_none() {
        return Ok(cached.folder.clone());
    }
    let files = gguf_files(&cached.folder);
    let choices = gguf_choices(files.iter().map(String::as_str));
    let named = quantisation.map_or_else(|| "a GGUF file".to_owned(), |wanted| format!("a GGUF file with `{}` in its name", clip(wanted)));
    let pull = format!("fetch it with `glassbox models pull {model}`");
    match choose_gguf(&choices, quantisation) {
        Ok(choice) => Ok(cached.folder.join(choice.first())),
        Err(NoChoice::None(_)) if choices.is_empty() => {
            Err(choice(cached, &named, "safetensors weights".to_owned(), &format!("leave the part after `:` out, or {pull}")))
        }
        Err(NoChoice::None(there)) => Err(choice(cached, &named, there, &format!("name one of these, or {pull}"))),
        Err(NoChoice::Several(there)) => {
            let remedy = format!("name one as `{}:QUANT`, where QUANT is in one file's name only", cached.name);
            Err(choice(cached, "one GGUF file", there, &remedy))
        }
        Err(NoChoice::Incomplete(found)) => Err(choice(cached, "all parts of a split GGUF file", found, &pull)),
    }
}

fn choice(cached: &CachedModel, wanted: &str, found: String, remedy: &str) -> CheckpointError {
    let fault = Fault { file: cached.name.clone(), place: Place::Whole, wanted: wanted.to_owned(), found, remedy: remedy.to_owned() };
    CheckpointError::NotFound(Box::new(fault))
}

fn no_such_path(model: &str, path: &Path) -> CheckpointError {
    // A folder on the way that may not be read, or links that lead in a circle, hide what may well be there.
    if let Some(source) = fs::metadata(path).err().filter(|error| error.kind() != std::io::ErrorKind::NotFound && !model.is_empty()) {
        return CheckpointError::io(path, "look at it", source);
    }
    let remedy = match nearest_sibling(path) {
        Some(nearest) => format!("is it `{}`?", nearest.display()),
        None => "give the path of a GGUF file or a model folder, or `org/name` for a model in the Hugging Face cache".to_owned(),
    };
    CheckpointError::NotFound(Box::new(Fault {
        file: if model.is_empty() { "``".to_owned() } else { clip(model) },
        place: Place::Whole,
        wanted: "a GGUF file or a model folder".to_owned(),
        found: "nothing at this path".to_owned(),
        remedy,
    }))
}

/// Says that the path was tried before the cache.
fn with_path_tried(error: CheckpointError, model: &str) -> CheckpointError {
    match error {
        CheckpointError::NotFound(mut fault) => {
            fault.found = format!("no file or folder `{}`, and in the cache {}", clip(model), fault.found);
            CheckpointError::NotFound(fault)
        }
        other => other,
    }
}

/// The entry of the path's folder that is spelt most like its last part.
fn nearest_sibling(path: &Path) -> Option<PathBuf> {
    const ALIKE: f64 = 0.7; // normalised Levenshtein distance: three wrong letters in ten
    let wanted = path.file_name()?.to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let likeness = |name: &str| strsim::normalized_levenshtein(name, &wanted);
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let nearest = names.filter(|name| likeness(name) >= ALIKE).max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    Some(parent.map_or_else(|| PathBuf::from(&nearest), |parent| parent.join(&nearest)))
}
