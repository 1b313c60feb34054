//! `inspect --evidence`.

use serde_json::Value;

use crate::desk::{Desk, told};

const PROMPT: &str = "Documents:\n[1] The colour of Zorvex is amber.\n[2] Daxdor is painted teal.\n[3] Talmin comes in ochre.\n\nQuestion: What is the colour of Zorvex?";

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn sum(values: &Value) -> f64 {
    values.as_array().expect("a list").iter().map(number).sum()
}

#[test]
fn the_parts_of_the_prompt_and_what_the_weights_know_add_up_to_the_logit() {
    let desk = Desk::new();
    for more in
        [&[][..], &["--answer", "teal"], &["--answer", "amber", "--against", "teal", "--span", "gold=The colour of Zorvex is amber."]]
    {
        let args = [&["inspect", "--chat", PROMPT, "--evidence", "--json", "--activations", "exact"], more].concat();
        let document = desk.json(&args);
        assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-evidence"), Some(1)));
        let of = |name: &str| number(&document[name]);
        let spans = document["spans"].as_array().expect("a list");
        let through: f64 = spans.iter().map(|span| number(&span["ledger"])).sum();
        let whole = through + of("elsewhere") + sum(&document["feed_forward"]) + of("embedding") + of("bias");
        assert!((whole - of("logit")).abs() < 1e-3, "{more:?}: {whole} for {}", of("logit"));
        for span in spans {
            let by_head: f64 = span["ledger_by_head"].as_array().expect("a list").iter().map(sum).sum();
            assert!((by_head - number(&span["ledger"])).abs() < 1e-9, "{span}");
        }
    }
}

#[test]
fn every_line_is_a_part_and_the_one_with_the_answer_is_needed() {
    let desk = Desk::new();
    let document = desk.json(&["inspect", "--chat", PROMPT, "--evidence", "--json"]);
    let spans = document["spans"].as_array().expect("a list");
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["line 1", "line 2", "line 3", "line 4", "line 6"]);
    assert!(spans[1]["text"].as_str().expect("a text").contains("amber"), "{}", spans[1]);
    assert_eq!((&spans[1]["says"]["ledger"], &spans[1]["knockout"]["changed"]), (&Value::from(true), &Value::from(true)));
    assert_eq!((&spans[3]["says"]["ledger"], &spans[3]["knockout"]["changed"]), (&Value::from(false), &Value::from(false)));
    assert!(document["edits"].as_str().is_some_and(|edits| edits.contains("minus infinity")), "an edited pass says so");
}

#[test]
fn the_table_reads_as_agreed_in_both_languages() {
    let desk = Desk::new();
    let args = [
        "inspect",
        "--chat",
        PROMPT,
        "--evidence",
        "--span",
        "gold=The colour of Zorvex is amber.",
        "--span",
        "[3] Talmin comes in ochre.",
    ];
    insta::assert_snapshot!("evidence", desk.ok(&args));
    let chinese = told(desk.command(&[&args[..], &["--lang", "zh-CN"]].concat()));
    assert!(
        chinese.code == 0 && chinese.out.contains("前馈（权重所知）") && chinese.out.contains("不一致：认为来自这里的有 3/6"),
        "{chinese:?}"
    );
}

#[test]
fn of_a_single_part_that_everything_hangs_on_nothing_is_claimed() {
    let desk = Desk::new();
    let document = desk.json(&["inspect", "a", "--evidence", "--json"]);
    let says = document["spans"][0]["says"].as_object().expect("an object").clone();
    assert_eq!(says.len(), 6);
    assert!(says.values().all(Value::is_null), "nothing to compare with, no later token, nothing left without it: {says:?}");
    assert!(!desk.ok(&["inspect", "a", "--evidence"]).contains("from here\n"));
}

#[test]
fn parts_that_are_not_there_or_not_one_are_refused_by_name() {
    let desk = Desk::new();
    desk.refuses(&["inspect", PROMPT, "--evidence", "--span", "mauve"], 2, &["does not hold `mauve`"]);
    desk.refuses(&["inspect", PROMPT, "--evidence", "--span", "Zorvex"], 2, &["more than once", "more of the text"]);
    desk.refuses(&["inspect", PROMPT, "--evidence", "--span", "a=is amber", "--span", "b=amber."], 2, &["`a` and `b` overlap"]);
    desk.refuses(&["inspect", PROMPT, "--evidence", "--span", "a="], 2, &["is empty"]);
    desk.refuses(&["inspect", PROMPT, "--answer", "x"], 2, &["--layers or --evidence"]);
    desk.refuses(&["inspect", PROMPT, "--span", "x"], 2, &["--evidence"]);
}
