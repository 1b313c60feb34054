//! Attention maps as SVG: with the text of every token where it can be read, with ticks where there are too many.

use std::fmt::Write;

use glassbox_record::{Inspection, PooledMap, TokenText};

use crate::token_text::{escape, label};
use crate::{ReportError, colour, raster};

/// Cells along an edge up to which every token is written beside its row and column.
const LABELLED: usize = 48;
/// Pixels of a cell with labels.
const CELL: f64 = 18.0;
/// Pixels along the edge of a map without labels on every cell.
const EDGE: f64 = 440.0;
/// Pixels between and around maps.
const GAP: f64 = 24.0;
/// Room for labels beside and above a map.
const LABELS: f64 = 96.0;
/// Height of a map's heading.
const HEADING: f64 = 22.0;
/// Ticks along an edge that has no label on every cell.
const TICKS: usize = 12;

/// One map as an `<svg>` element of its own, and its width and height in pixels.
pub(crate) struct Drawn {
    pub(crate) svg: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// All maps of an inspection on one sheet.
pub(crate) fn sheet(inspection: &Inspection) -> Result<Drawn, ReportError> {
    let maps = inspection.maps.iter().map(|map| draw(map, &inspection.tokens)).collect::<Result<Vec<_>, _>>()?;
    let columns = (maps.len() as f64).sqrt().ceil().max(1.0) as usize;
    let (width, height) = maps.first().map_or((EDGE, EDGE), |map| (map.width, map.height));
    let rows = maps.len().div_ceil(columns);
    let (total_width, total_height) = (columns as f64 * (width + GAP) + GAP, rows as f64 * (height + GAP) + 3.0 * GAP);
    let mut inner = String::new();
    let title = format!("{}: {} tokens, attention by layer and head", inspection.model.name, inspection.tokens.len());
    let _ = write!(inner, "<text x=\"{GAP}\" y=\"{:.0}\" font-size=\"16\" font-weight=\"bold\">{}</text>", 1.4 * GAP, escape(&title));
    for (index, map) in maps.iter().enumerate() {
        let (column, row) = (index % columns, index / columns);
        let (x, y) = (GAP + column as f64 * (width + GAP), 2.0 * GAP + row as f64 * (height + GAP));
        let _ = write!(inner, "<g transform=\"translate({x:.1} {y:.1})\">{}</g>", map.svg);
    }
    let svg = document(total_width, total_height, &inner);
    Ok(Drawn { svg, width: total_width, height: total_height })
}

/// An SVG document around drawn elements, on white ground.
pub(crate) fn document(width: f64, height: f64, inner: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"DejaVu Sans, Noto Sans CJK SC, sans-serif\" font-size=\"11\" fill=\"#1a1a1a\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{inner}</svg>"
    )
}

/// One map with its heading, axes and legend, as elements in a box of the size given back.
pub(crate) fn draw(map: &PooledMap, tokens: &[TokenText]) -> Result<Drawn, ReportError> {
    let every_cell_labelled = map.cell_tokens == 1 && map.edge <= LABELLED;
    let edge = if every_cell_labelled { CELL * map.edge as f64 } else { EDGE };
    let mut svg = String::new();
    let _ = write!(svg, "<text y=\"12\" font-weight=\"bold\">layer {}, head {}</text>", map.layer, map.head);
    let origin = (LABELS, HEADING + LABELS);
    let _ = write!(svg, "<g transform=\"translate({:.0} {:.0})\">", origin.0, origin.1);
    if every_cell_labelled {
        cells(&mut svg, map, tokens);
    } else {
        let image = raster::png_data(&map.weights, map.edge)?;
        let _ = write!(
            svg,
            "<image width=\"{edge}\" height=\"{edge}\" image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\" href=\"{image}\"/>"
        );
    }
    axes(&mut svg, map, tokens, edge, every_cell_labelled);
    legend(&mut svg, map, edge);
    svg.push_str("</g>");
    let width = (LABELS + edge).max(LABELS + 260.0);
    Ok(Drawn { svg, width, height: origin.1 + edge + 40.0 })
}

/// Every cell as a square that tells its weight when pointed at. Keys after the query are left out: the model cannot see them.
fn cells(svg: &mut String, map: &PooledMap, tokens: &[TokenText]) {
    for (index, weight) in map.weights.iter().enumerate() {
        let (query, key) = (index / map.edge, index % map.edge);
        if key > query && *weight == 0.0 {
            continue;
        }
        let name = |position: usize| tokens.get(position).map_or_else(String::new, |token| label(&token.text, 24));
        let _ = write!(
            svg,
            "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{}\"><title>{}</title></rect>",
            key as f64 * CELL,
            query as f64 * CELL,
            colour::hex(*weight),
            escape(&format!("{query} {} → {key} {}: {weight:.4}", name(query), name(key)))
        );
    }
}

/// Token texts along both edges: all of them, or ticks with the token that stands there.
fn axes(svg: &mut String, map: &PooledMap, tokens: &[TokenText], edge: f64, every_cell: bool) {
    let count = tokens.len().max(1);
    let step = if every_cell { 1 } else { count.div_ceil(TICKS) };
    for position in (0..count).step_by(step) {
        let Some(token) = tokens.get(position) else { break };
        let at = (position as f64 / map.cell_tokens as f64 + 0.5 / map.cell_tokens as f64) * edge / map.edge as f64;
        let text = if every_cell { label(&token.text, 12) } else { format!("{position} {}", label(&token.text, 9)) };
        let text = escape(&text);
        let _ = write!(svg, "<text x=\"-5\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", at + 4.0);
        let _ = write!(svg, "<text transform=\"translate({:.1} -5) rotate(-60)\">{text}</text>", at + 4.0);
    }
}

/// The colour scale, which side is which, and how much was pooled.
fn legend(svg: &mut String, map: &PooledMap, edge: f64) {
    let top = edge + 10.0;
    for step in 0..20 {
        let weight = step as f32 / 19.0;
        let _ = write!(svg, "<rect x=\"{}\" y=\"{top:.0}\" width=\"6\" height=\"9\" fill=\"{}\"/>", 14 + 6 * step, colour::hex(weight));
    }
    let _ = write!(svg, "<text y=\"{:.0}\">0</text><text x=\"138\" y=\"{:.0}\">1</text>", top + 9.0, top + 9.0);
    let pooled = if map.cell_tokens == 1 {
        "row: query, column: key".to_owned()
    } else {
        format!("row: query, column: key; a cell is the largest of {0} × {0} tokens", map.cell_tokens)
    };
    let _ = write!(svg, "<text y=\"{:.0}\">{pooled}</text>", top + 24.0);
}
