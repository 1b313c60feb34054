//! Models and suites that cannot be read: the message names the thing, the place and the remedy.

use std::path::Path;

use serde_json::{Value, json};

use crate::desk::{Desk, tiny};

fn copied(desk: &Desk, model: &str, name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    for file in ["config.json", "model.safetensors"] {
        let bytes = std::fs::read(Path::new(&tiny(model)).join(file)).expect("the fixture is committed");
        desk.put(&format!("{name}/{file}"), if file == "config.json" { change(bytes) } else { bytes });
    }
    name.to_owned()
}

/// A copy of a tiny model whose `config.json` has these keys set, or removed where they are null.
fn with_settings(desk: &Desk, name: &str, settings: &[(&str, Value)]) -> String {
    copied(desk, "llama-gqa", name, |bytes| {
        let mut config: serde_json::Map<String, Value> = serde_json::from_slice(&bytes).expect("JSON");
        for (key, value) in settings {
            config.remove(*key);
            if !value.is_null() {
                config.insert((*key).to_owned(), value.clone());
            }
        }
        serde_json::to_vec(&config).expect("JSON")
    })
}

#[test]
fn a_model_that_is_not_there_says_where_it_was_looked_for() {
    let desk = Desk::new();
    let verbs: [&[&str]; 5] = [&["generate", "x"], &["inspect", "x"], &["models", "info"], &["explain"], &["test", "evidence"]];
    for verb in verbs {
        let with_model = |model: &'static str| [verb, &["-m", model]].concat();
        desk.refuses(
            &with_model("./nowhere.gguf"),
            2,
            &["./nowhere.gguf: wanted", "found nothing at this path", "\nhint:  give the path of"],
        );
        desk.refuses(
            &with_model("org/name"),
            2,
            &["org/name: wanted", "home/.cache/huggingface/hub", "\nhint:  ", "glassbox models pull org/name`"],
        );
        desk.refuses(&with_model(""), 2, &["wanted a GGUF file or a model folder"]);
    }
}

#[test]
fn a_broken_model_file_names_the_file_what_is_wrong_and_what_to_do() {
    let desk = Desk::new();
    desk.put("empty.gguf", "");
    let gguf = std::fs::read(Path::new(&tiny("llama-gqa")).join("model.gguf")).expect("the fixture is committed");
    // The end of a file may be padding, so the last cut takes more than that.
    for bytes in [4, 40, 500, 3_000, gguf.len() - 100] {
        desk.put(&format!("cut-{bytes}.gguf"), &gguf[..bytes]);
        let model = format!("cut-{bytes}.gguf");
        desk.refuses(&["inspect", "-m", &model, "--ids", "1"], 2, &[&model, "wanted", "found", "download it again"]);
    }
    desk.put("page.gguf", "<!DOCTYPE html><html><head><title>404</title></head></html>");
    desk.put("blank/config.json", "");
    desk.put("bare/notes.txt", "");
    desk.put("weightless/config.json", std::fs::read(Path::new(&tiny("llama-gqa")).join("config.json")).expect("the fixture is committed"));
    copied(&desk, "llama-gqa", "hollow", |bytes| bytes);
    desk.put("hollow/model.safetensors", "");
    copied(&desk, "llama-gqa", "cut", |bytes| bytes);
    let weights = std::fs::read(desk.path("cut/model.safetensors")).expect("just written");
    desk.put("cut/model.safetensors", &weights[..weights.len() - 100]);
    copied(&desk, "llama-gqa", "torn", |bytes| bytes[..bytes.len() / 2].to_vec());
    for (model, words) in [
        ("empty.gguf", ["empty.gguf", "found an empty file", "\nhint:  download it again"]),
        ("page.gguf", ["page.gguf", "found", "download"]),
        ("blank", ["blank/config.json", "", ""]),
        ("bare", ["bare/config.json", "found no such file", "check the path"]),
        ("weightless", ["weightless", "model.safetensors", "found"]),
        ("hollow", ["hollow/model.safetensors", "found an empty file", "download it again"]),
        ("cut", ["cut/model.safetensors", "found a file of", "download"]),
        ("torn", ["torn/config.json", "", ""]),
    ] {
        desk.refuses(&["inspect", "-m", model, "--ids", "1"], 2, &words);
    }
}

