//! The tiny models of `fixtures/tiny`, with tables of learned positions long enough for the prompt.

use std::path::{Path, PathBuf};

use glassbox_checkpoint::{Checkpoint, CheckpointError};
use glassbox_mechanisms::Kernels;
use glassbox_model::{Encoder, Model, ModelError};
use glassbox_tensor::Bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value};

use crate::checker::{DECODED, PROMPT};

/// Every decoder, by name, in alphabetical order.
pub(crate) fn all(kernels: Kernels) -> Vec<(String, Model)> {
    let decoder = |(name, checkpoint): (String, Checkpoint)| match Model::open(&checkpoint, kernels) {
        Err(ModelError::NoDecoder { .. }) => None,
        model => {
            let model = model.unwrap_or_else(|error| panic!("{name}: {error}"));
            Some((name, model))
        }
    };
    fixtures().into_iter().filter_map(decoder).collect()
}

/// Every encoder, by name; it reads its text at once, and has no cache.
pub(crate) fn encoders(kernels: Kernels) -> Vec<(String, Encoder)> {
    let encoder = |(name, checkpoint): (String, Checkpoint)| match Encoder::open(&checkpoint, kernels) {
        Err(ModelError::NoEncoder { .. }) => None,
        encoder => {
            let encoder = encoder.unwrap_or_else(|error| panic!("{name}: {error}"));
            Some((name, encoder))
        }
    };
    fixtures().into_iter().filter_map(encoder).collect()
}

fn fixtures() -> Vec<(String, Checkpoint)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny");
    let folders = std::fs::read_dir(root).expect("the fixtures are committed").filter_map(Result::ok).map(|folder| folder.path());
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join("model.safetensors").exists()).collect();
    folders.sort();
    let named = |folder: PathBuf| {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let checkpoint = open(&folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, checkpoint)
    };
    folders.into_iter().map(named).collect()
}

/// The fixture; where it has a table of learned positions that is shorter than the prompt, with the table repeated until it is long enough.
fn open(folder: &Path) -> Result<Checkpoint, CheckpointError> {
    let weights = std::fs::read(folder.join("model.safetensors")).expect("the fixture is committed");
    let tensors = SafeTensors::deserialize(&weights).expect("the fixture is sound").tensors();
    let is_table = |name: &str| name.contains("position_embeddings") || name.contains("wpe");
    let positions = match tensors.iter().find(|(name, _)| is_table(name)) {
        Some((_, table)) if table.shape()[0] < PROMPT + DECODED => table.shape()[0],
        _ => return Checkpoint::open(folder),
    };
    let repeats = (PROMPT + DECODED).div_ceil(positions);
    let settings = std::fs::read(folder.join("config.json")).expect("the fixture is committed");
    let mut settings: Map<String, Value> = serde_json::from_slice(&settings).expect("the fixture is sound");
    for (key, value) in &mut settings {
        if value.as_u64() == Some(positions as u64) && (key.contains("position") || key == "n_ctx") {
            *value = (positions * repeats).into();
        }
    }
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, tensor)| {
            let (mut shape, mut bytes) = (tensor.shape().to_vec(), tensor.data().to_vec());
            if is_table(&name) {
                shape[0] *= repeats;
                bytes = bytes.repeat(repeats);
            }
            (name, shape, bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("whole rows")));
    let weights = safetensors::serialize(views, None).expect("the tensors are sound");
    let settings = serde_json::to_vec(&settings).expect("JSON of JSON");
    let files = vec![("config.json".to_owned(), Bytes::new(settings)), ("model.safetensors".to_owned(), Bytes::new(weights))];
    Checkpoint::from_parts("tiny", files)
}
