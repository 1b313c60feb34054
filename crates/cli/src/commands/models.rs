//! `models`: what there is, and what is in one; `pull` has a file of its own.

use std::path::Path;

use glassbox_checkpoint::{CachedModel, Checkpoint, Usable, models_in};
use glassbox_model::Encoder;
use glassbox_text::{ChatTemplate, Tokenizer};
use serde::Serialize;

use super::pull;
use crate::args::{ModelChoice, Models};
use crate::exit::{Exit, Failure};
use crate::opened::{Engine, Opened, hub_cache};
use crate::{Outcome, specimen, terminal};

pub(crate) fn run(command: &Models) -> Outcome {
    match command {
        Models::List { folder, json } => list(folder, *json),
        Models::Pull { named, json, quiet } => pull::run(named, *json, *quiet),
        Models::Info { named, model, json } => info(&model.or_named(named.as_deref()), *json),
    }
}

/// The document of `models list --json`.
#[derive(Serialize)]
struct List<'a> {
    format: &'static str,
    version: u32,
    models: &'a [Listed],
}

/// One model that can be named with `-m`.
#[derive(Serialize)]
struct Listed {
    model: String,
    place: String,
    bytes: Option<u64>,
    usable: bool,
    note: String,
}

fn list(folder: &Path, json: bool) -> Outcome {
    let mut models = vec![Listed {
        model: specimen::NAME.to_owned(),
        place: "built in".to_owned(),
        bytes: None,
        usable: true,
        note: "a small model whose knowledge is known".to_owned(),
    }];
    // A folder that is not there has no models; that is said only where the user named it.
    if folder != Path::new(".") && !folder.is_dir() {
        return Err(Failure::usage(anyhow::anyhow!("`{}`: wanted a folder with models, found {}", folder.display(), found_at(folder))));
    }
    for local in models_in(folder)? {
        let (usable, note) = run_with(&local.path);
        let bytes = std::fs::metadata(&local.path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        models.push(Listed { model: local.path.display().to_string(), place: folder.display().to_string(), bytes, usable, note });
    }
    for cached in hub_cache().models()? {
        let (usable, note) = note(&cached);
        let model =
            if cached.refs.iter().any(|name| name == "main") { cached.name } else { format!("{}@{}", cached.name, cached.revision) };
        models.push(Listed { model, place: "Hugging Face cache".to_owned(), bytes: Some(cached.bytes), usable, note });
    }
    if json {
        terminal::print_json(&List { format: "glassbox-models", version: 1, models: &models })?;
        return Ok(Exit::Success);
    }
    let mut table = terminal::table(&["model", "where", "size", "note"]);
    for model in &models {
        table.add_row([model.model.clone(), model.place.clone(), model.bytes.map_or_else(String::new, size), model.note.clone()]);
    }
    terminal::print_table(table)?;
    Ok(Exit::Success)
}

/// Whether a model can be run, told from its headers and settings, and what there is to say about that.
fn run_with(path: &Path) -> (bool, String) {
    let checkpoint = match Checkpoint::open(path) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return (false, cannot_be_opened(&error.to_string())),
    };
    match Encoder::reads(&checkpoint) {
        Ok(false) => (true, String::new()),
        Ok(true) => (true, "an encoder: for `embed` and `inspect`".to_owned()),
        Err(error) => (false, format!("cannot be run: {}", without_remedy(&error.to_string()))),
    }
}

fn cannot_be_opened(reason: &str) -> String {
    format!("cannot be opened: {}", without_remedy(reason))
}

/// An error in short: the remedy after the semicolon is for whoever tries to open it. A semicolon inside brackets or a quotation is part of
/// what was found.
fn without_remedy(error: &str) -> &str {
    let (mut depth, mut quoted) = (0_usize, false);
    for (at, character) in error.char_indices() {
        match character {
            '`' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth = depth.saturating_sub(1),
            ';' if !quoted && depth == 0 => return &error[..at],
            _ => {}
        }
    }
    error
}

