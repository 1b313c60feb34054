//! Files as they are written, opened again with the reader of this project.

use std::path::{Path, PathBuf};

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_quantize::{QuantizeError, Summary, Target, quantize};
use glassbox_tensor::{StorageType, encode};
use glassbox_text::{Specials, Tokenizer};

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn open(path: impl AsRef<Path>) -> Checkpoint {
    Checkpoint::open(path).unwrap_or_else(|error| panic!("{error}"))
}

fn written(source: &Checkpoint, target: Target, out: &Path) -> Summary {
    quantize(source, target, out, 2, &mut |_, _, _| ()).unwrap_or_else(|error| panic!("{}: {error}", target.name()))
}

fn logits(checkpoint: &Checkpoint, ids: &[u32]) -> Vec<f32> {
    let model = Model::open(checkpoint, Kernels::Fast).unwrap_or_else(|error| panic!("{error}"));
    let mut cache = model.new_cache(ids.len(), 1 << 28).expect("small");
    model.forward(ids, &mut cache, Rows::All, &Workers::new(1)).expect("ids of the vocabulary")
}

fn values(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    checkpoint.require_tensor(name).and_then(|tensor| tensor.values()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_specimen_in_every_type_is_read_back_with_its_tokenizer_and_the_encoders_bytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = open(repository("specimens/specimen"));
    let tokenizer = Tokenizer::open(&source).expect("whole");
    let text = "<|bos|><|user|>What is the capital of Ilmonia? 3333 中文<|end|><|assistant|>";
    let ids = tokenizer.encode(text, Specials::Parse).expect("encodes");
    let file = |target: Target| {
        let out = folder.path().join(format!("{}.gguf", target.name()));
        let summary = written(&source, target, &out);
        assert_eq!(summary.file_bytes, std::fs::metadata(&out).expect("there").len());
        assert!(summary.tokenizer);
        let again = open(&out);
        assert_eq!(Tokenizer::open(&again).expect("whole").encode(text, Specials::Parse).expect("encodes"), ids, "{}", target.name());
        again
    };
    // The specimen is stored as F16: nothing is lost, and a name or a row in the wrong place would show.
    let whole = file(Target::F16);
    assert_eq!(logits(&source, &ids), logits(&whole, &ids));
    for target in Target::ALL {
        let again = file(target);
        assert!(logits(&again, &ids).iter().all(|logit| logit.is_finite()), "{}", target.name());
        for name in whole.tensor_names().filter(|_| target.simulated().is_none()) {
            let stored = again.require_tensor(name).expect("there");
            // Rows are whole blocks, so a tensor is encoded as the row of all its numbers.
            let wanted = encode(stored.storage, &values(&whole, name)).expect("whole blocks");
            assert!(*stored.bytes == wanted, "{}: {name} as {}", target.name(), stored.storage);
        }
    }
}

#[test]
fn stored_values_are_those_of_the_encoder_and_the_summary_tells_their_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = open(repository("specimens/specimen"));
    let out = folder.path().join("m.gguf");
    let summary = written(&source, Target::Q4K, &out);
    let again = open(&out);
    let (name, folder_name) = ("blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight");
    let weights = values(&source, folder_name);
    let stored = again.require_tensor(name).expect("there");
    assert_eq!(stored.storage, StorageType::Q4K);
    assert_eq!(*stored.bytes, encode(StorageType::Q4K, &weights).expect("whole blocks"), "rows are blocks here, one after another");
    // Rows of 384 are no whole blocks of 256: llama.cpp takes Q5_0, and the summary says so.
    let down = "blk.0.ffn_down.weight";
    assert_eq!(again.require_tensor(down).expect("there").storage, StorageType::Q5_0);
    let fallback = summary.fallbacks.iter().find(|fallback| fallback.tensor == down).expect("said");
    assert_eq!((fallback.wanted, fallback.stored), ("Q4_K", "Q5_0"));
    assert!(fallback.reason.contains("384") && fallback.reason.contains("256"), "{}", fallback.reason);
    let kept = summary.types.iter().find(|one| one.storage == "F32").expect("norms stay");
    assert_eq!(kept.rms_error, 0.0);
    assert_eq!(values(&again, "blk.0.attn_norm.weight"), values(&source, "model.layers.0.input_layernorm.weight"));
}

