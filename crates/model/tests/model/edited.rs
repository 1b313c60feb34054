//! A tiny model's files in memory, to be changed before they are opened.

use std::collections::BTreeMap;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::Kernels;
use glassbox_model::{Encoder, Model, ModelError};
use glassbox_tensor::Bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value};

use crate::tiny::folder;

/// A folder's settings and tensors.
pub(crate) struct Edited {
    pub(crate) settings: Map<String, Value>,
    pub(crate) tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)>,
}

impl Edited {
    pub(crate) fn of(name: &str) -> Self {
        let settings = std::fs::read(folder(name).join("config.json")).expect("the fixture is committed");
        let weights = std::fs::read(folder(name).join("model.safetensors")).expect("the fixture is committed");
        let tensors = SafeTensors::deserialize(&weights).expect("the fixture is sound");
        let tensors = tensors.tensors().into_iter().map(|(name, tensor)| (name, (tensor.shape().to_vec(), tensor.data().to_vec())));
        Self { settings: serde_json::from_slice(&settings).expect("the fixture is sound"), tensors: tensors.collect() }
    }

    /// Sets a key of `config.json`; `"null"` keeps the key, with null.
    pub(crate) fn set(mut self, key: &str, json: &str) -> Self {
        self.settings.insert(key.to_owned(), serde_json::from_str(json).expect("the test writes JSON"));
        self
    }

    pub(crate) fn unset(mut self, key: &str) -> Self {
        self.settings.remove(key);
        self
    }

    pub(crate) fn without(mut self, tensor: &str) -> Self {
        self.tensors.remove(tensor).expect("the fixture has it");
        self
    }

    pub(crate) fn with(mut self, tensor: &str, shape: &[usize], value: f32) -> Self {
        let numbers = shape.iter().product();
        let bytes = std::iter::repeat_n(value.to_le_bytes(), numbers).flatten().collect();
        self.tensors.insert(tensor.to_owned(), (shape.to_vec(), bytes));
        self
    }

    pub(crate) fn copied(mut self, from: &str, to: &str) -> Self {
        let tensor = self.tensors[from].clone();
        self.tensors.insert(to.to_owned(), tensor);
        self
    }

    pub(crate) fn renamed(mut self, rename: impl Fn(&str) -> String) -> Self {
        self.tensors = self.tensors.into_iter().map(|(name, tensor)| (rename(&name), tensor)).collect();
        self
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let views = self.tensors.iter().map(|(name, (shape, bytes))| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("the test keeps shapes and bytes together"))
        });
        let weights = safetensors::serialize(views, None).expect("the tensors are sound");
        let settings = serde_json::to_vec(&self.settings).expect("JSON of JSON");
        let files = vec![("config.json".to_owned(), Bytes::new(settings)), ("model.safetensors".to_owned(), Bytes::new(weights))];
        Checkpoint::from_parts("tiny", files).expect("the files are sound")
    }

    pub(crate) fn try_open(&self) -> Result<Model, ModelError> {
        Model::open(&self.checkpoint(), Kernels::Fast)
    }

    pub(crate) fn try_open_encoder(&self) -> Result<Encoder, ModelError> {
        Encoder::open(&self.checkpoint(), Kernels::Fast)
    }

    pub(crate) fn open(&self) -> Model {
        self.try_open().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The message with which the model is refused.
    pub(crate) fn refusal(&self) -> String {
        self.try_open().expect_err("the model must be refused").to_string()
    }
}

/// The twin of a fixture with some of its bytes replaced, which as a whole keep their number.
pub(crate) fn twin_with_bytes(name: &str, replaced: &[(Vec<u8>, Vec<u8>)]) -> Result<Model, ModelError> {
    let mut bytes = std::fs::read(folder(name).join("model.gguf")).expect("the fixture is committed");
    let whole = bytes.len();
    for (old, new) in replaced {
        let at = bytes.windows(old.len()).position(|window| window == old).expect("the bytes are in the file");
        bytes.splice(at..at + old.len(), new.iter().copied());
    }
    assert_eq!(bytes.len(), whole, "a GGUF file keeps its offsets only where lengths stay");
    let checkpoint = Checkpoint::from_gguf_bytes("tiny.gguf", Bytes::new(bytes)).expect("the file is sound");
    Model::open(&checkpoint, Kernels::Fast)
}

/// The twin of a fixture with some of its bytes replaced, everywhere.
pub(crate) fn twin_with(name: &str, replaced: &[(&str, &str)]) -> Result<Model, ModelError> {
    let mut bytes = std::fs::read(folder(name).join("model.gguf")).expect("the fixture is committed");
    for (old, new) in replaced {
        assert_eq!(old.len(), new.len(), "a GGUF file keeps its offsets only where lengths stay");
        let places: Vec<usize> =
            bytes.windows(old.len()).enumerate().filter(|(_, window)| *window == old.as_bytes()).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "`{old}` is in the file");
        for at in places {
            bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
        }
    }
    let checkpoint = Checkpoint::from_gguf_bytes("tiny.gguf", Bytes::new(bytes)).expect("the file is sound");
    Model::open(&checkpoint, Kernels::Fast)
}
