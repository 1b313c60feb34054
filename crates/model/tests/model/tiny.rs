//! The tiny models of `fixtures/tiny`, opened, and an observer that walks them along their golden activations.

use std::path::PathBuf;

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_tensor::View;
use glassbox_testkit::{Closeness, Divergence, Golden, GoldenWalk};

/// Decoders by name.
pub(crate) fn all() -> Vec<String> {
    fixtures().into_iter().filter(|name| !name.starts_with("bert")).collect()
}

/// Decoders and encoders by name.
pub(crate) fn fixtures() -> Vec<String> {
    let folders = std::fs::read_dir(folder("")).expect("the fixtures are committed").filter_map(Result::ok);
    let mut names: Vec<String> = folders.filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.retain(|name| folder(name).join("golden.safetensors").exists());
    names.sort();
    names
}

/// Those that exist as GGUF too.
pub(crate) fn with_twin() -> Vec<String> {
    all().into_iter().filter(|name| folder(name).join("model.gguf").exists()).collect()
}

/// Bytes that a cache of a test may take.
pub(crate) const LIMIT: u64 = 1 << 28;

pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny").join(name)
}

pub(crate) fn golden(name: &str) -> Golden {
    Golden::open(&folder(name)).expect("the fixture is committed")
}

pub(crate) fn open(name: &str, kernels: Kernels) -> Model {
    let checkpoint = Checkpoint::open(folder(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Model::open(&checkpoint, kernels).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn open_twin(name: &str, kernels: Kernels) -> Model {
    let checkpoint = Checkpoint::open(folder(name).join("model.gguf")).unwrap_or_else(|error| panic!("{name}: {error}"));
    Model::open(&checkpoint, kernels).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Logits of all rows, in one pass from an empty cache.
pub(crate) fn logits(model: &Model, ids: &[u32]) -> Vec<f32> {
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    model.forward(ids, &mut cache, Rows::All, &Workers::new(1)).expect("the ids are in the vocabulary")
}

/// Sees every site and compares it.
pub(crate) struct Walker<'g>(pub(crate) GoldenWalk<'g>);

impl Observer for Walker<'_> {
    /// Golden files have the weights, not their statistics; those are held against the weights (`statistics.rs`).
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Statistics { Interest::Nothing } else { Interest::See }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        self.0.see(&at.to_string(), at.first_row, value);
    }
}

/// Walks a pass, in pieces of `piece` tokens, along the golden activations.
pub(crate) fn walk(model: &Model, golden: &Golden, piece: usize) -> Result<Closeness, Divergence> {
    let mut cache = model.new_cache(golden.ids().len(), LIMIT).expect("tiny");
    let mut walker = Walker(GoldenWalk::new(golden));
    for ids in golden.ids().chunks(piece) {
        model.forward_observed(ids, &mut cache, Rows::All, &Workers::new(1), &mut walker).expect("the ids are in the vocabulary");
    }
    walker.0.finish()
}
