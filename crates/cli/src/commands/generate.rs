//! `generate`: prompt in, text out, as it comes.

use std::num::NonZeroUsize;

use glassbox_generate::{FinishReason, Generation, GenerationError, Sampling, Settings};
use glassbox_mechanisms::softmax::log_probability;
use glassbox_model::Windows;
use serde::Serialize;

use crate::args::Generate;
use crate::exit::{Exit, Failure};
use crate::opened::{Opened, Read};
use crate::{Outcome, not_finite, signals, terminal};

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: &'a str,
    prompt: &'a str,
    prompt_ids: &'a [u32],
    text: &'a str,
    tokens: Vec<Token>,
    finish_reason: &'static str,
    seed: u64,
}

/// One token of the answer.
#[derive(Serialize)]
struct Token {
    id: u32,
    text: String,
    /// Its exact bytes, which may be a part of a character.
    bytes: Vec<u8>,
    /// Natural logarithm of the raw probability: before penalty, temperature and filters.
    log_probability: Option<f64>,
}

pub(crate) fn run(command: &Generate) -> Outcome {
    signals::listen();
    let opened = Opened::open(&command.model)?;
    let model = opened.decoder()?;
    let prompt = opened.read(&command.text, command.chat, command.system.as_deref())?;
    let tokenizer = opened.tokenizer()?;
    let settings = Settings {
        max_tokens: command.max_tokens,
        sampling: Sampling {
            temperature: command.temperature,
            top_k: command.top_k,
            top_p: command.top_p,
            min_p: command.min_p,
            repetition_penalty: command.repetition_penalty,
            seed: command.seed,
        },
        stop: command.stop.clone(),
        end_ids: if command.ignore_end { Vec::new() } else { opened.end_ids() },
    };
    settings.sampling.check().map_err(Failure::usage)?;
    let context = context_for(command, &opened, &prompt);
    let mut session = opened.session(context, Windows::Ring)?;
    let mut generation = Generation::new(model, tokenizer, &opened.workers, &mut session, &prompt.ids, &settings).map_err(|error| {
        let too_long = matches!(error, GenerationError::PromptTooLong { .. }) && command.context.is_none();
        let failure = failure(&opened, &prompt.ids, error);
        if too_long { failure.hint(opened.made_for_hint()) } else { failure }
    })?;
    let mut tokens = Vec::new();
    let mut interrupted = false;
    let mut ids = prompt.ids.clone();
    while let Some(step) = generation.next_step().map_err(|error| failure(&opened, &ids, error))? {
        ids.push(step.id);
        if command.json {
            let log_probability = log_probability(&step.logits, step.id);
            let bytes = tokenizer.token_bytes(step.id).to_vec();
            tokens.push(Token { id: step.id, text: opened.token_text(step.id), bytes, log_probability });
        } else {
            terminal::print_told(&step.text)?;
        }
        interrupted = signals::interrupted().load(std::sync::atomic::Ordering::SeqCst);
        if interrupted {
            break;
        }
    }
    let (answer, held) = generation.finish();
    if command.json {
        let finish_reason = match answer.finish_reason {
            FinishReason::EndToken | FinishReason::StopString => "stop",
            FinishReason::MaxTokens | FinishReason::ContextFull => "length",
        };
        let document = Document {
            format: "glassbox-generation",
            version: 1,
            model: &opened.name,
            prompt: &prompt.text,
            prompt_ids: &prompt.ids,
            text: &answer.text,
            tokens,
            finish_reason: if interrupted { "interrupted" } else { finish_reason },
            seed: command.seed,
        };
        terminal::print_json(&document)?;
    } else {
        terminal::print_told(&format!("{held}\n"))?;
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Success })
}

/// Room for the prompt and the answer, as the user wants it or as they need it.
fn context_for(command: &Generate, opened: &Opened, prompt: &Read) -> usize {
    let wanted = prompt.ids.len().saturating_add(command.max_tokens.max(1));
    command.context.map_or(wanted.min(opened.made_for()), NonZeroUsize::get)
}

/// Why there is no next token after `ids`.
fn failure(opened: &Opened, ids: &[u32], error: GenerationError) -> Failure {
    match error {
        GenerationError::NotFinite { .. } => not_finite::failure(opened, ids),
        error => Failure::usage(error),
    }
}
