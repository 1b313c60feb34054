//! GGUF files changed at random from a fixed seed: written again or refused, never a panic and never a file that cannot be read.

use glassbox_checkpoint::Checkpoint;
use glassbox_quantize::{QuantizeError, Target, quantize};
use glassbox_tensor::Bytes;
use glassbox_testkit::{mutations, seeds};

#[test]
fn a_changed_gguf_file_is_quantized_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("quantized.gguf");
    let write = |bytes: &[u8]| -> Result<(), QuantizeError> {
        let (choice, file) = bytes.split_first().unwrap_or((&0, &[]));
        let checkpoint = Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(file.to_vec()))?;
        quantize(&checkpoint, Target::ALL[usize::from(*choice) % Target::ALL.len()], &out, 1, &mut |_, _, _| {})?;
        let written = Checkpoint::open(&out).unwrap_or_else(|error| panic!("it was written, but: {error}"));
        assert!(checkpoint.tensor_names().eq(written.tensor_names()), "no tensor is lost");
        Ok(())
    };
    for (name, seed) in seeds("quantize") {
        write(&seed).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let count = mutations("quantize", 400).filter(|bytes| write(bytes).is_ok()).count();
    assert!(count > 40, "only {count} of the changed files are still written");
}
