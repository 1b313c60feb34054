//! `bench`: how fast a model runs here, and how much memory it takes.

mod document;
pub(crate) mod growth;
mod paced;

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

use glassbox_bench::{Bench, BenchError, Capture, Plan, Spent, Stopwatch, Summary, Test};
use glassbox_mechanisms::Workers;
use glassbox_model::Rows;
use indicatif::ProgressBar;

use self::document::{Document, Load, Row};
use crate::args::{self, CaptureChoice, ModelChoice};
use crate::commands::models;
use crate::exit::{Exit, Failure};
use crate::opened::{self, Opened};
use crate::{Outcome, signals, terminal};

pub(crate) fn run(command: &args::Bench) -> Outcome {
    if let Some(args::BenchOther::Growth(command)) = &command.other {
        return growth::run(command);
    }
    signals::listen();
    let threads = threads(command);
    if command.paced {
        return paced::run(command, threads[0]);
    }
    let plan = Plan {
        prompts: command.prompt.clone(),
        generated: command.generate.clone(),
        depths: command.depth.clone(),
        threads: threads.clone(),
        kv_types: command.kv_type.clone(),
    };
    let repetitions = command.repetitions.get();
    // The first opening brings the files into memory; the later ones are measured.
    let opened = Opened::open(&choice(command, threads[0]))?;
    let context = opened.made_for();
    let tests = plan.tests(context)?;
    let mut document = Document::new(command, &opened);
    let captures: Vec<Capture> = command.capture.iter().map(|choice| capture(*choice)).collect();
    for (capture, test) in captures.iter().flat_map(|capture| tests.iter().map(move |test| (capture, test))) {
        if *capture != Capture::None {
            let bytes = capture.bytes(opened.blueprint(), test.work.tokens());
            terminal::remark(&format!(
                "{test}: {} of statistics, {} numbers for each token, layer and head; reduced as they come to one sum a layer, head and number",
                models::size(bytes),
                capture.row_numbers()
            ));
        }
    }
    let bar = terminal::progress((threads.len() + tests.len() * captures.len()) * repetitions, "load", false);
    let outcome = Bench::new(opened.decoder()?, &tests, repetitions, opened.memory_limit, signals::interrupted())
        .and_then(|mut bench| measure(&mut bench, &tests, &captures, &bar, &mut document));
    drop(opened);
    let outcome = outcome.map_err(Failure::from).and_then(|()| load(command, &threads, &bar, &mut document));
    bar.finish_and_clear();
    document.interrupted = interrupted();
    if !document.interrupted {
        outcome?;
    }
    if command.json {
        terminal::print_json(&document)?;
    } else {
        document::show(&document)?;
    }
    Ok(if document.interrupted { Exit::Interrupted } else { Exit::Success })
}

/// Numbers of threads, each within reason.
fn threads(command: &args::Bench) -> Vec<usize> {
    match command.threads.as_slice() {
        [] => vec![opened::threads(None)],
        wanted => wanted.iter().map(|threads| opened::threads(Some(*threads))).collect(),
    }
}

fn capture(choice: CaptureChoice) -> Capture {
    match choice {
        CaptureChoice::None => Capture::None,
        CaptureChoice::Spans => Capture::Spans,
        CaptureChoice::All => Capture::All,
    }
}

/// The model as the other commands would be given it.
fn choice(command: &args::Bench, threads: usize) -> ModelChoice {
    ModelChoice {
        model: command.model.clone(),
        threads: NonZeroUsize::new(threads),
        kernels: command.kernels,
        activations: command.activations,
        kv_type: command.kv_type.first().copied().unwrap_or_default(),
        allow_unread: command.allow_unread.clone(),
    }
}

/// Every test, with workers that live as long as the number of threads stays the same.
fn measure(
    bench: &mut Bench<'_>,
    tests: &[Test],
    captures: &[Capture],
    bar: &ProgressBar,
    document: &mut Document,
) -> Result<(), BenchError> {
    let mut workers = Workers::inline();
    for test in tests {
        if workers.threads() != test.threads {
            workers = Workers::new(test.threads);
        }
        bar.set_message(test.to_string());
        for capture in captures {
            bench.watch(*capture);
            let measured = bench.measure(test, &workers, &mut || bar.inc(1))?;
            document.tests.extend(Row::of(test, *capture, &measured, &document.machine));
        }
    }
    Ok(())
}

/// The time from nothing to the first token, several times.
fn load(command: &args::Bench, threads: &[usize], bar: &ProgressBar, document: &mut Document) -> Result<(), Failure> {
    bar.set_message("load");
    for threads in threads {
        let (mut open, mut first_token) = (Vec::new(), Vec::new());
        for _ in 0..command.repetitions.get() {
            if interrupted() {
                return Ok(());
            }
            let [opened, first] = load_once(command, *threads)?;
            open.push(opened.seconds * 1e3);
            first_token.push(first.seconds * 1e3);
            bar.inc(1);
        }
        if let (Some(open_ms), Some(first_token_ms)) = (Summary::of(&open), Summary::of(&first_token)) {
            document.loads.push(Load { threads: *threads, open_ms, first_token_ms });
        }
    }
    Ok(())
}

/// From nothing to the opened model (files, weights, tokenizer, threads), and to the logits after one token with a new cache.
fn load_once(command: &args::Bench, threads: usize) -> Result<[Spent; 2], Failure> {
    let watch = Stopwatch::start();
    let opened = Opened::open(&choice(command, threads))?;
    let open = watch.spent();
    let model = opened.decoder()?;
    let mut cache = model.new_cache(1, opened.memory_limit)?;
    std::hint::black_box(model.forward(&[0], &mut cache, Rows::Last, &opened.workers)?);
    Ok([open, watch.spent()])
}

fn interrupted() -> bool {
    signals::interrupted().load(Ordering::SeqCst)
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Model(error) => error.into(),
            BenchError::Nothing => Self::usage(error).hint("give -p or -n a number from 1 on, as in `-p 512 -n 64`"),
            BenchError::NoSuchTest { .. } => Self::usage(error),
            BenchError::TooLong { .. } => Self::usage(error).hint("give smaller numbers to -p, -n or -d"),
            error => Self::internal(error),
        }
    }
}