fn found_at(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(_) => "a file; `glassbox models info -m FILE` tells about one model".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn note(cached: &CachedModel) -> (bool, String) {
    let usable = |path: &Path, file: &str| match run_with(path) {
        (true, note) if note.is_empty() => (true, file.to_owned()),
        (true, note) if !file.is_empty() => (true, format!("{file}, {note}")),
        said => said,
    };
    match &cached.usable {
        Usable::Folder => usable(&cached.folder, ""),
        Usable::Gguf(files) if files.len() == 1 => usable(&cached.folder.join(&files[0]), &files[0]),
        Usable::Gguf(files) => (true, files.join(", ")),
        Usable::No(reason) => (false, cannot_be_opened(reason)),
        _ => (false, "unknown to this version".to_owned()),
    }
}

/// What `models info` says.
#[derive(Serialize)]
struct Info {
    format: &'static str,
    version: u32,
    model: String,
    description: String,
    context_tokens: usize,
    parameters: u64,
    bytes: u64,
    storage: Vec<Share>,
    /// None for an encoder, which keeps nothing for later tokens.
    cache_bytes_per_token: Option<u64>,
    tokenizer: String,
    chat_template: bool,
    blake3: String,
}

/// How much is stored in one storage type.
#[derive(Serialize)]
struct Share {
    storage: String,
    tensors: usize,
    numbers: u64,
    bytes: u64,
}

fn info(choice: &ModelChoice, json: bool) -> Outcome {
    let opened = Opened::open(choice)?;
    let storage: Vec<Share> = opened
        .checkpoint
        .storage_shares()
        .into_iter()
        .map(|share| Share { storage: share.storage, tensors: share.tensors, numbers: share.numbers, bytes: share.bytes })
        .collect();
    // Keys and values, four bytes each.
    let cache_bytes_per_token = match &opened.engine {
        Engine::Decoder(model) => Some(model.cache_layers().iter().map(|layer| 2 * 4 * (layer.kv_heads * layer.d_head) as u64).sum()),
        Engine::Encoder(_) => None,
    };
    let info = Info {
        format: "glassbox-model",
        version: 1,
        model: opened.name.clone(),
        description: opened.description(),
        context_tokens: opened.made_for(),
        parameters: storage.iter().map(|share| share.numbers).sum(),
        bytes: opened.checkpoint.bytes_total(),
        storage,
        cache_bytes_per_token,
        tokenizer: match Tokenizer::open(&opened.checkpoint) {
            Ok(tokenizer) => format!("{} tokens", tokenizer.vocab_size()),
            Err(error) => format!("none: {error}"),
        },
        chat_template: ChatTemplate::open(&opened.checkpoint, None).is_ok(),
        blake3: opened.checkpoint.content_hash().to_string(),
    };
    if json {
        terminal::print_json(&info)?;
        return Ok(Exit::Success);
    }
    let mut table = terminal::table(&[]);
    table.add_row(["model", &info.model]);
    table.add_row(["architecture", &info.description]);
    table.add_row(["parameters", &format!("{:.1} million", info.parameters as f64 / 1e6)]);
    table.add_row(["size", &size(info.bytes)]);
    for share in &info.storage {
        let percent = 100.0 * share.bytes as f64 / info.bytes.max(1) as f64;
        table.add_row([share.storage.as_str(), &format!("{} tensors, {}, {percent:.0} %", share.tensors, size(share.bytes))]);
    }
    table.add_row(["context", &format!("{} tokens", info.context_tokens)]);
    if let Some(bytes) = info.cache_bytes_per_token {
        table.add_row(["cache", &format!("{bytes} bytes a token (f32)")]);
    }
    table.add_row(["tokenizer", &info.tokenizer]);
    table.add_row(["chat template", if info.chat_template { "yes" } else { "no" }]);
    table.add_row(["BLAKE3", &info.blake3]);
    terminal::print_table(table)?;
    Ok(Exit::Success)
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / f64::from(1 << 10)),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_ends_before_the_remedy_and_not_inside_brackets_or_a_quotation() {
        for (error, short) in [
            ("a: wanted b, found c; do d", "a: wanted b, found c"),
            ("a: found 3 (in 2 parts; one is missing); fetch it", "a: found 3 (in 2 parts; one is missing)"),
            ("a: found `x;y)`; do d; or e", "a: found `x;y)`"),
            ("a: nothing to do", "a: nothing to do"),
        ] {
            assert_eq!(without_remedy(error), short);
        }
    }
}
