use std::fs;
use std::path::{Path, PathBuf};

use glassbox_tensor::Bytes;

use crate::mapped::map;
use crate::{CheckpointError, json};

/// Where the files of a model come from: a folder on disk, or memory (a model embedded in a program).
#[derive(Clone, Debug)]
pub(crate) enum Folder {
    Disk(PathBuf),
    Memory { label: String, files: Vec<(String, Bytes)> },
}

impl Folder {
    /// The name of one file as messages give it.
    pub(crate) fn label(&self, name: &str) -> String {
        match self {
            Self::Disk(folder) => folder.join(name).display().to_string(),
            Self::Memory { label, .. } => format!("{label}/{name}"),
        }
    }

    /// Whether a file of this name is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Disk(folder) => folder.join(name).is_file(),
            Self::Memory { files, .. } => files.iter().any(|(file, _)| file == name),
        }
    }

    /// The bytes of one file; `None` where there is none of this name. Weights are mapped, everything else is read.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Bytes>, CheckpointError> {
        match self {
            Self::Disk(_) if !self.has(name) => Ok(None),
            Self::Disk(folder) if name.ends_with(".safetensors") => map(&folder.join(name)).map(Some),
            Self::Disk(folder) => {
                let path = folder.join(name);
                let bytes = fs::read(&path).map_err(|source| CheckpointError::io(&path, "read it", source))?;
                Ok(Some(Bytes::new(bytes)))
            }
            Self::Memory { files, .. } => Ok(files.iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes.clone())),
        }
    }

    /// One file as strict JSON; `None` where there is none of this name.
    pub(crate) fn json(&self, name: &str) -> Result<Option<serde_json::Value>, CheckpointError> {
        self.get(name)?.map(|bytes| json::parse(&self.label(name), &bytes)).transpose()
    }

    /// The names of the files directly inside, and inside `subfolder` as `subfolder/name`, in alphabetical order.
    pub(crate) fn names(&self, subfolder: Option<&str>) -> Result<Vec<String>, CheckpointError> {
        let mut names = match self {
            Self::Disk(folder) => {
                let mut names = names_on_disk(folder)?;
                if let Some(subfolder) = subfolder
                    && folder.join(subfolder).is_dir()
                {
                    names.extend(names_on_disk(&folder.join(subfolder))?.into_iter().map(|name| format!("{subfolder}/{name}")));
                }
                names
            }
            Self::Memory { files, .. } => files.iter().map(|(name, _)| name.clone()).collect(),
        };
        names.sort_unstable();
        Ok(names)
    }
}

fn names_on_disk(folder: &Path) -> Result<Vec<String>, CheckpointError> {
    let list = || {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.path().is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    };
    list().map_err(|source| CheckpointError::io(folder, "list it", source))
}
