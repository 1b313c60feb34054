//! Models of folders, written as GGUF and read again.

use glassbox_checkpoint::{Checkpoint, GgufWriter};
use glassbox_mechanisms::Kernels;
use glassbox_model::{GgufModel, Model, ModelError};

use crate::tiny::{all, folder, golden, logits, open};

/// Writes a model as it is, and opens what was written.
fn written(name: &str) -> Result<Model, ModelError> {
    let gguf = GgufModel::of(&Checkpoint::open(folder(name))?)?;
    let mut writer = GgufWriter::new();
    gguf.settings.iter().for_each(|(key, value)| writer.set(key, value));
    for tensor in &gguf.tensors {
        writer.tensor(&tensor.name, &tensor.shape, tensor.matrix.storage()).expect("fits");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.gguf");
    let rows = |index: usize| -> Vec<u8> {
        let matrix = &gguf.tensors[index].matrix;
        (0..matrix.rows()).flat_map(|row| matrix.row_bytes(row)).copied().collect()
    };
    writer.write(&path, |index| Ok(rows(index)), |unfinished| gguf.check(&Checkpoint::open(unfinished)?))?;
    Model::open(&Checkpoint::open(&path)?, Kernels::Fast)
}

#[test]
fn a_model_of_a_folder_written_as_gguf_gives_the_same_logits() {
    let mut refused = Vec::new();
    for name in all() {
        let again = match written(&name) {
            Ok(again) => again,
            Err(ModelError::NotWritable { .. }) => {
                refused.push(name);
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let ids = golden(&name);
        let (folder, gguf) = (logits(&open(&name, Kernels::Fast), ids.ids()), logits(&again, ids.ids()));
        let distance = folder.iter().zip(&gguf).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // Two models are not written number for number: Llama 3's divisors are rounded to f32, and so are rotary bases.
        assert!(distance < 1e-5, "{name}: {distance:e}");
        if name.contains("gqa") || name == "gpt2" {
            assert!(distance == 0.0, "{name}: {distance:e}");
        }
    }
    let published =
        ["bloom", "gemma-mqa", "gemma2-gqa", "gemma3-mqa", "gpt2", "gpt_neox-parallel", "llama", "olmo2-gqa", "qwen2-gqa", "qwen3-gqa"];
    let lost: Vec<&String> =
        refused.iter().filter(|name| published.iter().any(|published| name.starts_with(published) && *name != "llama-dynamic")).collect();
    assert!(lost.is_empty(), "{lost:?} of {refused:?}");
}

#[test]
fn settings_that_gguf_has_no_words_for_are_refused_by_name() {
    let error = written("qwen2-window").expect_err("layers differ in their window").to_string();
    assert!(error.contains("cannot be written as GGUF") && error.contains("qwen2.attention.sliding_window"), "{error}");
    let twin = Checkpoint::open(folder("llama-gqa").join("model.gguf")).expect("a valid file");
    assert!(matches!(GgufModel::of(&twin), Err(ModelError::NotWritable { .. })), "a GGUF file is one already");
}
