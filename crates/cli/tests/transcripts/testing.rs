//! `test`, `demo` and `report`: from a suite file to verdicts, reports and exit codes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::desk::{Desk, Told, tiny, told};

/// A suite of one test on `items.jsonl`, with these gates.
///
/// The items ask for words that no model knows and no document gives in the arm `closed`, so their verdicts are certain for any model.
pub(crate) fn suite(gates: &str) -> String {
    format!(
        r#"version: 1
name: tiny
description: A test of the tests.
defaults:
  seed: 7
  sampling: {{temperature: 0, max_tokens: 4}}
  floor: {{replicates: 2, items: 2}}
  looks: {{failing: 1, contrast: 1, heads_in_full: 1}}
data:
  en: {{file: items.jsonl}}
prompts:
  plain:
    en:
      ask:
        - role: user
          parts:
            - documents: {{each: "[{{n}}] {{text}}", after_each: "\n"}}
            - text: "Question: "
            - question
      closed_book:
        - role: user
          parts:
            - text: "Question: "
            - question
tests:
  - id: places
    type: evidence_position
    data: [en]
    items: 100
    prompt: plain
    design:
      passages: 2
      positions: all
      arms: [closed, oracle]
    gate:
      {gates}
"#
    )
}

/// Items whose answers are words that nobody has ever written.
pub(crate) fn put_items(desk: &Desk, count: usize) {
    let item = |number: usize| {
        format!(
            r#"{{"id": "i{number}", "lang": "en", "question": "What does Quorvane {number} hold?", "answer": "xyzzyq{number}", "gold": "Quorvane {number} holds xyzzyq{number}.", "distractors": ["Ostrabel {number} holds plughz{number}.", "Tembral {number} holds frobnik{number}."]}}"#
        )
    };
    desk.put("items.jsonl", (0..count).map(item).collect::<Vec<_>>().join("\n"));
}

/// A desk with a suite of `count` items and these gates.
pub(crate) fn desk_with(count: usize, gates: &str) -> Desk {
    let desk = Desk::new();
    put_items(&desk, count);
    desk.put("suite.yaml", suite(gates));
    desk
}

/// Nobody knows the answers by heart: every closed-book answer is wrong, whatever the model.
pub(crate) const PASSES: &str = "- {metric: closed_book_accuracy, max: 0.9}";
const FAILS: &str = "- {metric: closed_book_accuracy, min: 0.9}";
/// With few items the interval reaches from 0 far enough to hold this threshold.
const OPEN: &str = "- {metric: closed_book_accuracy, max: 0.2}";

pub(crate) fn folder_of(desk: &Desk) -> String {
    let runs = std::fs::read_dir(desk.path("runs")).expect("there are runs");
    let names = runs.map(|run| run.expect("readable").file_name().to_string_lossy().into_owned());
    // Two runs may begin in the same second; the manifest knows the order.
    let created =
        |name: &String| desk.text(&format!("runs/{name}/manifest.json")).split("\"created\"").nth(1).map(|rest| rest[..32].to_owned());
    format!("runs/{}", names.max_by_key(created).expect("there is a run"))
}

