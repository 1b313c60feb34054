//! `inspect --evidence`: what an answer came from, part by part of the prompt.

use std::ops::Range;

use glassbox_model::Windows;
use glassbox_subject::{Claim, Effect, Evidence, NamedSpan, Says, SpanEvidence};
use glassbox_text::{Piece, visible};
use serde::Serialize;

use crate::args::Inspect;
use crate::commands::layers::first_token;
use crate::exit::Failure;
use crate::help::text as translated;
use crate::opened::{Opened, Read, standard_input};
use crate::terminal;

/// By how much the parts may miss the logit that they make up, for each 1 of it, before something is wrong: with activations as they are, sums in
/// f32 stay far below.
const MOST_MISSING: f64 = 1e-3;

/// What the screen says, by the key of its translation.
const TEXTS: [(&str, &str); 21] = [
    ("evidence-answer", "the answer"),
    ("evidence-part", "part of the prompt"),
    ("evidence-mass", "attention"),
    ("evidence-lift", "lift"),
    ("evidence-value", "by values"),
    ("evidence-ledger", "added to the logit"),
    ("evidence-knockout", "not read"),
    ("evidence-deletion", "left out"),
    ("evidence-agree", "do they agree?"),
    ("evidence-none", "yes: not from here"),
    ("evidence-all", "yes: from here"),
    ("evidence-some", "no: from here say"),
    ("evidence-cap", "before the soft-cap at"),
    ("evidence-logit", "the logit of"),
    ("evidence-parts", "these parts"),
    ("evidence-elsewhere", "attention to other tokens"),
    ("evidence-memory", "feed-forward (what the weights know)"),
    ("evidence-embedding", "embedding"),
    ("evidence-bias", "bias"),
    ("evidence-rounding", "rounding"),
    (
        "evidence-legend",
        "✓ the method says that the answer came from here: most attention, most for its length, most by values, most added; or, where no later\ntoken may read the part and where it is left out, another answer or less than half the probability",
    ),
];

/// Keys of all texts that are translated.
#[cfg(test)]
pub(crate) fn text_keys() -> impl Iterator<Item = String> {
    TEXTS.iter().map(|text| text.0.to_owned())
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    prompt: &'a str,
    prompt_ids: &'a [u32],
    answer: Token,
    /// Where given, parts are of the difference: the answer's logit less this one's.
    against: Option<Token>,
    /// Natural logarithm of the answer's probability.
    log_probability: f64,
    /// What the parts make up: a logit before its soft-cap, or a difference of two.
    logit: f64,
    soft_cap: Option<f32>,
    spans: Vec<Span>,
    /// Through attention from tokens in no span.
    elsewhere: f64,
    /// [layer] What the weights know, given what was read.
    feed_forward: &'a [f64],
    embedding: f64,
    bias: f64,
    rounding: f64,
    /// How numbers were made that are not those of the model as it is.
    edits: &'static str,
}

/// A token by name.
#[derive(Serialize)]
struct Token {
    id: u32,
    text: String,
}

/// A part of the prompt.
#[derive(Serialize)]
struct Span {
    name: String,
    text: String,
    first_token: usize,
    tokens: usize,
    /// Share of the last token's attention, mean over heads and layers.
    mass: f64,
    lift: Option<f64>,
    value_weighted_mass: f64,
    /// What it added to the logit through attention.
    ledger: f64,
    /// [layer, head]
    ledger_by_head: Vec<Vec<f64>>,
    knockout: Option<After>,
    deletion: Option<After>,
    says: Verdicts,
    agree: bool,
}

/// The answer after an intervention.
#[derive(Serialize)]
struct After {
    says: Token,
    changed: bool,
    log_probability: f64,
    fall_nats: f64,
}

/// Whether each method names the part; none where it has nothing to go by.
#[derive(Serialize)]
struct Verdicts {
    mass: Option<bool>,
    lift: Option<bool>,
    value_weighted_mass: Option<bool>,
    ledger: Option<bool>,
    knockout: Option<bool>,
    deletion: Option<bool>,
}

/// The prompt, cut into the parts that the user named, or into its lines.
pub(crate) fn read(command: &Inspect, opened: &Opened, text: &str) -> Result<Read, Failure> {
    opened.decoder()?;
    let text = if text == "-" { standard_input()? } else { text.to_owned() };
    let cuts = if command.span.is_empty() { lines(&text) } else { named(&text, &command.span)? };
    let mut pieces = Vec::new();
    let mut done = 0;
    for (name, bytes) in cuts {
        pieces.push(Piece::text(&text[done..bytes.start]));
        pieces.push(Piece::named(name, &text[bytes.clone()]));
        done = bytes.end;
    }
    pieces.push(Piece::text(&text[done..]));
    pieces.retain(|piece| !piece.text.is_empty());
    opened.read_pieces(pieces, command.chat, command.system.as_deref())
}

