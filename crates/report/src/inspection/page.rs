//! The page of an inspection.

use std::collections::BTreeMap;

use askama::Template;
use glassbox_record::{HeadSummary, Inspection, PooledMap};

use crate::texts::Texts;
use crate::token_text::{isolated, label};
use crate::words::percent;
use crate::{ReportError, heat, picture};

/// Bytes of token rows on a page: with maps and numbers it stays under 10 MB and can travel by mail.
const MOST_BYTES: usize = 6 << 20;
/// Most tokens written out on a page.
const MOST_TOKENS: usize = 20_000;
/// Rows of a table that is open from the start.
const SHORT_TABLE: usize = 16;
/// Keys that are named for the last row of a head.
const TOP_KEYS: usize = 5;
/// A key with less than half a percent is named only if it is the first.
const NAMED_FROM: f32 = 0.005;

#[derive(Template)]
#[template(path = "inspection.html")]
struct Page<'a> {
    t: &'a Texts,
    style: &'static str,
    model: &'a str,
    description: &'a str,
    token_count: String,
    /// None for an encoder, which has no next token.
    next_explained: Option<String>,
    next: Vec<Next>,
    tokens: String,
    tokens_left_out: Option<String>,
    spans: Vec<String>,
    span_layers: Vec<GridRow>,
    span_heads: Vec<GridRow>,
    span_heads_open: bool,
    head_numbers: Vec<usize>,
    head_rows: Vec<GridRow>,
    nothing_to_measure: bool,
    which_heads: String,
    pooled: String,
    maps: Vec<Map>,
    rows: Vec<LastRow>,
    rows_left_out: Option<String>,
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
    top: String,
    svg: String,
}

struct LastRow {
    heading: String,
    html: String,
}

/// Fills the page in.
pub(crate) fn html(inspection: &Inspection, t: &Texts) -> Result<String, ReportError> {
    let maps = inspection.maps.iter().map(|map| drawn(t, inspection, map)).collect::<Result<Vec<_>, _>>()?;
    let rows = last_rows(t, inspection);
    let cell = inspection.maps.first().map_or(1, |map| map.cell_tokens);
    let count = inspection.tokens.len();
    let left_out = |key, count: usize| (count > 0).then(|| t.with(key, &[("count", &count)]));
    let with_spans = |rows: Vec<GridRow>| if inspection.spans.is_empty() { Vec::new() } else { rows };
    let page = Page {
        t,
        style: include_str!("../../templates/page.css"),
        model: &inspection.model.name,
        description: &inspection.model.description,
        token_count: t.with("token-count", &[("count", &count)]),
        next_explained: inspection.next_entropy_nats.map(|nats| t.with("next-explained", &[("entropy", &format!("{nats:.3}"))])),
        next: next(inspection),
        tokens: heat::plain(inspection.tokens.iter().take(MOST_TOKENS).map(|token| (token.text.as_str(), token.id))),
        tokens_left_out: left_out("tokens-left-out", count.saturating_sub(MOST_TOKENS)),
        spans: inspection.spans.iter().map(|span| t.known(&span.name)).collect(),
        span_layers: with_spans(span_layers(&inspection.heads)),
        span_heads: with_spans(inspection.heads.iter().map(span_row).collect()),
        span_heads_open: inspection.heads.len() <= SHORT_TABLE,
        head_numbers: (0..inspection.model.heads).collect(),
        head_rows: entropy_grid(&inspection.heads),
        nothing_to_measure: super::nothing_to_measure(inspection),
        which_heads: t.with("which-heads", &[("shown", &inspection.maps.len()), ("all", &inspection.heads.len())]),
        pooled: if cell == 1 { t.get("not-pooled") } else { t.with("pooled", &[("cell", &cell)]) },
        rows_left_out: left_out("rows-left-out", inspection.maps.len() - rows.len()),
        maps,
        rows,
    };
    page.render().map_err(ReportError::picture)
}

