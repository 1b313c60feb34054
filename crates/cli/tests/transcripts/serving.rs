//! `serve`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::desk::Desk;
use crate::testing::{PASSES, desk_with, folder_of};

/// A server that ends with its test.
struct Serving {
    process: Child,
    base: String,
}

impl Serving {
    fn start(desk: &Desk, args: &[&str]) -> Self {
        let args = [&["serve", "--port", "0", "--json"], args].concat();
        let mut process = desk.command(&args).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut text = String::new();
        let document: Value = loop {
            text.push_str(&lines.next().expect("it tells its address").expect("text"));
            if let Ok(document) = serde_json::from_str(&text) {
                break document;
            }
        };
        assert_eq!(document["format"], "glassbox-server");
        Self { process, base: document["base"].as_str().expect("an address").to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What was answered to each trial: its text, and how likely its first token was.
fn answers(desk: &Desk) -> BTreeMap<String, (String, f64)> {
    let answer = |line: &str| {
        let trial: Value = serde_json::from_str(line).expect("JSON");
        let answered = &trial["outcome"]["answered"];
        let first = answered["first_token"][0]["log_probability"].as_f64().expect("a number");
        let text = answered["text"].as_str().expect("a text").to_owned();
        (trial["trial"].as_str().expect("a name").to_owned(), (text, first))
    };
    desk.text(&format!("{}/trials.jsonl", folder_of(desk))).lines().skip(1).map(answer).collect()
}

#[test]
fn a_suite_against_the_server_gets_the_answers_of_the_engine_itself() {
    let of = |address: bool| {
        let desk = desk_with(8, PASSES);
        let serving = address.then(|| Serving::start(&desk, &["--name", "built in"]));
        let model = serving.as_ref().map_or_else(|| "specimen".to_owned(), |serving| format!("{}#built in", serving.base));
        let told = desk.run(&["test", "suite.yaml", "-m", &model, "-j", "4"]);
        assert_eq!(told.code, 0, "{told:?}");
        answers(&desk)
    };
    let (served, native) = (of(true), of(false));
    assert!(native.len() >= 8, "{native:?}");
    assert_eq!(served, native, "the same bits");
}

#[test]
fn a_server_that_cannot_begin_says_why() {
    let desk = Desk::new();
    desk.refuses(&["serve", "--host", "0.0.0.0"], 2, &["other machines", "GLASSBOX_SERVER_KEY"]);
    desk.refuses(&["serve", "--slots", "100000", "--context", "100000"], 2, &["MiB", "--context"]);
    let taken =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?.port(), listener))).expect("a port");
    desk.refuses(&["serve", "--port", &taken.0.to_string()], 2, &["cannot listen on 127.0.0.1", "--port 0"]);
}
