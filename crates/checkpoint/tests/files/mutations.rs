//! Valid files, changed at random from fixed seeds: whatever comes out, nothing panics, no two tensors share bytes, and every error names
//! its file.

use glassbox_checkpoint::{Checkpoint, CheckpointError};
use glassbox_tensor::Bytes;
use glassbox_testkit::{mutations, seeds};

use crate::write::{open_folder, open_gguf};

/// Uses everything a checkpoint offers; only errors may come of it. Tells whether it was opened.
fn use_all(opened: Result<Checkpoint, CheckpointError>) -> bool {
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let message = error.to_string();
            assert!(["model.gguf", "folder", "/"].iter().any(|label| message.starts_with(label)), "{message}");
            assert!(message.len() < 2_000, "a message of {} bytes", message.len());
            return false;
        }
    };
    let mut ranges = Vec::new();
    let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
    for name in names {
        if let Ok(tensor) = checkpoint.require_tensor(&name) {
            assert_eq!(tensor.values().expect("an opened tensor decodes").len(), tensor.shape.iter().product::<usize>());
            ranges.push(tensor.bytes.as_ptr_range());
        }
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "two tensors share bytes");
    let settings = checkpoint.settings();
    for key in ["general.architecture", "llama.block_count", "rope.scale", "hidden_size", "rope_scaling"] {
        let _ = (settings.optional_str(key), settings.optional_usize(key), settings.optional_f64(key), settings.section(key));
        let _ = (settings.optional_str_list(key), settings.optional_usize_per_layer(key, 2));
    }
    let _ = (settings.finish(), checkpoint.tokenizer_source(), checkpoint.storage_shares(), checkpoint.content_hash());
    true
}

/// Every seed opens as it is; of `count` changed ones at least a hundredth do, or they would reach nothing.
fn check(target: &str, count: usize, open: impl Fn(&[u8]) -> Result<Checkpoint, CheckpointError>, refused: &[&str]) {
    for (name, seed) in seeds(target).into_iter().filter(|(name, _)| !refused.contains(&name.as_str())) {
        open(&seed).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let opened = mutations(target, count).filter(|bytes| use_all(open(bytes))).count();
    assert!(opened > count / 100, "only {opened} of {count} changed files of {target} open");
}

#[test]
fn a_changed_gguf_file_is_read_or_refused() {
    check("gguf", 3_000, open_gguf, &["part"]);
}

#[test]
fn a_changed_safetensors_file_is_read_or_refused() {
    check("safetensors", 3_000, |bytes| open_folder(&[("config.json", b"{}"), ("model.safetensors", bytes)]), &[]);
}

#[test]
fn a_changed_file_of_a_folder_in_shards_is_read_or_refused() {
    let mut whole = seeds("folder");
    whole.sort_by_key(|(_, seed)| seed[0]);
    check(
        "folder",
        2_000,
        |bytes| {
            let (choice, changed) = bytes.split_first().unwrap_or((&0, &[]));
            let chosen = usize::from(*choice) % whole.len();
            let content = |index: usize, seed: &[u8]| Bytes::new(if index == chosen { changed.to_vec() } else { seed[1..].to_vec() });
            let files = whole.iter().enumerate().map(|(index, (name, seed))| (name.clone(), content(index, seed)));
            Checkpoint::from_parts("folder", files.collect())
        },
        &[],
    );
}

#[test]
fn a_changed_part_beside_the_other_is_read_or_refused() {
    const NAMES: [&str; 2] = ["model-00001-of-00002.gguf", "model-00002-of-00002.gguf"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut whole = vec![Vec::new(); NAMES.len()];
    for (_, seed) in seeds("parts") {
        let (choice, part) = seed.split_first().expect("a seed begins with its choice");
        whole[usize::from(*choice)] = part.to_vec();
    }
    let place = |part: usize, bytes: &[u8]| std::fs::write(folder.path().join(NAMES[part]), bytes).expect("written");
    let open = |part: usize| Checkpoint::open(folder.path().join(NAMES[part]));
    (0..NAMES.len()).for_each(|part| place(part, &whole[part]));
    let checkpoint = open(0).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(checkpoint.tensor_names().count(), 12, "the seeds are one model");
    let mut read = 0;
    for bytes in mutations("parts", 2_000) {
        let Some((choice, changed)) = bytes.split_first() else { continue };
        let part = usize::from(*choice) % NAMES.len();
        place(part, changed);
        read += usize::from(use_all(open(part)));
        place(part, &whole[part]);
    }
    assert!(read > 200, "only {read} of the changed parts can be read: the changes are too coarse to reach anything");
}
