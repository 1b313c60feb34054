//! Ids and texts of small tokenizers, against those of the Python libraries.

use crate::support::{TOKENIZERS, from_gguf, from_json, json};
use glassbox_text::{Specials, Tokenizer};
use serde_json::Value;

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("ids")
}

fn check(name: &str, form: &str, tokenizer: &Tokenizer) {
    for case in json(name, "golden.json").as_array().expect("a list of cases") {
        let text = case["text"].as_str().expect("a text");
        let place = || format!("{name} from {form}: {text:?}");
        let of_form = |key: &str| case.get(key).filter(|_| form == "GGUF");
        let parse = of_form("gguf").unwrap_or(&case["parse"]);
        let encoded = tokenizer.encode_with_ranges(text, Specials::Parse).expect("a short text");
        assert_eq!(encoded.ids, ids(parse), "{}, control tokens parsed", place());
        let literal = of_form("gguf_literal").or(case.get("literal")).unwrap_or(&case["parse"]);
        let literal = ids(literal);
        let found = tokenizer.encode(text, Specials::Literal).expect("a short text");
        assert_eq!(found, literal, "{}, control tokens as text", place());
        if let Some(piece_ids) = case.get("sentencepiece") {
            assert_eq!(found, ids(piece_ids), "{}, by SentencePiece itself", place());
        }
        let decoded = case.get("decoded").map_or(text, |text| text.as_str().expect("a text"));
        assert_eq!(tokenizer.decode(&ids(&case["parse"])), decoded, "{}, decoded", place());
        let mut end = 0;
        for range in &encoded.ranges {
            assert!(range.start <= end && range.end >= end, "{}: ranges {:?} leave a gap", place(), encoded.ranges);
            end = range.end;
        }
        assert_eq!(end, text.len(), "{}: ranges {:?} do not reach the end", place(), encoded.ranges);
    }
}

#[test]
fn ids_from_tokenizer_json_equal_those_of_the_tokenizers_library() {
    for name in TOKENIZERS {
        check(name, "tokenizer.json", &from_json(name));
    }
}

#[test]
fn ids_from_gguf_metadata_equal_those_from_tokenizer_json() {
    for name in TOKENIZERS {
        check(name, "GGUF", &from_gguf(name));
    }
}

#[test]
fn a_word_that_no_merge_makes_is_one_token_where_merges_are_ignored() {
    for tokenizer in [from_json("llama3"), from_gguf("llama3")] {
        let ids = tokenizer.encode(" Việt", Specials::Literal).expect("a short text");
        assert_eq!(ids.len(), 1, "Llama 3 looks words up before it merges");
        assert_eq!(tokenizer.token_bytes(ids[0]), " Việt".as_bytes());
    }
}

#[test]
fn digits_are_grouped_as_each_family_groups_them() {
    let pieces = |name: &str, text: &str| {
        let tokenizer = from_gguf(name);
        let ids = tokenizer.encode(text, Specials::Literal).expect("a short text");
        ids.iter().map(|id| tokenizer.token_name(*id)).collect::<Vec<_>>()
    };
    assert_eq!(pieces("qwen2", "3333+777"), ["3", "3", "3", "3", "+", "7", "7", "7"]);
    assert_eq!(pieces("llama3", "3333+777")[..2], ["333", "3"]);
    assert_eq!(pieces("gpt2", "3333+777")[..2], ["33", "33"]);
}

#[test]
fn decoding_cleans_nothing_up() {
    for name in TOKENIZERS {
        let tokenizer = from_json(name);
        for text in ["hello !", "x != y and a.b == c", "the word 'social'", "do n't , it 's"] {
            let ids = tokenizer.encode(text, Specials::Literal).expect("a short text");
            assert_eq!(tokenizer.decode(&ids), text, "{name}");
        }
    }
}

#[test]
fn token_bytes_in_a_row_are_the_text() {
    let text = " the 😀 社区 \u{2029}\u{0}\tend";
    for name in TOKENIZERS {
        for tokenizer in [from_json(name), from_gguf(name)] {
            let ids = tokenizer.encode(text, Specials::Literal).expect("a short text");
            let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id)).copied().collect();
            let put_in_front = if name == "llama2" { " " } else { "" };
            assert_eq!(bytes, format!("{put_in_front}{text}").into_bytes(), "{name}");
        }
    }
}

#[test]
fn a_megabyte_of_one_letter_or_of_spaces_is_tokenised_or_refused_by_name() {
    let long = [
        ("llama3", "A".repeat(1_000_000)),
        ("llama3", " ".repeat(1_100_000) + "x"),
        ("gemma", " ".repeat(1_000_000)),
        ("gemma", "中".repeat(26_000)),
    ];
    for (name, text) in &long {
        let tokenizer = from_json(name);
        let start = std::time::Instant::now();
        match tokenizer.encode(text, Specials::Literal) {
            Ok(ids) => assert!(!ids.is_empty()),
            Err(error) => assert!(error.to_string().contains("white space below 900000"), "{name}: {error}"),
        }
        // A quadratic algorithm would take hours; the bound leaves room for a machine that does ten other things.
        assert!(start.elapsed().as_secs() < 120, "{name}, {:?}…: {:?}", text.chars().next(), start.elapsed());
    }
}
