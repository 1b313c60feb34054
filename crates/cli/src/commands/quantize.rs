//! `quantize`: a model written again as GGUF in another storage type.

use glassbox_quantize::{Fallback, QuantizeError, Summary, TypeSummary, quantize};
use serde::Serialize;

use crate::args::Quantize;
use crate::exit::{Exit, Failure};
use crate::{Outcome, opened, output, terminal};

pub(crate) fn run(command: &Quantize) -> Outcome {
    output::check_folder(&command.out)?;
    let checkpoint = opened::checkpoint(&command.model, &command.allow_unread)?;
    let threads = opened::threads(command.threads);
    let bar = terminal::progress(checkpoint.tensor_names().count(), "quantising", false);
    let mut progress = |_: &str, index: usize, tensors: usize| {
        bar.set_length(tensors as u64);
        bar.set_position(index as u64);
    };
    let summary = quantize(&checkpoint, command.to, &command.out, threads, &mut progress);
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
            otherwise_in_llama_cpp: &summary.otherwise_in_llama_cpp,
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
    otherwise_in_llama_cpp: &'a [String],
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
    summary.otherwise_in_llama_cpp.iter().for_each(|difference| terminal::remark(difference));
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
