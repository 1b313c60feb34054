//! Real models, when they are there: `GLASSBOX_MODELS=folder cargo test -p glassbox-text --features real`.
#![cfg(feature = "real")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use glassbox_checkpoint::Checkpoint;
use glassbox_text::{Specials, TextSource, Tokenizer};

const QWEN: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
const GEMMA: &str = "gemma-3-270m-q4_k_m.gguf";

fn source(name: &str) -> TextSource {
    let folder = std::env::var("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder with the models");
    let checkpoint = Checkpoint::open(PathBuf::from(folder).join(name)).expect("the model opens");
    TextSource::open(&checkpoint).expect("the model has a tokenizer")
}

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_source(&source(name)).expect("the tokenizer opens")
}

/// text, ids with control tokens, ids without if they differ, decoded text if it differs
type Case = (String, Vec<u32>, Option<Vec<u32>>, Option<String>);

/// The golden ids by model; `GLASSBOX_TOKENIZER_GOLDEN` names a longer file made by the same script.
fn golden() -> BTreeMap<String, Vec<Case>> {
    let text = match std::env::var("GLASSBOX_TOKENIZER_GOLDEN") {
        Ok(path) => std::fs::read_to_string(path).expect("the golden file is readable"),
        Err(_) => include_str!("../fixtures/real-golden.json").to_owned(),
    };
    serde_json::from_str(&text).expect("the script wrote it")
}

fn check_ids(name: &str, cases: &[Case]) {
    let tokenizer = tokenizer(name);
    let mut wrong = Vec::new();
    for (text, parse, literal, decoded) in cases {
        let found = tokenizer.encode_with_ranges(text, Specials::Parse).expect("the text is short");
        let found_literal = tokenizer.encode(text, Specials::Literal).expect("the text is short");
        if found.ids != *parse || found_literal != *literal.as_ref().unwrap_or(parse) {
            wrong.push(format!("{text:?}\n  wanted {parse:?}\n  found  {:?}\n  literal {literal:?} {found_literal:?}", found.ids));
        }
        let shown = tokenizer.decode(parse);
        if shown != *decoded.as_ref().unwrap_or(text) {
            wrong.push(format!("decoding {text:?}: wanted {decoded:?}, found {shown:?}"));
        }
        let mut end = 0;
        for range in &found.ranges {
            if range.start > end || range.end < end {
                wrong.push(format!("ranges of {text:?} leave a gap: {:?}", found.ranges));
                break;
            }
            end = range.end;
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of {} differ:\n{}", wrong.len(), cases.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[test]
fn ids_and_texts_equal_those_of_transformers() {
    for (name, cases) in golden() {
        check_ids(&name, &cases);
    }
}

#[test]
fn a_megabyte_of_one_kind_is_tokenised_in_seconds() {
    for name in [QWEN, GEMMA] {
        let tokenizer = tokenizer(name);
        for text in ["a".repeat(1_000_000), " ".repeat(890_000) + "x", "中".repeat(333_000), "Hello world 123. ".repeat(60_000)] {
            let start = Instant::now();
            tokenizer.encode(&text, Specials::Parse).expect("within the limits");
            let taken = start.elapsed();
            // A quadratic algorithm would take hours; the bound leaves room for a machine that does ten other things.
            assert!(taken < Duration::from_secs(120), "{name}, {:?}…: {taken:?}", text.chars().next());
        }
    }
}
