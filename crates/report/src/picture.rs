//! Attention maps as SVG: with the text of every token where it can be read, with ticks where there are too many.

use std::fmt::Write;

use glassbox_record::{Inspection, PooledMap, TokenText};

use crate::token_text::{escape, fit, isolated, label};
use crate::{ReportError, colour, raster};

/// Cells along an edge up to which they are as large as text likes.
const FEW: usize = 24;
/// Cells along an edge up to which each is an element that tells its weight when pointed at.
const POINTED_AT: usize = 48;
/// Cells along an edge up to which every token is written beside its row and column.
const LABELLED: usize = 80;
/// Pixels of a cell where there are few, and where there are more but each has a label.
const CELLS: [f64; 2] = [20.0, 13.0];
/// Pixels along the edge of a map without labels on every cell, at most.
const EDGE: f64 = 512.0;
/// Pixels between and around maps.
const GAP: f64 = 24.0;
/// Room for labels beside and above a map, and for the slant of the last one to its right.
const LABELS: f64 = 88.0;
const SLANT: f64 = 44.0;
/// Columns of text that fit into that room.
const COLUMNS: usize = 12;
/// Height of a map's heading on a sheet.
const HEADING: f64 = 22.0;
/// Pixels from tick to tick along an edge that has no label on every cell.
const TICK: f64 = 20.0;
/// Length of the colour scale in the legend, and the weights named below it.
const SCALE: f64 = 200.0;
const NAMED: [f32; 5] = [0.0, 0.01, 0.1, 0.5, 1.0];

/// A drawing as elements, and its width and height in pixels.
pub(crate) struct Drawn {
    pub(crate) svg: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The matrices that stand in it as embedded pictures.
    pub(crate) rasters: Vec<Raster>,
}

/// A matrix that is an embedded picture: one colour of the palette a cell, in a square.
#[derive(Clone)]
pub(crate) struct Raster {
    /// Place of the upper left corner.
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Length of an edge in pixels of the drawing, and in cells.
    pub(crate) edge: f64,
    pub(crate) cells: usize,
    /// [query cell × key cell] steps of the palette.
    pub(crate) steps: Vec<u8>,
}

/// All maps of an inspection on one sheet, as a document on white ground.
pub(crate) fn sheet(inspection: &Inspection) -> Result<Drawn, ReportError> {
    let maps = inspection.maps.iter().map(|map| draw(map, &inspection.tokens)).collect::<Result<Vec<_>, _>>()?;
    let columns = (maps.len() as f64).sqrt().ceil().max(1.0) as usize;
    let (width, height) = maps.first().map_or((EDGE, 0.0), |map| (map.width, map.height + HEADING));
    let rows = maps.len().div_ceil(columns);
    let pooled = match inspection.maps.first().map_or(1, |map| map.cell_tokens) {
        1 => String::new(),
        cell => format!("; a cell is the largest weight of {cell} × {cell} tokens"),
    };
    let title = format!("{}: {} tokens", fit(&inspection.model.name, 60), inspection.tokens.len());
    let all = inspection.model.layers * inspection.model.heads;
    let about = format!("{} of {all} heads; row: query, column: key{pooled}", maps.len());
    // Both lines of the heading must fit, at about 7 and 10 pixels a letter.
    let least_width = (7.0 * about.chars().count() as f64).max(10.0 * title.chars().count() as f64) + 2.0 * GAP;
    let (total_width, total_height) = ((columns as f64 * (width + GAP) + GAP).max(least_width), rows as f64 * (height + GAP) + 3.5 * GAP);
    let (mut inner, mut rasters) = (String::new(), Vec::new());
    let _ = write!(
        inner,
        "<text x=\"{GAP}\" y=\"32\" font-size=\"16\" font-weight=\"bold\">{}</text><text x=\"{GAP}\" y=\"54\">{}</text>",
        escape(&title),
        escape(&about)
    );
    for (index, (drawn, map)) in maps.iter().zip(&inspection.maps).enumerate() {
        let (column, row) = (index % columns, index / columns);
        let (x, y) = (GAP + column as f64 * (width + GAP), 3.0 * GAP + row as f64 * (height + GAP));
        let moved = |raster: &Raster| Raster { x: raster.x + x, y: raster.y + y + HEADING, ..raster.clone() };
        rasters.extend(drawn.rasters.iter().map(moved));
        let _ = write!(
            inner,
            "<g transform=\"translate({x:.1} {y:.1})\"><text y=\"12\" font-weight=\"bold\">layer {}, head {}</text>\
             <g transform=\"translate(0 {HEADING})\">{}</g></g>",
            map.layer, map.head, drawn.svg
        );
    }
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total_width:.0}\" height=\"{total_height:.0}\" \
         viewBox=\"0 0 {total_width:.0} {total_height:.0}\" font-family=\"DejaVu Sans, Noto Sans CJK SC, sans-serif\" font-size=\"11\" \
         fill=\"#1a1a1a\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{inner}</svg>"
    );
    Ok(Drawn { svg, width: total_width, height: total_height, rasters })
}

