//! The malformed files of `fixtures/malformed`, as they lie on the disk.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use glassbox_checkpoint::{Checkpoint, CheckpointError};

use crate::write::{open_folder, refused};

/// Name, bytes, and the kind of the refusal: `""` where the file is valid.
const FILES: [(&str, usize, &str); 26] = [
    ("g10.gguf", 57, "malformed"),
    ("g12.gguf", 90, "malformed"),
    ("g2.gguf", 32, "malformed"),
    ("g3.gguf", 65, "malformed"),
    ("g4.gguf", 65, "malformed"),
    ("g5.gguf", 89, "malformed"),
    ("g7.gguf", 24, "malformed"),
    ("g8.gguf", 69, "malformed"),
    ("g9.gguf", 57, "unsupported"),
    ("s1.safetensors", 10, "malformed"),
    ("s10.safetensors", 84, ""),
    ("s11.safetensors", 89, "malformed"),
    ("s12.safetensors", 68, "malformed"),
    ("s13.safetensors", 68, ""),
    ("s14.safetensors", 135, "other_format"),
    ("s15.safetensors", 74, "malformed"),
    ("s16.safetensors", 65, ""),
    ("s17.safetensors", 67, "malformed"),
    ("s2.safetensors", 74, "malformed"),
    ("s3.safetensors", 110, "malformed"),
    ("s4.safetensors", 123, "malformed"),
    ("s5.safetensors", 128, "malformed"),
    ("s6.safetensors", 74, "malformed"),
    ("s7.safetensors", 66, "malformed"),
    ("s8.safetensors", 119, ""),
    ("s9.safetensors", 123, "malformed"),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/malformed")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn open_safetensors(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    open_folder(&[("config.json", b"{}"), ("model.safetensors", bytes)])
}

fn open(name: &str) -> Result<Checkpoint, CheckpointError> {
    if name.ends_with(".gguf") { Checkpoint::open(folder().join(name)) } else { open_safetensors(&read(name)) }
}

#[test]
fn every_malformed_file_is_refused_and_every_valid_rarity_is_read() {
    let listed = std::fs::read_dir(folder()).expect("the fixtures are committed").filter_map(Result::ok);
    let mut names: Vec<String> = listed.filter_map(|file| file.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".gguf") || name.ends_with(".safetensors"));
    names.sort();
    assert_eq!(names, FILES.map(|(name, ..)| name), "every file of the folder has its line");
    for (name, bytes, kind) in FILES {
        assert_eq!(read(name).len(), bytes, "{name} is not the file of the report");
        let start = Instant::now();
        let opened = open(name);
        assert!(start.elapsed() < Duration::from_millis(50), "{name} took {:?}", start.elapsed());
        if kind.is_empty() {
            let checkpoint = opened.unwrap_or_else(|error| panic!("{name} is valid: {error}"));
            for tensor in checkpoint.tensor_names() {
                let values = checkpoint.require_tensor(tensor).and_then(|tensor| tensor.values());
                assert!(values.expect("an opened tensor decodes").iter().all(|value| *value == 0.0), "{name}");
            }
        } else {
            let shown = if name.ends_with(".gguf") { name } else { "model.safetensors" };
            refused(opened, kind, &[shown]);
        }
    }
}

#[test]
fn no_cut_of_a_valid_rarity_is_read_and_no_flipped_bit_makes_the_reader_panic() {
    for (name, ..) in FILES.iter().filter(|(.., kind)| kind.is_empty()) {
        let whole = read(name);
        for len in 0..whole.len() {
            assert!(open_safetensors(&whole[..len]).is_err(), "{name} was read when cut to {len} bytes");
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(checkpoint) = open_safetensors(&flipped) {
                for tensor in checkpoint.tensor_names() {
                    let _ = checkpoint.require_tensor(tensor).map(|tensor| tensor.values());
                }
            }
        }
    }
}
