//! The tiny models of `fixtures/tiny`, with tables of learned positions long enough for the prompt.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::Kernels;
use glassbox_model::blueprint::AddedPositions;
use glassbox_model::{Model, ModelError};
use glassbox_tensor::Bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value};

use crate::checker::{DECODED, PROMPT};

/// Every decoder, by name, in alphabetical order; an encoder reads its text at once, and has no cache.
pub(crate) fn all(kernels: Kernels) -> Vec<(String, Model)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny");
    let folders = std::fs::read_dir(root).expect("the fixtures are committed").filter_map(Result::ok).map(|folder| folder.path());
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join("model.safetensors").exists()).collect();
    folders.sort();
    let open = |folder: &PathBuf| {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let checkpoint = Checkpoint::open(folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        let model = match Model::open(&checkpoint, kernels) {
            Err(ModelError::NoDecoder { .. }) => return None,
            model => model.unwrap_or_else(|error| panic!("{name}: {error}")),
        };
        let model = match model.blueprint().added_positions {
            AddedPositions::Learned { positions } if positions < PROMPT + DECODED => with_more_positions(folder, positions, kernels),
            _ => model,
        };
        Some((name, model))
    };
    folders.iter().filter_map(open).collect()
}

/// The model with its table of positions repeated until it is long enough.
fn with_more_positions(folder: &std::path::Path, positions: usize, kernels: Kernels) -> Model {
    let repeats = (PROMPT + DECODED).div_ceil(positions);
    let settings = std::fs::read(folder.join("config.json")).expect("the fixture is committed");
    let mut settings: Map<String, Value> = serde_json::from_slice(&settings).expect("the fixture is sound");
    for (key, value) in &mut settings {
        if value.as_u64() == Some(positions as u64) && (key.contains("position") || key == "n_ctx") {
            *value = (positions * repeats).into();
        }
    }
    let weights = std::fs::read(folder.join("model.safetensors")).expect("the fixture is committed");
    let tensors = SafeTensors::deserialize(&weights).expect("the fixture is sound").tensors();
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, tensor)| {
            let (mut shape, mut bytes) = (tensor.shape().to_vec(), tensor.data().to_vec());
            if shape.first() == Some(&positions) && (name.contains("position") || name.contains("wpe")) {
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
    let checkpoint = Checkpoint::from_parts("tiny", files).expect("the files are sound");
    Model::open(&checkpoint, kernels).unwrap_or_else(|error| panic!("{error}"))
}
