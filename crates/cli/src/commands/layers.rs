//! `inspect --layers`: what each layer would answer, and what each part of the model gave to the answer.

use glassbox_anatomy::Site;
use glassbox_lens::{LastRow, LayerAnswer, NextTokens};
use glassbox_model::{HeadParts, LogitDirection, Model, Rows};
use glassbox_text::{Continuation, Specials, visible};
use serde::Serialize;

use crate::args::Inspect;
use crate::exit::Failure;
use crate::opened::{Opened, Read};
use crate::{not_finite, terminal};

const SITES: &[Site] = &[Site::EmbedOut, Site::Mixed, Site::AttnOut, Site::AttnAdded, Site::FfnAdded, Site::BlockOut];

/// Heads that a terminal names: those that gave most, for or against.
const HEADS_SHOWN: usize = 8;

/// By how much the parts may miss the logit that they make up, for each 1 of it, before something is wrong: with activations as they
/// are, sums in f32 stay far below.
const MOST_MISSING: f64 = 1e-3;

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    prompt: &'a str,
    prompt_ids: &'a [u32],
    /// The token whose logit is taken apart.
    answer: Token,
    /// Where given, parts are of the difference: the answer's logit less this one's.
    against: Option<Token>,
    /// Entry 0 is the embedding, entry `l + 1` the stream as it leaves layer `l`.
    layers: Vec<Layer>,
    /// What the parts make up: a logit before its soft-cap, or a difference of two.
    logit: f64,
    /// The bound of the soft-cap; a logit shown elsewhere is `cap * tanh(logit / cap)`.
    soft_cap: Option<f32>,
    parts: Parts,
}

/// A token by name.
#[derive(Serialize)]
struct Token {
    id: u32,
    text: String,
}

/// What one layer would answer.
#[derive(Serialize)]
struct Layer {
    /// None: the embedding.
    layer: Option<usize>,
    next: Vec<NextToken>,
    entropy_nats: f64,
    /// Of the answer: 1 is the most probable.
    rank: usize,
    log_probability: f64,
    kl_to_end_nats: f64,
}

/// One of its most probable tokens.
#[derive(Serialize)]
struct NextToken {
    id: u32,
    text: String,
    probability: f64,
}

/// What was added to the logit; all of it adds up to it.
#[derive(Serialize)]
struct Parts {
    embedding: f64,
    /// [layer]
    attention: Vec<f64>,
    /// [layer, head], parts of `attention`.
    heads: Vec<Vec<f64>>,
    /// [layer], the rest of `attention`: biases of its output.
    attention_bias: Vec<f64>,
    /// [layer]
    feed_forward: Vec<f64>,
    /// The bias of the last norm.
    constant: f64,
    /// What all of these leave of the logit.
    rounding: f64,
}

/// Looks at the answer after the last token of `prompt`.
pub(crate) fn run(command: &Inspect, opened: &Opened, prompt: &Read) -> Result<(), Failure> {
    let model = opened.decoder()?;
    let mut rows = LastRow::new(SITES);
    let logits = opened.watch(&prompt.ids, Rows::Last, &mut rows)?;
    not_finite::check(opened, &prompt.ids, &logits)?;
    let row = |site, layer| rows.row(site, layer).expect("every block has every site");
    let layers = model.blueprint().layers.len();
    let answer = match &command.answer {
        Some(text) => first_token(command, opened, prompt, text)?,
        None => NextTokens::of(&logits, 1).top[0].id,
    };
    let against = command.against.as_ref().map(|text| first_token(command, opened, prompt, text)).transpose()?;

    let streams = [row(Site::EmbedOut, 0)].into_iter().chain((0..layers).map(|layer| row(Site::BlockOut, layer)));
    let said = streams.enumerate().map(|(index, stream)| {
        let said = LayerAnswer::of(&model.read_out(stream, &opened.workers), &logits, answer, command.top.max(1));
        layer(opened, index.checked_sub(1), &said)
    });
    let said: Vec<Layer> = said.collect();

    let stream = row(Site::BlockOut, layers - 1);
    let (direction, logit) = model.answer_direction(stream, &logits, answer, against)?;
    let parts = parts(model, &rows, &direction, logit);
    if opened.exact() && parts.rounding.abs() > MOST_MISSING * logit.abs().max(1.0) {
        let message = format!("the parts of the logit add up to {} of {logit}: this is a fault of this program", logit - parts.rounding);
        return Err(Failure::internal(anyhow::anyhow!(message)));
    }
    let token = |id| Token { id, text: opened.token_text(id) };
    let document = Document {
        format: "glassbox-layers",
        version: 1,
        model: &opened.name,
        prompt: &prompt.text,
        prompt_ids: &prompt.ids,
        answer: token(answer),
        against: against.map(token),
        layers: said,
        logit,
        soft_cap: model.logit_cap(),
        parts,
    };
    if command.json { terminal::print_json(&document) } else { show(opened, &document) }
}

