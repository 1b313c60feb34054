//! One file a check: from judged trials to metrics.

pub(crate) mod evidence_position;
pub(crate) mod fact_conflict;
pub(crate) mod memory_decay;
pub(crate) mod minimal_rewrite;
pub(crate) mod order_sensitivity;

use std::collections::BTreeMap;

use glassbox_record::Series;

use crate::cases::ItemCases;
use crate::design::Design;
use crate::measure::{Measure, Measured};
use crate::suite::Test;

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) metrics: Vec<Measured>,
    pub(crate) series: Vec<Series>,
    pub(crate) notes: Vec<String>,
}

/// Measures one test.
pub(crate) fn measure(test: &Test, items: &BTreeMap<&str, ItemCases<'_>>, measure: &Measure<'_>) -> Findings {
    match &test.design {
        Design::EvidencePosition { positions, arms, .. } => evidence_position::measure(positions, arms, test.cite, items, measure),
        Design::OrderSensitivity { documents, .. } => order_sensitivity::measure(documents.passages, items, measure),
        Design::FactConflict { .. } => fact_conflict::measure(items, measure),
        Design::MinimalRewrite { .. } => minimal_rewrite::measure(items, measure),
        Design::MemoryDecay { distances, untold, .. } => memory_decay::measure(distances, *untold, items, measure),
    }
}

/// The smallest and the largest value that a metric can have: a gate beyond them is a slip of the pen, not a demand.
pub(crate) fn metric_range(name: &str) -> (f64, f64) {
    match name {
        // A ratio: documents may mislead, or help more together than alone.
        "evidence_utilisation" => (-10.0, 10.0),
        "u_contrast" | "citation_cost" | "eos" | "ews" | "order_decides" | "wording_gap" | "order_gap" | "primacy" | "decay" => (-1.0, 1.0),
        _ => (0.0, 1.0),
    }
}

/// Names of the metrics of a test with this design that a gate can decide on: those with an interval.
pub(crate) fn metric_names(design: &Design, cite: bool) -> Vec<String> {
    match design {
        Design::EvidencePosition { positions, arms, .. } => evidence_position::metric_names(positions, arms, cite),
        Design::OrderSensitivity { .. } => order_sensitivity::metric_names(),
        Design::FactConflict { .. } => fact_conflict::metric_names(),
        Design::MinimalRewrite { .. } => minimal_rewrite::metric_names(),
        Design::MemoryDecay { distances, untold, .. } => memory_decay::metric_names(distances, *untold),
    }
}
