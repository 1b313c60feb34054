//! `embed`, and what the other commands do with an encoder.

use serde_json::Value;

use crate::desk::{Desk, repository, tiny};

/// Puts the tiny encoder on the desk, with the files of one folder of `fixtures/sentence` beside its weights.
fn encoder(desk: &Desk, name: &str) {
    for file in ["config.json", "model.safetensors"] {
        desk.put(&format!("{name}/{file}"), std::fs::read(format!("{}/{file}", tiny("bert"))).expect("the fixture is committed"));
    }
    let beside = repository(&format!("fixtures/sentence/{name}"));
    for file in crate::desk::names_below(std::path::Path::new(&beside)) {
        let path = format!("{beside}/{file}");
        if !file.starts_with("golden") && std::path::Path::new(&path).is_file() {
            desk.put(&format!("{name}/{file}"), std::fs::read(path).expect("the fixture is committed"));
        }
    }
}

fn golden(name: &str) -> Vec<Value> {
    let text = std::fs::read(repository(&format!("fixtures/sentence/{name}/golden.json"))).expect("the fixture is committed");
    serde_json::from_slice::<Value>(&text).expect("the script writes JSON").as_array().expect("a list").clone()
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

#[test]
fn texts_become_the_vectors_of_sentence_transformers() {
    let desk = Desk::new();
    for name in ["mean", "joined", "silent"] {
        encoder(&desk, name);
        let cases = golden(name);
        let mut args = vec!["embed", name];
        args.extend(cases.iter().map(|case| case["text"].as_str().expect("a text")));
        args.push("--json");
        let document = desk.json(&args);
        assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-embeddings"), Some(1)));
        let embeddings = document["embeddings"].as_array().expect("a list");
        assert_eq!(embeddings.len(), cases.len());
        for (found, wanted) in embeddings.iter().zip(&cases) {
            assert_eq!((&found["text"], &found["ids"]), (&wanted["text"], &wanted["ids"]), "{name}");
            for (x, y) in numbers(&found["vector"]).into_iter().zip(numbers(&wanted["embedding"])) {
                assert!((x - y).abs() <= 1e-5 * y.abs().max(1.0), "{name}, {}: {x} for {y}", wanted["text"]);
            }
        }
        for (index, row) in document["similarity"].as_array().expect("a matrix").iter().enumerate() {
            assert!((numbers(row)[index] - 1.0).abs() < 1e-12, "a text is like itself");
        }
    }
}

#[test]
fn the_terminal_shows_how_alike_texts_are_and_says_what_was_cut() {
    let desk = Desk::new();
    encoder(&desk, "mean");
    let told = desk.run(&["embed", "mean", "the cat", "the cats", "a long text that has more tokens than this model may see"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(told.err, "text 3 is cut: the model reads 24 tokens; the last 23 are left out\n");
    insta::assert_snapshot!("embed", told.out);
    let one = desk.ok(&["embed", "mean", "the cat"]);
    assert!(!one.contains("similarity"), "{one}");
}

#[test]
fn lines_of_standard_input_are_texts() {
    let desk = Desk::new();
    encoder(&desk, "mean");
    let told = desk.run_with_input(&["embed", "mean", "-", "--json"], "the cat\r\n\nun\n".as_bytes());
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&told.out).expect("JSON");
    let texts: Vec<&str> = document["embeddings"].as_array().expect("a list").iter().filter_map(|one| one["text"].as_str()).collect();
    assert_eq!(texts, ["the cat", "", "un"]);
    let empty = desk.run_with_input(&["embed", "mean", "-"], b"");
    crate::desk::check_refusal(&empty, &["embed"], 2, &["standard input is empty"]);
}

#[test]
fn a_model_that_says_nothing_of_its_vectors_is_told_of() {
    let desk = Desk::new();
    encoder(&desk, "silent");
    let told = desk.run(&["embed", "silent", "the cat"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.err.contains("does not say how its vectors become one"), "{}", told.err);
}

#[test]
fn an_encoder_is_inspected_without_a_next_token() {
    let desk = Desk::new();
    encoder(&desk, "mean");
    let document = desk.json(&["inspect", "-m", "mean", "the unwinding", "--json"]);
    let tokens: Vec<&str> = document["tokens"].as_array().expect("a list").iter().filter_map(|token| token["text"].as_str()).collect();
    assert_eq!((tokens[0], tokens[1], tokens[2], tokens[3], *tokens.last().expect("some")), ("[CLS]", "the", "un", "##w", "[SEP]"));
    assert_eq!((&document["next"], &document["next_entropy_nats"]), (&serde_json::json!([]), &Value::Null));
    assert_eq!(document["heads"].as_array().map(Vec::len), Some(6), "two layers of three heads");
    for map in document["maps"].as_array().expect("a list") {
        let total: f64 = numbers(&map["last_row"]).iter().sum();
        assert!((total - 1.0).abs() < 1e-5, "a row of attention sums to {total}");
        let first_row = &numbers(&map["weights"])[..tokens.len()];
        assert!(first_row[1..].iter().any(|weight| *weight > 0.0), "the first token sees those after it");
    }
    let shown = desk.ok(&["inspect", "-m", "mean", "the unwinding"]);
    assert!(shown.contains("[CLS]|the|un|##w|") && shown.contains("Entropy of every head") && !shown.contains("Next tokens"), "{shown}");
    desk.ok(&["inspect", "-m", "mean", "the cat", "--html", "look.html"]);
    let page = desk.text("look.html");
    assert!(page.contains("##") || page.contains("[CLS]"));
    assert!(!page.contains("Next tokens") && !page.contains("chooses the next token"), "an encoder has no next token");
    desk.ok(&["inspect", "-m", "mean", "the cat", "--site", "embed.out,blocks.*.attn.pattern", "--out", "sites.safetensors"]);
    desk.ok(&["inspect", "-m", &format!("{}/model.gguf", tiny("bert")), "--ids", "2,5,9,3"]);
}

#[test]
fn an_encoder_is_described_and_explained() {
    let desk = Desk::new();
    encoder(&desk, "mean");
    let info = desk.json(&["models", "info", "mean", "--json"]);
    assert_eq!((&info["tokenizer"], &info["cache_bytes_per_token"]), (&Value::from("71 tokens"), &Value::Null));
    assert!(!desk.ok(&["models", "info", "mean"]).contains("cache"));
    assert!(desk.ok(&["explain", "mean"]).contains("attn.pattern"));
}

#[test]
fn what_an_encoder_cannot_do_is_refused_with_what_it_can() {
    let desk = Desk::new();
    encoder(&desk, "mean");
    for args in [&["generate", "-m", "mean", "the cat"][..], &["test", "evidence", "-m", "mean"]] {
        desk.refuses(args, 2, &["is an encoder", "hint:", "glassbox embed MODEL TEXT", "glassbox inspect -m MODEL TEXT"]);
    }
    desk.refuses(&["inspect", "-m", "mean", "x", "--chat"], 2, &["an encoder holds no conversation"]);
    desk.refuses(&["inspect", "-m", "mean", "x", "--kv-type", "f16"], 2, &["--kv-type", "an encoder"]);
    desk.refuses(&["inspect", "-m", "mean", "x", "--context", "41"], 2, &["--context", "41", "40"]);
    let long = "a b ".repeat(30);
    desk.refuses(&["inspect", "-m", "mean", &long], 2, &["62 tokens", "room for 40", "glassbox embed"]);
    desk.refuses(&["embed", "specimen", "x"], 2, &["is a decoder", "hint:", "glassbox generate"]);
    desk.refuses(&["embed", "mean"], 2, &["TEXT"]);
    desk.refuses(&["embed", &tiny("bert"), "x"], 2, &["no tokenizer"]);
    desk.refuses(&["embed", "nowhere", "x"], 2, &["nowhere"]);
}
