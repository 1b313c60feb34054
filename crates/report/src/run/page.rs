//! The page of a run.

use askama::Template;
use glassbox_record::{Metric, Series, TestVerdict};

use crate::ReportError;
use crate::chart::{self, Axis};
use crate::run::{Run, item};
use crate::texts::Texts;
use crate::token_text::with_code;
use crate::words::{bound, ends, gate_sentence, method, number, status, status_class, status_meaning};

/// Most bytes of a page: it must open on any machine and travel by mail.
const MOST_BYTES: usize = 9 << 20;
/// Most wrong answers on a page; more are in the record.
const MOST_ITEMS: usize = 60;

#[derive(Template)]
#[template(path = "run.html")]
struct Page<'a> {
    t: &'a Texts,
    style: &'static str,
    suite: &'a str,
    subject: &'a str,
    created: String,
    status: String,
    status_class: &'static str,
    status_meaning: String,
    totals: String,
    failures: Vec<String>,
    tests: Vec<Test>,
    failing: Vec<String>,
    contrast: Vec<String>,
    items_shown: String,
    nothing_watched: bool,
    identity: Vec<(String, String)>,
    reproduce: String,
}

struct Test {
    id: String,
    kind: String,
    status: String,
    status_class: &'static str,
    gates: Vec<Gate>,
    series: Vec<Charts>,
    metrics: Vec<Row>,
    notes: Vec<String>,
}

struct Gate {
    status: String,
    status_class: &'static str,
    sentence: String,
    detectable: Option<String>,
}

/// The slices of one series, side by side on the same axis.
struct Charts {
    heading: String,
    with_baseline: bool,
    with_intervals: bool,
    charts: Vec<Chart>,
}

struct Chart {
    slice: String,
    svg: String,
}

struct Row {
    name: String,
    meaning: String,
    value: String,
    interval: String,
    method: String,
    n: usize,
    floor: String,
    p_value: String,
}

/// Fills the page in.
pub(crate) fn html(run: &Run, t: &Texts) -> Result<String, ReportError> {
    let failing = run.failing();
    let mut bytes = 0;
    let mut shown = Vec::new();
    for trial in failing.iter().take(MOST_ITEMS) {
        let html = item::html(run, t, trial, shown.is_empty())?;
        bytes += html.len();
        if bytes > MOST_BYTES {
            break;
        }
        shown.push(html);
    }
    let mut contrast = Vec::new();
    for trial in run.contrast() {
        let html = item::html(run, t, trial, false)?;
        bytes += html.len();
        if bytes > MOST_BYTES {
            break;
        }
        contrast.push(html);
    }
    let verdicts = &run.verdicts;
    let counts: [(&str, &dyn std::fmt::Display); 3] = [("count", &failing.len()), ("shown", &shown.len()), ("watched", &run.looks.len())];
    let fingerprint = &run.manifest.fingerprint;
    let page = Page {
        t,
        style: include_str!("../../templates/page.css"),
        suite: &fingerprint.suite.name,
        subject: &fingerprint.subject.name,
        created: run.manifest.created.to_string(),
        status: status(t, verdicts.status),
        status_class: status_class(verdicts.status),
        status_meaning: status_meaning(t, verdicts.status),
        totals: totals(run, t),
        failures: failures(run, t),
        tests: verdicts.tests.iter().map(|test| self::test(t, test)).collect(),
        items_shown: t.with("items-shown", &counts),
        nothing_watched: run.looks.is_empty(),
        failing: shown,
        contrast,
        identity: identity(run, t),
        reproduce: t.with("reproduce-text", &[("run", &run.folder.display())]),
    };
    page.render().map_err(ReportError::picture)
}

/// What was asked and what came of it, in one line.
pub(crate) fn totals(run: &Run, t: &Texts) -> String {
    let totals = &run.verdicts.totals;
    let values: [(&str, &dyn std::fmt::Display); 4] =
        [("answered", &totals.answered), ("planned", &totals.planned), ("failed", &totals.failed), ("missing", &totals.missing)];
    t.with("totals", &values)
}

/// Why trials failed, a sentence a kind of trouble.
pub(crate) fn failures(run: &Run, t: &Texts) -> Vec<String> {
    let sentence = |(class, count, message): (&'static str, usize, &str)| {
        t.with("failed-because", &[("count", &count), ("class", &class), ("message", &message)])
    };
    run.failures().into_iter().map(sentence).collect()
}