#[test]
fn a_setting_that_is_not_understood_is_refused_by_name() {
    let desk = Desk::new();
    let spiral = json!({"rope_type": "spiral", "rope_theta": 10000.0, "factor": 2.0});
    let words = ["config.json", "rope_type", "spiral", "llama3"];
    // As transformers 5 writes it, and as transformers 4 wrote it.
    let new = with_settings(&desk, "new", &[("rope_parameters", spiral.clone())]);
    desk.refuses(&["inspect", "-m", &new, "--ids", "1"], 2, &words);
    let old = with_settings(&desk, "old", &[("rope_parameters", Value::Null), ("rope_theta", json!(10000.0)), ("rope_scaling", spiral)]);
    desk.refuses(&["inspect", "-m", &old, "--ids", "1"], 2, &words);
    let other = with_settings(&desk, "other", &[("model_type", json!("mamba"))]);
    desk.refuses(&["inspect", "-m", &other, "--ids", "1"], 2, &["mamba", "llama", "\nhint:  take a model of these"]);
    let novel = with_settings(&desk, "novel", &[("attention_twist", json!(3))]);
    desk.refuses(&["inspect", "-m", &novel, "--ids", "1"], 2, &["novel/config.json", "attention_twist"]);
    // The same key with a reason why it is harmless.
    desk.ok(&["inspect", "-m", &novel, "--ids", "1", "--json", "--allow-unread", "attention_twist=it is 3, which does nothing"]);
    let wide = with_settings(&desk, "wide", &[("hidden_size", json!(4096))]);
    desk.refuses(&["inspect", "-m", &wide, "--ids", "1"], 2, &["embed", "4096"]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_read_says_so() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let desk = Desk::new();
    copied(&desk, "llama-gqa", "shut", |bytes| bytes);
    let shut = desk.path("shut");
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o000)).expect("the owner may");
    // A superuser reads everything: then there is nothing to refuse.
    if std::fs::read_dir(&shut).is_err() {
        let below = ["inspect", "-m", "shut/model.gguf", "--ids", "1"];
        for args in [&["inspect", "-m", "shut", "--ids", "1"][..], &below, &["models", "list", "shut"], &["test", "shut/suite.yaml"]] {
            let told = desk.run(args);
            crate::desk::check_refusal(&told, args, 2, &["shut", "ermission denied", "hint: "]);
        }
    }
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o755)).expect("the owner may");

    // A link that leads to itself cannot be read by anybody.
    symlink(desk.path("loop"), desk.path("loop")).expect("linked");
    for args in [&["inspect", "-m", "./loop", "--ids", "1"][..], &["models", "list", "loop"], &["test", "loop"]] {
        let told = desk.run(args);
        crate::desk::check_refusal(&told, args, 2, &["loop", "symbolic links"]);
        if args[0] == "inspect" {
            assert!(told.err.contains("\nhint:  check the path"), "{told:?}");
        }
    }
}

#[test]
fn a_suite_that_is_not_there_names_the_built_in_ones() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("folder")).expect("writable");
    desk.refuses(
        &["test", "evidense"],
        2,
        &["cannot read `evidense`", "hint:  built-in suites: evidence, order, rewrite, memory, length, conflict"],
    );
    desk.refuses(&["test", "folder"], 2, &["cannot read `folder`"]);
}

#[test]
fn a_suite_with_a_misspelt_key_names_file_line_column_and_the_nearest_key() {
    let desk = Desk::new();
    let suite = crate::testing::suite("- {metric: oracle_accuracy, min: 0.5}");
    crate::testing::put_items(&desk, 3);
    let misspelt = |from: &str, to: &str| {
        assert!(suite.contains(from), "{from} is not in the suite");
        let text = suite.replacen(from, to, 1);
        let (line, column) = place(&text, to);
        desk.put("suite.yaml", text);
        format!("(suite.yaml:{line}:{column})")
    };
    for (from, to, words) in [
        ("items:", "item:", ["unknown key `item`", "did you mean `items`?"]),
        ("passages:", "pasages:", ["unknown key `pasages`", "did you mean `passages`?"]),
        ("metric:", "metrik:", ["unknown key `metrik`", "did you mean `metric`?"]),
        ("defaults:", "default:", ["unknown key `default`", "did you mean `defaults`?"]),
        ("evidence_position", "evidence_positon", ["evidence_positon", "did you mean `evidence_position`?"]),
        ("oracle_accuracy", "oracel_accuracy", ["oracel_accuracy", "did you mean `oracle_accuracy`?"]),
    ] {
        let place = misspelt(from, to);
        desk.refuses(&["test", "suite.yaml"], 2, &[words[0], words[1], &place]);
    }
    desk.put("suite.yaml", suite.replace("items.jsonl", "missing.jsonl"));
    desk.refuses(&["test", "suite.yaml"], 2, &["missing.jsonl", "suite.yaml:"]);
    desk.put("suite.yaml", "");
    desk.refuses(&["test", "suite.yaml"], 2, &["suite.yaml"]);
    desk.put("suite.yaml", b"name: \xff");
    desk.refuses(&["test", "suite.yaml"], 2, &["suite.yaml", "not UTF-8"]);
    desk.put("suite.yaml", suite.as_str());
    desk.put("items.jsonl", "{\"id\": \"a\"");
    desk.refuses(&["test", "suite.yaml"], 2, &["items.jsonl:1"]);
}