/// The token with which a text would begin after the prompt.
pub(crate) fn first_token(command: &Inspect, opened: &Opened, prompt: &Read, text: &str) -> Result<u32, Failure> {
    let tokenizer = opened.tokenizer()?;
    // In a chat an answer begins after the last token of the template.
    let context = if command.chat { "" } else { &prompt.text };
    let read = Continuation::new(tokenizer, context, text, Specials::Literal)?;
    let token = read.continuation()[0];
    if read.continuation().len() > 1 {
        let first = opened.token_text(token);
        terminal::remark(&format!("`{text}` is {} tokens; what is shown is of its first, `{first}`", read.continuation().len()));
    }
    Ok(token)
}

fn layer(opened: &Opened, layer: Option<usize>, said: &LayerAnswer) -> Layer {
    let next = |token: &glassbox_lens::NextToken| NextToken {
        id: token.id,
        text: opened.token_text(token.id),
        probability: token.log_probability.exp(),
    };
    Layer {
        layer,
        next: said.next.top.iter().map(next).collect(),
        entropy_nats: said.next.entropy_nats,
        rank: said.rank,
        log_probability: said.log_probability,
        kl_to_end_nats: said.kl_to_end_nats,
    }
}

fn parts(model: &Model, rows: &LastRow, direction: &LogitDirection, logit: f64) -> Parts {
    let row = |site, layer| rows.row(site, layer).expect("every block has every site");
    let layers = 0..model.blueprint().layers.len();
    let by_head: Vec<HeadParts> =
        layers.clone().map(|layer| model.head_parts(layer, row(Site::Mixed, layer), row(Site::AttnOut, layer), direction)).collect();
    let of = |site| layers.clone().map(|layer| direction.of(row(site, layer))).collect::<Vec<f64>>();
    let mut parts = Parts {
        embedding: direction.of(row(Site::EmbedOut, 0)),
        attention: of(Site::AttnAdded),
        attention_bias: by_head.iter().map(|heads| heads.bias).collect(),
        heads: by_head.into_iter().map(|heads| heads.heads).collect(),
        feed_forward: of(Site::FfnAdded),
        constant: direction.constant(),
        rounding: 0.0,
    };
    let sum = parts.embedding + parts.constant + parts.attention.iter().chain(&parts.feed_forward).sum::<f64>();
    parts.rounding = logit - sum;
    parts
}

fn show(opened: &Opened, document: &Document<'_>) -> Result<(), Failure> {
    terminal::print(&format!("{}: {}; {}\n", opened.name, opened.description(), opened.run_by()))?;
    let answer = visible(&document.answer.text);
    let of_what = match &document.against {
        None => format!("the logit of `{answer}`"),
        Some(against) => format!("the logit of `{answer}` less that of `{}`", visible(&against.text)),
    };
    terminal::print(&format!("\nwhat each layer would answer, and what it adds to {of_what}\n"))?;
    let mut table =
        terminal::table(&["layer", "answer", "p", &format!("rank of `{answer}`"), "p", "KL to end", "attention", "feed-forward"]);
    for said in &document.layers {
        let (name, attention, feed_forward) = match said.layer {
            None => ("embedding".to_owned(), String::new(), String::new()),
            Some(layer) => {
                let added = |of: &[f64]| format!("{:+.3}", of[layer]);
                (layer.to_string(), added(&document.parts.attention), added(&document.parts.feed_forward))
            }
        };
        table.add_row([
            name,
            visible(&said.next[0].text),
            format!("{:.3}", said.next[0].probability),
            said.rank.to_string(),
            format!("{:.3}", said.log_probability.exp()),
            format!("{:.3}", said.kl_to_end_nats),
            attention,
            feed_forward,
        ]);
    }
    terminal::print_table(table)?;
    let parts = &document.parts;
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let cap = document.soft_cap.map_or_else(String::new, |cap| format!(" (before the soft-cap at {cap})"));
    terminal::print(&format!(
        "\n{of_what}{cap}: {:+.3} = embedding {:+.3}, attention {:+.3}, feed-forward {:+.3}, bias {:+.3}, rounding {:+.4}\n",
        document.logit,
        parts.embedding,
        sum(&parts.attention),
        sum(&parts.feed_forward),
        parts.constant,
        parts.rounding
    ))?;
    let mut heads: Vec<(usize, usize, f64)> = Vec::new();
    for (layer, of_layer) in parts.heads.iter().enumerate() {
        heads.extend(of_layer.iter().enumerate().map(|(head, added)| (layer, head, *added)));
    }
    heads.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
    let named: Vec<String> = heads.iter().take(HEADS_SHOWN).map(|(layer, head, added)| format!("{layer}.{head} {added:+.3}")).collect();
    terminal::print(&format!("heads that gave most (layer.head): {}\n", named.join(", ")))?;
    Ok(())
}
