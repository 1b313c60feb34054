//! Valid files, changed at random from fixed seeds: whatever comes out, nothing panics and every error names its file.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use glassbox_checkpoint::{Checkpoint, CheckpointError};

use crate::write::{array, f32s, gguf, info, kv, kv_bool, kv_f32, kv_text, kv_texts, kv_u32, open_folder, open_gguf, safetensors, text};

/// Changes to a file: bytes set, 8-byte words set to numbers that overflow, ranges removed or doubled.
#[derive(Clone, Debug)]
enum Change {
    Byte(usize, u8),
    Word(usize, u64),
    Remove(usize, usize),
    Double(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let words =
        prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(1 << 63), Just(1 << 62), Just(1 << 32), Just(1 << 31), any::<u64>(), 0..64_u64];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), words).prop_map(|(at, word)| Change::Word(at, word)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, len)| Change::Remove(at, len)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, len)| Change::Double(at, len)),
    ]
}

fn apply(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let len = bytes.len().max(1);
        match *change {
            Change::Byte(at, byte) => {
                if let Some(place) = bytes.get_mut(at % len) {
                    *place = byte;
                }
            }
            Change::Word(at, word) => {
                let at = at % len;
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            Change::Remove(at, count) => {
                let at = at % len;
                bytes.drain(at.min(bytes.len())..(at + count).min(bytes.len()));
            }
            Change::Double(at, count) => {
                let at = (at % len).min(bytes.len());
                let copy = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

/// Uses everything a checkpoint offers; only errors may come of it.
fn use_all(opened: Result<Checkpoint, CheckpointError>) {
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("model.gguf") || message.starts_with("folder"), "{message}");
            assert!(message.len() < 2_000, "a message of {} bytes", message.len());
            return;
        }
    };
    let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
    for name in names {
        if let Ok(tensor) = checkpoint.require_tensor(&name) {
            assert_eq!(tensor.values().expect("an opened tensor decodes").len(), tensor.shape.iter().product::<usize>());
        }
    }
    let settings = checkpoint.settings();
    for key in ["general.architecture", "llama.block_count", "rope.scale", "hidden_size", "rope_scaling"] {
        let _ = (settings.optional_str(key), settings.optional_usize(key), settings.optional_f64(key), settings.section(key));
        let _ = (settings.optional_str_list(key), settings.optional_usize_per_layer(key, 2));
    }
    let _ = (settings.finish(), checkpoint.tokenizer_source(), checkpoint.storage_shares(), checkpoint.content_hash());
}

fn mutate(file: &[u8], cases: u32, open: impl Fn(Vec<u8>) -> Result<Checkpoint, CheckpointError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let changes = proptest::collection::vec(change(), 1..4);
    let run = runner.run(&changes, |changes| {
        use_all(open(apply(file.to_vec(), &changes)));
        Ok(())
    });
    run.expect("no mutation breaks an invariant");
}

#[test]
fn a_changed_gguf_file_is_read_or_refused() {
    let keys = [
        kv_text("general.architecture", "llama"),
        kv_u32("llama.block_count", 2),
        kv_f32("rope.scale", 0.5),
        kv_bool("tokenizer.ggml.add_bos_token", true),
        kv_text("tokenizer.ggml.model", "llama"),
        kv_texts("tokenizer.ggml.tokens", &["<unk>", "a", "b"]),
        kv("tokenizer.ggml.scores", 9, &array(6, 3, &f32s(&[0.0, -1.0, -2.0]))),
        kv("nested", 9, &array(9, 1, &array(8, 1, &text("x")))),
    ];
    let file = gguf(&keys, &[info("a", &[4, 2], 0, 0), info("b", &[32], 2, 32), info("c", &[2], 1, 64)], 32, &[0x3C; 68]);
    mutate(&file, 3_000, |bytes| open_gguf(&bytes));
}

#[test]
fn a_changed_safetensors_file_is_read_or_refused() {
    let header = r#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}}"#;
    mutate(&safetensors(header, &[0x3C; 12]), 3_000, |bytes| open_folder(&[("config.json", b"{}"), ("model.safetensors", &bytes)]));
}

#[test]
fn a_changed_configuration_is_read_or_refused() {
    let config = br#"{"hidden_size": 64, "rope_scaling": {"type": "linear", "factor": 2.0}, "eos_token_id": [1, 2], "head_dim": null}"#;
    let weights = safetensors("{}", b"");
    mutate(config, 2_000, |bytes| open_folder(&[("config.json", &bytes), ("model.safetensors", &weights), ("tokenizer.json", b"{}")]));
}
