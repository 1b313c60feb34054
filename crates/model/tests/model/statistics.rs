//! `attn.stats`, which the kernel sums inside its tiles, against `attn.pattern`.

use std::ops::Range;

use glassbox_anatomy::{Asks, At, Interest, Observer, Site};
use glassbox_mechanisms::attention::{Asked, Layout, RowStatistics, textbook};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::blueprint::{Norm, SoftCap};
use glassbox_model::{Model, Rows};
use glassbox_tensor::{View, ViewMut};

use crate::tiny::{LIMIT, all, open};

/// Keeps weights and statistics.
struct Both {
    spans: Vec<Range<usize>>,
    patterns: Vec<(At, Vec<usize>, Vec<f32>)>,
    statistics: Vec<(At, Vec<usize>, Vec<f32>)>,
}

impl Observer for Both {
    fn interest(&self, at: At) -> Interest {
        if matches!(at.site, Site::Pattern | Site::Statistics) { Interest::See } else { Interest::Nothing }
    }

    fn asks(&self) -> Asks<'_> {
        Asks { spans: &self.spans, top_keys: 3, ..Asks::default() }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let kept = if at.site == Site::Pattern { &mut self.patterns } else { &mut self.statistics };
        kept.push((at, value.sizes().to_vec(), value.values().to_vec()));
    }
}

#[test]
fn statistics_of_every_family_are_those_of_its_weights() {
    let ids: Vec<u32> = (0..70).map(|position| position * 7 % 30).collect();
    for (index, name) in all().into_iter().enumerate() {
        let model = open(&name, Kernels::Fast);
        let tokens = ids.len().min(model.blueprint().context);
        let mut cache = model.new_cache(tokens, LIMIT).expect("tiny");
        let mut both = Both { spans: vec![0..5, 20..66], patterns: Vec::new(), statistics: Vec::new() };
        let workers = Workers::new(1);
        // Every other family begins with a prefix, whose rows see keys after themselves.
        let (first, rest) = ids[..tokens].split_at(tokens.min(50));
        let prefix = if index % 2 == 0 { 0 } else { 9 };
        model.forward_with_prefix(first, prefix, &mut cache, Rows::None, &workers, &mut both).expect("sound ids");
        if !rest.is_empty() {
            model.forward_observed(rest, &mut cache, Rows::None, &workers, &mut both).expect("sound ids");
        }
        assert_eq!(both.patterns.len(), both.statistics.len());
        for ((at, sizes, weights), (beside, of, told)) in both.patterns.iter().zip(&both.statistics) {
            let (heads, queries, keys, width) = (sizes[0], sizes[1], sizes[2], of[2]);
            assert_eq!((at.layer, at.first_row, heads, queries), (beside.layer, beside.first_row, of[1], of[0]), "{name}");
            for (head, query) in (0..heads).flat_map(|head| (0..queries).map(move |query| (head, query))) {
                let row = &weights[(head * queries + query) * keys..][..keys];
                let row: Vec<f64> = row.iter().map(|weight| f64::from(*weight)).collect();
                let asked = Asked { spans: &both.spans, ..Asked::default() };
                let wanted = textbook::statistics(&row, head, at.first_row + query, &asked);
                let found = &told[(query * heads + head) * width..][..width];
                let told = RowStatistics::of(found, Layout { spans: 2, top_keys: 3 }).expect("as wide as was asked for");
                assert!(told.log_sum_exp.is_finite() && told.visible().contains(&(at.first_row + query)), "{name}, {at}: {told:?}");
                for (key, weight) in told.top_keys.iter().zip(told.top_weights).take(told.visible().len()) {
                    let rank = row.iter().filter(|other| **other > row[*key as usize] + 1e-5).count();
                    assert!((row[*key as usize] - f64::from(*weight)).abs() < 1e-5 && rank < 3, "{name}, {at}: {told:?}");
                }
                // Weights are rounded to f32 once they are divided; a sum of them moves by some ε, a distance by as many tokens as there are.
                for (found, wanted) in found[3..].iter().zip(&wanted) {
                    let bound = 64.0 * f64::from(f32::EPSILON) * (1.0 + wanted.abs().max(1.0) * (keys as f64).sqrt());
                    assert!(
                        (f64::from(*found) - wanted).abs() <= bound,
                        "{name}, {at}, head {head}, query {query}: {found}, wanted {wanted}"
                    );
                }
            }
        }
    }
}

