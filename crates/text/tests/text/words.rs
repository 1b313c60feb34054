//! Vocabularies of words and their pieces, against the Python libraries (`fixtures/make_words.py`).

use std::ops::Range;

use glassbox_checkpoint::{Checkpoint, TokenizerSource, WordList};
use glassbox_tensor::Bytes;
use glassbox_text::{Error, JsonFiles, Piece, Prompt, Specials, TextSource, TokenKind, Tokenizer, gguf_vocabulary};
use serde_json::{Value, json};

use crate::support::{json as read_json, read};

/// Folders with tokenizer.json, then folders with vocab.txt.
const FILES: [&str; 3] = ["uncased", "cased", "odd"];
const LISTS: [&str; 4] = ["list", "list-cased", "list-accents", "list-chinese"];

fn place(name: &str) -> String {
    format!("../words/{name}")
}

fn files(name: &str) -> JsonFiles {
    JsonFiles { tokenizer: read(&place(name), "tokenizer.json"), ..JsonFiles::default() }
}

fn list(name: &str) -> WordList {
    WordList {
        file: "vocab.txt".to_owned(),
        words: Bytes::new(read(&place(name), "vocab.txt")),
        tokenizer_config: Some(read_json(&place(name), "tokenizer_config.json")),
        special_tokens_map: None,
        added_tokens: None,
    }
}

fn from_list(list: WordList) -> Result<Tokenizer, Error> {
    Tokenizer::from_source(&TextSource::try_from(&TokenizerSource::Words(list))?)
}

fn tokenizer(name: &str) -> Tokenizer {
    let tokenizer = if FILES.contains(&name) { Tokenizer::from_source(&TextSource::Json(files(name))) } else { from_list(list(name)) };
    tokenizer.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("ids")
}

#[test]
fn ids_ranges_and_texts_of_words_equal_those_of_the_tokenizers_library() {
    for name in FILES.iter().chain(&LISTS) {
        let tokenizer = tokenizer(name);
        let golden = read_json(&place(name), "golden.json");
        for case in golden["texts"].as_array().expect("a list of cases") {
            let text = case["text"].as_str().expect("a text");
            let encoded = tokenizer.encode_with_ranges(text, Specials::Parse).expect("a short text");
            assert_eq!(encoded.ids, ids(&case["ids"]), "{name}: {text:?}");
            let ranges: Vec<(usize, usize)> = serde_json::from_value(case["ranges"].clone()).expect("ranges");
            let ranges: Vec<Range<usize>> = ranges.into_iter().map(|(start, end)| start..end).collect();
            assert_eq!(encoded.ranges, ranges, "{name}: ranges of {text:?}");
            let literal = ids(case.get("literal").unwrap_or(&case["ids"]));
            assert_eq!(tokenizer.encode(text, Specials::Literal).expect("a short text"), literal, "{name}: {text:?} as content");
            assert_eq!(tokenizer.decode(&encoded.ids), case["decoded"].as_str().expect("a text"), "{name}: {text:?} decoded");
        }
    }
}

#[test]
fn one_text_or_two_are_framed_typed_and_shortened_as_the_tokenizers_library_does() {
    for name in FILES.iter().chain(&LISTS) {
        let tokenizer = tokenizer(name);
        let golden = read_json(&place(name), "golden.json");
        for case in golden["framed"].as_array().expect("a list of cases") {
            let (first, second) = (case["first"].as_str().expect("a text"), case["second"].as_str());
            let most = case["most"].as_u64().expect("a number") as usize;
            let framed = tokenizer.encode_framed(first, second, Specials::Parse, most).expect("room for special tokens");
            assert_eq!(framed.ids, ids(&case["ids"]), "{name}: {first:?} {second:?} in {most}");
            assert_eq!(framed.token_types, ids(&case["types"]), "{name}: types of {first:?} {second:?} in {most}");
            assert_eq!(framed.sources.len(), framed.ids.len());
            let whole = tokenizer.encode_framed(first, second, Specials::Parse, usize::MAX).expect("room");
            assert_eq!(framed.left_out, whole.ids.len() - framed.ids.len());
            for (text, range) in framed.sources.iter().flatten() {
                assert!([Some(first), second][*text].expect("that text is there").get(range.clone()).is_some());
            }
        }
    }
}