#[test]
fn a_suite_that_passes_ends_with_0_and_writes_record_and_reports() {
    let desk = desk_with(8, PASSES);
    let told = desk.run(&["test", "suite.yaml"]);
    assert_eq!(told.code, 0, "{told:?}");
    let run = folder_of(&desk);
    assert!(told.out.contains("Verdict: PASS") && told.out.contains(&format!("Report: {run}/report.html")), "{}", told.out);
    assert!(told.out.lines().all(|line| line.trim_end() == line), "blanks at the end of a line:\n{}", told.out);
    assert!(!told.err.contains('\r') && !told.err.contains('\u{1b}'), "a progress bar in a pipe: {:?}", told.err);
    let page = desk.text(&format!("{run}/report.html"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "the page is cut");
    let junit = desk.text(&format!("{run}/junit.xml"));
    assert!(junit.contains("<testsuite") && junit.contains("closed_book_accuracy") && !junit.contains("<failure"), "{junit}");
    for file in ["manifest.json", "plan.jsonl", "trials.jsonl", "looks.jsonl", "scores.jsonl", "verdicts.json", "report.json"] {
        desk.text(&format!("{run}/{file}"));
    }
    check_no_litter(&desk);
}

#[test]
fn a_gate_that_fails_ends_with_100_and_its_report_shows_what_the_model_read() {
    let desk = desk_with(8, FAILS);
    let told = desk.run(&["test", "suite.yaml"]);
    assert_eq!(told.code, 100, "{told:?}");
    assert!(told.out.contains("Verdict: FAIL"), "{}", told.out);
    let run = folder_of(&desk);
    assert!(desk.text(&format!("{run}/junit.xml")).contains("<failure"));
    assert!(desk.text(&format!("{run}/report.html")).contains("Quorvane"), "the wrong items are on the page");
}

#[test]
fn an_open_gate_ends_with_0_and_under_strict_with_101() {
    let desk = desk_with(3, OPEN);
    let told = desk.run(&["test", "suite.yaml"]);
    assert!(told.code == 0 && told.out.contains("INCONCLUSIVE"), "{told:?}");
    assert_eq!(desk.run(&["eval", "suite.yaml", "--strict"]).code, 101, "`eval` is `test`");
    // Certain verdicts are as they are under --strict.
    desk.put("suite.yaml", suite(FAILS));
    assert_eq!(desk.run(&["test", "suite.yaml", "--strict", "-n", "3"]).code, 100);
}

#[test]
fn nothing_selected_ends_with_4_and_makes_no_run() {
    let desk = desk_with(3, PASSES);
    desk.refuses(&["test", "suite.yaml", "-n", "0"], 4, &["selects no trial", "raise --limit"]);
}

#[test]
fn prompts_longer_than_the_context_are_failed_trials_and_end_with_102() {
    let desk = desk_with(4, PASSES);
    desk.put("suite.yaml", suite(PASSES).replace("Question: ", &"word ".repeat(600)));
    let told = desk.run(&["test", "suite.yaml"]);
    assert_eq!(told.code, 102, "{told:?}");
    let run = folder_of(&desk);
    assert!(desk.text(&format!("{run}/trials.jsonl")).contains("context_too_long"));
    // The reason is told where it is looked for.
    for text in [&told.out, &desk.text(&format!("{run}/report.html"))] {
        assert!(text.contains("context_too_long") && text.contains("room for 512"), "{text}");
    }
}

#[test]
fn json_is_one_versioned_document_and_quiet_is_one_path() {
    let desk = desk_with(3, PASSES);
    let document = desk.json(&["test", "suite.yaml", "--json"]);
    assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-report"), Some(1)));
    assert_eq!(document["verdicts"]["status"], "pass");
    let quiet = desk.run(&["test", "suite.yaml", "--quiet"]);
    assert_eq!((quiet.code, quiet.out, quiet.err.as_str()), (0, format!("{}/report.html\n", folder_of(&desk)), ""));
}

#[test]
fn a_report_is_made_again_from_the_record_in_another_language() {
    let desk = desk_with(3, FAILS);
    desk.run(&["test", "suite.yaml"]);
    let run = folder_of(&desk);
    let page = desk.text(&format!("{run}/report.html"));
    for name in ["report.html", "junit.xml", "report.json"] {
        std::fs::remove_file(desk.path(&run).join(name)).expect("it was written");
    }
    std::fs::remove_file(desk.path("suite.yaml")).expect("it was written");
    for name in ["last", run.as_str(), run.trim_start_matches("runs/")] {
        assert!(desk.ok(&["report", name]).contains("Verdict: FAIL"), "{name}");
        assert_eq!(desk.text(&format!("{run}/report.html")), page, "{name}");
    }
    let out = desk.ok(&["report", "last", "--lang", "zh-CN"]);
    assert!(out.contains("未通过"), "{out}");
    assert!(desk.text(&format!("{run}/report.html")).contains("lang=\"zh-CN\""));
}

#[test]
fn a_report_is_not_made_of_verdicts_that_the_record_does_not_bear_out() {
    let desk = desk_with(3, FAILS);
    desk.run(&["test", "suite.yaml"]);
    let run = folder_of(&desk);
    let (trials, page) = (format!("{run}/trials.jsonl"), desk.text(&format!("{run}/report.html")));
    let whole = desk.text(&trials);
    let lines: Vec<&str> = whole.lines().collect();
    desk.put(&trials, format!("{}\n", lines[..lines.len() - 2].join("\n")));
    let (all, left) = (lines.len() - 1, lines.len() - 3);
    let words = [
        format!("were made from {all} answers of {all} trials"),
        format!("`trials.jsonl` now holds {left} answers of {all} trials"),
        format!("judge anew with suite `tiny`: `glassbox test SUITE --resume {run}`"),
    ];
    desk.refuses(&["report", "last"], 2, &words.each_ref().map(String::as_str));
    assert_eq!(desk.text(&format!("{run}/report.html")), page, "the old page is not touched");
    // What the message says helps: the two are asked again.
    assert_eq!(desk.run(&["test", "suite.yaml", "--resume", &run]).code, 100);
    desk.ok(&["report", "last"]);
    // An answer that was changed with all counts the same is found too.
    desk.put(&trials, whole.replacen("\"text\":\"", "\"text\":\"xyzzyq0 ", 1));
    desk.refuses(&["report", "last"], 2, &["`trials.jsonl` was changed since"]);
}

#[test]
fn a_run_that_is_not_there_is_refused() {
    let desk = desk_with(3, PASSES);
    std::fs::create_dir(desk.path("empty")).expect("writable");
    desk.refuses(&["report", "last"], 2, &["there is no run in `runs`", "--runs"]);
    desk.refuses(&["report", "nothing"], 2, &["there is no run `nothing`"]);
    desk.refuses(&["report", "empty"], 2, &["`empty` holds no run", "manifest.json"]);
    desk.refuses(&["test", "suite.yaml", "--resume", "last"], 2, &["there is no run in `runs`"]);
    desk.refuses(&["test", "suite.yaml", "--resume", "items.jsonl"], 2, &["there is no run `items.jsonl`"]);
}

#[test]
fn a_model_without_a_tokenizer_cannot_be_asked_and_leaves_no_run() {
    let desk = desk_with(3, PASSES);
    desk.refuses(&["test", "suite.yaml", "-m", &tiny("llama-gqa")], 2, &["no tokenizer", "hint:  a suite asks in words"]);
}

#[test]
fn a_run_goes_on_only_with_what_it_was_begun_with() {
    let desk = desk_with(3, PASSES);
    desk.ok(&["test", "suite.yaml", "-n", "2"]);
    // The number of threads changes no bit.
    desk.ok(&["test", "suite.yaml", "--resume", "last", "-t", "1"]);
    let run = folder_of(&desk);
    let refused = |args: &[&str], words: &[&str]| desk.refuses(&[&["test", "suite.yaml", "--resume", "last"], args].concat(), 2, words);
    refused(&["-n", "3"], &["begun with", "resume without --limit"]);
    refused(&["--kernels", "textbook"], &["kernels was `fast` and is `textbook`"]);
    refused(&["--kv-type", "q8_0"], &["cache was `f32` and is `q8_0`"]);
    desk.put("suite.yaml", suite(FAILS));
    refused(&[], &[&run, "suite hash"]);
}

#[test]
fn ctrl_c_ends_with_130_and_the_run_goes_on_to_the_same_verdicts() {
    let desk = desk_with(40, OPEN);
    let mut child = desk.command(&["test", "suite.yaml", "-t", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let err = interrupt_after_some_trials(&desk, &mut child);
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{err}");
    let run = folder_of(&desk);
    assert!(err.contains("interrupted") && err.contains(&format!("--resume {run}")), "{err}");
    assert!(!desk.path(&run).join("verdicts.json").exists(), "an interrupted run has no verdicts");
    desk.refuses(&["report", &run], 2, &["is not finished", " trials are answered", "with suite `tiny`", &format!("--resume {run}")]);
    let trials_before = desk.text(&format!("{run}/trials.jsonl")).lines().count();

    desk.ok(&["test", "suite.yaml", "--resume", "last"]);
    let resumed = desk.text(&format!("{run}/verdicts.json"));
    desk.ok(&["test", "suite.yaml", "--runs", "whole"]);
    let names = std::fs::read_dir(desk.path("whole")).expect("a run").map(|run| run.expect("readable").path());
    let whole = names.last().expect("a run").join("verdicts.json");
    assert_eq!(resumed, std::fs::read_to_string(whole).expect("verdicts"), "nothing is lost and nothing counted twice");
    assert!(trials_before < desk.text(&format!("{run}/trials.jsonl")).lines().count());
    check_no_litter(&desk);
}

/// Waits until the run has some answers, sends SIGINT, and gives all of standard error.
fn interrupt_after_some_trials(desk: &Desk, child: &mut Child) -> String {
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    err.read_line(&mut said).expect("it says which run it begins");
    let run = said.split([' ', ':']).nth(1).expect("run NAME: …").to_owned();
    let trials = desk.path("runs").join(run).join("trials.jsonl");
    let lines = || std::fs::read_to_string(&trials).map_or(0, |text| text.lines().count());
    while lines() < 4 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("there is kill").success());
    err.read_to_string(&mut said).expect("text");
    said
}

#[test]
fn the_demo_runs_the_built_in_suite_on_the_built_in_model() {
    let desk = Desk::new();
    let Told { code, out, err } = desk.run(&["demo", "-n", "2"]);
    // Two items decide nothing; which gates are open depends on the weights.
    assert!([0, 100].contains(&code), "{err}");
    assert!(out.contains("Verdict: ") && out.contains("specimen"), "{out}");
    let mut in_chinese = desk.command(&["demo", "-n", "1"]);
    in_chinese.env("GLASSBOX_LANG", "zh-CN");
    assert!(told(in_chinese).out.contains("结论"));
}

/// No half-written file is left beside a run.
pub(crate) fn check_no_litter(desk: &Desk) {
    let litter: Vec<String> = desk.names().into_iter().filter(|name| name.contains(".tmp") || name.contains(".part")).collect();
    assert_eq!(litter, Vec::<String>::new());
}
