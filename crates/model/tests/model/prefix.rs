//! A prefix whose tokens see one another in both directions, the rest causal.

use glassbox_anatomy::{At, Interest, Observer, Off};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_tensor::View;
use safetensors::SafeTensors;

use crate::tiny::{LIMIT, folder, golden, logits, open};

/// Fixtures with logits of `transformers` under such a mask, and the tokens of its prefix (`fixtures/tiny/prefix.py`).
const FIXTURES: &[&str] = &["gemma-mqa", "gpt2", "gpt_neox-parallel", "llama-gqa", "olmo2-gqa", "qwen2-gqa"];
const PREFIX: usize = 5;

/// Logits of all rows: a prefix and what follows it in one pass, the rest in passes of `piece`.
fn run(model: &Model, ids: &[u32], prefix: usize, first: usize, piece: usize, threads: usize) -> Vec<f32> {
    let workers = Workers::new(threads);
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    let mut logits = model.forward_with_prefix(&ids[..first], prefix, &mut cache, Rows::All, &workers, &mut Off).expect("it fits");
    for piece in ids[first..].chunks(piece) {
        logits.extend(model.forward(piece, &mut cache, Rows::All, &workers).expect("it fits"));
    }
    logits
}

fn distance(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

#[test]
fn a_prefix_gives_the_logits_of_transformers_under_the_same_mask() {
    for name in FIXTURES {
        let bytes = std::fs::read(folder(name).join("prefix.safetensors")).expect("the fixture is committed");
        let tensors = SafeTensors::deserialize(&bytes).expect("the fixture is sound");
        let wanted: Vec<f32> =
            tensors.tensor("logits").expect("it has it").data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let ids = golden(name);
        for kernels in [Kernels::Fast, Kernels::Textbook] {
            let found = run(&open(name, kernels), ids.ids(), PREFIX, ids.ids().len(), 1, 1);
            // The bound of all logits of these fixtures; what the prefix changes is at least fifty times larger (`prefix.py`).
            assert!(distance(&found, &wanted) < 2e-4, "{name}: {:e}", distance(&found, &wanted));
        }
    }
}

#[test]
fn the_bits_depend_neither_on_threads_nor_on_where_the_prefix_ends_in_its_pass() {
    for name in ["gemma3-gqa", "mpt", "phi3-short", "qwen2-window"].iter().chain(FIXTURES) {
        let model = open(name, Kernels::Fast);
        let golden = golden(name);
        let ids = golden.ids();
        let whole = run(&model, ids, PREFIX, ids.len(), 1, 1);
        for (first, piece, threads) in [(PREFIX, 1, 1), (PREFIX, ids.len(), 3), (PREFIX + 3, 2, 2)] {
            assert_eq!(run(&model, ids, PREFIX, first, piece, threads), whole, "{name}: {first}, {piece}, {threads}");
        }
        for none in [0, 1] {
            assert_eq!(run(&model, ids, none, ids.len(), 1, 1), logits(&model, ids), "{name}: a prefix of {none} is none");
        }
    }
}

#[test]
fn a_prefix_longer_than_a_piece_is_read_whole() {
    let model = open("llama-gqa", Kernels::Fast);
    let ids: Vec<u32> = (0..700).map(|token| token * 7 % 61).collect();
    let workers = Workers::new(2);
    let of_the_first = |ids: &[u32]| {
        let mut cache = model.new_cache(700, LIMIT).expect("tiny");
        model.forward_with_prefix(ids, 600, &mut cache, Rows::All, &workers, &mut Off).expect("it fits")[..61].to_vec()
    };
    let changed = |token: usize| ids.iter().enumerate().map(|(at, id)| if at == token { (id + 1) % 61 } else { *id }).collect::<Vec<u32>>();
    assert_ne!(of_the_first(&ids), of_the_first(&changed(599)), "the first token sees the last one of the prefix");
    assert_eq!(of_the_first(&ids), of_the_first(&changed(600)), "and none behind it");
}

/// Looks at every site and changes nothing.
struct Looks(usize);

impl Observer for Looks {
    fn interest(&self, _: At) -> Interest {
        Interest::See
    }

    fn see(&mut self, at: At, value: View<'_>) {
        // Weights [head, query, key] of the first token: as many as the prefix has tokens.
        if at.to_string() == "blocks.0.attn.pattern" {
            self.0 = value.values()[..PREFIX + 1].iter().filter(|weight| **weight > 0.0).count();
        }
    }
}

#[test]
fn an_observer_sees_the_weights_in_both_directions_and_moves_no_bit() {
    let model = open("llama-gqa", Kernels::Fast);
    let golden = golden("llama-gqa");
    let ids = golden.ids();
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    let mut looks = Looks(0);
    let watched = model.forward_with_prefix(ids, PREFIX, &mut cache, Rows::All, &Workers::new(1), &mut looks).expect("it fits");
    assert_eq!(watched, run(&model, ids, PREFIX, ids.len(), 1, 1));
    assert_eq!(looks.0, PREFIX);
}

#[test]
fn a_prefix_that_is_not_read_whole_is_refused() {
    let model = open("qwen2-window", Kernels::Fast);
    let mut cache = model.new_cache(1000, LIMIT).expect("tiny");
    let mut refused = |tokens: usize, prefix: usize| {
        let result = model.forward_with_prefix(&vec![1; tokens], prefix, &mut cache, Rows::None, &Workers::new(1), &mut Off);
        result.map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    };
    assert!(refused(4, 5).contains("a prefix of 5 tokens: wanted at most 4"));
    assert!(refused(600, 513).contains("wanted at most 512"), "a ring has room for a piece");
    assert_eq!(refused(6, 4), "");
    assert!(refused(4, 4).contains("into an empty cache, which holds 6"));
}
