//! What is refused, and in which words.

use glassbox_text::{Error, GgufVocabulary, JsonFiles, TextSource, Tokenizer};
use serde_json::{Value, json};

use crate::support::{from_gguf, gguf_source, json_source};

fn refused_json(change: impl FnOnce(&mut Value)) -> String {
    let mut files = json_source("llama3");
    let mut value: Value = serde_json::from_slice(&files.tokenizer).expect("JSON");
    change(&mut value);
    files.tokenizer = serde_json::to_vec(&value).expect("JSON");
    let error = Tokenizer::from_source(&TextSource::Json(files)).expect_err("this must be refused");
    error.to_string()
}

fn refused_gguf(name: &str, change: impl FnOnce(&mut GgufVocabulary)) -> String {
    let mut metadata = gguf_source(name);
    change(&mut metadata);
    Tokenizer::from_source(&TextSource::Gguf(metadata)).expect_err("this must be refused").to_string()
}

fn check(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

#[test]
fn an_option_that_nothing_reads_is_refused() {
    check(&refused_json(|json| json["model"]["new_option"] = true.into()), &["new_option"]);
    check(&refused_json(|json| json["new_part"] = true.into()), &["new_part"]);
    check(&refused_json(|json| json["added_tokens"][0]["new_flag"] = true.into()), &["new_flag"]);
    check(&refused_json(|json| json["pre_tokenizer"]["pretokenizers"][0]["mode"] = 3.into()), &["pretokenizers[0].mode"]);
}

#[test]
fn an_option_that_is_not_honoured_is_refused_by_name() {
    check(&refused_json(|json| json["model"]["dropout"] = 0.1.into()), &["model.dropout", "0.1"]);
    check(&refused_json(|json| json["model"]["continuing_subword_prefix"] = "##".into()), &["continuing_subword_prefix", "##"]);
    check(&refused_json(|json| json["model"]["end_of_word_suffix"] = "</w>".into()), &["end_of_word_suffix"]);
    check(&refused_json(|json| json["model"]["type"] = "WordPiece".into()), &["model.type", "wanted `BPE` or", "WordPiece"]);
    check(&refused_json(|json| json["normalizer"] = json!({"type": "Nmt"})), &["normalizer.type", "Nmt"]);
    check(&refused_json(|json| json["normalizer"] = json!({"type": "BertNormalizer"})), &["normalizer"]);
    check(&refused_json(|json| json["decoder"] = json!({"type": "WordPiece"})), &["decoder", "WordPiece"]);
    check(&refused_json(|json| json["post_processor"] = json!({"type": "BertProcessing"})), &["post_processor", "BertProcessing"]);
    check(&refused_json(|json| json["version"] = "2.0".into()), &["version", "2.0"]);
    check(
        &refused_json(|json| json["normalizer"] = json!({"type": "Replace", "pattern": {"Regex": "(?=a)"}, "content": "b"})),
        &["normalizer.pattern", "look-around"],
    );
}

#[test]
fn a_merge_of_unknown_or_overlong_parts_is_refused_not_a_panic() {
    check(&refused_json(|json| json["model"]["merges"][0] = json!(["zzz", "a"])), &["merges[0]", "zzz"]);
    check(&refused_json(|json| json["model"]["merges"][0] = json!(["a", "a", "a"])), &["two strings"]);
    check(&refused_json(|json| json["model"]["merges"][0] = json!("abc")), &["two strings"]);
    let longest = refused_json(|json| {
        json["model"]["vocab"] = json!({"aa": 0});
        json["model"]["merges"] = json!([["aa", "aa"]]);
        json["added_tokens"] = json!([]);
        json["post_processor"] = Value::Null;
    });
    check(&longest, &["merges[0]", "aaaa"]);
}

#[test]
fn contradicting_ids_are_refused() {
    check(&refused_json(|json| json["added_tokens"][0]["id"] = 5.into()), &["id 5", "<|endoftext|>"]);
    check(&refused_json(|json| json["model"]["vocab"]["new"] = 4_294_967_295_u32.into()), &["ids below", "4294967295"]);
    let template = refused_json(|json| {
        json["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"] = json!([99_999]);
    });
    check(&template, &["BOS", "99999"]);
}

#[test]
fn an_unknown_splitting_rule_is_refused_with_the_known_ones() {
    let message = refused_gguf("qwen2", |metadata| metadata.pre = Some("my-bpe".to_owned()));
    check(&message, &["`my-bpe`", "`qwen2`", "`llama-bpe`", "`gpt-2`"]);
    check(&refused_gguf("qwen2", |metadata| metadata.pre = None), &["no such key"]);
    check(&refused_gguf("qwen2", |metadata| metadata.pre = Some("default".to_owned())), &["`default`"]);
}

#[test]
fn damaged_metadata_are_refused() {
    check(&refused_gguf("qwen2", |metadata| metadata.model = "t5".to_owned()), &["`gpt2`, `llama` or `bert`", "t5"]);
    check(&refused_gguf("qwen2", |metadata| metadata.model = "bert".to_owned()), &["unknown_token_id", "[UNK]"]);
    check(&refused_gguf("qwen2", |metadata| metadata.tokens.clear()), &["token_type"]);
    check(&refused_gguf("qwen2", |metadata| metadata.merges.clear()), &["merges"]);
    check(&refused_gguf("qwen2", |metadata| metadata.merges[0] = "ab".to_owned()), &["merges[0]", "`ab`"]);
    check(&refused_gguf("qwen2", |metadata| metadata.token_types[3] = 9), &["token_type[3]", "9"]);
    check(&refused_gguf("qwen2", |metadata| metadata.eos = Some(100_000)), &["eos_token", "100000"]);
    check(&refused_gguf("gemma", |metadata| metadata.scores.truncate(5)), &["scores", "found 5"]);
    check(&refused_gguf("gemma", |metadata| metadata.scores[7] = f32::NAN), &["scores[7]", "NaN"]);
    check(&refused_gguf("gemma", |metadata| metadata.tokens[300] = "x".repeat(2_000)), &["tokens[300]", "2000 bytes"]);
    check(&refused_gguf("gemma", |metadata| metadata.remove_extra_whitespaces = Some(true)), &["remove_extra_whitespaces"]);
}

#[test]
fn a_file_that_is_no_tokenizer_is_refused_with_the_place() {
    for bytes in [&b""[..], b"{", b"[]", b"null", b"{\"version\":\"1.0\"}", b"\xff\xfe"] {
        let files = JsonFiles { tokenizer: bytes.to_vec(), ..JsonFiles::default() };
        let error = Tokenizer::from_source(&TextSource::Json(files)).expect_err("no tokenizer");
        check(&error.to_string(), &["tokenizer.json"]);
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_vocabulary_larger_than_the_embedding_is_refused() {
    let tokenizer = from_gguf("qwen2");
    let size = tokenizer.vocab_size();
    assert_eq!(tokenizer.check_fits(size), Ok(()));
    assert_eq!(tokenizer.check_fits(size + 64), Ok(()), "tables are padded");
    let error = tokenizer.check_fits(size - 1).expect_err("one row too few");
    check(&error.to_string(), &[&format!("wanted ids below {}", size - 1), "[MASK]"]);
    assert_eq!(tokenizer.check_ids(&[0, 5]), Ok(()));
    assert!(matches!(tokenizer.check_ids(&[0, 99_999]), Err(Error::UnknownId { id: 99_999, .. })));
}

#[test]
fn an_expression_that_gives_up_is_an_error_not_another_split() {
    let mut files = json_source("llama3");
    let mut value: Value = serde_json::from_slice(&files.tokenizer).expect("JSON");
    value["pre_tokenizer"]["pretokenizers"][0]["pattern"] = json!({"Regex": "(a|b|ab)*(?>c)"});
    files.tokenizer = serde_json::to_vec(&value).expect("JSON");
    let tokenizer = Tokenizer::from_source(&TextSource::Json(files)).expect("the expression compiles");
    let text = "ab".repeat(64);
    let error = tokenizer.encode(&text, glassbox_text::Specials::Literal).expect_err("exponential backtracking");
    check(&error.to_string(), &["(a|b|ab)*(?>c)", "gave up"]);
}

/// Steps of a file are a stranger's program: none may make a text grow without bound, take time for each of thousands of steps, or match nothing.
#[test]
fn steps_of_a_tokenizer_that_grow_a_text_without_bound_are_refused() {
    let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
    let sequence = |steps: Vec<Value>| json!({"type": "Sequence", "normalizers": steps});
    let double = || replace(json!({"String": "a"}), "aa");
    let normalizer = |step: Value| refused_json(|json| json["normalizer"] = step);
    check(&normalizer(sequence(vec![double(); 7])), &["normalizer", "at most 64 times as long"]);
    check(&normalizer(sequence(vec![sequence(vec![double(); 3]), sequence(vec![double(); 4])])), &["at most 64 times"]);
    check(&normalizer(replace(json!({"Regex": "[ab]"}), &"x".repeat(65))), &["at most 64 times"]);
    check(&normalizer(json!({"type": "Prepend", "prepend": "x".repeat(64)})), &["at most 64 times"]);
    check(&normalizer(sequence(vec![json!({"type": "NFKC"}), json!({"type": "NFKD"})])), &["at most 64 times"]);
    for nothing in
        [json!({"String": ""}), json!({"Regex": ""}), json!({"Regex": "x*"}), json!({"Regex": "\\b"}), json!({"Regex": "a|(?m:^)"})]
    {
        check(&normalizer(replace(nothing, "y")), &["normalizer.pattern", "matches at least one character"]);
    }
    let split = json!({"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": false});
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let pre_tokenizer =
        |steps: Vec<Value>| refused_json(|json| json["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps}));
    check(&pre_tokenizer(vec![split; 33]), &["pre_tokenizer", "at most 32 steps", "33"]);
    check(&pre_tokenizer(vec![bytes.clone(), bytes]), &["one `ByteLevel` step"]);
}
