//! What `bench` says: one JSON document, or tables.

use glassbox_bench::{Capture, Machine, Measured, Summary, Test, Work};
use serde::Serialize;

use crate::args::{self, ActivationChoice, KernelChoice};
use crate::commands::models::size;
use crate::exit::Failure;
use crate::opened::Opened;
use crate::terminal;

/// The document of `--json`.
#[derive(Serialize)]
pub(super) struct Document {
    format: &'static str,
    version: u32,
    glassbox: &'static str,
    kernels: &'static str,
    activations: &'static str,
    model: String,
    description: String,
    parameters: u64,
    bytes: u64,
    storage: Vec<Share>,
    pub(super) machine: Machine,
    repetitions: usize,
    pub(super) tests: Vec<Row>,
    pub(super) loads: Vec<Load>,
    pub(super) interrupted: bool,
}

/// How much is stored in one storage type.
#[derive(Serialize)]
struct Share {
    storage: String,
    bytes: u64,
}

/// What one test gave.
#[derive(Serialize)]
pub(super) struct Row {
    test: String,
    prompt_tokens: usize,
    generated_tokens: usize,
    depth: usize,
    threads: usize,
    kv_type: &'static str,
    /// What was watched.
    capture: &'static str,
    tokens_per_second: Summary,
    /// Of every repetition, in the order in which they ran.
    repetitions: Vec<f64>,
    /// Which part of their processors the threads got.
    processor_share: Option<f64>,
    peak_resident_bytes: Option<u64>,
    cache_bytes: Option<u64>,
    /// That went past the observer in one repetition.
    statistics_bytes: u64,
}

/// From nothing to the first token.
#[derive(Serialize)]
pub(super) struct Load {
    pub(super) threads: usize,
    /// Files, weights, tokenizer, threads.
    pub(super) open_ms: Summary,
    /// The same and the logits after one token.
    pub(super) first_token_ms: Summary,
}

impl Row {
    pub(super) fn of(test: &Test, capture: Capture, measured: &Measured, machine: &Machine) -> Option<Self> {
        let repetitions = measured.tokens_per_second(test);
        let (prompt_tokens, generated_tokens) = match test.work {
            Work::Prompt(tokens) => (tokens, 0),
            Work::Generate(tokens) => (0, tokens),
        };
        Some(Self {
            test: test.to_string(),
            prompt_tokens,
            generated_tokens,
            depth: test.depth,
            threads: test.threads,
            kv_type: test.kv_type.name(),
            capture: match capture {
                Capture::None => "none",
                Capture::Spans => "spans",
                Capture::All => "all",
            },
            tokens_per_second: Summary::of(&repetitions)?,
            repetitions,
            processor_share: measured.processor_share(test, machine),
            peak_resident_bytes: measured.peak_resident_bytes,
            cache_bytes: measured.cache_bytes,
            statistics_bytes: measured.statistics_bytes,
        })
    }
}

impl Document {
    pub(super) fn new(command: &args::Bench, opened: &Opened) -> Self {
        let shares = opened.checkpoint.storage_shares();
        Self {
            format: "glassbox-bench",
            version: 1,
            glassbox: env!("CARGO_PKG_VERSION"),
            kernels: match command.kernels {
                KernelChoice::Fast => "fast",
                KernelChoice::Textbook => "textbook",
            },
            activations: match command.activations {
                ActivationChoice::Rounded => "rounded",
                ActivationChoice::Exact => "exact",
            },
            model: opened.name.clone(),
            description: opened.description(),
            parameters: shares.iter().map(|share| share.numbers).sum(),
            bytes: opened.checkpoint.bytes_total(),
            storage: shares.into_iter().map(|share| Share { storage: share.storage, bytes: share.bytes }).collect(),
            machine: Machine::here(),
            repetitions: command.repetitions.get(),
            tests: Vec::new(),
            loads: Vec::new(),
            interrupted: false,
        }
    }
}

/// Writes it for a person.
pub(super) fn show(document: &Document) -> Result<(), Failure> {
    let machine = &document.machine;
    let percent = |share: &Share| format!("{} {:.0} %", share.storage, 100.0 * share.bytes as f64 / document.bytes.max(1) as f64);
    let stored = document.storage.iter().map(percent).collect::<Vec<_>>().join(", ");
    let mut about = terminal::table(&[]);
    about.add_row(["model", &format!("{} ({})", document.model, document.description)]);
    about.add_row(["size", &format!("{}, {:.1} million parameters", size(document.bytes), document.parameters as f64 / 1e6)]);
    about.add_row(["stored as", &stored]);
    about.add_row(["machine", &format!("{}, {} processors, {}", machine.processor, machine.processors, machine.features.join(" "))]);
    about.add_row([
        "version",
        &format!("glassbox {}, kernels {}, activations {}", document.glassbox, document.kernels, document.activations),
    ]);
    terminal::print_table(about)?;
    if !document.tests.is_empty() {
        let mut table = terminal::table(&["test", "threads", "kv", "watched", "t/s", "median", "min to max", "processor", "peak MiB"]);
        for row in &document.tests {
            let speed = row.tokens_per_second;
            table.add_row([
                row.test.clone(),
                row.threads.to_string(),
                row.kv_type.to_owned(),
                row.capture.to_owned(),
                with_deviation(&speed),
                format!("{:.2}", speed.median),
                format!("{:.2} to {:.2}", speed.min, speed.max),
                row.processor_share.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share)),
                row.peak_resident_bytes.map_or_else(String::new, |bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20))),
            ]);
        }
        terminal::print("\n")?;
        terminal::print_table(table)?;
    }
    if !document.loads.is_empty() {
        let mut table = terminal::table(&["load", "threads", "open ms", "to first token ms", "median", "min to max"]);
        for load in &document.loads {
            let first = load.first_token_ms;
            table.add_row([
                String::new(),
                load.threads.to_string(),
                with_deviation(&load.open_ms),
                with_deviation(&first),
                format!("{:.2}", first.median),
                format!("{:.2} to {:.2}", first.min, first.max),
            ]);
        }
        terminal::print("\n")?;
        terminal::print_table(table)?;
    }
    Ok(())
}

/// Mean and standard deviation, where there is one.
fn with_deviation(summary: &Summary) -> String {
    match summary.standard_deviation {
        Some(deviation) => format!("{:.2} ± {deviation:.2}", summary.mean),
        None => format!("{:.2}", summary.mean),
    }
}