#[test]
fn a_text_without_room_for_its_special_tokens_is_refused() {
    let error = tokenizer("uncased").encode_framed("a", Some("b"), Specials::Parse, 2).expect_err("three special tokens");
    assert!(error.to_string().contains("room for 3 special tokens"), "{error}");
}

#[test]
fn pieces_are_shown_as_the_vocabulary_writes_them_and_decode_to_words() {
    let tokenizer = tokenizer("uncased");
    let framed = tokenizer.encode_framed("Hello, world", None, Specials::Parse, 512).expect("a short text");
    let shown: Vec<String> = tokenizer.token_texts(&framed.ids).into_iter().map(|token| token.text).collect();
    assert_eq!(shown, ["[CLS]", "h", "##ello", ",", "world", "[SEP]"]);
    assert_eq!(tokenizer.decode_content(&framed.ids), "hello , world");
    assert_eq!(tokenizer.token_kind(framed.ids[0]), TokenKind::Control);
    assert_eq!((tokenizer.prefix_ids(), tokenizer.suffix_ids()), (&[2][..], &[3][..]));
    let prompt = Prompt::plain(&tokenizer, &[Piece::named("a", "hello "), Piece::named("b", "world")], Specials::Parse);
    let prompt = prompt.expect("a short text");
    assert_eq!(prompt.span("b").expect("named").tokens, 3..4, "after [CLS] and both pieces of the first word");
}

#[test]
fn a_word_list_is_found_in_a_folder_and_read() {
    let folder = |files: &[(&str, Vec<u8>)]| {
        let weights = [&8_u64.to_le_bytes()[..], b"{}      "].concat();
        let mut all = vec![("config.json".to_owned(), Bytes::new(&b"{}"[..])), ("model.safetensors".to_owned(), Bytes::new(weights))];
        all.extend(files.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::new(bytes.clone()))));
        Tokenizer::open(&Checkpoint::from_parts("folder", all).expect("a folder"))
    };
    let words = read(&place("list"), "vocab.txt");
    let with_returns = String::from_utf8(words.clone()).expect("text").replace('\n', "\r\n").into_bytes();
    let expected = tokenizer("list").encode("hello wörld [MASK]", Specials::Parse).expect("a short text");
    for words in [words, with_returns] {
        let found = folder(&[("vocab.txt", words)]).expect("a word list");
        assert_eq!(found.encode("hello wörld [MASK]", Specials::Parse).expect("a short text"), expected);
    }
    assert!(matches!(folder(&[]), Err(Error::NoTokenizer { .. })));
}

#[test]
fn what_tokenizer_config_says_of_the_normaliser_goes_before_tokenizer_json() {
    let encode = |config: Option<Value>| {
        let files = JsonFiles { config, ..files("uncased") };
        let tokenizer = Tokenizer::from_source(&TextSource::Json(files)).expect("a tokenizer");
        tokenizer.encode("Héllo", Specials::Parse).expect("a short text")
    };
    let usual = encode(None);
    assert_eq!(encode(Some(json!({"do_lower_case": true, "strip_accents": null}))), usual);
    assert_ne!(encode(Some(json!({"do_lower_case": false}))), usual);
    assert_ne!(encode(Some(json!({"strip_accents": false}))), usual);
}

