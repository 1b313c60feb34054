//! Which answers are watched, and what the watched ones have in common.

use std::collections::{BTreeMap, BTreeSet};

use glassbox_record::{Digest, Judgement, Look, LookReason, PlannedTrial, Point, Score, Series};

use crate::schema::LookSpec;

/// Chooses the answers of one test to be watched: wrong ones, one an item first, and right ones to hold them against, of the same items
/// first.
pub(crate) fn choose<'a>(test: &str, plan: &'a [PlannedTrial], scores: &[Score], spec: &LookSpec) -> Vec<(&'a PlannedTrial, LookReason)> {
    let by_trial: BTreeMap<&Digest, &Score> = scores.iter().map(|score| (&score.trial, score)).collect();
    let mut measured: Vec<(&PlannedTrial, Judgement)> = plan
        .iter()
        .filter(|trial| {
            trial.content.test == test
                && trial.content.replicate == 0
                && matches!(trial.content.condition.arm.as_str(), "position" | "order")
        })
        .filter_map(|trial| Some((trial, by_trial.get(&trial.id)?.judgement)))
        .collect();
    measured.sort_by_key(|(trial, _)| (&trial.content.item, trial.content.condition.position, &trial.id));
    let failing: Vec<&PlannedTrial> = measured
        .iter()
        .filter(|(_, judgement)| matches!(judgement, Judgement::Wrong | Judgement::Abstained | Judgement::Unparsed))
        .map(|(trial, _)| *trial)
        .collect();
    let mut items = BTreeSet::new();
    let (first, further): (Vec<&PlannedTrial>, Vec<&PlannedTrial>) =
        failing.into_iter().partition(|trial| items.insert(&trial.content.item));
    let chosen: Vec<&PlannedTrial> = first.into_iter().chain(further).take(spec.failing).collect();
    let chosen_items: BTreeSet<&String> = chosen.iter().map(|trial| &trial.content.item).collect();
    let mut right: Vec<&PlannedTrial> =
        measured.iter().filter(|(_, judgement)| *judgement == Judgement::Right).map(|(trial, _)| *trial).collect();
    // Stable: inside both halves the order by item stays; one an item, so that a single item does not speak for all.
    right.sort_by_key(|trial| !chosen_items.contains(&trial.content.item));
    let mut items = BTreeSet::new();
    right.retain(|trial| items.insert(&trial.content.item));
    let contrast = right.into_iter().take(spec.contrast).map(|trial| (trial, LookReason::Contrast));
    chosen.into_iter().map(|trial| (trial, LookReason::Failing)).chain(contrast).collect()
}

/// [layer][answer] attention mass of the gold document and what uniform attention would give it.
type MassByLayer = BTreeMap<usize, Vec<(f64, f64)>>;

/// The mean attention of the gold document by layer, on wrong and on right answers, beside the uniform baseline; and a sentence on it.
pub(crate) fn summary(test: &str, plan: &[PlannedTrial], looks: &[Look]) -> (Vec<Series>, Option<String>) {
    let trials: BTreeMap<&Digest, &PlannedTrial> =
        plan.iter().filter(|trial| trial.content.test == test).map(|trial| (&trial.id, trial)).collect();
    let mut by_reason: BTreeMap<&str, MassByLayer> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for look in looks {
        let Some(gold) = trials.get(&look.trial).and_then(|trial| trial.content.expected.gold_number()) else { continue };
        let name = format!("document {gold}");
        let Some(index) = look.looked.spans.iter().position(|span| span.name == name) else { continue };
        let slice = match look.reason {
            LookReason::Failing => "wrong answers",
            LookReason::Contrast => "right answers",
        };
        *counts.entry(slice).or_default() += 1;
        for layer in &look.looked.layers {
            if let (Some(mass), Some(uniform)) = (layer.mass.get(index), layer.uniform.get(index)) {
                by_reason.entry(slice).or_default().entry(layer.layer).or_default().push((*mass, *uniform));
            }
        }
    }
    let mean = |values: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| values.iter().map(pick).sum::<f64>() / values.len().max(1) as f64;
    let series = |slice: String, layers: &MassByLayer, pick: fn(&(f64, f64)) -> f64| Series {
        name: "gold_attention_by_layer".to_owned(),
        axis: "layer".to_owned(),
        slice: Some(slice),
        points: layers
            .iter()
            .map(|(layer, values)| Point { at: layer.to_string(), value: mean(values, pick), interval: None, n: values.len() })
            .collect(),
    };
    let mut all = Vec::new();
    for (slice, layers) in &by_reason {
        all.push(series((*slice).to_owned(), layers, |(mass, _)| *mass));
        all.push(series(format!("{slice}, uniform baseline"), layers, |(_, uniform)| *uniform));
    }
    let peak = |slice: &str| {
        let layers = by_reason.get(slice)?;
        let (layer, values) = layers.iter().max_by(|a, b| mean(a.1, |(mass, _)| *mass).total_cmp(&mean(b.1, |(mass, _)| *mass)))?;
        Some((*layer, mean(values, |(mass, _)| *mass), mean(values, |(_, uniform)| *uniform)))
    };
    let note = peak("wrong answers").map(|(layer, mass, uniform)| {
        let against = peak("right answers").map_or_else(String::new, |(layer, mass, _)| {
            format!("; on {} right answers at most {:.1} % (layer {layer})", counts["right answers"], 100.0 * mass)
        });
        format!(
            "On {} watched wrong answers the gold document got at most {:.1} % of a layer's attention (layer {layer}; uniform attention would give {:.1} %){against}.",
            counts["wrong answers"],
            100.0 * mass,
            100.0 * uniform
        )
    });
    (all, note)
}
