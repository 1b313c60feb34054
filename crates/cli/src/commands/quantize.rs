//! `quantize`: a model written again as GGUF in another storage type.

use std::num::NonZeroUsize;

use glassbox_quantize::{Fallback, QuantizeError, Summary, Target, TypeSummary, quantize};
use serde::Serialize;

use crate::args::{KernelChoice, KvChoice, ModelChoice, Quantize, QuantizeTarget};
use crate::exit::{Exit, Failure};
use crate::{Outcome, opened, output, terminal};

pub(crate) fn run(command: &Quantize) -> Outcome {
    output::check_folder(&command.out)?;
    let choice = ModelChoice {
        model: command.model.clone(),
        threads: command.threads,
        kernels: KernelChoice::Fast,
        kv_type: KvChoice::F32,
        allow_unread: command.allow_unread.clone(),
    };
    let checkpoint = opened::checkpoint(&choice)?;
    let threads = command.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let bar = terminal::progress(checkpoint.tensor_names().count(), "quantising", false);
    let mut progress = |_: &str, index: usize, tensors: usize| {
        bar.set_length(tensors as u64);
        bar.set_position(index as u64);
    };
    let summary = quantize(&checkpoint, target(command.to), &command.out, threads, &mut progress);
    bar.finish_and_clear();
    let summary = summary?;
    if command.json {
        terminal::print_json(&Report {
            format: "glassbox-quantize",
            version: 1,
            source: &command.model,
            out: command.out.display().to_string(),
            target: summary.target,
            file_bytes: summary.file_bytes,
            tokenizer: summary.tokenizer,
            types: &summary.types,
            fallbacks: &summary.fallbacks,
        })?;
    } else {
        show(&summary)?;
        terminal::remark(&format!("wrote {} ({} bytes)", command.out.display(), summary.file_bytes));
    }
    Ok(Exit::Success)
}

/// The document of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    source: &'a str,
    out: String,
    target: &'static str,
    file_bytes: u64,
    tokenizer: bool,
    types: &'a [TypeSummary],
    fallbacks: &'a [Fallback],
}

fn target(choice: QuantizeTarget) -> Target {
    match choice {
        QuantizeTarget::F16 => Target::F16,
        QuantizeTarget::Q8_0 => Target::Q8_0,
        QuantizeTarget::Q4_0 => Target::Q4_0,
        QuantizeTarget::Q4K => Target::Q4K,
        QuantizeTarget::Q6K => Target::Q6K,
        QuantizeTarget::Int8PerChannel => Target::Int8PerChannel,
        QuantizeTarget::Int4PerChannel => Target::Int4PerChannel,
    }
}

fn show(summary: &Summary) -> Result<(), Failure> {
    let mut table = terminal::table(&["type", "tensors", "numbers", "bytes", "rms error", "relative"]);
    for row in &summary.types {
        table.add_row([
            row.storage.to_owned(),
            row.tensors.to_string(),
            row.numbers.to_string(),
            row.bytes.to_string(),
            format!("{:.3e}", row.rms_error),
            format!("{:.3} %", 100.0 * row.relative_rms_error),
        ]);
    }
    terminal::print_table(table)?;
    for fallback in &summary.fallbacks {
        terminal::remark(&format!("`{}` is stored as {}: {}", fallback.tensor, fallback.stored, fallback.reason));
    }
    if !summary.tokenizer {
        terminal::remark("the model has no tokenizer, and so the file has none");
    }
    Ok(())
}

impl From<QuantizeError> for Failure {
    fn from(error: QuantizeError) -> Self {
        match error {
            QuantizeError::Checkpoint(error @ glassbox_checkpoint::CheckpointError::Io { .. }) => Self::output(error),
            QuantizeError::Checkpoint(error) => error.into(),
            QuantizeError::Model(error) => error.into(),
            QuantizeError::Text(error) => error.into(),
            QuantizeError::Lost { .. } | QuantizeError::Threads(_) => Self::internal(error),
            error => Self::usage(error),
        }
    }
}
