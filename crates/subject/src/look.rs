//! What the answer of a native subject read.

use std::ops::Range;

use glassbox_anatomy::Observer;
use glassbox_generate::Session;
use glassbox_lens::{AttentionRows, AttentionStatistics, HeadRef, HeadStatistics, uniform_mass, visible_keys};
use glassbox_model::Rows;
use glassbox_record::{FailureClass, HeadMap, LayerLook, Looked, PromptSpan, TokenText};

use crate::native::{NativeSubject, Told};
use crate::{SubjectError, Watch};

/// Reads the end of the prompt and the answer again under observation.
///
/// The rows watched are those that chose an answer token: the last prompt token, and every answer token but the last. What comes before them is
/// not computed again.
///
/// - `session`  a fork of the one that answered
pub(crate) fn look(subject: &NativeSubject, told: &Told, mut session: Session, watch: &Watch) -> Result<Looked, SubjectError> {
    let prompt_tokens = told.prompt.ids.len();
    let ids: Vec<u32> = told.prompt.ids.iter().chain(&told.ids).copied().collect();
    let rows = prompt_tokens - 1..prompt_tokens - 1 + told.ids.len().max(1);
    let spans = spans(told, prompt_tokens);
    let ranges: Vec<Range<usize>> = spans.iter().map(|span| span.first_token..span.first_token + span.tokens).collect();
    let windows: Vec<Option<usize>> = subject.model.blueprint().layers.iter().map(|layer| layer.window.keys()).collect();
    // The last answer token chooses nothing that was kept, so it need not be read.
    let read = &ids[..rows.end];
    let mut statistics = AttentionStatistics::new(rows.clone(), ranges.clone());
    let mut again = |observer: &mut dyn Observer| {
        session.truncate(rows.start);
        let rest = &read[session.ids().len()..];
        session.push_observed(&subject.model, rest, Rows::None, &subject.workers, observer).map_err(|error| internal(&error))
    };
    again(&mut statistics)?;
    let heads = statistics.finish();
    let uniform = |layer: usize, span: &Range<usize>| {
        let of_row = |row: usize| uniform_mass(span, &visible_keys(row, windows[layer]));
        rows.clone().map(of_row).sum::<f64>() / rows.len() as f64
    };
    let layers: Vec<LayerLook> =
        (0..windows.len()).map(|layer| layer_look(layer, &heads, ranges.iter().map(|span| uniform(layer, span)).collect())).collect();
    let chosen = telling_heads(&heads, &spans, &layers, watch.heads_in_full);
    let refs: Vec<HeadRef> = chosen.iter().map(|(head, _)| *head).collect();
    let mut in_full = AttentionRows::new(rows.clone(), &refs);
    if !refs.is_empty() {
        again(&mut in_full)?;
    }
    let mut held = in_full.finish();
    let maps = chosen.into_iter().map(|(head, why)| {
        let (queries, weights) = held.remove(&head).unwrap_or_default().into_iter().unzip();
        HeadMap { layer: head.layer, head: head.head, why, queries, weights }
    });
    let maps: Vec<HeadMap> = maps.collect();
    let tokens = if maps.is_empty() { Vec::new() } else { subject.tokenizer.token_texts(&ids) };
    Ok(Looked {
        answer: told.answer.text.clone(),
        answer_rows: rows.len(),
        spans,
        layers,
        tokens: tokens.into_iter().map(|token| TokenText { id: token.id, text: token.text }).collect(),
        maps,
    })
}

/// The named parts of the prompt, and the answer after it.
fn spans(told: &Told, prompt_tokens: usize) -> Vec<PromptSpan> {
    let named = told.prompt.spans.iter().map(|span| PromptSpan {
        name: span.name.clone(),
        first_token: span.tokens.start,
        tokens: span.tokens.len(),
    });
    let answer = PromptSpan { name: "answer".to_owned(), first_token: prompt_tokens, tokens: told.ids.len() };
    named.chain(std::iter::once(answer)).collect()
}

fn layer_look(layer: usize, heads: &[HeadStatistics], uniform: Vec<f64>) -> LayerLook {
    let heads: Vec<Vec<f64>> = heads.iter().filter(|head| head.layer == layer).map(|head| head.span_mass.clone()).collect();
    let mean = |span: usize| heads.iter().map(|masses| masses[span]).sum::<f64>() / heads.len().max(1) as f64;
    let mass: Vec<f64> = (0..uniform.len()).map(mean).collect();
    let lift = mass.iter().zip(&uniform).map(|(mass, uniform)| (*uniform > 0.0).then(|| mass / uniform)).collect();
    LayerLook { layer, mass, uniform, lift, heads }
}

/// The heads that gave one document the most beyond the uniform share, best first, with the reason in words.
fn telling_heads(heads: &[HeadStatistics], spans: &[PromptSpan], layers: &[LayerLook], count: usize) -> Vec<(HeadRef, String)> {
    let mut telling: Vec<(f64, HeadRef, usize)> = Vec::new();
    for head in heads {
        let documents = (0..spans.len()).filter(|span| spans[*span].name.starts_with("document "));
        let excess = documents.map(|span| (head.span_mass[span] - layers[head.layer].uniform[span], span));
        if let Some((excess, span)) = excess.max_by(|a, b| a.0.total_cmp(&b.0)) {
            telling.push((excess, HeadRef { layer: head.layer, head: head.head }, span));
        }
    }
    telling.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let why = |(excess, head, span): (f64, HeadRef, usize)| {
        let text = format!("it gave `{}` {:.0} percentage points more than its uniform share", spans[span].name, 100.0 * excess);
        (head, text)
    };
    telling.into_iter().take(count).map(why).collect()
}

fn internal(error: &glassbox_model::ModelError) -> SubjectError {
    SubjectError::new(FailureClass::Internal, error.to_string())
}
