//! `models pull`: a model from the Hugging Face hub into the cache.

use std::sync::atomic::Ordering;

use glassbox_checkpoint::ModelName;
use glassbox_hub::{Hub, HubSettings, PulledFile, Watch};
use indicatif::ProgressBar;
use serde::Serialize;

use super::models::size;
use crate::exit::{Exit, Failure};
use crate::opened::hub_cache;
use crate::{Outcome, signals, specimen, terminal};

/// The document of `models pull --json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    model: String,
    path: String,
    revision: &'a str,
    bytes: u64,
    fetched_bytes: u64,
    files: Vec<File<'a>>,
}

/// One file of it.
#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    bytes: u64,
    etag: &'a str,
    checked: bool,
    fetched: bool,
}

pub(super) fn run(named: &str, json: bool, quiet: bool) -> Outcome {
    if named == specimen::NAME {
        let error = anyhow::anyhow!("`{named}`: wanted a model of the hub, found the model that is built in");
        return Err(Failure::usage(error).hint("it needs no fetching: use it as it is"));
    }
    let model = ModelName::parse(named)?;
    let settings = HubSettings::read(|name| std::env::var_os(name))?;
    signals::listen();
    let mut progress = Progress::new(&model.name, quiet);
    let pulled = Hub::new(settings, hub_cache()).pull(&model, &mut progress);
    progress.bar.finish_and_clear();
    let pulled = pulled?;
    let bytes_of = |wanted: fn(&&PulledFile) -> bool| pulled.files.iter().filter(wanted).map(|file| file.bytes).sum();
    let (bytes, fetched_bytes): (u64, u64) = (bytes_of(|_| true), bytes_of(|file| file.fetched));
    let path = pulled.path.display().to_string();
    if json {
        let files = pulled.files.iter().map(|PulledFile { name, bytes, etag, checked, fetched }| File {
            name,
            bytes: *bytes,
            etag,
            checked: *checked,
            fetched: *fetched,
        });
        let revision = &pulled.revision;
        let (format, version, model, files) = ("glassbox-pull", 1, model.to_string(), files.collect());
        terminal::print_json(&Document { format, version, model, path, revision, bytes, fetched_bytes, files })?;
        return Ok(Exit::Success);
    }
    if !quiet {
        let what = if fetched_bytes == 0 { "all in the cache already".to_owned() } else { format!("{} fetched", size(fetched_bytes)) };
        terminal::remark(&format!("{model} is complete: {}, {what}; revision {}", size(bytes), pulled.revision));
    }
    terminal::print_lines(&path)?;
    Ok(Exit::Success)
}

/// A bar with bytes, rate and remaining time on standard error; none where that is no terminal.
struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    fn new(name: &str, quiet: bool) -> Self {
        // The variable by which the tools of the hub are told to be still.
        let still = std::env::var("HF_HUB_DISABLE_PROGRESS_BARS").is_ok_and(|value| matches!(value.as_str(), "1" | "true" | "yes" | "on"));
        Self { bar: terminal::byte_progress(name, quiet || still), quiet }
    }
}

impl Watch for Progress {
    fn expect(&mut self, bytes: u64) {
        self.bar.set_length(self.bar.length().unwrap_or(0).saturating_add(bytes));
    }

    fn begin(&mut self, file: &str, kept_bytes: u64) {
        self.bar.set_message(file.to_owned());
        self.bar.inc(kept_bytes);
        self.bar.reset_eta();
    }

    fn advance(&mut self, bytes: i64) {
        self.bar.set_position(self.bar.position().saturating_add_signed(bytes));
    }

    fn remark(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| terminal::remark(text));
        }
    }

    fn interrupted(&self) -> bool {
        signals::interrupted().load(Ordering::Relaxed)
    }
}
