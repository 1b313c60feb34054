//! `score`: how probable a model finds texts that are given.

use glassbox_model::Windows;
use glassbox_text::{Continuation, Specials};
use serde::Serialize;

use crate::args::Score;
use crate::exit::{Exit, Failure};
use crate::opened::{Opened, standard_input};
use crate::{Outcome, not_finite, terminal};

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    context: &'a str,
    context_ids: &'a [u32],
    continuations: &'a [Scored],
}

/// One continuation and what the model makes of it.
#[derive(Serialize)]
struct Scored {
    text: String,
    /// Sum of the logarithms of the tokens that have one.
    log_probability: f64,
    /// `exp` of minus their mean.
    perplexity: f64,
    /// `exp(log_probability)` over the sum of all continuations.
    share: f64,
    /// Whether context and continuation would have shared a token, so that each was tokenised by itself.
    tokenised_apart: bool,
    tokens: Vec<Token>,
}

/// One token of a continuation.
#[derive(Serialize)]
struct Token {
    id: u32,
    text: String,
    /// Natural logarithm of its probability after all tokens before it; none for a first token that nothing stands before.
    log_probability: Option<f64>,
}

pub(crate) fn run(command: &Score) -> Outcome {
    let opened = Opened::open(&command.model)?;
    let model = opened.decoder()?;
    let texts = match command.continuations.as_slice() {
        [only] if only == "-" => vec![standard_input()?],
        texts => texts.to_vec(),
    };
    let read = texts.iter().map(|text| tokens(command, &opened, text)).collect::<Result<Vec<_>, _>>()?;
    let longest = read.iter().map(|continuation| continuation.ids.len()).max().expect("at least one text is required");
    if longest > opened.made_for() {
        let message = anyhow::anyhow!("context and continuation have {longest} tokens; the model was made for {}", opened.made_for());
        return Err(Failure::usage(message).hint("score a shorter text"));
    }
    let mut session = opened.session(longest, Windows::Whole)?;
    let mut scored = Vec::with_capacity(texts.len());
    for (text, continuation) in texts.into_iter().zip(&read) {
        let logarithms = session.log_probabilities(model, &continuation.ids, continuation.start, &opened.workers)?;
        let known: Vec<f64> = logarithms.iter().copied().flatten().collect();
        if known.is_empty() {
            let message = "the text is one token, and nothing stands before it: it has no probability";
            return Err(Failure::usage(anyhow::anyhow!(message)).hint("give a --context"));
        }
        if known.iter().any(|logarithm| logarithm.is_nan()) {
            return Err(not_finite::failure(&opened, &continuation.ids));
        }
        let sum: f64 = known.iter().sum();
        let tokens = continuation.continuation().iter().zip(logarithms);
        scored.push(Scored {
            text,
            log_probability: sum,
            perplexity: (-sum / known.len() as f64).exp(),
            share: 0.0,
            tokenised_apart: continuation.is_apart,
            tokens: tokens.map(|(id, log_probability)| Token { id: *id, text: opened.token_text(*id), log_probability }).collect(),
        });
    }
    // Even an impossible text has a share of nothing, not of 0 / 0.
    let best = scored.iter().map(|one| one.log_probability).fold(f64::MIN, f64::max);
    let total: f64 = scored.iter().map(|one| (one.log_probability - best).exp()).sum();
    for one in &mut scored {
        one.share = (one.log_probability - best).exp() / total.max(f64::MIN_POSITIVE);
    }
    if command.json {
        terminal::print_json(&Document {
            format: "glassbox-scores",
            version: 1,
            model: &opened.name,
            context: &command.context,
            context_ids: &read[0].ids[..read[0].start],
            continuations: &scored,
        })?;
    } else {
        show(&opened, &scored)?;
    }
    Ok(Exit::Success)
}

/// Context and continuation as the model reads them.
fn tokens(command: &Score, opened: &Opened, text: &str) -> Result<Continuation, Failure> {
    let tokenizer = opened.tokenizer()?;
    if !command.chat {
        return Ok(Continuation::new(tokenizer, &command.context, text, Specials::Literal)?);
    }
    // The answer begins after the last token of the template, as when the model writes it: nothing can lie across that border.
    let prompt = opened.read(&command.context, true, None)?;
    let answer = tokenizer.encode(text, Specials::Literal)?;
    if answer.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!("a text to score is empty; wanted at least one token")));
    }
    Ok(Continuation { start: prompt.ids.len(), ids: [prompt.ids, answer].concat(), is_apart: false })
}

fn show(opened: &Opened, scored: &[Scored]) -> Result<(), Failure> {
    terminal::print(&format!("{}: {}\n\n", opened.name, opened.description()))?;
    let mut table = terminal::table(&["text", "tokens", "ln p", "perplexity", "share", "note"]);
    for one in scored {
        let first_unknown = one.tokens.first().is_some_and(|token| token.log_probability.is_none());
        let note = match (one.tokenised_apart, first_unknown) {
            (true, _) => "tokenised apart from the context",
            (false, true) => "without its first token",
            (false, false) => "",
        };
        table.add_row([
            terminal::excerpt(&one.text),
            one.tokens.len().to_string(),
            format!("{:.4}", one.log_probability),
            format!("{:.3}", one.perplexity),
            format!("{:.1} %", 100.0 * one.share),
            note.to_owned(),
        ]);
    }
    terminal::print_table(table)?;
    Ok(())
}