/// Keeps what attention of layer 0 makes, mixing the values of one head or of none where that is said.
#[derive(Default)]
struct Parts {
    asks: Asks<'static>,
    only: Option<Vec<usize>>,
    held: Vec<(At, Vec<usize>, Vec<f32>)>,
}

impl Parts {
    /// What was seen at a place, [token, …].
    fn at(&self, site: Site, layer: usize) -> (&[usize], &[f32]) {
        let (_, sizes, values) = self.held.iter().find(|(at, ..)| (at.site, at.layer) == (site, layer)).expect("the place was wanted");
        (sizes, values)
    }

    fn rows(&self, site: Site, layer: usize) -> std::slice::ChunksExact<'_, f32> {
        let (sizes, values) = self.at(site, layer);
        values.chunks_exact(values.len() / sizes[0])
    }
}

impl Observer for Parts {
    fn interest(&self, at: At) -> Interest {
        match at.site {
            Site::Mixed if self.only.is_some() && at.layer == 0 => Interest::Edit,
            Site::Statistics | Site::AttnOut | Site::AttnAdded | Site::BlockOut | Site::Logits => Interest::See,
            _ => Interest::Nothing,
        }
    }

    fn asks(&self) -> Asks<'_> {
        self.asks
    }

    fn see(&mut self, at: At, value: View<'_>) {
        self.held.push((at, value.sizes().to_vec(), value.values().to_vec()));
    }

    fn edit(&mut self, _: At, mut value: ViewMut<'_>) {
        let [_, heads, d_head] = value.view().sizes_of(["token", "head", "d_head"]).expect("the axes of the site");
        for (index, values) in value.values().chunks_exact_mut(d_head).enumerate() {
            if !self.only.iter().flatten().any(|head| *head == index % heads) {
                values.fill(0.0);
            }
        }
    }
}

fn watch(model: &Model, ids: &[u32], mut parts: Parts) -> Parts {
    let mut cache = model.new_cache(ids.len(), LIMIT).expect("tiny");
    model.forward_observed(ids, &mut cache, Rows::All, &Workers::new(1), &mut parts).expect("sound ids");
    parts
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// What the model's norm divides a row by.
fn divisor(norm: Norm, row: &[f32]) -> f64 {
    let mean_of = |values: &dyn Fn(f64) -> f64| row.iter().map(|value| values(f64::from(*value))).sum::<f64>() / row.len() as f64;
    match norm {
        Norm::Rms { eps } => (mean_of(&|value| value * value) + f64::from(eps)).sqrt(),
        Norm::Layer { eps } | Norm::LayerWithoutBias { eps } => {
            let mean = mean_of(&|value| value);
            (mean_of(&|value| (value - mean).powi(2)) + f64::from(eps)).sqrt()
        }
    }
}

/// How far apart the numbers are.
fn spread(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::MIN, f64::max) - numbers.iter().copied().fold(f64::MAX, f64::min)
}

const TOKEN: u32 = 5;

