//! The verdicts on a terminal.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use crate::run::{Run, page};
use crate::texts::Texts;
use crate::token_text::printable;
use crate::words::{gate_sentence, number, status};

/// Characters of a full bar.
const BAR: f64 = 24.0;

/// Verdict, gates and the accuracies over an axis.
pub(crate) fn summary(run: &Run, t: &Texts, width: usize) -> String {
    let verdicts = &run.verdicts;
    let fingerprint = &run.manifest.fingerprint;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "\n{}: {}  ({}, {})",
        t.get("verdict"),
        status(t, verdicts.status),
        fingerprint.suite.name,
        fingerprint.subject.name
    );
    let _ = writeln!(text, "{}", page::totals(run, t));
    for failure in page::failures(run, t) {
        let _ = writeln!(text, "{failure}");
    }
    text.push('\n');
    for test in &verdicts.tests {
        let _ = writeln!(text, "{}  {}", test.id, t.with("test-of-kind", &[("kind", &t.known(&test.kind)), ("items", &test.items)]));
        let mut gates = Table::new();
        gates.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        gates.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        for gate in &test.gates {
            let metric = test.metrics.iter().find(|metric| metric.name == gate.metric);
            gates.add_row([format!("  {}", status(t, gate.status)), gate_sentence(t, gate, metric)]);
        }
        if !test.gates.is_empty() {
            for line in gates.to_string().lines() {
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        for series in test.series.iter().filter(|series| series.slice.is_none()) {
            let _ = writeln!(text, "  {}", page::heading(t, series));
            for point in &series.points {
                let bar = "█".repeat((BAR * point.value.clamp(0.0, 1.0)).round() as usize);
                let range = point.interval.as_ref().map(|interval| format!(" [{}, {}]", number(interval.low), number(interval.high)));
                let _ = writeln!(text, "    {:>14} {bar:<24} {}{}", point.at, number(point.value), range.unwrap_or_default());
            }
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}: {}", t.get("wrote"), run.folder.join("report.html").display());
    printable(&text)
}
