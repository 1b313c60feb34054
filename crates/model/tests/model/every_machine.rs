//! The same bits on every machine: what an instruction set computes here was written down on another one.
//!
//! The digests were taken on x86-64 with AVX2; `make test-aarch64` runs this file on emulated aarch64, where the compiler makes NEON of the
//! portable code. A change of a reduction order or of an elementary function changes them, and must say so in its message.

use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Rows;
use glassbox_testkit::Values;

use crate::tiny::{LIMIT, open};

/// More than one tile of attention; the logits of every row.
const TOKENS: usize = 130;

/// FNV-1a, 64 bits, over the little-endian bits.
fn digest(logits: &[f32]) -> u64 {
    let bytes = logits.iter().flat_map(|logit| logit.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn logits_have_the_bits_that_another_machine_wrote_down() {
    let written = [
        ("llama-gqa", 0xbdc6_365f_78d7_2434_u64),
        ("llama-scaled", 0xe3ae_2916_8dd9_d9db),
        ("llama-biased", 0x85c9_f62d_e8a5_a8e8),
        ("qwen2-window", 0x6170_4ebe_fe2b_ddea),
        ("gemma3-gqa", 0x2414_a17d_8505_5f7c),
        ("gpt2", 0xc419_8e1f_245c_5f9c),
    ];
    let found = written.map(|(name, _)| {
        let model = open(name, Kernels::Fast);
        let tokens = TOKENS.min(model.blueprint().context);
        let mut values = Values::seeded(11);
        let ids: Vec<u32> = (0..tokens).map(|_| u32::try_from(values.below(model.blueprint().vocab)).expect("tiny")).collect();
        let mut cache = model.new_cache(tokens, LIMIT).expect("tiny");
        (name, digest(&model.forward(&ids, &mut cache, Rows::All, &Workers::new(2)).expect("sound ids")))
    });
    assert_eq!(found.map(|(name, digest)| format!("{name} {digest:016x}")), written.map(|(name, digest)| format!("{name} {digest:016x}")));
}
