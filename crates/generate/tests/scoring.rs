//! Log-probabilities of given tokens: what a pass over all rows gives, whatever was held before, and never shifted by one.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::Session;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};

fn model(name: &str) -> Model {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny").join(name);
    Model::open(&Checkpoint::open(folder).expect("the fixture is committed"), Kernels::Fast).expect("the fixture is sound")
}

fn session(model: &Model) -> Session {
    Session::new(model, 1000, 1 << 28).expect("small")
}

/// `ln softmax(logits)[id]` in double precision, from all rows of one pass: entry `t` is that of token `t` after those before it.
fn textbook(model: &Model, ids: &[u32]) -> Vec<Option<f64>> {
    let logits = session(model).push_observed(model, ids, Rows::All, &Workers::new(1), &mut glassbox_anatomy::Off).expect("runs");
    let vocab = model.blueprint().vocab;
    let of_row = |(row, id): (&[f32], &u32)| {
        let row: Vec<f64> = row.iter().copied().map(f64::from).collect();
        row[*id as usize] - glassbox_mechanisms::softmax::textbook::log_sum_exp(&row)
    };
    std::iter::once(None).chain(logits.chunks_exact(vocab).zip(&ids[1..]).map(of_row).map(Some)).collect()
}

#[test]
fn log_probabilities_of_a_prompt_begin_with_none_and_are_those_of_one_pass() {
    for (name, tokens) in [("llama-gqa", 150), ("gemma3-gqa", 150), ("gpt2", 60)] {
        let model = model(name);
        let workers = Workers::new(2);
        let ids: Vec<u32> = (0..).map(|position: u32| (position * 7 + position / 11) % 50).take(tokens).collect();
        let wanted = textbook(&model, &ids);
        for start in [0, 1, 2, tokens - 9, tokens - 1] {
            let found = session(&model).log_probabilities(&model, &ids, start, &workers).expect("runs");
            assert_eq!(found.len(), ids.len() - start, "{name}, from {start}");
            for (position, (found, wanted)) in found.iter().zip(&wanted[start..]).enumerate() {
                match (found, wanted) {
                    (None, None) => assert_eq!((start, position), (0, 0)),
                    // Both take the same bits of the logits; the sums differ in their order, some ulps of a number near ln(vocab).
                    (Some(found), Some(wanted)) => assert!((found - wanted).abs() < 1e-12, "{name} {position}: {found} {wanted}"),
                    other => panic!("{name}, from {start}, token {position}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn many_continuations_of_one_context_have_the_bits_of_fresh_sessions() {
    let model = model("llama-gqa");
    let workers = Workers::new(1);
    let context: Vec<u32> = (0..40).collect();
    let mut shared = session(&model);
    for continuation in [&[5_u32, 6, 7][..], &[9], &[5, 6, 8, 1, 2], &[5]] {
        let ids = [&context, continuation].concat();
        let found = shared.log_probabilities(&model, &ids, context.len(), &workers).expect("runs");
        let fresh = session(&model).log_probabilities(&model, &ids, context.len(), &workers).expect("runs");
        assert_eq!(found, fresh, "{continuation:?}");
        assert_eq!(found.len(), continuation.len());
    }
}

#[test]
fn one_token_after_nothing_has_no_probability() {
    let model = model("llama-gqa");
    let found = session(&model).log_probabilities(&model, &[3], 0, &Workers::new(1)).expect("runs");
    assert_eq!(found, [None]);
}
