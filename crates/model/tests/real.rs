//! A real encoder, and contract 1 on a real decoder: `make models`, then `make test-real`.

#[path = "same_bits/checker.rs"]
#[expect(dead_code, reason = "shared with the test on tiny models, which uses all of it")]
mod checker;

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::cache::KvType;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Activations, Encoder, Model, SentenceRecipe};
use serde::Deserialize;

use checker::{Checker, in_another_process};

/// One text, as sentence-transformers reads it (`fixtures/real/minilm.py`); the command line's test begins with its letters.
#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f32>,
    pooled: Option<Vec<f32>>,
}

fn distance(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs()).fold(0.0, f32::max)
}

#[test]
fn all_minilm_l6_v2_gives_the_embeddings_of_sentence_transformers() {
    let folder = PathBuf::from(std::env::var_os("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder of `make models`"));
    let checkpoint = Checkpoint::open(folder.join("all-minilm-l6-v2")).expect("the model opens");
    let encoder = Encoder::open(&checkpoint, Kernels::Fast).expect("the model is read");
    let recipe = SentenceRecipe::of(&checkpoint, &encoder).expect("the steps are known");
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../../fixtures/real/minilm.json")).expect("the fixture is valid");
    for case in &cases {
        let encoded = encoder.encode(&case.ids, None, &Workers::new(2)).expect("the ids are in the vocabulary");
        let far = distance(&recipe.vector(&encoded, encoder.blueprint().d_model), &case.embedding);
        assert!(far <= 1e-5, "{:?}: the embedding lies {far:e} from the reference", case.text);
        if let Some(wanted) = &case.pooled {
            let far = distance(&encoded.pooled.expect("the file has a pooler"), wanted);
            assert!(far <= 1e-5, "{:?}: the pooled vector lies {far:e} from the reference", case.text);
        }
    }
    assert_eq!(cases.len(), 13);
}

type Way<'a> = &'a dyn Fn() -> Result<(), String>;

/// Every row of 1,100 tokens read and 64 decoded, on a model some of whose layers have windows of 512 tokens. With rounded activations, as the
/// command line runs it, for each storage type of the cache; with exact ones for one.
///
/// The logits of one reading are 1.2 GB. 590 s of processor time (AVX2, two cores shared with much else, 2026-12-01, `make test-real`).
#[test]
#[expect(clippy::print_stdout, reason = "it takes minutes: who waits sees how far it is")]
fn a_real_model_has_the_same_bits_whatever_the_way() {
    let folder = PathBuf::from(std::env::var_os("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder of `make models`"));
    let checkpoint = Checkpoint::open(folder.join("gemma-3-270m-q4_k_m.gguf")).expect("the model opens");
    let open = |activations| Model::open_with(&checkpoint, Kernels::Fast, activations, &Workers::new(2)).expect("the model is read");
    let (rounded, exact) = (open(Activations::Rounded), open(Activations::Exact));

    let [first, second] = [(&rounded, KvType::Q8_0), (&exact, KvType::F16)].map(|(model, kv_type)| Checker::new(model, kv_type));
    let here = format!("{:x?} {:x?}", first.wanted, second.wanted);
    let Some(there) = in_another_process("a_real_model_has_the_same_bits_whatever_the_way", &here) else { return };
    assert!(here == there, "two processes have other bits");
    println!("two processes, the same bits");

    // Single tokens are dear with exact activations: they begin after a prefix that is read at once.
    for (name, checker, prefix) in [
        ("rounded, q8_0", first, 0),
        ("exact, f16", second, 960),
        ("rounded, f16", Checker::new(&rounded, KvType::F16), 0),
        ("rounded, f32", Checker::new(&rounded, KvType::F32), 0),
    ] {
        let ways: [(&str, Way<'_>); 11] = [
            ("recomputed", &|| checker.whole(1)),
            ("2 threads", &|| checker.whole(2)),
            ("3 threads", &|| checker.whole(3)),
            ("8 threads", &|| checker.whole(8)),
            ("pieces of 64", &|| checker.in_pieces(64, 2)),
            ("pieces of 7", &|| checker.in_pieces(7, 2)),
            ("pieces of 1", &|| checker.in_pieces_after(prefix, 1, 2)),
            ("in a batch", &|| checker.in_company(2)),
            ("in a ring", &|| checker.in_a_ring(64, 2)),
            ("forked", &|| checker.forked(2)),
            ("watched", &|| checker.watched(2)),
        ];
        for (how, way) in ways {
            way().unwrap_or_else(|difference| panic!("{name}: {difference}"));
            println!("{name}, {how}: the same bits");
        }
    }
}
