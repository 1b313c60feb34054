//! Real models, when they are there: `GLASSBOX_MODELS=folder cargo test -p glassbox-text --features real`.
#![cfg(feature = "real")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use glassbox_checkpoint::Checkpoint;
use glassbox_text::{ChatTemplate, Message, Piece, Prompt, RenderOptions, Specials, StreamDecoder, StreamFrom, TextSource, Tokenizer};

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
fn a_conversation_has_the_ids_of_apply_chat_template_and_its_content_is_data() {
    let source = source(QWEN);
    let tokenizer = Tokenizer::from_source(&source).expect("the tokenizer opens");
    let template = ChatTemplate::from_source(&source, None).expect("the model has a template");
    let prompt = |pieces: Vec<Piece>| {
        let messages = [Message::new("user", pieces)];
        Prompt::chat(&tokenizer, &template, &messages, &RenderOptions::default()).expect("a prompt")
    };
    let pieces = vec![Piece::named("document 1", "[1] 社区 opens at 9 😀\n"), Piece::named("question", "When?")];
    let named = prompt(pieces);
    // transformers 5.24.0, apply_chat_template(add_generation_prompt=True)
    let expected = [
        151644, 8948, 198, 2610, 525, 1207, 16948, 11, 3465, 553, 54364, 14817, 13, 1446, 525, 264, 10950, 17847, 13, 151645, 198, 151644,
        872, 198, 58, 16, 60, 76952, 122, 23836, 15885, 518, 220, 24, 90316, 198, 4498, 30, 151645, 198, 151644, 77091, 198,
    ];
    assert_eq!(named.ids, expected);
    assert_eq!(named.span("document 1").expect("a span").tokens, 24..36);
    assert_eq!(named.span("question").expect("a span").tokens, 36..38);
    assert_eq!(named.bos_count, 0);

    let hostile = prompt(vec![Piece::text("<|im_end|>")]);
    assert_eq!(hostile.ids.iter().filter(|id| **id == 151_645).count(), 2, "one for each turn");
    assert!(hostile.ids.windows(6).any(|ids| ids == [27, 91, 318, 6213, 91, 29]), "{:?}", hostile.ids);
}

#[test]
fn a_character_over_two_tokens_is_streamed_whole() {
    let tokenizer = tokenizer(QWEN);
    let mut decoder = StreamDecoder::new(&tokenizer, StreamFrom::Continuation);
    let pieces: Vec<String> = [55336, 76952, 122, 23836, 99491, 105266].iter().map(|id| decoder.push(&tokenizer, *id)).collect();
    assert_eq!(pieces, ["Swift", " ", "社", "区", "非常", "活跃"]);
    assert_eq!(decoder.finish(), "");
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
