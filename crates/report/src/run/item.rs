//! One watched or wrong answer on the page of a run.

use askama::Template;
use glassbox_record::{HeadMap, Looked, PassageRole, PlannedTrial};

use crate::ReportError;
use crate::heat::{self, HeatToken};
use crate::run::Run;
use crate::texts::Texts;
use crate::words::{judgement, percent};

#[derive(Template)]
#[template(path = "item.html")]
struct Item<'a> {
    t: &'a Texts,
    open: bool,
    heading: String,
    question: &'a str,
    expected: &'a str,
    answered: String,
    judged: String,
    documents: Vec<Document<'a>>,
    look: Option<LookView>,
}

struct Document<'a> {
    text: &'a str,
    gold: bool,
    cited: bool,
}

struct LookView {
    sentence: Option<String>,
    spans: Vec<String>,
    layers: Vec<Layer>,
    heats: Vec<Heat>,
}

struct Layer {
    layer: usize,
    cells: Vec<Cell>,
}

struct Cell {
    mass: String,
    uniform: String,
    class: String,
}

struct Heat {
    heading: String,
    why: String,
    tokens: Vec<HeatToken>,
}

/// The item as HTML.
pub(crate) fn html(run: &Run, t: &Texts, trial: &PlannedTrial, open: bool) -> Result<String, ReportError> {
    let content = &trial.content;
    let score = run.scores.get(&trial.id);
    let cited = score.map(|score| score.cited.clone()).unwrap_or_default();
    let note = score.and_then(|score| score.note.as_ref()).map(|note| format!(" ({note})")).unwrap_or_default();
    let judged = score.map(|score| judgement(t, score.judgement)).unwrap_or_default();
    let documents = content.expected.passages.iter().enumerate().map(|(index, passage)| Document {
        text: &passage.text,
        gold: passage.role == PassageRole::Gold,
        cited: cited.contains(&(index + 1)),
    });
    let view = Item {
        t,
        open,
        heading: format!("{} · {} · {}: {judged}", content.test, content.item, content.condition.label()),
        question: &content.expected.question,
        expected: &content.expected.answer,
        answered: run.answer_text(trial),
        judged: format!("{judged}{note}"),
        documents: documents.collect(),
        look: run.looks.get(&trial.id).map(|look| look_view(t, &look.looked, content.expected.gold_number())),
    };
    view.render().map_err(ReportError::picture)
}

fn look_view(t: &Texts, looked: &Looked, gold: Option<usize>) -> LookView {
    let layers = looked.layers.iter().map(|layer| Layer {
        layer: layer.layer,
        cells: layer
            .mass
            .iter()
            .zip(&layer.uniform)
            .map(|(mass, uniform)| Cell { mass: percent(*mass), uniform: percent(*uniform), class: heat::class(mass - uniform) })
            .collect(),
    });
    LookView {
        sentence: gold.and_then(|number| sentence(t, looked, number)),
        spans: looked.spans.iter().map(|span| span.name.clone()).collect(),
        layers: layers.collect(),
        heats: looked.maps.iter().map(|map| heat(t, looked, map)).collect(),
    }
}

/// How much the right document got, beside what it would have got without preference, and which document got most.
fn sentence(t: &Texts, looked: &Looked, gold: usize) -> Option<String> {
    let mean = |values: &dyn Fn(&glassbox_record::LayerLook) -> f64| {
        looked.layers.iter().map(values).sum::<f64>() / looked.layers.len().max(1) as f64
    };
    let mass = |span: usize| mean(&|layer| layer.mass.get(span).copied().unwrap_or(0.0));
    let uniform = |span: usize| mean(&|layer| layer.uniform.get(span).copied().unwrap_or(0.0));
    let name = format!("document {gold}");
    let right = looked.spans.iter().position(|span| span.name == name)?;
    let documents = (0..looked.spans.len()).filter(|span| looked.spans[*span].name.starts_with("document "));
    let top = documents.max_by(|a, b| mass(*a).total_cmp(&mass(*b)))?;
    Some(t.with(
        "mass-sentence-gold",
        &[
            ("gold", &name),
            ("mass", &percent(mass(right))),
            ("uniform", &percent(uniform(right))),
            ("top", &looked.spans[top].name),
            ("topmass", &percent(mass(top))),
        ],
    ))
}

/// The tokens shaded by the mean of the head's answer rows.
fn heat(t: &Texts, looked: &Looked, map: &HeadMap) -> Heat {
    let rows = map.weights.len().max(1) as f64;
    let mut weights = vec![0.0; looked.tokens.len()];
    for row in &map.weights {
        for (sum, weight) in weights.iter_mut().zip(row) {
            *sum += f64::from(*weight) / rows;
        }
    }
    Heat {
        heading: t.with("heat-title", &[("layer", &map.layer), ("head", &map.head)]),
        why: t.with("heat-why", &[("why", &map.why)]),
        tokens: heat::row(looked.tokens.iter().map(|token| token.text.as_str()), &weights),
    }
}
