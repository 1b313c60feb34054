//! `score`.

use serde_json::Value;

use crate::desk::Desk;

const CONTEXT: &str =
    "Documents:\n[1] The colour of Zorvex is amber.\n[2] Daxdor is painted teal.\n\nQuestion: What is the colour of Zorvex?";

fn numbers(document: &Value, key: &str) -> Vec<f64> {
    let continuations = document["continuations"].as_array().expect("a list");
    continuations.iter().map(|one| one[key].as_f64().expect("a number")).collect()
}

#[test]
fn the_text_that_a_model_writes_is_scored_as_it_was_when_it_wrote_it() {
    let desk = Desk::new();
    let written = desk.json(&["generate", "--chat", CONTEXT, "-n", "4", "--json"]);
    let text: String = written["text"].as_str().expect("a text").to_owned();
    let scored = desk.json(&["score", "--chat", "--context", CONTEXT, &text, "--json"]);
    assert_eq!((scored["format"].as_str(), scored["version"].as_u64()), (Some("glassbox-scores"), Some(1)));
    let of = |value: &Value| -> Vec<(u64, f64)> {
        let tokens = value.as_array().expect("a list").iter();
        tokens.map(|token| (token["id"].as_u64().expect("an id"), token["log_probability"].as_f64().expect("a number"))).collect()
    };
    let (written, scored) = (of(&written["tokens"]), of(&scored["continuations"][0]["tokens"]));
    assert!(!scored.is_empty());
    assert_eq!(written[..scored.len()], scored, "the same bits, also of tokens read together");
}

#[test]
fn shares_of_several_continuations_add_up_and_follow_their_sums() {
    let desk = Desk::new();
    let document = desk.json(&["score", "--chat", "--context", CONTEXT, "amber", "teal", "plum", "--json"]);
    let (sums, shares) = (numbers(&document, "log_probability"), numbers(&document, "share"));
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(shares[0] > 0.5 && sums[0] > sums[1] && sums[0] > sums[2], "the document says amber: {sums:?} {shares:?}");
    assert!(((sums[1] - sums[0]).exp() - shares[1] / shares[0]).abs() < 1e-9);
}

#[test]
fn the_table_says_where_texts_were_tokenised_apart_and_what_has_no_probability() {
    let desk = Desk::new();
    insta::assert_snapshot!("score", desk.ok(&["score", "--context", "Ans", "wer", " is"]));
    let told = desk.run_with_input(&["score", "-", "--json"], "The colour of Zorvex is amber.".as_bytes());
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!(document["continuations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_cannot_be_scored_is_refused_by_name() {
    let desk = Desk::new();
    desk.refuses(&["score", "--context", "a", ""], 2, &["at least one token"]);
    desk.refuses(&["score", "--chat", "--context", "a", ""], 2, &["at least one token"]);
    desk.refuses(&["score"], 2, &["TEXT"]);
    desk.refuses(&["score", &"a long text ".repeat(4000)], 2, &["tokens", "was made for"]);
}
