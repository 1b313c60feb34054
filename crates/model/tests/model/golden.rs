//! Every site of every tiny model against `transformers`.

use crate::tiny::{all, fixtures, folder, golden, logits, open, open_twin, walk};
use glassbox_mechanisms::Kernels;
use glassbox_testkit::Golden;

fn agrees_at_every_site(name: &str) {
    let golden = golden(name);
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        let model = open(name, kernels);
        let closeness = walk(&model, &golden, usize::MAX).unwrap_or_else(|divergence| panic!("{name}, {kernels:?}: {divergence}"));
        assert_eq!(closeness.sites, golden.sites().count(), "{name}");
        walk(&model, &golden, 5).unwrap_or_else(|divergence| panic!("{name}, {kernels:?}, in pieces: {divergence}"));
        within_the_bounds_of_the_judge(name, &closeness.distance, &golden, &logits(&model, golden.ids()));
    }
    if folder(name).join("model.gguf").exists() {
        let closeness = walk(&open_twin(name, Kernels::Fast), &golden, usize::MAX);
        closeness.unwrap_or_else(|divergence| panic!("{name} as GGUF: {divergence}"));
    }
}

/// The absolute bounds that issue 2 sets, wider than the derived ones.
fn within_the_bounds_of_the_judge(name: &str, distance: &std::collections::BTreeMap<String, f64>, golden: &Golden, logits: &[f32]) {
    assert!(distance["logits"] <= 2e-4 && distance["attn.pattern"] <= 1e-5, "{name}: {distance:?}");
    let wanted = golden.values("logits").expect("a site of the reference");
    let vocab = wanted.len() / golden.ids().len();
    let best = |row: &[f32]| (0..vocab).max_by(|a, b| row[*a].total_cmp(&row[*b]));
    for (token, (found, wanted)) in logits.chunks(vocab).zip(wanted.chunks(vocab)).enumerate() {
        assert_eq!(best(found), best(wanted), "{name}: most likely id after token {token}");
    }
}

#[test]
fn every_fixture_proves_a_family_and_every_family_names_its_fixtures() {
    let mut proving: Vec<&str> = glassbox_model::proofs().flat_map(|(_, proof)| proof.fixtures).copied().collect();
    proving.sort_unstable();
    assert_eq!(proving, fixtures());
}

#[test]
fn every_fixture_of_every_family_agrees_with_transformers_at_every_site() {
    for name in all() {
        agrees_at_every_site(&name);
    }
}
