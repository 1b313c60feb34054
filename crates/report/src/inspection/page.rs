//! The page of an inspection.

use std::collections::BTreeMap;

use askama::Template;
use glassbox_record::{HeadSummary, Inspection};

use crate::heat::{self, HeatToken};
use crate::texts::Texts;
use crate::token_text::label;
use crate::words::percent;
use crate::{ReportError, picture};

#[derive(Template)]
#[template(path = "inspection.html")]
struct Page<'a> {
    t: &'a Texts,
    style: &'static str,
    model: &'a str,
    description: &'a str,
    token_count: String,
    next_explained: String,
    next: Vec<Next>,
    tokens: Vec<HeatToken>,
    spans: Vec<&'a str>,
    span_rows: Vec<GridRow>,
    head_numbers: Vec<usize>,
    head_rows: Vec<GridRow>,
    pooled: String,
    maps: Vec<Map>,
}

struct Next {
    text: String,
    id: u32,
    logit: String,
    probability: String,
    bar: String,
}

struct GridRow {
    head: String,
    cells: Vec<GridCell>,
}

struct GridCell {
    text: String,
    class: String,
}

struct Map {
    heading: String,
    why: String,
    svg: String,
    last_row: Vec<HeatToken>,
}

/// Fills the page in.
pub(crate) fn html(inspection: &Inspection, t: &Texts) -> Result<String, ReportError> {
    let texts = || inspection.tokens.iter().map(|token| token.text.as_str());
    let mut maps = Vec::new();
    for map in &inspection.maps {
        let drawn = picture::draw(map, &inspection.tokens)?;
        let last_row: Vec<f64> = map.last_row.iter().map(|weight| f64::from(*weight)).collect();
        maps.push(Map {
            heading: t.with("heat-title", &[("layer", &map.layer), ("head", &map.head)]),
            why: t.with("heat-why", &[("why", &map.why)]),
            svg: picture::document(drawn.width, drawn.height, &drawn.svg),
            last_row: heat::row(texts(), &last_row),
        });
    }
    let cell = inspection.maps.first().map_or(1, |map| map.cell_tokens);
    let page = Page {
        t,
        style: include_str!("../../templates/page.css"),
        model: &inspection.model.name,
        description: &inspection.model.description,
        token_count: t.with("token-count", &[("count", &inspection.tokens.len())]),
        next_explained: t.with("next-explained", &[("entropy", &format!("{:.3}", inspection.next_entropy_nats))]),
        next: next(inspection),
        tokens: heat::plain(inspection.tokens.iter().map(|token| (token.text.as_str(), token.id))),
        spans: inspection.spans.iter().map(|span| span.name.as_str()).collect(),
        span_rows: if inspection.spans.is_empty() { Vec::new() } else { inspection.heads.iter().map(span_row).collect() },
        head_numbers: (0..inspection.model.heads).collect(),
        head_rows: entropy_grid(&inspection.heads),
        pooled: if cell == 1 { t.get("not-pooled") } else { t.with("pooled", &[("cell", &cell)]) },
        maps,
    };
    page.render().map_err(ReportError::picture)
}

fn next(inspection: &Inspection) -> Vec<Next> {
    let row = |token: &glassbox_record::NextTokenRow| Next {
        text: label(&token.text, 40),
        id: token.id,
        logit: format!("{:.3}", token.logit),
        probability: format!("{:.4}", token.probability),
        bar: format!("{:.2}", 14.0 * token.probability),
    };
    inspection.next.iter().map(row).collect()
}

fn span_row(head: &HeadSummary) -> GridRow {
    let cell = |mass: &f64| GridCell { text: format!("{} %", percent(*mass)), class: heat::class(*mass) };
    GridRow { head: format!("{}.{}", head.layer, head.head), cells: head.last_row_span_mass.iter().map(cell).collect() }
}

fn entropy_grid(heads: &[HeadSummary]) -> Vec<GridRow> {
    let mut layers: BTreeMap<usize, Vec<GridCell>> = BTreeMap::new();
    for head in heads {
        let cell = GridCell { text: format!("{:.2}", head.normalised_entropy), class: heat::class(head.normalised_entropy) };
        layers.entry(head.layer).or_default().push(cell);
    }
    layers.into_iter().map(|(layer, cells)| GridRow { head: layer.to_string(), cells }).collect()
}