#[test]
fn a_gguf_file_keeps_its_metadata_and_its_row_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("m.gguf");
    let source = open(repository("fixtures/tiny/llama-gqa/model.gguf"));
    written(&source, Target::Q8_0, &out);
    let again = open(&out);
    for (key, pair) in
        source.gguf_pairs().filter(|(key, _)| !["general.file_type", "general.quantization_version", "general.alignment"].contains(key))
    {
        assert!(again.gguf_pairs().any(|(found, bytes)| found == key && bytes == pair), "`{key}` is lost");
    }
    let names: Vec<&str> = source.tensor_names().collect();
    assert_eq!(again.tensor_names().collect::<Vec<_>>(), names);
    for name in names {
        let (before, after) = (values(&source, name), values(&again, name));
        let largest = before.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let most = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most <= largest / 100.0, "{name}: {most}"); // half a step of 1/127, and the rounding of the scale
    }
    let twice = folder.path().join("twice.gguf");
    written(&again, Target::Q8_0, &twice);
    assert_eq!(std::fs::read(out).expect("read"), std::fs::read(twice).expect("read"), "a second time changes nothing");
}

#[test]
fn simulated_channels_hold_few_values_and_are_marked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = open(repository("specimens/specimen"));
    for (target, largest) in [(Target::Int8PerChannel, 127.0), (Target::Int4PerChannel, 7.0)] {
        let out = folder.path().join("m.gguf");
        written(&source, target, &out);
        let again = open(&out);
        assert_eq!(again.settings().str("glassbox.simulated").expect("marked"), target.name());
        let matrix = again.require_tensor("blk.1.attn_q.weight").and_then(|tensor| tensor.matrix()).expect("there");
        let mut row = vec![0.0; matrix.columns()];
        for index in 0..matrix.rows() {
            matrix.decode_row(index, &mut row);
            let scale = row.iter().fold(0.0_f32, |most, value| most.max(value.abs())) / largest;
            assert!(row.iter().all(|value| ((value / scale).round() - value / scale).abs() < 1e-3), "row {index}");
        }
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = open(repository("fixtures/tiny/qwen2-gqa"));
    let bytes: Vec<Vec<u8>> = [1, 3]
        .into_iter()
        .map(|threads| {
            let out = folder.path().join("m.gguf");
            let summary = quantize(&source, Target::Q4_0, &out, threads, &mut |_, _, _| ()).expect("written");
            assert!(!summary.tokenizer, "the fixture has none, and that is said");
            std::fs::read(&out).expect("read")
        })
        .collect();
    assert_eq!(bytes[0], bytes[1]);
}

#[test]
fn a_weight_that_is_no_number_or_too_large_ends_the_work_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let original = repository("fixtures/tiny/llama-gqa/model.gguf");
    let check = |bits: u32, target: Target, wanted: &str| {
        let mut bytes = std::fs::read(&original).expect("read");
        let end = bytes.len();
        bytes[end - 32..].as_chunks_mut::<4>().0.iter_mut().for_each(|number| *number = bits.to_le_bytes());
        let path = folder.path().join("damaged.gguf");
        std::fs::write(&path, bytes).expect("written");
        let out = folder.path().join("out.gguf");
        let error = quantize(&open(&path), target, &out, 1, &mut |_, _, _| ()).expect_err("refused").to_string();
        assert!(error.contains("tensor `") && error.contains(wanted), "{error}");
        assert!(!out.exists() && std::fs::read_dir(folder.path()).expect("listed").count() == 1, "nothing is left behind");
    };
    check(f32::NAN.to_bits(), Target::Q8_0, "finite weights, found NaN");
    check(f32::INFINITY.to_bits(), Target::F16, "finite weights, found inf");
    check(1e30_f32.to_bits(), Target::F16, "F16 can hold, found one of size 1000");
}

#[test]
fn what_gguf_cannot_describe_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("m.gguf");
    let source = open(repository("fixtures/tiny/qwen2-window"));
    let refused = quantize(&source, Target::F16, &out, 1, &mut |_, _, _| ());
    assert!(matches!(refused, Err(QuantizeError::Model(_))), "{refused:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
}
