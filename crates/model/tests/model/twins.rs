//! The same weights as a folder and as a GGUF file.

use glassbox_mechanisms::Kernels;

use crate::tiny::{golden, logits, open, open_twin, with_twin};

#[test]
fn both_files_of_a_model_give_the_same_logits() {
    for name in with_twin() {
        let golden = golden(&name);
        let folder = logits(&open(&name, Kernels::Fast), golden.ids());
        let gguf = logits(&open_twin(&name, Kernels::Fast), golden.ids());
        if name == "llama-scaled" {
            // Its frequency factors are stored in f32, so the angles differ in their last bits.
            let distance = folder.iter().zip(&gguf).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(distance < 1e-5, "{name}: {distance:e}");
        } else {
            assert!(folder == gguf, "{name}: the same weights must give the same bits");
        }
    }
}
