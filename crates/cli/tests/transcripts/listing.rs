//! `models`, `explain`, `sites`, `schema`.

use crate::desk::{Desk, tiny};

#[test]
fn the_list_has_the_built_in_model_local_ones_and_the_cache() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("here/folder")).expect("writable");
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{}/{name}", tiny("llama-mha")), desk.path("here/folder").join(name)).expect("copied");
    }
    std::fs::copy(format!("{}/model.gguf", tiny("gpt2")), desk.path("here/good.gguf")).expect("copied");
    desk.put("here/broken.gguf", "");
    desk.put("here/notes.txt", "no model");
    let snapshot = "home/.cache/huggingface/hub/models--org--name/snapshots/0123456789abcdef0123456789abcdef01234567";
    std::fs::create_dir_all(desk.path(snapshot)).expect("writable");
    desk.put("home/.cache/huggingface/hub/models--org--name/refs/main", "0123456789abcdef0123456789abcdef01234567");
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(format!("{}/{name}", tiny("llama-mha")), desk.path(snapshot).join(name)).expect("copied");
    }
    let out = desk.ok(&["models", "list", "here"]);
    for part in
        ["specimen", "built in", "here/folder", "here/good.gguf", "here/broken.gguf", "cannot be opened", "org/name", "Hugging Face cache"]
    {
        assert!(out.contains(part), "`{part}` is missing in\n{out}");
    }
    assert!(!out.contains("notes.txt"), "{out}");
    assert!(out.lines().all(|line| line.trim_end() == line), "blanks at the end of a line:\n{out}");
    let document = desk.json(&["models", "list", "here", "--json"]);
    assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-models"), Some(1)));
    let usable = |name: &str| {
        let models = document["models"].as_array().expect("a list");
        models.iter().find(|model| model["model"] == name).unwrap_or_else(|| panic!("{name} is not in {document}"))["usable"].clone()
    };
    assert_eq!([usable("specimen"), usable("here/folder"), usable("here/good.gguf"), usable("org/name")], [true; 4]);
    assert_eq!(usable("here/broken.gguf"), false);

    // What the list names can be opened by that name.
    for model in ["here/folder", "here/good.gguf", "org/name"] {
        desk.ok(&["inspect", "-m", model, "--ids", "1,2", "--json"]);
    }
}

#[test]
fn a_model_that_no_family_runs_is_listed_with_the_reason() {
    let desk = Desk::new();
    let put = |name: &str, change: &dyn Fn(&str) -> String| {
        for file in ["config.json", "model.safetensors"] {
            let bytes = std::fs::read(format!("{}/{file}", tiny("llama-gqa"))).expect("the fixture is committed");
            let config = || change(std::str::from_utf8(&bytes).expect("text")).into_bytes();
            desk.put(&format!("here/{name}/{file}"), if file == "config.json" { config() } else { bytes.clone() });
        }
    };
    put("good", &str::to_owned);
    put("mamba", &|config| config.replace("\"model_type\": \"llama\"", "\"model_type\": \"mamba\""));
    put("spiral", &|config| config.replace("\"rope_type\": \"default\"", "\"rope_type\": \"spiral\""));
    let document = desk.json(&["models", "list", "here", "--json"]);
    let of = |name: &str| {
        let models = document["models"].as_array().expect("a list");
        let model = models.iter().find(|model| model["model"] == format!("here/{name}")).expect("listed");
        (model["usable"].as_bool().expect("a truth"), model["note"].as_str().expect("a text").to_owned())
    };
    assert_eq!(of("good"), (true, String::new()));
    let encoder = desk.json(&["models", "list", &crate::desk::repository("fixtures/tiny"), "--json"]);
    let bert = encoder["models"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|model| model["model"].as_str().is_some_and(|name| name.ends_with("/bert")));
    let bert = bert.expect("the fixture is committed");
    assert_eq!(bert["usable"], true, "{bert}");
    assert!(bert["note"].as_str().is_some_and(|note| note.contains("an encoder: for `embed` and `inspect`")), "{bert}");
    for (name, words) in [("mamba", "no family reads model_type `mamba`"), ("spiral", "spiral")] {
        let (usable, note) = of(name);
        assert!(!usable && note.starts_with("cannot be run: ") && note.contains(words), "{note}");
    }
}

#[test]
fn a_folder_named_for_the_list_must_be_one() {
    let desk = Desk::new();
    desk.put("notes.txt", "");
    desk.refuses(&["models", "list", "nowhere"], 2, &["`nowhere`", "No such file"]);
    desk.refuses(&["models", "list", "notes.txt"], 2, &["`notes.txt`", "found a file"]);
}

#[test]
fn a_model_is_described_in_words_and_in_json() {
    let desk = Desk::new();
    let out = desk.ok(&["models", "info", &format!("{}/model.gguf", tiny("llama-gqa"))]);
    for part in ["6 heads over 2 kv heads of 10", "vocabulary 61", "BLAKE3", "chat template", "no"] {
        assert!(out.contains(part), "`{part}` is missing in\n{out}");
    }
    let document = desk.json(&["models", "info", "--json"]);
    assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("glassbox-model"), Some(1)));
    assert_eq!((document["model"].as_str(), document["chat_template"].as_bool()), (Some("specimen"), Some(true)));
    let stored: u64 = document["storage"].as_array().expect("a list").iter().filter_map(|share| share["numbers"].as_u64()).sum();
    assert_eq!(document["parameters"].as_u64(), Some(stored));
}

#[test]
fn every_family_explains_its_forward_pass() {
    let desk = Desk::new();
    for name in ["llama-gqa", "qwen2-window", "gemma3-gqa", "gpt2"] {
        let out = desk.ok(&["explain", "-m", &tiny(name)]);
        assert_eq!(desk.ok(&["explain", &tiny(name)]), out, "a model may be named without -m");
        assert!(out.contains("embed.out") && out.contains("attn.pattern") && out.contains("logits"), "{name}:\n{out}");
    }
}

#[test]
fn the_sites_are_the_sites() {
    let desk = Desk::new();
    insta::assert_snapshot!("sites", desk.ok(&["sites"]));
}

#[test]
fn the_schema_is_json_and_knows_the_keys_of_a_suite() {
    let schema = Desk::new().json(&["schema"]);
    for key in ["version", "name", "defaults", "data", "prompts", "tests"] {
        assert!(schema["properties"].get(key).is_some(), "{key} is missing");
    }
    assert_eq!(schema["additionalProperties"], false);
}