fn drawn(t: &Texts, inspection: &Inspection, map: &PooledMap) -> Result<Map, ReportError> {
    let heading = t.with("heat-title", &[("layer", &map.layer), ("head", &map.head)]);
    Ok(Map {
        why: t.with("heat-why", &[("why", &t.known(&map.why))]),
        top: top_keys(t, inspection, map),
        svg: picture::inline(&picture::draw(map, &inspection.tokens)?, &heading),
        heading,
    })
}

/// The keys that the last row reads most, in words.
fn top_keys(t: &Texts, inspection: &Inspection, map: &PooledMap) -> String {
    let mut order: Vec<usize> = (0..map.last_row.len().min(inspection.tokens.len())).collect();
    order.sort_by(|a, b| map.last_row[*b].total_cmp(&map.last_row[*a]).then(a.cmp(b)));
    let named =
        order.iter().take(TOP_KEYS).enumerate().filter(|(index, key)| *index == 0 || map.last_row[**key] >= NAMED_FROM).map(|(_, key)| {
            let text = isolated(&label(&inspection.tokens[*key].text, 16));
            format!("{text} ({key}) {} %", percent(f64::from(map.last_row[*key])))
        });
    t.with("last-row-top", &[("keys", &named.collect::<Vec<_>>().join(" · "))])
}

/// The tokens shaded by the last row of each head, as many heads as fit the page.
fn last_rows(t: &Texts, inspection: &Inspection) -> Vec<LastRow> {
    if inspection.tokens.len() > MOST_TOKENS {
        return Vec::new();
    }
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for map in &inspection.maps {
        let weights: Vec<f64> = map.last_row.iter().map(|weight| f64::from(*weight)).collect();
        let html = heat::row(inspection.tokens.iter().map(|token| token.text.as_str()), &weights);
        bytes += html.len();
        if bytes > MOST_BYTES {
            break;
        }
        rows.push(LastRow { heading: t.with("heat-title", &[("layer", &map.layer), ("head", &map.head)]), html });
    }
    rows
}

fn next(inspection: &Inspection) -> Vec<Next> {
    let row = |token: &glassbox_record::NextTokenRow| Next {
        text: label(&token.text, 40),
        id: token.id,
        logit: format!("{:.3}", token.logit),
        probability: format!("{:.4}", token.probability),
        bar: format!("{:.2}", 14.0 * token.probability.clamp(0.0, 1.0)),
    };
    inspection.next.iter().map(row).collect()
}

fn span_row(head: &HeadSummary) -> GridRow {
    GridRow { head: format!("{}.{}", head.layer, head.head), cells: head.last_row_span_mass.iter().map(|mass| share(*mass)).collect() }
}

/// The same as a mean over the heads of each layer.
fn span_layers(heads: &[HeadSummary]) -> Vec<GridRow> {
    let mut layers: BTreeMap<usize, Vec<&Vec<f64>>> = BTreeMap::new();
    for head in heads {
        layers.entry(head.layer).or_default().push(&head.last_row_span_mass);
    }
    let mean = |masses: &[&Vec<f64>], span: usize| {
        masses.iter().map(|mass| mass.get(span).copied().unwrap_or(0.0)).sum::<f64>() / masses.len().max(1) as f64
    };
    let row = |(layer, masses): (usize, Vec<&Vec<f64>>)| {
        let spans = masses.first().map_or(0, |mass| mass.len());
        GridRow { head: layer.to_string(), cells: (0..spans).map(|span| share(mean(&masses, span))).collect() }
    };
    layers.into_iter().map(row).collect()
}

fn share(mass: f64) -> GridCell {
    GridCell { text: format!("{} %", percent(mass)), class: heat::class(mass) }
}

fn entropy_grid(heads: &[HeadSummary]) -> Vec<GridRow> {
    let mut layers: BTreeMap<usize, Vec<GridCell>> = BTreeMap::new();
    for head in heads {
        let cell = match head.normalised_entropy {
            Some(entropy) => GridCell { text: format!("{entropy:.2}"), class: heat::class(entropy) },
            None => GridCell { text: "–".to_owned(), class: String::new() },
        };
        layers.entry(head.layer).or_default().push(cell);
    }
    layers.into_iter().map(|(layer, cells)| GridRow { head: layer.to_string(), cells }).collect()
}
