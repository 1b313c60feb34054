//! One watched or wrong answer on the page of a run.

use askama::Template;
use glassbox_record::{PassageRole, PlannedTrial};

use crate::ReportError;
use crate::run::Run;
use crate::run::look::{self, LookView};
use crate::texts::Texts;
use crate::words::judgement;

#[derive(Template)]
#[template(path = "item.html")]
struct Item<'a> {
    t: &'a Texts,
    open: bool,
    heading: String,
    watched: bool,
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
    captured: bool,
}

/// The item as HTML.
pub(crate) fn html(run: &Run, t: &Texts, trial: &PlannedTrial, open: bool) -> Result<String, ReportError> {
    let content = &trial.content;
    let score = run.scores.get(&trial.id);
    let cited = score.map(|score| score.cited.clone()).unwrap_or_default();
    let captured = score.and_then(|score| score.captured_by);
    let note = score.and_then(|score| score.note.as_ref()).map(|note| format!(" ({note})")).unwrap_or_default();
    let judged = score.map(|score| judgement(t, score.judgement)).unwrap_or_default();
    let documents = content.expected.passages.iter().enumerate().map(|(index, passage)| Document {
        text: &passage.text,
        gold: passage.role == PassageRole::Gold,
        cited: cited.contains(&(index + 1)),
        captured: captured == Some(index + 1),
    });
    let look = run.looks.get(&trial.id);
    let view = Item {
        t,
        open,
        heading: format!("{} · {} · {}: {judged}", content.test, content.item, t.known(&content.condition.label())),
        watched: look.is_some(),
        question: &content.expected.question,
        expected: &content.expected.answer,
        answered: run.answer_text(trial),
        judged: format!("{judged}{note}"),
        documents: documents.collect(),
        look: look.map(|look| look::view(t, &look.looked, content.expected.gold_number())),
    };
    view.render().map_err(ReportError::picture)
}
