//! What the order of a pass promises beyond the matrix of `tests/same_bits`: the last row alone, causality, every site shown and neutral.

use std::collections::BTreeMap;

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_tensor::View;
use glassbox_testkit::Values;

use crate::tiny::{LIMIT, all, open};

/// More than two chunks of attention and two pieces of a pass; GPT-2 as far as its positions reach.
fn long_prompt(model: &Model, name: &str) -> Vec<u32> {
    let tokens = if name == "gpt2" { 64 } else { 1100 };
    let mut values = Values::seeded(3);
    (0..tokens).map(|_| u32::try_from(values.below(model.blueprint().vocab)).expect("tiny")).collect()
}

fn logits_in_pieces(model: &Model, ids: &[u32], piece: usize, threads: usize) -> Vec<f32> {
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    let workers = Workers::new(threads);
    let pass = |ids: &[u32], cache: &mut _| model.forward(ids, cache, Rows::All, &workers).expect("sound ids");
    ids.chunks(piece).flat_map(|ids| pass(ids, &mut cache)).collect()
}

#[track_caller]
fn assert_same_bits(name: &str, what: &str, vocab: usize, found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len(), "{name}, {what}");
    let first = found.iter().zip(wanted).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(at) = first {
        panic!("{name}, {what}: {:e} is not {:e} at [token {}, vocab {}]", found[at], wanted[at], at / vocab, at % vocab);
    }
}

/// The golden prompts are shorter than a tile of attention; this one crosses tiles, chunks, pieces and the window's end.
#[test]
fn fast_kernels_agree_with_the_textbooks_over_a_long_prompt() {
    for name in ["llama-gqa", "gemma3-gqa"] {
        let (fast, textbook) = (open(name, Kernels::Fast), open(name, Kernels::Textbook));
        let ids = long_prompt(&fast, name);
        let (found, truth) = (logits_in_pieces(&fast, &ids, usize::MAX, 2), logits_in_pieces(&textbook, &ids, usize::MAX, 2));
        let distance = found.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(distance < 2e-4, "{name}: {distance:e}, and two sound implementations lie within 2e-4");
    }
}

#[test]
fn the_last_row_alone_has_the_same_bits_as_among_all() {
    let workers = Workers::new(1);
    for name in ["llama-gqa", "gemma3-gqa"] {
        let model = open(name, Kernels::Fast);
        let ids = long_prompt(&model, name);
        let vocab = model.blueprint().vocab;
        let all = logits_in_pieces(&model, &ids, usize::MAX, 1);
        let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
        let last = model.forward(&ids, &mut cache, Rows::Last, &workers).expect("sound ids");
        assert_same_bits(name, "the last row", vocab, &last, &all[all.len() - vocab..]);
    }
}

#[test]
fn changing_a_token_leaves_every_earlier_logit_bit_identical() {
    for name in all() {
        let name = name.as_str();
        let model = open(name, Kernels::Fast);
        let mut ids = long_prompt(&model, name);
        let (vocab, changed) = (model.blueprint().vocab, ids.len() - 9);
        let before = logits_in_pieces(&model, &ids, usize::MAX, 1);
        ids[changed] = (ids[changed] + 1) % u32::try_from(vocab).expect("tiny");
        let after = logits_in_pieces(&model, &ids, usize::MAX, 1);
        assert_same_bits(name, "before the change", vocab, &after[..changed * vocab], &before[..changed * vocab]);
        assert_ne!(after[changed * vocab..], before[changed * vocab..], "{name}");
    }
}

/// Sees everything.
#[derive(Default)]
struct Everything {
    order: Vec<At>,
    values: BTreeMap<At, Vec<f32>>,
}

impl Observer for Everything {
    fn interest(&self, _: At) -> Interest {
        Interest::See
    }

    fn see(&mut self, at: At, value: View<'_>) {
        assert_eq!(value.axes(), at.site.axes());
        self.order.push(at);
        self.values.insert(at, value.values().to_vec());
    }
}

fn watched(model: &Model, ids: &[u32], rows: Rows) -> (Everything, Vec<f32>) {
    let mut everything = Everything::default();
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    let logits = model.forward_observed(ids, &mut cache, rows, &Workers::new(1), &mut everything).expect("sound ids");
    (everything, logits)
}

#[test]
fn watching_changes_no_bit() {
    for name in all() {
        let name = name.as_str();
        for kernels in [Kernels::Fast, Kernels::Textbook] {
            let model = open(name, kernels);
            let ids = &long_prompt(&model, name)[..60];
            let (everything, logits) = watched(&model, ids, Rows::All);
            assert_same_bits(name, "watched", model.blueprint().vocab, &logits, &logits_in_pieces(&model, ids, usize::MAX, 1));
            assert_eq!(everything.values[&At { layer: 0, site: Site::Logits, first_row: 0 }], logits);
        }
    }
}

