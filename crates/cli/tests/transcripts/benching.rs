//! `bench`: what is measured, what is refused, and what an interrupted measurement leaves.

use std::process::{Command, Stdio};

use crate::desk::{Desk, wait_until_it_listens};

#[test]
fn every_combination_is_measured_and_told_with_its_spread() {
    let desk = Desk::new();
    let args = ["bench", "-p", "70,3", "-n", "2", "-d", "0,65", "-t", "1,2", "-r", "3", "--kv-type", "f32,q8_0", "--json"];
    let document = desk.json(&args);
    assert_eq!(document["format"], "glassbox-bench");
    assert_eq!(document["interrupted"], false);
    let tests = document["tests"].as_array().expect("a list");
    assert_eq!(tests.len(), 3 * 2 * 2 * 2);
    for test in tests {
        let runs: Vec<f64> = test["repetitions"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).collect();
        assert_eq!(runs.len(), 3, "{test}");
        let speed = &test["tokens_per_second"];
        let number = |key: &str| speed[key].as_f64().expect("a number");
        assert!(0.0 < number("min") && number("min") <= number("median") && number("median") <= number("max"), "{test}");
        assert!(number("min") <= number("mean") && number("mean") <= number("max") && speed["standard_deviation"].is_number(), "{test}");
        assert!(!cfg!(target_os = "linux") || test["peak_resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{test}");
        assert!(test["cache_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{test}");
    }
    let loads = document["loads"].as_array().expect("a list");
    assert_eq!(loads.len(), 2);
    for load in loads {
        assert!(load["open_ms"]["median"].as_f64() < load["first_token_ms"]["median"].as_f64(), "{load}");
    }
    assert!(desk.names().is_empty());
}

#[test]
fn what_is_watched_is_measured_beside_what_is_not_and_its_bytes_are_told_before() {
    let desk = Desk::new();
    let told = desk.run(&["bench", "-p", "70", "-n", "2", "-t", "2", "-r", "1", "--capture", "none,spans,all", "--json"]);
    assert_eq!(told.code, 0, "{told:?}");
    let document: serde_json::Value = serde_json::from_str(&told.out).expect("JSON");
    let tests = document["tests"].as_array().expect("a list");
    let watched: Vec<_> = tests.iter().map(|test| (test["test"].as_str(), test["capture"].as_str())).collect();
    let wanted = ["pp70", "tg2"].map(|test| ["none", "spans", "all"].map(|capture| (Some(test), Some(capture)))).concat();
    assert_eq!(watched, wanted);
    for test in tests {
        let (tokens, numbers) = (test["prompt_tokens"].as_u64().zip(test["generated_tokens"].as_u64()), test["capture"].as_str());
        let tokens = tokens.map(|(prompt, generated)| prompt + generated).expect("numbers");
        let numbers =
            [("none", 0), ("spans", 31), ("all", 81)].into_iter().find(|(name, _)| Some(*name) == numbers).expect("one of them").1;
        let bytes = test["statistics_bytes"].as_u64().expect("a number");
        assert_eq!(bytes % (4 * tokens * numbers.max(1)), 0, "{test}");
        assert_eq!(bytes > 0, numbers > 0, "{test}");
    }
    assert!(told.err.contains("pp70: ") && told.err.contains("81 numbers for each token, layer and head"), "{told:?}");
}

#[test]
fn a_person_reads_a_table_with_the_names_of_llama_bench() {
    let desk = Desk::new();
    let told = desk.run(&["bench", "-p", "5", "-n", "2", "-d", "3", "-t", "1", "-r", "1"]);
    assert_eq!(told.code, 0, "{told:?}");
    for wanted in ["pp5 @ d3", "tg2 @ d3", "stored as", "glassbox 0.", "processors", "to first token ms"] {
        assert!(told.out.contains(wanted), "`{wanted}` is not in\n{}", told.out);
    }
    assert!(!told.out.contains('±'), "one repetition has no deviation:\n{}", told.out);
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_numbers_before_the_first_test() {
    let desk = Desk::new();
    desk.refuses(&["bench", "-p", "0", "-n", "0"], 2, &["nothing to measure", "-p 512 -n 64"]);
    desk.refuses(&["bench", "-p", "9999999"], 2, &["`pp9999999` needs room for 9999999 tokens", "smaller numbers"]);
    desk.refuses(&["bench", "-n", "1", "-d", "18446744073709551615"], 2, &["@ d18446744073709551615", "was made for"]);
    desk.refuses(&["bench", "-p", "12,x"], 2, &["'x'", "whole number from 0 on"]);
    desk.refuses(&["bench", "-r", "0"], 2, &["whole number from 1 on"]);
    desk.refuses(&["bench", "-m", "nowhere.gguf"], 2, &["nowhere.gguf", "nothing at this path"]);
}

#[test]
fn an_interrupted_measurement_tells_what_it_has() {
    let desk = Desk::new();
    let args = ["bench", "-p", "0", "-n", "400", "-r", "1000000", "-t", "1", "--json"];
    let child = desk.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    wait_until_it_listens(child.id());
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("there is kill").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["tests"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_paced_measurement_answers_each_line_with_one_repetition() {
    let desk = Desk::new();
    let told = desk.run_with_input(&["bench", "--paced", "-t", "1"], b"pp9\ntg3 @ d70\ntg3 @ d70\nload\npp9\n");
    assert_eq!(told.code, 0, "{told:?}");
    let answers: Vec<serde_json::Value> = told.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(answers[0]["ready"].as_str().is_some_and(|ready| ready.starts_with("glassbox ")), "{told:?}");
    let names: Vec<&str> = answers[1..].iter().filter_map(|answer| answer["test"].as_str()).collect();
    assert_eq!(names, ["pp9", "tg3 @ d70", "tg3 @ d70", "load", "pp9"]);
    assert!(answers[1..].iter().all(|answer| answer["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0)), "{told:?}");
    let refused = desk.run_with_input(&["bench", "--paced"], b"pp9 @ 3\n");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("`pp9 @ 3` names no test"), "{refused:?}");
}

#[test]
fn growth_is_told_with_a_fitted_exponent_and_memory_in_a_process_of_its_own() {
    let desk = Desk::new();
    let document = desk.json(&["bench", "growth", "--curve", "cache-mha,cache-mqa,textbook-memory", "--json"]);
    let curves = document["curves"].as_array().expect("a list");
    let exponent = |index: usize| curves[index]["exponent"]["value"].as_f64().expect("a number");
    assert!((exponent(0) - 1.0).abs() < 1e-9 && (exponent(1) - 1.0).abs() < 1e-9, "{document}");
    assert_eq!(curves[0]["points"][0][1].as_f64(), curves[1]["points"][0][1].as_f64().map(|bytes| 32.0 * bytes));
    // Theory says 2; what does not grow with n² and pages that are touched early bend it by less than half a power.
    assert!(!cfg!(target_os = "linux") || (1.5..2.5).contains(&exponent(2)), "{document}");
    desk.refuses(&["bench", "growth", "--curve", "x"], 2, &["'x'", "tiled-memory"]);
    desk.refuses(&["bench", "-p", "5", "growth"], 2, &["growth"]);
}
