use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glassbox_tensor::{Bytes, StorageType};

use crate::error::{CheckpointError, Fault, Place, clip};
use crate::folder::Folder;
use crate::gguf::{self, RawPairs, parts::Joined};
use crate::settings::{Allowance, CheckpointKind, Settings, Source};
use crate::sharded::{self, Weights};
use crate::tensor::{Announced, StoredAs, StoredTensor};
use crate::tokenizer_source::{self, TokenizerSource};
use crate::value::{self, Tangled, Value};

pub(crate) const CONFIG: &str = "config.json";

/// A model on disk (or embedded in a program), opened: its tensors by name, its settings, its tokenizer files.
///
/// Opening reads headers only and checks them against the files' lengths; weights stay in the mapped files until they are used.
#[derive(Debug)]
pub struct Checkpoint {
    path: Option<PathBuf>,
    label: String,
    settings: Arc<Source>,
    /// The metadata as they lie in a GGUF file; none for a folder.
    pairs: RawPairs,
    weights: Weights,
    /// The folder's other files; `None` for a GGUF file, which holds everything itself.
    folder: Option<Folder>,
}

/// How much of a model is stored in one storage type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageShare {
    /// The name of the storage type, as its format calls it.
    pub storage: String,
    /// Whether its numbers can be decoded here.
    pub readable: bool,
    /// Tensors stored so.
    pub tensors: usize,
    /// Numbers in them.
    pub numbers: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl Checkpoint {
    /// Opens a Hugging Face folder, or a GGUF file, or a folder that holds nothing but one GGUF file.
    ///
    /// Any part of a split GGUF file (`stem-00001-of-00003.gguf`) opens all of them.
    ///
    /// Weight files are mapped: they must not be changed or cut while the checkpoint is in use.
    ///
    /// # Errors
    ///
    /// Where the path does not exist, is no model, or one of its files is damaged; see [`CheckpointError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CheckpointError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::open_folder(path);
        }
        if !path.is_file() {
            let found = if path.exists() { "neither a file nor a folder" } else { "nothing at this path" };
            return Err(CheckpointError::NotFound(Box::new(Fault {
                file: path.display().to_string(),
                place: Place::Whole,
                wanted: "a GGUF file or a Hugging Face folder".to_owned(),
                found: found.to_owned(),
                remedy: "check the path".to_owned(),
            })));
        }
        if path.file_name().is_some_and(|name| name == CONFIG || name == sharded::SINGLE || name == sharded::INDEX) {
            return Self::open_folder(path.parent().unwrap_or(Path::new(".")));
        }
        Self::from_gguf_file(path)
    }

    /// A Hugging Face folder that is in memory: `label` names it in messages, `files` are its files by name.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::open`].
    pub fn from_parts(label: &str, files: Vec<(String, Bytes)>) -> Result<Self, CheckpointError> {
        Self::from_folder(None, Folder::Memory { label: label.to_owned(), files })
    }

    /// A Hugging Face folder that is part of the program: names and contents of its files.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::open`].
    pub fn from_embedded(label: &str, files: &[(&str, &'static [u8])]) -> Result<Self, CheckpointError> {
        Self::from_parts(label, files.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::new(*bytes))).collect())
    }

    /// A GGUF file that is in memory; `label` names it in messages.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::open`].
    pub fn from_gguf_bytes(label: &str, bytes: Bytes) -> Result<Self, CheckpointError> {
        let gguf::Gguf { metadata, pairs, tensors } = gguf::parts::whole(label, &bytes)?;
        let weights = Weights { files: vec![(label.to_owned(), bytes)], tensors };
        Ok(Self::from_gguf(label, None, metadata, pairs, weights))
    }

    /// Declares settings harmless that nothing reads (`--allow-unread KEY=REASON`).
    #[must_use]
    pub fn allow_unread(mut self, allowances: Vec<Allowance>) -> Self {
        let Source { file, kind, values, .. } = &*self.settings;
        self.settings = Arc::new(Source { file: file.clone(), kind: *kind, values: values.clone(), allowances });
        self
    }

    fn open_folder(path: &Path) -> Result<Self, CheckpointError> {
        let folder = Folder::Disk(path.to_owned());
        if !folder.has(CONFIG)
            && let Some(file) = only_gguf(path, &folder)?
        {
            return Self::from_gguf_file(&path.join(file));
        }
        Self::from_folder(Some(path.to_owned()), folder)
    }

    fn from_folder(path: Option<PathBuf>, folder: Folder) -> Result<Self, CheckpointError> {
        let file = folder.label(CONFIG);
        let label = match &folder {
            Folder::Disk(path) => path.display().to_string(),
            Folder::Memory { label, .. } => label.clone(),
        };
        let fault = |place: Place, wanted: &str, found: &str, remedy: &str| {
            Box::new(Fault { file: file.clone(), place, wanted: wanted.to_owned(), found: found.to_owned(), remedy: remedy.to_owned() })
        };
        let config = folder.json(CONFIG)?.ok_or_else(|| {
            let remedy = "a model folder holds config.json beside its weights: check the path, or download the file";
            CheckpointError::NotFound(fault(Place::Whole, "the settings of the model", "no such file", remedy))
        })?;
        let config = config.as_object().ok_or_else(|| {
            CheckpointError::Malformed(fault(Place::Whole, "a JSON object", "another JSON value", "download the file again"))
        })?;
        let values = value::flatten(config).map_err(|tangled| {
            let correct = "correct the file";
            CheckpointError::Malformed(match tangled {
                Tangled::Twice(key) => fault(Place::Key(key), "each setting once", "the same path twice, nested and with dots", correct),
                Tangled::TooLong(key) => {
                    fault(Place::Key(key), "settings of a readable size", "keys and paths of more than 4 MiB", correct)
                }
            })
        })?;
        let weights = sharded::read(&folder)?;
        let settings = Source { file, kind: CheckpointKind::HuggingFace, values, allowances: Vec::new() };
        Ok(Self { path, label, settings: Arc::new(settings), pairs: RawPairs::new(), weights, folder: Some(folder) })
    }

    fn from_gguf_file(path: &Path) -> Result<Self, CheckpointError> {
        let Joined { path, metadata, pairs, weights } = gguf::parts::open(path)?;
        Ok(Self::from_gguf(&path.display().to_string(), Some(path.clone()), metadata, pairs, weights))
    }

    fn from_gguf(label: &str, path: Option<PathBuf>, metadata: BTreeMap<String, Value>, pairs: RawPairs, weights: Weights) -> Self {
        let settings = Source { file: label.to_owned(), kind: CheckpointKind::Gguf, values: metadata, allowances: Vec::new() };
        Self { path, label: label.to_owned(), settings: Arc::new(settings), pairs, weights, folder: None }
    }

    /// The format.
    #[must_use]
    pub fn kind(&self) -> CheckpointKind {
        self.settings.kind
    }

    /// The file or folder; `None` for a model in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The model as messages name it.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// A fresh strict reader over the settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings::new(Arc::clone(&self.settings))
    }

    /// The metadata of a GGUF file in its order: every key with its whole pair (key, type and value) as it lies in the file, for
    /// whoever writes the file again. None for a folder.
    pub fn gguf_pairs(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.pairs.iter().map(|(key, pair)| (key.as_str(), &**pair))
    }

    /// The files of the tokenizer and its neighbours.
    ///
    /// # Errors
    ///
    /// Where one of them is damaged, or GGUF metadata about the tokenizer contradict each other or hold a key that nothing reads.
    pub fn tokenizer_source(&self) -> Result<TokenizerSource, CheckpointError> {
        match &self.folder {
            Some(folder) => tokenizer_source::from_folder(folder, &self.settings()),
            None => tokenizer_source::from_gguf(&self.settings()),
        }
    }

    /// A JSON file that lies beside the settings of a folder, as `modules.json` or `1_Pooling/config.json`; `None` where there is none of
    /// this name, and for a GGUF file.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or is no JSON.
    pub fn json_beside(&self, name: &str) -> Result<Option<serde_json::Value>, CheckpointError> {
        self.folder.as_ref().map_or(Ok(None), |folder| folder.json(name))
    }

    /// Names of all tensors in alphabetical order.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.weights.tensors.keys().map(String::as_str)
    }

    /// Whether there is a tensor of this name.
    #[must_use]
    pub fn contains_tensor(&self, name: &str) -> bool {
        self.weights.tensors.contains_key(name)
    }

    /// The shape of a tensor, slowest axis first, also where its storage type cannot be read.
    #[must_use]
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.weights.tensors.get(name).map(|tensor| tensor.shape.as_slice())
    }

    /// The name of a tensor's storage type, also where it cannot be read.
    #[must_use]
    pub fn storage_name(&self, name: &str) -> Option<&'static str> {
        self.weights.tensors.get(name).map(|tensor| tensor.stored_as.name())
    }

    /// The tensor of this name, or `None` where there is none.
    ///
    /// # Errors
    ///
    /// Where its storage type is known to the format but not read here (`F64`, `IQ4_XS`, …).
    pub fn tensor(&self, name: &str) -> Result<Option<StoredTensor>, CheckpointError> {
        self.weights.tensors.get(name).map(|tensor| self.stored(name, tensor)).transpose()
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// Where there is none (with the name that is spelt most like it), or its storage type is not read here.
    pub fn require_tensor(&self, name: &str) -> Result<StoredTensor, CheckpointError> {
        self.tensor(name)?.ok_or_else(|| {
            let likeness = |other: &&str| strsim::normalized_levenshtein(other, name);
            let nearest = self.tensor_names().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let found = match nearest {
                Some(nearest) => format!("{} tensors without it; the nearest name is `{}`", self.weights.tensors.len(), clip(nearest)),
                None => "no tensors at all".to_owned(),
            };
            CheckpointError::NotFound(Box::new(Fault {
                file: self.label.clone(),
                place: Place::Tensor(name.to_owned()),
                wanted: "a tensor of this name".to_owned(),
                found,
                remedy: "the file may be of another architecture than its settings say, or incomplete".to_owned(),
            }))
        })
    }

    fn stored(&self, name: &str, tensor: &Announced) -> Result<StoredTensor, CheckpointError> {
        let file = match &self.folder {
            Some(folder) => folder.label(&self.weights.files[tensor.file].0),
            None => self.weights.files[tensor.file].0.clone(),
        };
        match tensor.stored_as {
            StoredAs::Read(storage) => {
                Ok(StoredTensor { name: name.to_owned(), storage, shape: tensor.shape.clone(), bytes: tensor.bytes.clone(), file })
            }
            StoredAs::NotRead(found) => Err(CheckpointError::Unsupported(Box::new(Fault {
                file,
                place: Place::Tensor(name.to_owned()),
                wanted: format!("one of {}", readable(self.kind())),
                found: found.to_owned(),
                remedy: "save or quantise the model in one of these".to_owned(),
            }))),
        }
    }

    /// Bytes of all tensors.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.weights.tensors.values().map(|tensor| tensor.bytes.len() as u64).sum()
    }

    /// What is stored how, the largest share first.
    #[must_use]
    pub fn storage_shares(&self) -> Vec<StorageShare> {
        let mut shares: BTreeMap<&str, StorageShare> = BTreeMap::new();
        for tensor in self.weights.tensors.values() {
            let share = shares.entry(tensor.stored_as.name()).or_insert_with(|| StorageShare {
                storage: tensor.stored_as.name().to_owned(),
                readable: matches!(tensor.stored_as, StoredAs::Read(_)),
                tensors: 0,
                numbers: 0,
                bytes: 0,
            });
            share.tensors += 1;
            share.numbers += tensor.shape.iter().product::<usize>() as u64;
            share.bytes += tensor.bytes.len() as u64;
        }
        let mut shares: Vec<StorageShare> = shares.into_values().collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        shares
    }

    /// BLAKE3 of the weight files, as 64 hexadecimal digits: the model's identity in a run record.
    ///
    /// For a GGUF file this is what `b3sum` prints for it; for a folder, of its weight files joined in alphabetical order. Reads
    /// every byte of the weights.
    #[must_use]
    pub fn content_hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (_, bytes) in &self.weights.files {
            hasher.update(bytes);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// BLAKE3 of everything beside the weights that can change an answer (settings, tokenizer, templates), as 64 hexadecimal
    /// digits: names and contents of these files. A GGUF file holds them itself, so there it equals [`Checkpoint::content_hash`].
    ///
    /// # Errors
    ///
    /// Where a file cannot be read.
    pub fn settings_hash(&self) -> Result<String, CheckpointError> {
        let Some(folder) = &self.folder else { return Ok(self.content_hash()) };
        let mut hasher = blake3::Hasher::new();
        for name in tokenizer_source::files_beside_weights(folder)? {
            if let Some(bytes) = folder.get(&name)? {
                hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
                hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
            }
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// The name of the only GGUF file of a folder; `None` where it has none.
fn only_gguf(path: &Path, folder: &Folder) -> Result<Option<String>, CheckpointError> {
    let is_gguf = |name: &String| Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    let mut files = gguf::parts::first_parts(&folder.names(None)?.into_iter().filter(is_gguf).collect::<Vec<_>>());
    if files.len() > 1 {
        return Err(CheckpointError::NotFound(Box::new(Fault {
            file: path.display().to_string(),
            place: Place::Whole,
            wanted: "config.json, or one GGUF file".to_owned(),
            found: format!("{} GGUF files: {}", files.len(), clip(&files.join(", "))),
            remedy: "give the path of one of them".to_owned(),
        })));
    }
    Ok(files.pop())
}

fn readable(kind: CheckpointKind) -> String {
    let types = match kind {
        CheckpointKind::HuggingFace => &StorageType::ALL[..3],
        CheckpointKind::Gguf => &StorageType::ALL[..],
    };
    types.iter().map(|storage| storage.name()).collect::<Vec<_>>().join(", ")
}