#[test]
fn every_site_is_shown_once_in_the_order_of_the_table() {
    for name in all() {
        let name = name.as_str();
        let model = open(name, Kernels::Fast);
        let (everything, _) = watched(&model, &[1, 2, 3, 4], Rows::Last);
        let at = |layer, site: &Site| At { layer, site: *site, first_row: if *site >= Site::NormOut { 3 } else { 0 } };
        let (before, rest) = Site::ALL.split_at(1);
        let (block, after) = rest.split_at(rest.len() - 2);
        let mut wanted: Vec<At> = before.iter().map(|site| at(0, site)).collect();
        wanted.extend((0..model.blueprint().layers.len()).flat_map(|layer| block.iter().map(move |site| at(layer, site))));
        wanted.extend(after.iter().map(|site| at(0, site)));
        assert_eq!(everything.order, wanted, "{name}");
    }
}

#[test]
fn what_a_block_adds_is_what_attention_and_feed_forward_add() {
    for name in all() {
        let name = name.as_str();
        let model = open(name, Kernels::Fast);
        let (everything, _) = watched(&model, &long_prompt(&model, name)[..30], Rows::Last);
        for layer in 0..model.blueprint().layers.len() {
            let value = |site| &everything.values[&At { layer, site, first_row: 0 }];
            let parts = value(Site::BlockIn).iter().zip(value(Site::AttnAdded)).zip(value(Site::FfnAdded)).zip(value(Site::BlockOut));
            for (((before, attention), feed_forward), after) in parts {
                assert_eq!(((before + attention) + feed_forward).to_bits(), after.to_bits(), "{name}, layer {layer}");
            }
        }
    }
}

#[test]
fn weights_times_values_are_what_the_kernel_mixed() {
    for name in all() {
        let name = name.as_str();
        let model = open(name, Kernels::Fast);
        let ids = &long_prompt(&model, name)[..60];
        let heads = model.blueprint().attention.heads;
        let (everything, _) = watched(&model, ids, Rows::Last);
        for layer in 0..model.blueprint().layers.len() {
            let value = |site| &everything.values[&At { layer, site, first_row: 0 }];
            let (pattern, values, mixed) = (value(Site::Pattern), value(Site::Value), value(Site::Mixed));
            for (index, row) in pattern.chunks_exact(ids.len()).enumerate() {
                let (head, query) = (index / ids.len(), index % ids.len());
                assert!((row.iter().map(|w| f64::from(*w)).sum::<f64>() - 1.0).abs() < 1e-6, "{name}: head {head}, query {query}");
                let at = |key: usize| (key * heads.kv_heads() + heads.kv_head_of(head)) * heads.d_head();
                let sum: f64 = row.iter().enumerate().map(|(key, w)| f64::from(*w) * f64::from(values[at(key)])).sum();
                let found = f64::from(mixed[(query * heads.heads() + head) * heads.d_head()]);
                assert!((sum - found).abs() < 1e-5, "{name}, layer {layer}: {sum} and {found} at [token {query}, head {head}, d_head 0]");
            }
        }
    }
}

/// Edits the attention weights of one layer: to the values that they have, or so that a query sees only itself.
struct Weights {
    only_itself: bool,
}

impl Observer for Weights {
    fn interest(&self, at: At) -> Interest {
        if at.layer == 1 && at.site == Site::Pattern { Interest::Edit } else { Interest::Nothing }
    }

    fn edit(&mut self, at: At, mut value: glassbox_tensor::ViewMut<'_>) {
        let [_, queries, keys] = value.view().sizes_of(["head", "query", "key"]).expect("the axes of weights");
        if self.only_itself {
            for (index, row) in value.values().chunks_exact_mut(keys).enumerate() {
                row.fill(0.0);
                row[at.first_row + index % queries] = 1.0;
            }
        }
    }
}

#[test]
fn edited_weights_are_the_weights_that_mix() {
    for name in all() {
        let name = name.as_str();
        let model = open(name, Kernels::Fast);
        let ids = &long_prompt(&model, name)[..60];
        let plain = logits_in_pieces(&model, ids, usize::MAX, 1);
        let run = |only_itself| {
            let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
            model.forward_observed(ids, &mut cache, Rows::All, &Workers::new(1), &mut Weights { only_itself }).expect("sound ids")
        };
        let largest = |other: &[f32]| plain.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let (same, other) = (largest(&run(false)), largest(&run(true)));
        assert!(same < 2e-5, "{name}: an edit that changes nothing moves only last bits, found {same:e}");
        assert!(other > 1e-2, "{name}: an edit must show, found {other:e}");
    }
}