/// Line and column, counted from 1, where `part` begins in `text`.
fn place(text: &str, part: &str) -> (usize, usize) {
    let start = text.find(part).expect("it was just put there");
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    (text[..start].matches('\n').count() + 1, start - line_start + 1)
}

/// The built-in model as a folder, one stored number of a tensor replaced by half-precision NaN.
fn with_a_nan(desk: &Desk, name: &str, tensor: &str, number: usize) -> String {
    for entry in std::fs::read_dir(crate::desk::repository("specimens/specimen")).expect("the specimen is committed") {
        let path = entry.expect("readable").path();
        let file = path.file_name().expect("a file").to_string_lossy().into_owned();
        if path.is_file() {
            let mut bytes = std::fs::read(&path).expect("readable");
            if file == "model.safetensors" {
                let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
                let tensors: Value = serde_json::from_slice(&bytes[8..header]).expect("JSON");
                assert_eq!(tensors[tensor]["dtype"], "F16");
                let at = header + tensors[tensor]["data_offsets"][0].as_u64().expect("a number") as usize + 2 * number;
                bytes[at..at + 2].copy_from_slice(&0x7E00_u16.to_le_bytes());
            }
            desk.put(&format!("{name}/{file}"), bytes);
        }
    }
    name.to_owned()
}

#[test]
fn a_model_that_computes_no_numbers_is_refused_at_the_site_where_that_begins() {
    let desk = Desk::new();
    // A key's projection in block 1, the last norm, and the vector of token 300 of a vocabulary of 256 numbers each.
    let key = with_a_nan(&desk, "key", "model.layers.1.self_attn.k_proj.weight", 0);
    let norm = with_a_nan(&desk, "norm", "model.norm.weight", 3);
    let token = with_a_nan(&desk, "token", "model.embed_tokens.weight", 300 * 256);
    let words = ["computes NaN at `blocks.1.attn.k`, row 0 (`h", "wanted finite numbers", "\nhint:  suspect the weights"];
    for args in [
        &["generate", "-m", &key, "hi"][..],
        &["generate", "-m", &key, "hi", "--json"],
        &["inspect", "-m", &key, "hi"],
        &["inspect", "-m", &key, "hi", "--json"],
        &["inspect", "-m", &key, "hi", "--html", "a.html", "--png", "a.png", "--svg", "a.svg"],
    ] {
        let told = desk.refuses(args, 2, &words);
        assert_eq!(told.out, "", "{args:?}");
    }
    desk.refuses(&["inspect", "-m", &norm, "hi"], 2, &["NaN at `norm.out`"]);
    // Embedding and unembedding are one matrix: the logit of the token is NaN wherever it is not read.
    desk.refuses(&["generate", "-m", &token, "hi", "--temperature", "1"], 2, &["NaN at `logits`"]);
    desk.refuses(&["inspect", "-m", &token, "--ids", "1,2,300,4"], 2, &["NaN at `embed.out`, row 2"]);
    // The numbers themselves can be saved, to find where they come from, but not without a word.
    let told = desk.run(&["inspect", "-m", &key, "hi", "--site", "blocks.*.attn.k", "--out", "k.safetensors"]);
    assert!(told.code == 2 && told.err.contains("wrote k.safetensors") && told.err.contains("computes NaN"), "{told:?}");
}
