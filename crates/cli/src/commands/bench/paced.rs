//! `bench --paced`: one repetition for each line of standard input, so that another program can take turns.

use std::io::BufRead as _;

use glassbox_bench::{Bench, BenchError, Spent, Test, peak_resident_bytes};
use glassbox_mechanisms::Workers;
use serde::Serialize;

use crate::args;
use crate::exit::{Exit, Failure};
use crate::opened::Opened;
use crate::{Outcome, signals, terminal};

/// The first line: the model is open.
#[derive(Serialize)]
struct Ready {
    ready: &'static str,
}

/// One repetition.
#[derive(Serialize)]
struct Turn<'a> {
    test: &'a str,
    seconds: f64,
    processor_seconds: Option<f64>,
    /// Of a load: until the model was open.
    open_seconds: Option<f64>,
    /// Of a test.
    tokens_per_second: Option<f64>,
    peak_resident_bytes: Option<u64>,
}

pub(super) fn run(command: &args::Bench, threads: usize) -> Outcome {
    let opened = Opened::open(&super::choice(command, threads))?;
    let mut bench = Bench::new(opened.decoder()?, &[], 1, opened.memory_limit, signals::interrupted())?;
    let mut prepared = None;
    say(&Ready { ready: concat!("glassbox ", env!("CARGO_PKG_VERSION")) })?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::usage(anyhow::Error::new(error).context("cannot read standard input")))?;
        let name = line.trim();
        let turn = |spent: Spent| Turn {
            test: name,
            seconds: spent.seconds,
            processor_seconds: spent.processor_seconds,
            open_seconds: None,
            tokens_per_second: None,
            peak_resident_bytes: peak_resident_bytes(),
        };
        if name == "load" {
            let [open, first_token] = super::load_once(command, threads)?;
            say(&Turn { open_seconds: Some(open.seconds), ..turn(first_token) })?;
            continue;
        }
        let test = Test::named(name, opened.workers.threads(), opened.kv_type)?.within(opened.made_for())?;
        let spent = match repetition(&mut bench, &test, prepared == Some(test), &opened.workers) {
            Err(BenchError::Interrupted) => return Ok(Exit::Interrupted),
            spent => spent?,
        };
        prepared = Some(test);
        say(&Turn { tokens_per_second: Some(test.work.tokens() as f64 / spent.seconds), ..turn(spent) })?;
    }
    Ok(Exit::Success)
}

fn repetition(bench: &mut Bench<'_>, test: &Test, prepared: bool, workers: &Workers) -> Result<Spent, BenchError> {
    if !prepared {
        bench.prepare(test, workers)?;
    }
    bench.repeat(test, workers)
}

/// One line of JSON.
fn say(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::internal)?;
    Ok(terminal::print(&format!("{text}\n"))?)
}
