//! The weights of a Hugging Face folder: one safetensors file, or several with an index.

use std::collections::BTreeMap;

use glassbox_tensor::Bytes;

use crate::error::{CheckpointError, Fault, Place, clip};
use crate::folder::Folder;
use crate::safetensors_file;
use crate::tensor::Announced;

pub(crate) const SINGLE: &str = "model.safetensors";
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// The weight files of one model and the tensors in them.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// Name and bytes of each file, in alphabetical order.
    pub(crate) files: Vec<(String, Bytes)>,
    pub(crate) tensors: BTreeMap<String, Announced>,
}

/// Opens the weights of `folder`.
///
/// # Errors
///
/// Where there are none, both kinds at once, or where index and shards do not tell exactly the same.
pub(crate) fn read(folder: &Folder) -> Result<Weights, CheckpointError> {
    match (folder.has(SINGLE), folder.has(INDEX)) {
        (true, true) => Err(inconsistent(
            folder,
            INDEX,
            Place::Whole,
            format!("either {SINGLE} or an index with its shards"),
            "both".to_owned(),
            "remove the one that is left from an earlier save",
        )),
        (true, false) => single(folder),
        (false, true) => sharded(folder),
        (false, false) => Err(no_weights(folder)),
    }
}

fn single(folder: &Folder) -> Result<Weights, CheckpointError> {
    let bytes = file(folder, SINGLE)?;
    let tensors = safetensors_file::read(&folder.label(SINGLE), &bytes, 0)?;
    Ok(Weights { files: vec![(SINGLE.to_owned(), bytes)], tensors })
}

fn sharded(folder: &Folder) -> Result<Weights, CheckpointError> {
    let map = weight_map(folder)?;
    let mut shards: Vec<&String> = map.values().collect();
    shards.sort_unstable();
    shards.dedup();
    let mut weights = Weights::default();
    for (index, shard) in shards.into_iter().enumerate() {
        let bytes = file(folder, shard)?;
        let tensors = safetensors_file::read(&folder.label(shard), &bytes, index)?;
        weights.files.push((shard.clone(), bytes));
        for (name, tensor) in tensors {
            let place = Place::Tensor(name.clone());
            match map.get(&name) {
                Some(home) if home == shard => {}
                Some(home) => {
                    let found = format!("it in {shard}");
                    return Err(inconsistent(folder, INDEX, place, format!("the tensor in {home}, as the index says"), found, SAVE_AGAIN));
                }
                None => {
                    let found = "a tensor that the index does not list".to_owned();
                    return Err(inconsistent(folder, shard, place, format!("the tensors that {INDEX} lists"), found, SAVE_AGAIN));
                }
            }
            weights.tensors.insert(name, tensor);
        }
    }
    match map.iter().find(|(name, _)| !weights.tensors.contains_key(*name)) {
        Some((name, shard)) => {
            let wanted = format!("the tensor in {shard}, as the index says");
            Err(inconsistent(folder, INDEX, Place::Tensor(name.clone()), wanted, "no such tensor there".to_owned(), SAVE_AGAIN))
        }
        None => Ok(weights),
    }
}

const SAVE_AGAIN: &str = "index and shards are from different saves: download or save all of them again";

/// The index: tensor name to shard file name.
fn weight_map(folder: &Folder) -> Result<BTreeMap<String, String>, CheckpointError> {
    const KEY: &str = "weight_map";
    let index = folder.json(INDEX)?.unwrap_or_default();
    let wrong = |place: Place, wanted: &str, found: String| {
        inconsistent(folder, INDEX, place, wanted.to_owned(), found, "download the index again")
    };
    let Some(map) = index.get(KEY).and_then(serde_json::Value::as_object) else {
        return Err(wrong(Place::Key(KEY.to_owned()), "an object from tensor names to file names", "no such object".to_owned()));
    };
    let mut shards = BTreeMap::new();
    for (name, shard) in map {
        let plain = shard.as_str().filter(|shard| !shard.contains(['/', '\\', '\0']) && !shard.is_empty() && !shard.starts_with('.'));
        let Some(shard) = plain else {
            let place = Place::Key(format!("{KEY}.{name}"));
            return Err(wrong(place, "the name of a file in the same folder", format!("`{}`", clip(&shard.to_string()))));
        };
        shards.insert(name.clone(), shard.to_owned());
    }
    Ok(shards)
}

/// The shards that the index names and the folder lacks, without opening any; for listing a cache.
pub(crate) fn missing_shards(folder: &Folder) -> Result<Vec<String>, CheckpointError> {
    let map = weight_map(folder)?;
    let mut missing: Vec<String> = map.into_values().filter(|shard| !folder.has(shard)).collect();
    missing.sort_unstable();
    missing.dedup();
    Ok(missing)
}

fn file(folder: &Folder, name: &str) -> Result<Bytes, CheckpointError> {
    folder.get(name)?.ok_or_else(|| {
        CheckpointError::NotFound(Box::new(Fault {
            file: folder.label(name),
            place: Place::Whole,
            wanted: format!("the weight file that {INDEX} names"),
            found: "no such file".to_owned(),
            remedy: "download the missing file into the folder".to_owned(),
        }))
    })
}

fn no_weights(folder: &Folder) -> CheckpointError {
    const PICKLES: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
    let pickle = PICKLES.into_iter().find(|name| folder.has(name));
    let fault = |found: String, remedy: &str| {
        Box::new(Fault {
            file: folder.label(SINGLE),
            place: Place::Whole,
            wanted: format!("{SINGLE}, or {INDEX} with its shards"),
            found,
            remedy: remedy.to_owned(),
        })
    };
    match pickle {
        Some(name) => CheckpointError::Unsupported(fault(
            format!("{name}, a Python pickle"),
            "load it in `transformers` and save it again: `save_pretrained` writes safetensors",
        )),
        None => CheckpointError::NotFound(fault("neither".to_owned(), "download the weights into the folder")),
    }
}

fn inconsistent(folder: &Folder, file: &str, place: Place, wanted: String, found: String, remedy: &str) -> CheckpointError {
    CheckpointError::Malformed(Box::new(Fault { file: folder.label(file), place, wanted, found, remedy: remedy.to_owned() }))
}