/// A drawing inside a page: on the ground and in the ink of the page.
pub(crate) fn inline(drawn: &Drawn, title: &str) -> String {
    format!(
        "<svg class=\"map\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{1:.0}\" height=\"{2:.0}\" \
         viewBox=\"0 0 {1:.0} {2:.0}\" font-size=\"11\" fill=\"currentColor\">{3}</svg>",
        escape(title),
        drawn.width,
        drawn.height,
        drawn.svg
    )
}

/// One map with its axes and its colour scale, as elements in a box of the size given back.
pub(crate) fn draw(map: &PooledMap, tokens: &[TokenText]) -> Result<Drawn, ReportError> {
    check(map, tokens.len())?;
    let every_cell_labelled = map.cell_tokens == 1 && map.edge <= LABELLED;
    let cell = match map.edge {
        few if every_cell_labelled && few <= FEW => CELLS[0],
        _ if every_cell_labelled => CELLS[1],
        // Whole pixels where possible, so that all cells are equally wide.
        many if many as f64 <= EDGE => (EDGE / many as f64).floor(),
        many => EDGE / many as f64,
    };
    let edge = cell * map.edge as f64;
    let mut rasters = Vec::new();
    let mut svg = format!("<g transform=\"translate({LABELS:.0} {LABELS:.0})\">");
    if every_cell_labelled && map.edge <= POINTED_AT {
        cells(&mut svg, map, tokens, cell);
    } else {
        let steps = raster::steps(&map.weights, map.edge);
        let image = raster::png_data(&steps, map.edge)?;
        rasters.push(Raster { x: LABELS, y: LABELS, edge, cells: map.edge, steps });
        let _ = write!(
            svg,
            "<image width=\"{edge}\" height=\"{edge}\" image-rendering=\"optimizeSpeed\" style=\"image-rendering:pixelated\" href=\"{image}\"/>"
        );
    }
    axes(&mut svg, map, tokens, edge, every_cell_labelled);
    legend(&mut svg, edge + 12.0);
    svg.push_str("</g>");
    Ok(Drawn { svg, width: LABELS + edge.max(SCALE) + SLANT, height: LABELS + edge + 40.0, rasters })
}

/// A matrix has one row and one column a token, or a cell.
fn check(map: &PooledMap, tokens: usize) -> Result<(), ReportError> {
    let of = |part: &str| format!("{part} of layer {}, head {}", map.layer, map.head);
    let edge = tokens.div_ceil(map.cell_tokens.max(1));
    for (part, wanted, found) in [
        ("cells along the edge", edge, map.edge),
        ("weights", edge.saturating_mul(edge), map.weights.len()),
        ("weights of the last row", tokens, map.last_row.len()),
    ] {
        if wanted != found || found == 0 || map.cell_tokens == 0 {
            return Err(ReportError::Mismatch { what: of(part), tokens, wanted, found });
        }
    }
    Ok(())
}

/// Every cell as a square that tells its weight when pointed at. Keys after the query are left out: the model cannot see them.
fn cells(svg: &mut String, map: &PooledMap, tokens: &[TokenText], cell: f64) {
    let names: Vec<String> = tokens.iter().map(|token| isolated(&label(&token.text, 24))).collect();
    for (index, weight) in map.weights.iter().enumerate() {
        let (query, key) = (index / map.edge, index % map.edge);
        if key > query && *weight == 0.0 {
            continue;
        }
        let _ = write!(
            svg,
            "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{cell}\" height=\"{cell}\" fill=\"{}\"><title>{}</title></rect>",
            key as f64 * cell,
            query as f64 * cell,
            colour::hex(colour::of(*weight)),
            escape(&format!("{query} {} → {key} {}: {weight:.4}", names[query], names[key]))
        );
    }
}