/// Every line that is not blank.
fn lines(text: &str) -> Vec<(String, Range<usize>)> {
    let mut start = 0;
    let mut lines = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if !line.trim().is_empty() {
            lines.push((format!("line {}", number + 1), start..start + line.len()));
        }
        start += line.len() + 1;
    }
    lines
}

/// The parts that the user named, in the order of the text.
fn named(text: &str, spans: &[String]) -> Result<Vec<(String, Range<usize>)>, Failure> {
    let refusal =
        |message: String| Failure::usage(anyhow::anyhow!(message)).hint("give more of the text around it, so that it stands there once");
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        // A text that stands in the prompt as it is needs no name, though it may hold an equals sign.
        let (name, wanted) = match span.split_once('=') {
            Some((name, wanted)) if !text.contains(span.as_str()) => (name.to_owned(), wanted),
            _ => (format!("span {}", index + 1), span.as_str()),
        };
        if wanted.is_empty() {
            return Err(Failure::usage(anyhow::anyhow!("--span `{span}` is empty; wanted a part of the prompt")));
        }
        let mut places = text.match_indices(wanted).map(|(place, _)| place);
        let place = places.next().ok_or_else(|| Failure::usage(anyhow::anyhow!("--span: the prompt does not hold `{wanted}`")))?;
        if places.next().is_some() {
            return Err(refusal(format!("--span: `{wanted}` stands more than once in the prompt")));
        }
        found.push((name, place..place + wanted.len()));
    }
    found.sort_by_key(|(_, bytes)| bytes.start);
    match found.windows(2).find(|pair| pair[0].1.end > pair[1].1.start) {
        Some(pair) => Err(Failure::usage(anyhow::anyhow!("--span: `{}` and `{}` overlap; wanted parts that do not", pair[0].0, pair[1].0))),
        None => Ok(found),
    }
}

pub(crate) fn run(command: &Inspect, opened: &Opened, prompt: &Read) -> Result<(), Failure> {
    let model = opened.decoder()?;
    let spans: Vec<NamedSpan> = prompt
        .spans
        .iter()
        .filter(|span| span.tokens > 0)
        .map(|span| NamedSpan { name: span.name.clone(), tokens: span.first_token..span.first_token + span.tokens })
        .collect();
    let token_of = |text: &Option<String>| text.as_ref().map(|text| first_token(command, opened, prompt, text)).transpose();
    let (answer, against) = (token_of(&command.answer)?, token_of(&command.against)?);
    let mut session = opened.session(prompt.ids.len(), Windows::Whole)?;
    let evidence = Evidence::weigh(model, &opened.workers, &mut session, &prompt.ids, &spans, answer, against)?;
    if !evidence.logit.is_finite() {
        return Err(crate::not_finite::failure(opened, &prompt.ids));
    }
    if opened.exact() && evidence.rounding.abs() > MOST_MISSING * evidence.logit.abs().max(1.0) {
        let message =
            format!("the parts of the logit miss it by {} of {}: this is a fault of this program", evidence.rounding, evidence.logit);
        return Err(Failure::internal(anyhow::anyhow!(message)));
    }
    if command.json { terminal::print_json(&document(opened, prompt, &evidence)) } else { show(command, opened, prompt, &evidence) }
}

fn text_of(prompt: &Read, span: &NamedSpan) -> String {
    prompt.tokens[span.tokens.clone()].iter().map(|token| token.text.as_str()).collect()
}

fn document<'a>(opened: &'a Opened, prompt: &'a Read, evidence: &'a Evidence) -> Document<'a> {
    let token = |id| Token { id, text: opened.token_text(id) };
    let after = |effect: Effect| After {
        says: token(effect.says),
        changed: effect.changed,
        log_probability: effect.log_probability,
        fall_nats: effect.fall_nats,
    };
    let verdict = |says| match says {
        Says::Yes => Some(true),
        Says::No => Some(false),
        Says::Nothing => None,
    };
    let span = |(of, claim): (&SpanEvidence, Claim)| Span {
        name: of.span.name.clone(),
        text: text_of(prompt, &of.span),
        first_token: of.span.tokens.start,
        tokens: of.span.tokens.len(),
        mass: of.mass,
        lift: of.lift,
        value_weighted_mass: of.value_weighted,
        ledger: of.ledger,
        ledger_by_head: of.by_head.clone(),
        knockout: of.knockout.map(after),
        deletion: of.deletion.map(after),
        says: Verdicts {
            mass: verdict(claim.mass),
            lift: verdict(claim.lift),
            value_weighted_mass: verdict(claim.value_weighted),
            ledger: verdict(claim.ledger),
            knockout: verdict(claim.knockout),
            deletion: verdict(claim.deletion),
        },
        agree: claim.agrees(),
    };
    Document {
        format: "glassbox-evidence",
        version: 1,
        model: &opened.name,
        prompt: &prompt.text,
        prompt_ids: &prompt.ids,
        answer: token(evidence.answer),
        against: evidence.against.map(token),
        log_probability: evidence.log_probability,
        logit: evidence.logit,
        soft_cap: opened.decoder().ok().and_then(glassbox_model::Model::logit_cap),
        spans: evidence.spans.iter().zip(evidence.claims()).map(span).collect(),
        elsewhere: evidence.elsewhere,
        feed_forward: &evidence.memory.feed_forward,
        embedding: evidence.memory.embedding,
        bias: evidence.memory.bias,
        rounding: evidence.rounding,
        edits: "knockout: minus infinity on the scores of all later tokens to the span, all layers; deletion: the prompt without the span's tokens",
    }
}

