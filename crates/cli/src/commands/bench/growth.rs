//! `bench growth`: how time and memory grow with the length of a text.

use std::process::{Command, Stdio};

use glassbox_bench::growth::{CURVES, Curve, Grown, Unit};
use glassbox_bench::{Machine, Summary};
use glassbox_mechanisms::Kernels;
use glassbox_model::Model;
use glassbox_report::Lang;
use serde::{Deserialize, Serialize};

use crate::commands::models::size;
use crate::exit::{Exit, Failure};
use crate::{Outcome, args, help, opened, terminal};

/// The document of `--json`.
#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    glassbox: String,
    model: String,
    machine: serde_json::Value,
    curves: Vec<Grown>,
}

pub(super) fn run(command: &args::Growth) -> Outcome {
    let wanted: Vec<&Curve> = if command.curve.is_empty() { CURVES.iter().collect() } else { command.curve.clone() };
    let model = Model::open(&opened::checkpoint(&command.model, &[])?, Kernels::Fast)?;
    let bar = terminal::progress(wanted.iter().map(|curve| curve.points()).sum(), "growth", false);
    let mut curves = Vec::new();
    for curve in &wanted {
        bar.set_message(curve.name);
        let before = bar.position();
        curves.push(if curve.wants_own_process() && wanted.len() > 1 {
            in_own_process(&command.model, curve)?
        } else {
            curve.measure(&model, &mut || bar.inc(1))?
        });
        bar.set_position(before + curve.points() as u64);
    }
    bar.finish_and_clear();
    if !command.json {
        return show(&curves, command.language.lang).map(|()| Exit::Success);
    }
    terminal::print_json(&Document {
        format: "glassbox-growth".to_owned(),
        version: 1,
        glassbox: env!("CARGO_PKG_VERSION").to_owned(),
        model: command.model.clone(),
        machine: serde_json::to_value(Machine::here()).map_err(Failure::internal)?,
        curves,
    })?;
    Ok(Exit::Success)
}

/// The same command for one curve: what it finds resident is then its own.
fn in_own_process(model: &str, curve: &Curve) -> Result<Grown, Failure> {
    let program = std::env::current_exe().map_err(Failure::internal)?;
    let args = ["bench", "growth", "--json", "-m", model, "--curve", curve.name];
    let output = Command::new(program).args(args).stderr(Stdio::inherit()).output().map_err(Failure::internal)?;
    let document: Document = serde_json::from_slice(&output.stdout)
        .map_err(|error| anyhow::Error::new(error).context(format!("`glassbox {}` gave no document", args.join(" "))))
        .map_err(Failure::internal)?;
    let grown = document.curves.into_iter().next();
    grown.ok_or_else(|| Failure::internal(anyhow::anyhow!("`glassbox {}` measured nothing", args.join(" "))))
}

fn show(curves: &[Grown], lang: Lang) -> Result<(), Failure> {
    let header = HEADER.map(|(key, english)| help::text(lang, key, english));
    let mut table = terminal::table(&header.each_ref().map(String::as_str));
    for curve in curves {
        let numbers = curve.exponent.map_or_else(Default::default, |exponent| {
            [format!("{:.2}", exponent.value), format!("{:.2} – {:.2}", exponent.low, exponent.high), format!("{:.2}", exponent.last_step)]
        });
        let (least, most) = curve.theory;
        let row = [curve.name.clone(), if least == most { least.to_string() } else { format!("{least} – {most}") }];
        let what = help::text(lang, &format!("growth-{}", curve.name), &curve.what);
        table.add_row(row.into_iter().chain(numbers).chain(largest(curve)).chain([what]));
    }
    terminal::print_table(table)?;
    Ok(())
}

/// The largest length, and the median there.
fn largest(curve: &Grown) -> [String; 2] {
    let Some(n) = curve.points.iter().map(|point| point.0).max() else { return Default::default() };
    let values: Vec<f64> = curve.points.iter().filter(|point| point.0 == n).map(|point| point.1).collect();
    let median = Summary::of(&values).map_or(f64::NAN, |summary| summary.median);
    let shown = match curve.unit {
        Unit::Seconds => format!("{median:.3} s"),
        Unit::Bytes => size(median as u64),
    };
    [n.to_string(), shown]
}

/// Heads of the columns: key of the text in other languages, and the English one.
const HEADER: [(&str, &str); 8] = [
    ("growth-head-curve", "curve"),
    ("growth-head-theory", "theory"),
    ("growth-head-exponent", "exponent"),
    ("growth-head-interval", "95 % interval"),
    ("growth-head-last-step", "last step"),
    ("growth-head-largest", "largest n"),
    ("growth-head-there", "there"),
    ("growth-head-what", "what"),
];

#[cfg(test)]
pub(crate) fn text_keys() -> impl Iterator<Item = String> {
    let heads = HEADER.iter().map(|(key, _)| (*key).to_owned());
    heads.chain(CURVES.iter().map(|curve| format!("growth-{}", curve.name)))
}
