//! The matrix of `tests/same_bits` finds a kernel whose order of summing depends on what it must not depend on, in the ways that show it.

#[path = "../../tests/same_bits/checker.rs"]
#[expect(dead_code, reason = "shared with the tests on all models, which use all of it")]
mod checker;

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_mechanisms::Kernels;
use glassbox_mechanisms::cache::KvType;

use super::Planted;
use crate::Model;
use checker::{Checker, PROMPT};

/// Layers with a window and without.
fn model() -> Model {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tiny/gemma3-gqa");
    Model::open(&Checkpoint::open(folder).expect("the fixture is committed"), Kernels::Fast).expect("the fixture is sound")
}

type Way = fn(&Checker<'_, Model>) -> Result<(), String>;

const WAYS: [(&str, Way); 6] = [
    ("recomputed", |checker| checker.whole(1)),
    ("threads", |checker| checker.in_pieces(PROMPT, 2)),
    ("pieces", |checker| checker.in_pieces(64, 1)),
    ("batch", |checker| checker.in_company(1)),
    ("ring", |checker| checker.in_a_ring(64, 1)),
    ("forked", |checker| checker.forked(1)),
];

/// Plants kernels, and wants other bits than those of the reference in exactly the ways `found_by`.
#[track_caller]
fn check(planted: Planted, found_by: &[&str]) {
    let model = model();
    let found: Vec<&str> = planted.while_running(|| {
        let checker = Checker::new(&model, KvType::F32);
        WAYS.into_iter().filter(|(_, way)| way(&checker).is_err()).map(|(name, _)| name).collect()
    });
    assert_eq!(found, found_by, "{planted:?}");
}

#[test]
fn planted_kernels_whose_order_depends_on_the_row_alone_have_the_same_bits_whatever_the_way() {
    let model = model();
    let reference = || Checker::new(&model, KvType::F32).wanted;
    assert_ne!(Planted::BothSound.while_running(reference), reference(), "they run, and add up in another order than the kernels");
    check(Planted::BothSound, &[]);
}

#[test]
fn a_kernel_whose_result_depends_on_its_batch_is_found() {
    check(Planted::ProductByRows, &["recomputed", "threads", "pieces", "batch", "ring", "forked"]);
    check(Planted::ProductByPlaceInTheBatch, &["batch", "forked"]);
}

#[test]
fn a_kernel_whose_result_depends_on_the_number_of_threads_is_found() {
    check(Planted::ProductByThreads, &["threads"]);
}

#[test]
fn a_kernel_whose_result_depends_on_the_pieces_of_the_prompt_is_found() {
    check(Planted::AttentionByPass, &["recomputed", "threads", "pieces", "batch", "ring", "forked"]);
}

#[test]
fn a_kernel_whose_result_depends_on_what_a_ring_holds_is_found() {
    check(Planted::AttentionByWhatIsHeld, &["ring"]);
}