fn show(command: &Inspect, opened: &Opened, prompt: &Read, evidence: &Evidence) -> Result<(), Failure> {
    let lang = command.language.lang;
    let say = |key: &str| translated(lang, key, TEXTS.iter().find(|text| text.0 == key).map_or(key, |text| text.1));
    terminal::print(&format!("{}: {}; {}\n\n", opened.name, opened.description(), opened.run_by()))?;
    let answer = visible(&opened.token_text(evidence.answer));
    let of_what = match evidence.against {
        None => format!("`{answer}`"),
        Some(against) => format!("`{answer}` − `{}`", visible(&opened.token_text(against))),
    };
    let percent = 100.0 * evidence.log_probability.exp();
    terminal::print(&format!("{}: `{answer}`, {percent:.1} %\n", say("evidence-answer")))?;
    let header = [
        say("evidence-part"),
        say("evidence-mass"),
        say("evidence-lift"),
        say("evidence-value"),
        say("evidence-ledger"),
        say("evidence-knockout"),
        say("evidence-deletion"),
        say("evidence-agree"),
    ];
    let mut table = terminal::table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    let mark = |text: String, says: Says| if says == Says::Yes { format!("{text} ✓") } else { text };
    let after = |effect: Option<Effect>, says: Says| match effect {
        None => "–".to_owned(),
        Some(effect) if effect.changed => mark(format!("`{}`", visible(&opened.token_text(effect.says))), says),
        Some(effect) => mark(format!("{:.1} %", 100.0 * effect.log_probability.exp()), says),
    };
    for (of, claim) in evidence.spans.iter().zip(evidence.claims()) {
        let named = claim.all().iter().filter(|says| **says == Says::Yes).count();
        let asked = claim.all().iter().filter(|says| **says != Says::Nothing).count();
        let agree = match (claim.agrees(), named) {
            _ if asked == 0 => "–".to_owned(),
            (true, 0) => say("evidence-none"),
            (true, _) => say("evidence-all"),
            (false, _) => format!("{} {named}/{asked}", say("evidence-some")),
        };
        table.add_row([
            format!("{}: {}", of.span.name, terminal::excerpt(text_of(prompt, &of.span).trim())),
            mark(format!("{:.1} %", 100.0 * of.mass), claim.mass),
            mark(of.lift.map_or_else(|| "–".to_owned(), |lift| format!("{lift:.2}×")), claim.lift),
            mark(format!("{:.1} %", 100.0 * of.value_weighted), claim.value_weighted),
            mark(format!("{:+.3}", of.ledger), claim.ledger),
            after(of.knockout, claim.knockout),
            after(of.deletion, claim.deletion),
            agree,
        ]);
    }
    terminal::print_table(table)?;
    let memory: f64 = evidence.memory.feed_forward.iter().sum();
    let parts: f64 = evidence.spans.iter().map(|span| span.ledger).sum();
    let cap = opened.decoder()?.logit_cap();
    let cap = cap.map_or_else(String::new, |cap| format!(" ({} {cap})", say("evidence-cap")));
    terminal::print(&format!(
        "\n{} {of_what}{cap}: {:+.3} = {} {parts:+.3}, {} {:+.3}, {} {memory:+.3}, {} {:+.3}, {} {:+.3}, {} {:+.4}\n",
        say("evidence-logit"),
        evidence.logit,
        say("evidence-parts"),
        say("evidence-elsewhere"),
        evidence.elsewhere,
        say("evidence-memory"),
        say("evidence-embedding"),
        evidence.memory.embedding,
        say("evidence-bias"),
        evidence.memory.bias,
        say("evidence-rounding"),
        evidence.rounding
    ))?;
    terminal::print(&format!("{}\n", say("evidence-legend")))?;
    Ok(())
}