#[test]
fn parts_of_a_logit_sum_to_what_attention_adds_to_it_in_every_family() {
    let ids: Vec<u32> = (0..40).map(|position| position * 7 % 30).collect();
    for name in all() {
        let model = open(&name, Kernels::Fast);
        let blueprint = model.blueprint();
        let ids = &ids[..ids.len().min(blueprint.context)];
        let parts = watch(&model, ids, Parts { asks: Asks { logit: Some(TOKEN), ..Asks::default() }, ..Parts::default() });
        let toward = model.toward_logit(TOKEN).expect("no family of decoders norms its stream");
        let (d_model, layers) = (blueprint.d_model as f64, blueprint.layers.len());
        let width = d_model + blueprint.attention.heads.query_width() as f64;
        // A sum of as many products errs by that many ε of their magnitudes, which exceed the product of the norms by √d_model at most.
        let bound = |out: f64| width * f64::from(f32::EPSILON) * d_model.sqrt() * norm(toward.iter().map(|x| f64::from(*x))) * out;

        let of_logit = parts.rows(Site::BlockOut, layers - 1).zip(parts.rows(Site::Logits, 0)).map(|(out, logits)| {
            let logit = f64::from(logits[TOKEN as usize]);
            let logit = match blueprint.unembedding.soft_cap {
                SoftCap::None => logit,
                SoftCap::At(cap) => f64::from(cap) * (logit / f64::from(cap)).atanh(),
            };
            dot(&toward, out) / divisor(blueprint.norm, out) - logit
        });
        let rest: Vec<f64> = of_logit.collect();
        assert!(spread(&rest) <= bound(d_model.sqrt()), "{name}: beside the direction there is the norm's bias alone: {rest:?}");

        for layer in 0..layers {
            let mut largest = 0.0_f64;
            let sums = parts.rows(Site::Statistics, layer).zip(parts.rows(Site::AttnOut, layer)).zip(parts.rows(Site::AttnAdded, layer));
            let rest: Vec<f64> = sums
                .map(|((row, out), added)| {
                    let heads = row.chunks_exact(row.len() / blueprint.attention.heads.heads());
                    let all: f64 = heads
                        .map(|row| RowStatistics::of(row, Layout::default()).and_then(|row| row.measured(0)).expect("asked for").total)
                        .map(f64::from)
                        .sum();
                    let divisor = if out == added { 1.0 } else { divisor(blueprint.norm, out) };
                    largest = largest.max(norm(out.iter().map(|x| f64::from(*x))) * divisor.max(1.0));
                    dot(&toward, added) * divisor - all
                })
                .collect();
            assert!(
                spread(&rest) <= bound(largest),
                "{name}, layer {layer}: beside the keys there is the projection's bias alone: {rest:?}"
            );
        }
    }
}

#[test]
fn a_first_token_weighs_as_much_as_what_each_head_makes_of_its_value() {
    for name in ["llama-gqa", "gemma2-gqa", "gpt2", "mpt-clip", "qwen3-window"] {
        let model = open(name, Kernels::Fast);
        let asks = Asks { value_weighted: true, ..Asks::default() };
        let whole = watch(&model, &[3], Parts { asks, ..Parts::default() });
        let out_of =
            |heads: Vec<usize>| watch(&model, &[3], Parts { only: Some(heads), ..Parts::default() }).at(Site::AttnOut, 0).1.to_vec();
        let (bias, row) = (out_of(Vec::new()), whole.at(Site::Statistics, 0).1);
        let heads = model.blueprint().attention.heads.heads();
        for (head, row) in row.chunks_exact(row.len() / heads).enumerate() {
            let wanted = norm(out_of(vec![head]).iter().zip(&bias).map(|(out, bias)| f64::from(*out) - f64::from(*bias)));
            let found = RowStatistics::of(row, Layout::default()).and_then(|row| row.measured(0)).expect("asked for").total;
            // Two chains of some d_head products each, and the difference from a bias of the same size.
            assert!((f64::from(found) - wanted).abs() <= 1e-5 * (1.0 + wanted), "{name}, head {head}: {found}, wanted {wanted}");
        }
    }
}

#[test]
fn a_logit_that_cannot_be_divided_is_refused() {
    let model = open("llama-gqa", Kernels::Fast);
    let mut cache = model.new_cache(1, LIMIT).expect("tiny");
    let mut parts = Parts { asks: Asks { logit: Some(1 << 30), ..Asks::default() }, ..Parts::default() };
    let refused = model.forward_observed(&[1], &mut cache, Rows::Last, &Workers::new(1), &mut parts).expect_err("no such token");
    assert!(refused.to_string().contains("the logit of token 1073741824 cannot be divided among keys"), "{refused}");
    assert!(cache.is_empty() && parts.held.is_empty());
}