fn test(t: &Texts, test: &TestVerdict) -> Test {
    let metric = |name: &str| test.metrics.iter().find(|metric| metric.name == name);
    Test {
        id: test.id.clone(),
        kind: t.with("test-of-kind", &[("kind", &t.known(&test.kind)), ("items", &test.items)]),
        status: status(t, test.status),
        status_class: status_class(test.status),
        gates: test
            .gates
            .iter()
            .map(|gate| Gate {
                status: status(t, gate.status),
                status_class: status_class(gate.status),
                sentence: with_code(&gate_sentence(t, gate, metric(&gate.metric))),
                detectable: gate.detectable.map(|difference| format!("± {}", number(difference))),
            })
            .collect(),
        series: charts(t, test),
        metrics: test.metrics.iter().map(|metric| row(t, test, metric)).collect(),
        notes: test.notes.iter().map(|note| with_code(&t.known(note))).collect(),
    }
}

/// Series of one name belong together: their slices share an axis, and a slice's uniform baseline is drawn into its chart.
fn charts(t: &Texts, test: &TestVerdict) -> Vec<Charts> {
    const BASELINE: &str = ", uniform baseline";
    let mut names: Vec<&str> = Vec::new();
    for series in &test.series {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let of_name = |name: &str| {
        let all: Vec<&Series> = test.series.iter().filter(|series| series.name == name).collect();
        let axis = Axis::around(all.iter().copied());
        let slice = |series: &Series| series.slice.clone().unwrap_or_default();
        let baseline_of = |series: &Series| all.iter().find(|other| slice(other) == format!("{}{BASELINE}", slice(series))).copied();
        let measured = all.iter().filter(|series| !slice(series).ends_with(BASELINE));
        let charts = measured.map(|series| Chart {
            slice: series.slice.as_ref().map_or_else(|| t.get("all-items"), |slice| t.known(slice)),
            svg: chart::points(series, baseline_of(series), axis),
        });
        Charts {
            heading: heading(t, all[0]),
            with_baseline: all.iter().any(|series| slice(series).ends_with(BASELINE)),
            with_intervals: all.iter().any(|series| series.points.iter().any(|point| point.interval.is_some())),
            charts: charts.collect(),
        }
    };
    names.into_iter().map(of_name).collect()
}

/// What a series shows and over which axis, each said once.
pub(crate) fn heading(t: &Texts, series: &Series) -> String {
    let name = series.name.replace('_', " ");
    let known = t.known(&name);
    if known != name {
        return known;
    }
    let what = name.split_once(" by ").map_or(name.as_str(), |(what, _)| what);
    t.with("by", &[("name", &what), ("axis", &series.axis)])
}

fn row(t: &Texts, test: &TestVerdict, metric: &Metric) -> Row {
    let threshold = test.gates.iter().find(|gate| gate.metric == metric.name);
    let threshold = threshold.map(|gate| t.with("threshold", &[("bound", &bound(t, gate.bound))]));
    let undefined = metric.undefined.as_ref().map(|reason| t.with("undefined", &[("reason", &t.known(reason))]));
    let meaning: Vec<String> = [Some(t.known(&metric.meaning)), threshold, undefined].into_iter().flatten().collect();
    let optional = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
    Row {
        name: metric.name.clone(),
        meaning: meaning.join(" "),
        value: optional(metric.value),
        interval: metric.interval.as_ref().map_or_else(|| "–".to_owned(), ends),
        method: metric.interval.as_ref().map(|interval| method(t, interval)).unwrap_or_default(),
        n: metric.n,
        floor: optional(metric.floor),
        p_value: metric.p_value.map_or_else(|| "–".to_owned(), |p| if p < 0.001 { "<0.001".to_owned() } else { number(p) }),
    }
}

fn identity(run: &Run, t: &Texts) -> Vec<(String, String)> {
    let fingerprint = &run.manifest.fingerprint;
    let machine = &run.manifest.machine;
    let mut rows = vec![
        (t.get("run-name"), run.manifest.run.clone()),
        (t.get("created"), run.manifest.created.to_string()),
        (t.get("version"), fingerprint.glassbox.clone()),
        (t.get("suite"), format!("{} ({}, {})", fingerprint.suite.name, fingerprint.suite.path, fingerprint.suite.hash)),
    ];
    for data in &fingerprint.data {
        rows.push((t.get("data"), format!("{} ({}, {}, {})", data.name, data.path, data.items, data.hash)));
    }
    rows.push((t.get("subject"), fingerprint.subject.name.clone()));
    rows.extend(fingerprint.subject.facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    rows.push((t.get("seed"), fingerprint.seed.to_string()));
    rows.push((t.get("machine"), format!("{} {}, {}", machine.os, machine.arch, machine.processors)));
    rows
}
