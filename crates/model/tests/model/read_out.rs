//! The stream read out: the lens of the last layer is the model, and a logit is the sum of what each part of the stream gave to it.

use glassbox_anatomy::Site;
use glassbox_lens::LastRow;
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{LogitDirection, Model, ModelError, Rows};

use crate::tiny::{LIMIT, all, golden, open};

const SITES: [Site; 6] = [Site::EmbedOut, Site::Mixed, Site::AttnOut, Site::AttnAdded, Site::FfnAdded, Site::BlockOut];

struct Read {
    logits: Vec<f32>,
    rows: LastRow,
}

fn read(model: &Model, ids: &[u32]) -> Read {
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    let mut rows = LastRow::new(&SITES);
    let logits = model.forward_observed(ids, &mut cache, Rows::Last, &Workers::new(1), &mut rows).expect("known ids");
    Read { logits, rows }
}

impl Read {
    fn row(&self, site: Site, layer: usize) -> &[f32] {
        self.rows.row(site, layer).unwrap_or_else(|| panic!("{site} of layer {layer} was seen"))
    }

    fn stream(&self, model: &Model) -> &[f32] {
        self.row(Site::BlockOut, model.blueprint().layers.len() - 1)
    }

    /// Every part of the stream through `direction`: embedding, attention and feed-forward of each layer.
    fn parts(&self, model: &Model, direction: &LogitDirection) -> Vec<f64> {
        let mut parts = vec![direction.of(self.row(Site::EmbedOut, 0))];
        for layer in 0..model.blueprint().layers.len() {
            parts.extend([Site::AttnAdded, Site::FfnAdded].map(|site| direction.of(self.row(site, layer))));
        }
        parts
    }
}

/// What a sum of parts may differ from a logit that was computed in f32: rounding of as many steps as the stream has parts and d_model
/// numbers, each by half an ulp of the largest, doubled for the norm.
fn tolerance(model: &Model, parts: &[f64]) -> f64 {
    let size: f64 = parts.iter().map(|part| part.abs()).sum();
    2.0 * f64::from(f32::EPSILON) * size.max(1.0) * (model.blueprint().d_model + parts.len()) as f64
}

fn models() -> impl Iterator<Item = (String, Model)> {
    all().into_iter().map(|name| (name.clone(), open(&name, Kernels::Fast)))
}

#[test]
fn the_lens_of_the_last_layer_has_the_bits_of_the_model() {
    for (name, model) in models() {
        let read = read(&model, golden(&name).ids());
        assert_eq!(model.read_out(read.stream(&model), &Workers::new(1)), read.logits, "{name}");
    }
}

#[test]
fn a_logit_is_the_sum_of_what_embedding_attention_and_feed_forward_gave() {
    let mut families = std::collections::BTreeSet::new();
    for (name, model) in models() {
        families.insert(model.blueprint().family);
        let read = read(&model, golden(&name).ids());
        for token in [0_u32, 1, 17] {
            let direction = model.logit_direction(read.stream(&model), token).expect("a sum");
            let parts = read.parts(&model, &direction);
            let sum = direction.constant() + parts.iter().sum::<f64>();
            let mut wanted = f64::from(read.logits[token as usize]);
            if let Some(cap) = model.logit_cap() {
                wanted = f64::from(cap) * (wanted / f64::from(cap)).atanh();
            }
            let near = tolerance(&model, &parts);
            assert!(near < 1e-3, "{name}: the tolerance says nothing: {near}");
            assert!((sum - wanted).abs() <= near, "{name}, token {token}: {sum} for {wanted}, within {near}");
            // A part left out, or a norm taken for the identity, is seen.
            assert!((sum - parts[1] - wanted).abs() > near, "{name}: attention of the first layer gives nothing");
        }
    }
    assert!(families.len() >= 14, "{families:?}");
}

#[test]
fn heads_and_biases_add_up_to_what_attention_gave() {
    for (name, model) in models() {
        let read = read(&model, golden(&name).ids());
        let direction = model.logit_direction(read.stream(&model), 5).expect("a sum");
        for layer in 0..model.blueprint().layers.len() {
            let heads = model.head_parts(layer, read.row(Site::Mixed, layer), read.row(Site::AttnOut, layer), &direction);
            assert_eq!(heads.heads.len(), model.blueprint().attention.heads.heads());
            let wanted = direction.of(read.row(Site::AttnAdded, layer));
            let mut parts = heads.heads.clone();
            parts.push(heads.bias);
            let sum: f64 = parts.iter().sum();
            let near = tolerance(&model, &parts);
            assert!((sum - wanted).abs() <= near, "{name}, layer {layer}: {sum} for {wanted}, within {near}");
        }
    }
}

#[test]
fn one_answer_less_another_is_the_difference_of_their_logits() {
    let model = open("gemma3-gqa", Kernels::Fast);
    let read = read(&model, golden("gemma3-gqa").ids());
    let of = |token| model.logit_direction(read.stream(&model), token).expect("a sum");
    let difference = of(3).less(&of(9));
    let parts = read.parts(&model, &difference);
    let wanted = f64::from(read.logits[3]) - f64::from(read.logits[9]);
    let sum = difference.constant() + parts.iter().sum::<f64>();
    assert!((sum - wanted).abs() <= tolerance(&model, &parts), "{sum} for {wanted}");
}

#[test]
fn a_token_outside_the_vocabulary_is_refused() {
    let model = open("llama-gqa", Kernels::Fast);
    let stream = vec![1.0; model.blueprint().d_model];
    let refused = model.logit_direction(&stream, 1 << 20).map(|direction| direction.constant());
    assert!(matches!(refused, Err(ModelError::NoPathToLogit { .. })), "{refused:?}");
}