/// Token texts along both edges: all of them, or ticks with the position and the token that stands there.
fn axes(svg: &mut String, map: &PooledMap, tokens: &[TokenText], edge: f64, every_cell: bool) {
    let ticks = ((edge / TICK) as usize).max(1);
    let step = if every_cell { 1 } else { tokens.len().div_ceil(ticks) };
    let digits = tokens.len().to_string().len();
    for (position, token) in tokens.iter().enumerate().step_by(step.max(1)) {
        let at = (position as f64 + 0.5) / map.cell_tokens as f64 * edge / map.edge as f64;
        let text = if every_cell {
            fit(&token.text, COLUMNS)
        } else {
            let _ = write!(svg, "<path d=\"M-4 {at:.1}h4M{at:.1} -4v4\" stroke=\"currentColor\" stroke-width=\".8\" fill=\"none\"/>");
            format!("{} {position}", isolated(&fit(&token.text, COLUMNS.saturating_sub(digits + 1).max(4))))
        };
        let text = escape(&text);
        let _ = write!(svg, "<text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", at + 4.0);
        let _ = write!(svg, "<text transform=\"translate({:.1} -6) rotate(-60)\">{text}</text>", at + 4.0);
    }
}

/// The colour scale with some weights named below it.
fn legend(svg: &mut String, top: f64) {
    const STEPS: usize = 40;
    let width = SCALE / STEPS as f64;
    for step in 0..STEPS {
        let fill = colour::hex(colour::on_scale((step as f32 + 0.5) / STEPS as f32));
        let _ = write!(svg, "<rect x=\"{}\" y=\"{top:.0}\" width=\"{width}\" height=\"9\" fill=\"{fill}\"/>", step as f64 * width);
    }
    for weight in NAMED {
        let x = SCALE * f64::from(colour::place(weight));
        let _ = write!(svg, "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"10\">{weight}</text>", top + 21.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(count: usize) -> Vec<TokenText> {
        (0..count).map(|id| TokenText { id: id as u32, text: format!(" t{id}") }).collect()
    }

    fn map(tokens: usize, cell_tokens: usize) -> PooledMap {
        let edge = tokens.div_ceil(cell_tokens);
        let weights = (0..edge * edge).map(|index| if index % edge <= index / edge { 0.5 } else { 0.0 }).collect();
        PooledMap { layer: 1, head: 2, why: "asked for".to_owned(), cell_tokens, edge, weights, last_row: vec![0.1; tokens] }
    }

    #[test]
    fn every_token_of_a_small_matrix_is_written_at_its_row_and_column() {
        for count in [1, 5, FEW, POINTED_AT, LABELLED] {
            let drawn = draw(&map(count, 1), &tokens(count)).expect("drawn").svg;
            for id in [0, count / 2, count - 1] {
                assert_eq!(drawn.matches(&format!(">␣t{id}</text>")).count(), 2, "token {id} of {count}");
            }
            assert_eq!(drawn.matches("<rect").count() > 40, count <= POINTED_AT, "{count}: cells that can be pointed at");
        }
    }

    #[test]
    fn a_large_matrix_has_some_tokens_at_their_places() {
        for (count, cell) in [(LABELLED + 1, 1), (2_000, 8), (4_293, 17)] {
            let drawn = draw(&map(count, cell), &tokens(count)).expect("drawn").svg;
            let labels = drawn.matches("rotate(-60)").count();
            assert!((12..=26).contains(&labels), "{labels} labels for {count} tokens");
            assert!(drawn.contains("␣t0 0</text>"), "{count}");
            assert!(drawn.len() < 100_000, "{} bytes for {count} tokens", drawn.len());
        }
    }

    #[test]
    fn a_matrix_that_does_not_fit_its_tokens_is_refused() {
        let told = |map: &PooledMap, count: usize| draw(map, &tokens(count)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told(&map(5, 1), 6).contains("layer 1, head 2: wanted 6 for 6 tokens, found 5"), "{}", told(&map(5, 1), 6));
        assert!(told(&PooledMap { weights: vec![0.0; 24], ..map(5, 1) }, 5).contains("wanted 25"));
        assert!(told(&PooledMap { last_row: vec![0.0; 4], ..map(5, 1) }, 5).contains("last row"));
        assert!(!told(&PooledMap { cell_tokens: 0, ..map(5, 1) }, 5).is_empty());
        assert!(!told(&PooledMap { edge: 0, weights: Vec::new(), last_row: Vec::new(), ..map(5, 1) }, 0).is_empty());
    }
}
