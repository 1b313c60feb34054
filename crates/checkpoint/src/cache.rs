//! The Hugging Face cache: where it is, what is in it, and which folder a name means. Nothing is downloaded here.
//!
//! Layout, as `huggingface_hub` writes it: `models--org--name/` holds `refs/<branch>` (a commit hash as text), `snapshots/<commit>/`
//! (the files, usually links) and `blobs/` (what the links point to; `.incomplete` while a download runs).
//!
//! Source: `huggingface_hub`, "Manage your cache" and `constants.py`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoint::CONFIG;
use crate::error::{CheckpointError, Fault, Place, clip};
use crate::folder::Folder;
use crate::gguf::parts::first_parts;
use crate::gguf_choice::gguf_files;
use crate::model_name::ModelName;
use crate::sharded;

/// The environment variables that say where the cache is. The caller reads them, or says how; this crate never looks at the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubEnvironment {
    /// `HF_HUB_CACHE`: the cache itself.
    pub hf_hub_cache: Option<PathBuf>,
    /// `HUGGINGFACE_HUB_CACHE`: its older name.
    pub huggingface_hub_cache: Option<PathBuf>,
    /// `HF_HOME`: the cache is `hub` inside it.
    pub hf_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`: the cache is `huggingface/hub` inside it.
    pub xdg_cache_home: Option<PathBuf>,
    /// `HOME`: the cache is `.cache/huggingface/hub` inside it.
    pub home: Option<PathBuf>,
}

/// The Hugging Face cache of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubCache {
    folder: Option<PathBuf>,
}

/// One snapshot of one model in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModel {
    /// `org/name`, or `name` for the oldest models.
    pub name: String,
    /// The commit.
    pub revision: String,
    /// Branches and tags that point to it.
    pub refs: Vec<String>,
    /// The snapshot's folder.
    pub folder: PathBuf,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether it can be opened.
    pub usable: Usable,
}

/// Whether the files of a snapshot make a model that can be opened. Headers are not read for this.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usable {
    /// Settings and all weights are there.
    Folder,
    /// These GGUF files are there.
    Gguf(Vec<String>),
    /// Why not.
    No(String),
}

impl HubEnvironment {
    /// Reads the variables through `variable`, which gives the value of one.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).map(PathBuf::from);
        Self {
            hf_hub_cache: path("HF_HUB_CACHE"),
            huggingface_hub_cache: path("HUGGINGFACE_HUB_CACHE"),
            hf_home: path("HF_HOME"),
            xdg_cache_home: path("XDG_CACHE_HOME"),
            home: path("HOME"),
        }
    }

    /// The folder of the Hugging Face tools, in which the cache and the token are unless other variables say so. An empty variable counts as
    /// absent, and `~/` is the home folder.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let folder = set(&self.hf_home)
            .or_else(|| set(&self.xdg_cache_home).map(|cache| cache.join("huggingface")))
            .or_else(|| set(&self.home).map(|home| home.join(".cache/huggingface")));
        folder.map(|folder| self.expanded(folder))
    }

    /// A path of a variable, with the home folder for `~/`.
    #[must_use]
    pub fn expanded(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), set(&self.home)) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }
}

fn set(path: &Option<PathBuf>) -> Option<PathBuf> {
    path.clone().filter(|path| !path.as_os_str().is_empty())
}

impl HubCache {
    /// Where the cache is by these variables. An empty variable counts as absent, and `~/` is the home folder.
    #[must_use]
    pub fn from_environment(environment: &HubEnvironment) -> Self {
        let named = set(&environment.hf_hub_cache).or_else(|| set(&environment.huggingface_hub_cache));
        let inside = || environment.folder().map(|folder| folder.join("hub"));
        Self { folder: named.map(|path| environment.expanded(path)).or_else(inside) }
    }

    /// The cache in a folder that is known.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// The folder, whether or not it exists; `None` where no variable leads to one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Every snapshot of every model, by name and then by commit. A cache that does not exist is empty.
    ///
    /// # Errors
    ///
    /// Where the cache exists and cannot be listed.
    pub fn models(&self) -> Result<Vec<CachedModel>, CheckpointError> {
        let Some(cache) = self.folder.as_deref().filter(|folder| folder.is_dir()) else { return Ok(Vec::new()) };
        let mut models = Vec::new();
        for folder_name in names(cache)? {
            let Some(name) = model_name(&folder_name) else { continue };
            let repository = cache.join(&folder_name);
            let refs = refs(&repository.join("refs"));
            for revision in names(&repository.join("snapshots")).unwrap_or_default() {
                let folder = repository.join("snapshots").join(&revision);
                let refs = refs.iter().filter(|(_, commit)| *commit == revision).map(|(name, _)| name.clone()).collect();
                let (bytes, usable) = (bytes(&folder, DEEPEST), usable(&folder));
                models.push(CachedModel { name: name.clone(), revision, refs, folder, bytes, usable });
            }
        }
        models.sort_by(|a, b| (&a.name, &a.revision).cmp(&(&b.name, &b.revision)));
        Ok(models)
    }

    /// The snapshot that a name means: `org/name` is what the branch `main` points to; a revision is a branch, a tag, a commit, or
    /// the first six digits of one or more.
    ///
    /// # Errors
    ///
    /// Where the model or the revision is not in the cache; the message names both, the cache, and what to do.
    pub fn resolve(&self, name: &str, revision: Option<&str>) -> Result<CachedModel, CheckpointError> {
        let asked = revision.map_or_else(|| name.to_owned(), |revision| format!("{name}@{revision}"));
        self.snapshot(&ModelName::parse(&asked)?)
    }

    /// The snapshot that a name means; its quantisation is not looked at.
    pub(crate) fn snapshot(&self, model: &ModelName) -> Result<CachedModel, CheckpointError> {
        let ModelName { name, revision, .. } = model;
        let revision = revision.as_deref();
        let asked = model.to_string();
        let Some(cache) = self.folder.as_deref() else {
            let remedy = "set HF_HOME or HOME, or give the path of a file or a folder";
            return Err(not_found(&asked, "the Hugging Face cache", "no variable that says where it is".to_owned(), remedy.to_owned()));
        };
        let repository = cache.join(repository_folder(name));
        let in_cache = format!("the model in the Hugging Face cache {}", cache.display());
        let download = format!("fetch it with `glassbox models pull {asked}`, or give the path of a file or a folder");
        if !repository.is_dir() {
            let found = if cache.is_dir() { "no model of this name" } else { "nothing: there is no cache yet" };
            return Err(not_found(&asked, &in_cache, found.to_owned(), download));
        }
        let snapshots = names(&repository.join("snapshots")).unwrap_or_default();
        let commit = commit(&repository, &snapshots, revision.unwrap_or("main"));
        let Some(commit) = commit.filter(|commit| snapshots.contains(commit)) else {
            let known = if snapshots.is_empty() { "none".to_owned() } else { clip(&snapshots.join(", ")) };
            let found = format!("no snapshot of `{}` (snapshots: {known})", revision.unwrap_or("main"));
            return Err(not_found(&asked, &in_cache, found, download));
        };
        let folder = repository.join("snapshots").join(&commit);
        let refs = refs(&repository.join("refs")).into_iter().filter(|(_, to)| *to == commit).map(|(name, _)| name).collect();
        match usable(&folder) {
            Usable::No(why) => Err(not_found(&asked, "a complete model", format!("{why} ({})", folder.display()), download)),
            usable => {
                let bytes = bytes(&folder, DEEPEST);
                Ok(CachedModel { name: name.clone(), revision: commit, refs, folder, bytes, usable })
            }
        }
    }
}

const DEEPEST: usize = 8; // folders inside a snapshot; a cache that loops must not hang the listing
const SHORTEST_PREFIX: usize = 6; // digits of a commit hash

fn commit(repository: &Path, snapshots: &[String], revision: &str) -> Option<String> {
    if let Ok(commit) = fs::read_to_string(repository.join("refs").join(revision)) {
        return Some(commit.trim().to_owned());
    }
    let mut matching = snapshots.iter().filter(|commit| revision.len() >= SHORTEST_PREFIX && commit.starts_with(revision));
    matching.next().filter(|_| matching.next().is_none()).cloned()
}

/// `models--org--name` → `org/name`.
fn model_name(folder: &str) -> Option<String> {
    folder.strip_prefix("models--").map(|name| name.replacen("--", "/", 1))
}

/// `org/name` → `models--org--name`, the folder of a model inside the cache.
#[must_use]
pub fn repository_folder(name: &str) -> String {
    format!("models--{}", name.replace('/', "--"))
}

/// Whether `name` is `org/name` or `name` with the characters that the hub admits. Keeps `..` and absolute paths out of the cache.
pub(crate) fn is_name(name: &str) -> bool {
    const LONGEST: usize = 193; // characters; the hub admits 96 for each part
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && part.chars().all(plain) && !part.starts_with(['.', '-']) && !part.contains("..") && !part.contains("--")
    };
    name.len() <= LONGEST && name.split('/').count() <= 2 && name.split('/').all(part)
}

/// Whether `revision` can be a branch, a tag or a commit; keeps `..` and absolute paths out of the cache.
pub(crate) fn is_revision(revision: &str) -> bool {
    const LONGEST: usize = 255; // bytes; what git's own storage of names admits on the usual file systems
    let part = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':', '@']) && !part.contains(char::is_control)
    };
    revision.len() <= LONGEST && revision.split('/').all(part)
}

/// What the files of a snapshot, or of any model folder, make.
pub(crate) fn usable(folder: &Path) -> Usable {
    let files = Folder::Disk(folder.to_owned());
    let no_weights = match (files.has(CONFIG), files.has(sharded::SINGLE), files.has(sharded::INDEX)) {
        (true, true, _) => return Usable::Folder,
        (true, false, true) => match sharded::missing_shards(&files) {
            Ok(missing) if missing.is_empty() => return Usable::Folder,
            Ok(missing) => format!("the download is incomplete: {} is missing", clip(&missing.join(", "))),
            Err(error) => error.to_string(),
        },
        (true, false, false) => format!("there is no {}", sharded::SINGLE),
        (false, ..) => format!("there is neither {CONFIG} nor a GGUF file"),
    };
    // Publishers of GGUF files leave the configuration of the original beside them.
    let gguf = first_parts(&gguf_files(folder));
    if gguf.is_empty() { Usable::No(no_weights) } else { Usable::Gguf(gguf) }
}

/// Branches and tags with their commits; nested names (`pr/1`) one level deep.
fn refs(folder: &Path) -> Vec<(String, String)> {
    let mut refs = Vec::new();
    for name in names(folder).unwrap_or_default() {
        let path = folder.join(&name);
        if path.is_dir() {
            let nested = names(&path).unwrap_or_default();
            refs.extend(nested.into_iter().filter_map(|inner| Some((format!("{name}/{inner}"), read_ref(&path.join(inner))?))));
        } else if let Some(commit) = read_ref(&path) {
            refs.push((name, commit));
        }
    }
    refs
}

fn read_ref(path: &Path) -> Option<String> {
    const LONGEST: u64 = 256; // bytes; a commit hash has 40
    let short = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= LONGEST);
    short.then(|| fs::read_to_string(path).ok()).flatten().map(|commit| commit.trim().to_owned())
}

/// Bytes of all files below `folder`, links followed to files but not to folders.
fn bytes(folder: &Path, deepest: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(file_type) if file_type.is_dir() && deepest > 0 => bytes(&entry.path(), deepest - 1),
        Ok(file_type) if file_type.is_dir() => 0,
        _ => fs::metadata(entry.path()).map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 }),
    };
    entries.flatten().map(size).sum()
}

fn names(folder: &Path) -> Result<Vec<String>, CheckpointError> {
    let entries = fs::read_dir(folder).map_err(|source| CheckpointError::io(folder, "list it", source))?;
    let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

fn not_found(asked: &str, wanted: &str, found: String, remedy: String) -> CheckpointError {
    CheckpointError::NotFound(Box::new(Fault { file: clip(asked), place: Place::Whole, wanted: wanted.to_owned(), found, remedy }))
}
