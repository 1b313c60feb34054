//! Forks and batches: the logits that a sequence would have alone, and memory and work shared.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_generate::{Batch, Seat, Session};
use glassbox_mechanisms::cache::{KvType, Pool};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Keeping, Model, ModelError, Windows};

/// Bytes that a cache of a test may take.
const LIMIT: u64 = 1 << 28;

fn model(name: &str) -> Model {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny").join(name);
    Model::open(&Checkpoint::open(folder).expect("the fixture is committed"), Kernels::Fast).expect("the fixture is sound")
}

fn ids(tokens: usize, salt: u32) -> Vec<u32> {
    (0..).map(|position: u32| (position * 7 + position / 11 + salt) % 50).take(tokens).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn greatest(logits: &[f32]) -> u32 {
    let greatest = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).expect("a vocabulary is not empty");
    u32::try_from(greatest).expect("ids are 32 bits")
}

/// Logits after the prompt and after each of some greedy tokens, alone.
fn alone(model: &Model, prompt: &[u32], tokens: usize, keeping: Keeping) -> Vec<Vec<u32>> {
    let workers = Workers::new(1);
    let mut session = Session::keeping(model, 1000, keeping, &Pool::new(LIMIT)).expect("small");
    let mut logits = session.prompt(model, prompt, &workers).expect("runs");
    let mut rows = vec![bits(&logits)];
    for _ in 0..tokens {
        logits = session.push(model, greatest(&logits), &workers).expect("runs");
        rows.push(bits(&logits));
    }
    rows
}

#[test]
fn sequences_that_join_and_leave_a_batch_have_the_bits_they_have_alone() {
    for (name, windows) in [("llama-gqa", Windows::Whole), ("gemma3-gqa", Windows::Ring), ("qwen2-window", Windows::Ring)] {
        let model = model(name);
        let workers = Workers::new(2);
        let keeping = Keeping { kv_type: KvType::F16, windows };
        let pool = Pool::new(LIMIT);
        let mut batch = Batch::new();
        // Prompt, greedy tokens after it, and the pass before which it joins.
        let wanted = [(ids(700, 1), 4, 0), (ids(3, 2), 6, 0), (ids(90, 3), 2, 1), (ids(1, 4), 3, 3), (ids(600, 5), 1, 4)];
        let mut rows: Vec<Vec<Vec<u32>>> = vec![Vec::new(); wanted.len()];
        let mut seats: Vec<(Seat, usize)> = Vec::new();
        for pass in 0..40 {
            for (index, (prompt, ..)) in wanted.iter().enumerate().filter(|(_, (.., joins))| *joins == pass) {
                let session = Session::keeping(&model, 1000, keeping, &pool).expect("small");
                seats.push((batch.admit(&model, session, prompt).expect("there is room"), index));
            }
            for (seat, logits) in batch.pass(&model, &workers).expect("there is room") {
                let index = seats.iter().find(|(taken, _)| *taken == seat).expect("a seat that was given").1;
                rows[index].push(bits(&logits));
                if rows[index].len() > wanted[index].1 {
                    assert!(batch.leave(seat).is_some());
                    seats.retain(|(taken, _)| *taken != seat);
                } else {
                    batch.push(&model, seat, greatest(&logits)).expect("there is room");
                }
            }
        }
        assert!(batch.is_empty());
        assert_eq!(pool.bytes(), 0, "all memory was given back");
        for ((prompt, tokens, _), rows) in wanted.iter().zip(rows) {
            assert_eq!(rows, alone(&model, prompt, *tokens, keeping), "{name}, prompt of {}", prompt.len());
        }
    }
}

#[test]
fn many_questions_about_one_prefix_compute_and_store_it_once() {
    let model = model("llama-gqa");
    let workers = Workers::new(1);
    let pool = Pool::new(LIMIT);
    let prefix = ids(640, 1);
    let mut session = Session::keeping(&model, 1000, Keeping::default(), &pool).expect("small");
    session.prompt(&model, &prefix, &workers).expect("runs");
    let stored = pool.bytes();
    let question = |salt: u32| -> Vec<u32> { prefix.iter().copied().chain(ids(20, salt)).collect() };
    let mut forks: Vec<Session> = (0..8).map(|_| session.fork()).collect();
    assert_eq!(pool.bytes(), stored, "a fork stores nothing");
    for (salt, fork) in (0..).zip(&mut forks) {
        let logits = fork.prompt(&model, &question(salt), &workers).expect("runs");
        assert_eq!(vec![bits(&logits)], alone(&model, &question(salt), 0, Keeping::default()));
    }
    // 640 tokens are ten pages; each question adds one.
    assert_eq!(pool.bytes(), stored / 10 * 18);
    // And all of them in one batch.
    let mut batch = Batch::new();
    for salt in 0..8 {
        batch.admit(&model, session.fork(), &question(salt)).expect("there is room");
    }
    let together = batch.pass(&model, &workers).expect("there is room");
    assert_eq!(together.len(), 8, "160 tokens are one pass: the prefix is not read again");
    for (salt, (_, logits)) in (0..).zip(&together) {
        assert_eq!(vec![bits(logits)], alone(&model, &question(salt), 0, Keeping::default()));
    }
}

#[test]
fn a_sequence_that_does_not_fit_is_refused_and_the_others_go_on() {
    let model = model("llama-gqa");
    let workers = Workers::new(1);
    let plan = model.cache_plan(128, Keeping::default());
    let pool = Pool::new(plan.bytes().expect("a small number"));
    let session = || Session::keeping(&model, 128, Keeping::default(), &pool).expect("the plan fits the pool");
    let mut batch = Batch::new();
    let first = batch.admit(&model, session(), &ids(64, 1)).expect("there is room");
    batch.admit(&model, session(), &ids(2, 9)).expect("a prompt of two");
    assert!(matches!(batch.admit(&model, session(), &[1, 77_777]), Err(ModelError::IdOutsideVocab { .. })));
    assert!(matches!(batch.admit(&model, session(), &[]), Err(ModelError::NoIds)));
    assert!(batch.admit(&model, session(), &ids(129, 1)).is_err());
    let logits = batch.pass(&model, &workers).expect("two pages of two");
    assert_eq!((logits.len(), batch.len()), (2, 2));
    assert_eq!(vec![bits(&logits[0].1)], alone(&model, &ids(64, 1), 0, Keeping::default()));
    // The first needs a second page, and there is none.
    assert!(batch.push(&model, first, 3).is_err());
    let left = batch.leave(first).expect("it was there");
    assert_eq!(left.ids(), ids(64, 1));
    drop(left);
    batch.admit(&model, session(), &ids(64, 6)).expect("its memory is free again");
    assert_eq!(batch.pass(&model, &workers).expect("there is room").len(), 1);
}

#[test]
fn a_session_whose_ring_cannot_go_back_computes_the_prompt_again() {
    let model = model("gemma3-gqa");
    let workers = Workers::new(1);
    let keeping = Keeping { windows: Windows::Ring, ..Keeping::default() };
    let mut session = Session::keeping(&model, 1000, keeping, &Pool::new(LIMIT)).expect("small");
    session.prompt(&model, &ids(500, 1), &workers).expect("runs");
    for tokens in [499, 460, 100, 3, 700] {
        let logits = session.prompt(&model, &ids(tokens, 1), &workers).expect("runs");
        assert_eq!(vec![bits(&logits)], alone(&model, &ids(tokens, 1), 0, Keeping::default()), "{tokens} tokens");
    }
}
