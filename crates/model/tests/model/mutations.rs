//! Settings of every family changed at random from a fixed seed, beside the weights that they had: run or refused, never a panic.

use std::path::{Path, PathBuf};

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Encoder, GgufModel, Model, Rows};
use glassbox_tensor::Bytes;
use glassbox_testkit::{mutations, seeds};

/// The file `name` beside each seed of `target`, in the order of the seeds' first bytes.
fn beside(target: &str, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let tiny: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny");
    let mut files: Vec<(Vec<u8>, Vec<u8>)> = seeds(target)
        .into_iter()
        .map(|(fixture, seed)| (seed, std::fs::read(tiny.join(fixture).join(name)).expect("a seed is named after its fixture")))
        .collect();
    files.sort_by_key(|(seed, _)| seed[0]);
    files
}

/// Two tokens through the model; whether there is one.
fn runs(checkpoint: &Checkpoint) -> bool {
    let workers = Workers::new(1);
    let Ok(model) = Model::open(checkpoint, Kernels::Fast) else {
        return Encoder::open(checkpoint, Kernels::Fast).is_ok_and(|encoder| encoder.encode(&[0, 1], None, &workers).is_ok());
    };
    let Ok(mut cache) = model.new_cache(2, 1 << 20) else { return false };
    model.forward(&[0, 1], &mut cache, Rows::Last, &workers).is_ok()
}

/// Every seed runs as it is, so that its changes reach the readers' last questions. Of `count` changed ones few run: a key that nothing
/// reads is refused.
fn check(target: &str, count: usize, run: impl Fn(&[u8]) -> bool) {
    for (name, seed) in seeds(target) {
        assert!(run(&seed), "{name} does not run as it is");
    }
    let running = mutations(target, count).filter(|bytes| run(bytes)).count();
    assert!(running > 0, "none of {count} changed files of {target} runs");
}

#[test]
fn changed_settings_of_every_family_run_or_are_refused() {
    let weights = beside("config", "model.safetensors");
    check("config", 1_000, |bytes| {
        let Some((choice, config)) = bytes.split_first() else { return false };
        let (_, weights) = &weights[usize::from(*choice) % weights.len()];
        let files =
            [("config.json", config), ("model.safetensors", weights)].map(|(name, bytes)| (name.to_owned(), Bytes::new(bytes.to_vec())));
        let Ok(checkpoint) = Checkpoint::from_parts("folder", files.into()) else { return false };
        drop(GgufModel::of(&checkpoint));
        runs(&checkpoint)
    });
}

#[test]
fn changed_metadata_of_every_family_run_or_are_refused() {
    const ALIGNMENT: usize = 32;
    let files = beside("metadata", "model.gguf");
    check("metadata", 1_000, |bytes| {
        let Some((choice, header)) = bytes.split_first() else { return false };
        let (seed, whole) = &files[usize::from(*choice) % files.len()];
        let mut file = header.to_vec();
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(&whole[(seed.len() - 1).next_multiple_of(ALIGNMENT)..]);
        Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(file)).is_ok_and(|checkpoint| runs(&checkpoint))
    });
}