#[test]
fn a_tokenizer_of_words_keeps_its_ids_when_written_as_gguf_metadata() {
    let written = gguf_vocabulary(&files("uncased"), 460).expect("the usual options");
    assert_eq!((written.model.as_str(), written.cls, written.sep, written.unknown), ("bert", Some(2), Some(3), Some(1)));
    assert!(written.tokens.contains(&"▁world".to_owned()) && written.tokens.contains(&"ello".to_owned()));
    let (json, gguf) = (tokenizer("uncased"), Tokenizer::from_source(&TextSource::Gguf(written)).expect("sound metadata"));
    let golden = read_json(&place("uncased"), "golden.json");
    for case in golden["framed"].as_array().expect("a list of cases") {
        let (first, second) = (case["first"].as_str().expect("a text"), case["second"].as_str());
        let framed = |tokenizer: &Tokenizer| tokenizer.encode_framed(first, second, Specials::Parse, 512).expect("room");
        assert_eq!(framed(&gguf), framed(&json), "{first:?} {second:?}");
    }
    for (name, word) in [("cased", "max_input_chars_per_word"), ("odd", "continuing_subword_prefix")] {
        let error = gguf_vocabulary(&files(name), 460).expect_err("GGUF has no words for it").to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
}

#[test]
fn an_option_of_words_that_is_not_honoured_is_refused_by_name() {
    let check = |pointer: &str, value: Value, words: &[&str]| {
        let mut file: Value = serde_json::from_slice(&files("uncased").tokenizer).expect("JSON");
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        file.pointer_mut(parent).expect("there")[key] = value;
        let files = JsonFiles { tokenizer: serde_json::to_vec(&file).expect("JSON"), ..JsonFiles::default() };
        let error = Tokenizer::from_source(&TextSource::Json(files)).expect_err("refused").to_string();
        for word in words {
            assert!(error.contains(word), "{pointer}: `{word}` is missing in {error}");
        }
    };
    check("/model/unk_token", json!("<none>"), &["unk_token", "<none>"]);
    check("/model/max_input_chars_per_word", json!(1_000_000), &["max_input_chars_per_word", "1000000"]);
    check("/model/fuse_unk", json!(true), &["model.fuse_unk"]);
    check("/model/merges", json!([]), &["model.type", "WordPiece"]);
    check("/model/type", json!("WordLevel"), &["`BPE` or `WordPiece`", "WordLevel"]);
    check("/decoder/prefix", json!("@@"), &["decoder", "`##`"]);
    check("/normalizer/fold_width", json!(true), &["normalizer.fold_width"]);
    check("/normalizer/lowercase", json!("yes"), &["normalizer"]);
    check("/post_processor", json!({"type": "BertProcessing", "sep": ["[SEP]", 3]}), &["post_processor", "BertProcessing"]);
    check("/post_processor", json!({"type": "RobertaProcessing"}), &["post_processor", "RobertaProcessing"]);
    check("/post_processor/pair", json!([{"Sequence": {"id": "C", "type_id": 0}}]), &["post_processor"]);
    check("/post_processor/special_tokens/[SEP]/ids", json!([99_999]), &["99999"]);
}

#[test]
fn a_word_list_that_means_another_tokenizer_is_refused_by_name() {
    let check = |change: &dyn Fn(&mut WordList), words: &[&str]| {
        let mut list = list("list");
        change(&mut list);
        let error = from_list(list).expect_err("refused").to_string();
        for word in words {
            assert!(error.contains(word), "`{word}` is missing in {error}");
        }
    };
    let config = |value: Value| move |list: &mut WordList| list.tokenizer_config = Some(value.clone());
    check(&config(json!({"tokenizer_class": "EsmTokenizer"})), &["tokenizer_class", "EsmTokenizer", "BertTokenizer"]);
    check(&config(json!({"do_basic_tokenize": false})), &["do_basic_tokenize"]);
    check(&config(json!({"never_split": ["x"]})), &["never_split"]);
    check(&config(json!({"unk_token": "<unk>"})), &["vocab.txt", "unk_token", "<unk>"]);
    check(&|list| list.added_tokens = Some(json!({"<new>": 500})), &["added_tokens.json"]);
    check(&|list| list.words = Bytes::new(&b"[UNK]\n\xff\n"[..]), &["vocab.txt", "UTF-8"]);
    check(&|list| list.words = Bytes::new(&b""[..]), &["vocab.txt"]);
}

#[test]
fn a_megabyte_of_one_letter_is_one_unknown_word() {
    let tokenizer = tokenizer("uncased");
    let ids = tokenizer.encode(&"a".repeat(1_000_000), Specials::Parse).expect("within the limits");
    assert_eq!(ids, [1]);
}
