//! The run as one JSON document for machines.

use serde_json::{Value, json};

use crate::run::Run;

/// Manifest, verdicts and wrong answers.
pub(crate) fn document(run: &Run) -> Value {
    let wrong = run.failing().into_iter().map(|trial| {
        let content = &trial.content;
        json!({
            "trial": trial.id,
            "test": content.test,
            "item": content.item,
            "lang": content.lang,
            "condition": content.condition,
            "question": content.expected.question,
            "expected": content.expected.answer,
            "answered": run.answer_text(trial),
            "score": run.scores.get(&trial.id),
            "look": run.looks.get(&trial.id).map(|look| json!({
                "answer_rows": look.looked.answer_rows,
                "spans": look.looked.spans,
                "layers": look.looked.layers,
            })),
        })
    });
    let wrong: Vec<Value> = wrong.collect();
    json!({ "format": "glassbox-report", "version": 1, "manifest": run.manifest, "verdicts": run.verdicts, "wrong_answers": wrong })
}
