//! `models`: what there is, and what is in one.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use glassbox_checkpoint::{Usable, models_in};
use glassbox_text::{ChatTemplate, Tokenizer};
use serde::Serialize;

use crate::args::{ModelChoice, Models};
use crate::exit::{Exit, Failure};
use crate::opened::{Opened, hub_cache};
use crate::{Outcome, specimen, terminal};

pub(crate) fn run(command: &Models) -> Outcome {
    match command {
        Models::List { folder, json } => list(folder, *json),
        Models::Info { model, json } => info(model, *json),
    }
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
    for local in models_in(folder).map_err(Failure::usage)? {
        let (usable, note) = note(&local.usable);
        let bytes = std::fs::metadata(&local.path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        models.push(Listed { model: local.path.display().to_string(), place: folder.display().to_string(), bytes, usable, note });
    }
    for cached in hub_cache().models().map_err(Failure::usage)? {
        let (usable, note) = note(&cached.usable);
        let model =
            if cached.refs.iter().any(|name| name == "main") { cached.name } else { format!("{}@{}", cached.name, cached.revision) };
        models.push(Listed { model, place: "Hugging Face cache".to_owned(), bytes: Some(cached.bytes), usable, note });
    }
    if json {
        return print_json(&models);
    }
    let mut table = plain_table(&["model", "where", "size", "note"]);
    for model in &models {
        table.add_row([model.model.clone(), model.place.clone(), model.bytes.map_or_else(String::new, mib), model.note.clone()]);
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(Exit::Success)
}

fn note(usable: &Usable) -> (bool, String) {
    match usable {
        Usable::Folder => (true, String::new()),
        Usable::Gguf(files) => (true, files.join(", ")),
        Usable::No(reason) => (false, format!("cannot be opened: {reason}")),
        _ => (false, "unknown to this version".to_owned()),
    }
}

/// What `models info` says.
#[derive(Serialize)]
struct Info {
    model: String,
    description: String,
    context_tokens: usize,
    parameters: u64,
    bytes: u64,
    storage: Vec<Share>,
    cache_bytes_per_token: u64,
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
    let layers = opened.model.cache_layers();
    let info = Info {
        model: opened.name.clone(),
        description: opened.description(),
        context_tokens: opened.model.blueprint().context,
        parameters: storage.iter().map(|share| share.numbers).sum(),
        bytes: opened.checkpoint.bytes_total(),
        storage,
        // Keys and values, four bytes each.
        cache_bytes_per_token: layers.iter().map(|layer| 2 * 4 * (layer.kv_heads * layer.d_head) as u64).sum(),
        tokenizer: match Tokenizer::open(&opened.checkpoint) {
            Ok(tokenizer) => format!("{} tokens", tokenizer.vocab_size()),
            Err(error) => format!("none: {error}"),
        },
        chat_template: ChatTemplate::open(&opened.checkpoint, None).is_ok(),
        blake3: opened.checkpoint.content_hash().to_string(),
    };
    if json {
        return print_json(&info);
    }
    let mut table = plain_table(&["", ""]);
    table.add_row(["model", &info.model]);
    table.add_row(["architecture", &info.description]);
    table.add_row(["parameters", &format!("{:.1} million", info.parameters as f64 / 1e6)]);
    table.add_row(["size", &mib(info.bytes)]);
    for share in &info.storage {
        let percent = 100.0 * share.bytes as f64 / info.bytes.max(1) as f64;
        table.add_row([share.storage.as_str(), &format!("{} tensors, {}, {percent:.0} %", share.tensors, mib(share.bytes))]);
    }
    table.add_row(["context", &format!("{} tokens", info.context_tokens)]);
    table.add_row(["cache", &format!("{} bytes a token (f32)", info.cache_bytes_per_token)]);
    table.add_row(["tokenizer", &info.tokenizer]);
    table.add_row(["chat template", if info.chat_template { "yes" } else { "no" }]);
    table.add_row(["BLAKE3", &info.blake3]);
    terminal::print(&format!("{table}\n"))?;
    Ok(Exit::Success)
}

fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(Failure::internal)?;
    terminal::print(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header.to_vec());
    }
    table
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
