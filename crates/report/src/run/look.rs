//! What a watched answer read, for the page of a run.

use glassbox_record::{HeadMap, LayerLook, Looked};

use crate::heat;
use crate::texts::Texts;
use crate::token_text::with_code;
use crate::words::percent;

/// Differences from the uniform share from which a cell of the table is shaded more.
const LEVELS: [f64; 4] = [0.01, 0.05, 0.12, 0.25];

/// Attention by layer and part of the prompt, and the tokens shaded by some heads.
pub(crate) struct LookView {
    /// The attention of the right document in one sentence; none where the prompt holds no right document.
    pub(crate) sentence: Option<String>,
    /// The parts, the last one for everything outside of them.
    pub(crate) spans: Vec<Part>,
    /// One row a layer.
    pub(crate) layers: Vec<Layer>,
    /// Which heads are shown out of how many.
    pub(crate) which_heads: String,
    /// The shown heads.
    pub(crate) heats: Vec<Heat>,
}

/// A part of the prompt, as the head of a column.
pub(crate) struct Part {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is the right document.
    pub(crate) gold: bool,
}

/// A layer of the table.
pub(crate) struct Layer {
    /// Layer, counted from 0.
    pub(crate) layer: usize,
    /// One cell a part.
    pub(crate) cells: Vec<Cell>,
}

/// A cell of the table.
pub(crate) struct Cell {
    /// Share of attention in percent.
    pub(crate) mass: String,
    /// What uniform attention would give, in percent.
    pub(crate) uniform: String,
    /// `o1` to `o4` over the uniform share, `u1` to `u4` under it, empty where there is next to no difference.
    pub(crate) class: String,
}

/// The tokens shaded by one head.
pub(crate) struct Heat {
    pub(crate) heading: String,
    pub(crate) why: String,
    pub(crate) html: String,
}

/// Everything that is shown of a look.
///
/// - `gold`  number of the right document, counted from 1
pub(crate) fn view(t: &Texts, looked: &Looked, gold: Option<usize>) -> LookView {
    let gold_span = gold.and_then(|number| span_of(looked, number));
    let all: usize = looked.layers.iter().map(|layer| layer.heads.len()).sum();
    LookView {
        sentence: gold_span.and_then(|span| sentence(t, looked, span)),
        spans: parts(t, looked, gold_span),
        layers: looked.layers.iter().map(|layer| row(looked, layer)).collect(),
        which_heads: t.with("which-heads", &[("shown", &looked.maps.len()), ("all", &all)]),
        heats: looked.maps.iter().map(|map| shaded(t, looked, map)).collect(),
    }
}

fn parts(t: &Texts, looked: &Looked, gold: Option<usize>) -> Vec<Part> {
    let named = looked.spans.iter().enumerate().map(|(index, span)| Part { name: t.known(&span.name), gold: gold == Some(index) });
    named.chain([Part { name: t.get("elsewhere"), gold: false }]).collect()
}

fn span_of(looked: &Looked, document: usize) -> Option<usize> {
    let name = format!("document {document}");
    looked.spans.iter().position(|span| span.name == name)
}

/// The cells of a layer, and one for what lies between the parts: template and first token.
fn row(looked: &Looked, layer: &LayerLook) -> Layer {
    let of = |values: &[f64], span: usize| values.get(span).copied().unwrap_or(0.0);
    let rest = |values: &[f64]| (1.0 - values.iter().sum::<f64>()).max(0.0);
    let pairs = (0..looked.spans.len()).map(|span| (of(&layer.mass, span), of(&layer.uniform, span)));
    let cells = pairs.chain([(rest(&layer.mass), rest(&layer.uniform))]).map(|(mass, uniform)| cell(mass, uniform));
    Layer { layer: layer.layer, cells: cells.collect() }
}

fn cell(mass: f64, uniform: f64) -> Cell {
    let difference = mass - uniform;
    let level = LEVELS.iter().filter(|level| difference.abs() >= **level).count();
    let class = match level {
        0 => String::new(),
        _ if difference > 0.0 => format!("o{level}"),
        _ => format!("u{level}"),
    };
    Cell { mass: percent(mass), uniform: percent(uniform), class }
}

/// How much the right document got, beside what it would have got without preference, and which document got most. It describes
/// where attention went and claims no cause.
fn sentence(t: &Texts, looked: &Looked, gold: usize) -> Option<String> {
    let mean = |values: &dyn Fn(&LayerLook) -> f64| looked.layers.iter().map(values).sum::<f64>() / looked.layers.len().max(1) as f64;
    let mass = |span: usize| mean(&|layer| layer.mass.get(span).copied().unwrap_or(0.0));
    let uniform = mean(&|layer| layer.uniform.get(gold).copied().unwrap_or(0.0));
    let documents = (0..looked.spans.len()).filter(|span| looked.spans[*span].name.starts_with("document "));
    let top = documents.max_by(|a, b| mass(*a).total_cmp(&mass(*b)))?;
    let (name, top_name) = (t.known(&looked.spans[gold].name), t.known(&looked.spans[top].name));
    let key = if top == gold { "mass-sentence-gold-most" } else { "mass-sentence-gold" };
    Some(t.with(
        key,
        &[
            ("gold", &name),
            ("mass", &percent(mass(gold))),
            ("uniform", &percent(uniform)),
            ("top", &top_name),
            ("topmass", &percent(mass(top))),
        ],
    ))
}

/// The tokens shaded by the mean of the head's answer rows.
fn shaded(t: &Texts, looked: &Looked, map: &HeadMap) -> Heat {
    let rows = map.weights.len().max(1) as f64;
    let mut weights = vec![0.0; looked.tokens.len()];
    for row in &map.weights {
        for (sum, weight) in weights.iter_mut().zip(row) {
            *sum += f64::from(*weight) / rows;
        }
    }
    Heat {
        heading: t.with("heat-title", &[("layer", &map.layer), ("head", &map.head)]),
        why: with_code(&t.with("heat-why", &[("why", &t.known(&map.why))])),
        html: heat::row(looked.tokens.iter().map(|token| token.text.as_str()), &weights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_says_how_far_it_is_from_the_uniform_share() {
        for (mass, uniform, wanted) in
            [(0.1, 0.1, ""), (0.13, 0.1, "o1"), (0.9, 0.1, "o4"), (0.001, 0.1, "u2"), (0.1, 0.4, "u4"), (f64::NAN, 0.1, "")]
        {
            assert_eq!(cell(mass, uniform).class, wanted, "{mass} {uniform}");
        }
        assert_eq!(cell(0.001, 0.1).mass, "<1");
    }
}
