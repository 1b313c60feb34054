//! Tokenizers of folders, described as GGUF metadata.

use glassbox_text::{JsonFiles, Specials, TextSource, Tokenizer, gguf_vocabulary};
use serde_json::json;

use crate::support::{TOKENIZERS, json, json_source};

fn specimen() -> JsonFiles {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specimens/specimen/");
    let read = |name: &str| std::fs::read(format!("{folder}{name}")).expect("the specimen is whole");
    JsonFiles {
        tokenizer: read("tokenizer.json"),
        config: Some(serde_json::from_slice(&read("tokenizer_config.json")).expect("JSON")),
        ..JsonFiles::default()
    }
}

/// The files of a small tokenizer without the one token that swallows the space before it.
fn plain(name: &str, change: &dyn Fn(&mut serde_json::Value)) -> JsonFiles {
    let mut files = json_source(name);
    let mut value: serde_json::Value = serde_json::from_slice(&files.tokenizer).expect("JSON");
    for token in value["added_tokens"].as_array_mut().expect("a list") {
        token["lstrip"] = json!(false);
    }
    change(&mut value);
    files.tokenizer = serde_json::to_vec(&value).expect("JSON");
    files
}

#[test]
fn a_tokenizer_of_a_folder_and_its_description_give_the_same_ids() {
    for name in TOKENIZERS {
        let files = plain(name, &|_| ());
        let original = Tokenizer::from_source(&TextSource::Json(files.clone())).expect("whole");
        let written = gguf_vocabulary(&files, original.vocab_size() + 3).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(written.tokens.len(), original.vocab_size() + 3, "{name}: filled up to the rows of the table");
        let described = Tokenizer::from_source(&TextSource::Gguf(written)).expect("whole");
        let golden = json(name, "golden.json");
        let texts = golden["cases"].as_array().or_else(|| golden.as_array()).expect("a list");
        assert!(texts.len() > 20, "{name}");
        for case in texts {
            let text = case["text"].as_str().expect("a text");
            for specials in [Specials::Literal, Specials::Parse] {
                if name == "llama2" && specials == Specials::Parse {
                    continue; // an old folder puts a space after each control token, which metadata cannot say
                }
                let ids = |tokenizer: &Tokenizer| tokenizer.encode_prompt(text, specials).expect("encodes");
                assert_eq!(ids(&described), ids(&original), "{name}: {text:?}");
            }
        }
        assert_eq!(described.eos_id(), original.eos_id(), "{name}");
    }
}

#[test]
fn the_specimens_tokenizer_can_be_described() {
    let written = gguf_vocabulary(&specimen(), 2721).expect("described");
    assert_eq!((written.model.as_str(), written.pre.as_deref()), ("gpt2", Some("smollm")));
}

#[test]
fn what_metadata_cannot_say_is_refused() {
    let check = |change: &dyn Fn(&mut serde_json::Value), parts: &[&str]| {
        let error = gguf_vocabulary(&plain("qwen2", change), 100_000).expect_err("GGUF has no words for it").to_string();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    check(&|value| value["added_tokens"][0]["lstrip"] = json!(true), &["added_tokens", "lstrip"]);
    check(&|value| value["normalizer"] = json!({"type": "Lowercase"}), &["normalizer", "NFC"]);
    check(&|value| value["model"]["ignore_merges"] = json!(true), &["pre_tokenizer", "ignore_merges true", "`qwen2`"]);
    let pattern = json!({"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": false});
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    check(&|value| value["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [pattern, bytes]}), &["pre_tokenizer", "a+"]);
    let small = gguf_vocabulary(&plain("qwen2", &|_| ()), 10).expect_err("more ids than rows").to_string();
    assert!(small.contains("10"), "{small}");
}
