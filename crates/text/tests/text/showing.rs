//! Streams of pieces, and tokens as people read them.

use std::sync::LazyLock;

use glassbox_text::{Specials, StreamDecoder, StreamFrom, TokenKind, Tokenizer, visible};
use proptest::prelude::*;

use crate::support::{TOKENIZERS, from_gguf, from_json};

fn stream(tokenizer: &Tokenizer, ids: &[u32], from: StreamFrom) -> Vec<String> {
    let mut decoder = StreamDecoder::new(tokenizer, from);
    let mut pieces: Vec<String> = ids.iter().map(|id| decoder.push(tokenizer, *id)).collect();
    pieces.push(decoder.finish());
    pieces
}

#[test]
fn a_stream_joins_to_the_decoded_text_without_broken_characters() {
    for name in TOKENIZERS {
        let tokenizer = from_json(name);
        for text in ["깰", "😀😃", "Swift 社区非常活跃", "👩\u{200d}👩\u{200d}👧 e\u{301}", " hello ", "ไทย"] {
            let ids = tokenizer.encode(text, Specials::Literal).expect("a short text");
            let pieces = stream(&tokenizer, &ids, StreamFrom::Start);
            assert_eq!(pieces.concat(), tokenizer.decode_content(&ids), "{name}");
            assert!(!pieces.concat().contains('\u{FFFD}'), "{name}: {pieces:?}");
        }
    }
}

#[test]
fn a_continuation_keeps_the_space_before_its_first_word() {
    let tokenizer = from_gguf("llama2");
    let ids = tokenizer.encode("hello", Specials::Literal).expect("a short text");
    assert_eq!(stream(&tokenizer, &ids, StreamFrom::Start).concat(), "hello");
    assert_eq!(stream(&tokenizer, &ids, StreamFrom::Continuation).concat(), " hello");
}

#[test]
fn a_text_that_ends_inside_a_character_is_flushed_once() {
    let tokenizer = from_gguf("gemma");
    let byte = |byte: u8| {
        (0..300).find(|id| tokenizer.token_kind(*id) == TokenKind::Byte && tokenizer.token_bytes(*id) == [byte]).expect("256 bytes")
    };
    let ids = [byte(0xEA), byte(0xB9)];
    let mut decoder = StreamDecoder::new(&tokenizer, StreamFrom::Start);
    assert_eq!(decoder.push(&tokenizer, ids[0]), "");
    assert_eq!(decoder.push(&tokenizer, ids[1]), "");
    assert_eq!(decoder.pending(), [0xEA, 0xB9]);
    assert_eq!(decoder.finish(), "\u{FFFD}");
    assert_eq!(decoder.finish(), "");
    assert_eq!(stream(&tokenizer, &[ids[0], ids[1], byte(0xB0)], StreamFrom::Start), ["", "", "깰", ""]);
}

#[test]
fn bytes_that_never_become_a_character_do_not_stall_the_stream() {
    let tokenizer = from_gguf("gemma");
    let byte = |byte: u8| {
        (0..300).find(|id| tokenizer.token_kind(*id) == TokenKind::Byte && tokenizer.token_bytes(*id) == [byte]).expect("256 bytes")
    };
    let letter = tokenizer.encode("x", Specials::Literal).expect("a short text")[0];
    let pieces = stream(&tokenizer, &[byte(0x80), byte(0xF0), letter, byte(0xC3)], StreamFrom::Start);
    assert_eq!(pieces, ["\u{FFFD}", "", "\u{FFFD}x", "", "\u{FFFD}"]);
}

static QWEN2: LazyLock<Tokenizer> = LazyLock::new(|| from_gguf("qwen2"));
static LLAMA2: LazyLock<Tokenizer> = LazyLock::new(|| from_gguf("llama2"));
static GPT2: LazyLock<Tokenizer> = LazyLock::new(|| from_gguf("gpt2"));
static GEMMA: LazyLock<Tokenizer> = LazyLock::new(|| from_gguf("gemma"));

proptest! {
    #[test]
    fn any_ids_stream_to_what_they_decode_to(ids in proptest::collection::vec(0_u32..600, 0..40)) {
        for tokenizer in [&*QWEN2, &*LLAMA2] {
            prop_assert_eq!(stream(tokenizer, &ids, StreamFrom::Start).concat(), tokenizer.decode_content(&ids));
            let mut decoder = StreamDecoder::new(tokenizer, StreamFrom::Start).with_control_tokens();
            let mut text: String = ids.iter().map(|id| decoder.push(tokenizer, *id)).collect();
            text.push_str(&decoder.finish());
            prop_assert_eq!(text, tokenizer.decode(&ids));
            let shown = tokenizer.token_texts(&ids);
            let bytes: Vec<u8> = shown.iter().flat_map(|token| token.bytes.clone()).collect();
            let expected: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id)).copied().collect();
            prop_assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn any_text_comes_back_byte_for_byte(text in "\\PC{0,40}|[ \\n\\t]{0,20}|.{0,40}") {
        for (name, tokenizer) in [("gpt2", &*GPT2), ("gemma", &*GEMMA)] {
            let encoded = tokenizer.encode_with_ranges(&text, Specials::Literal).expect("a short text");
            let mark = text.contains('\u{2581}') && name == "gemma"; // reads as a space there
            prop_assert!(mark || tokenizer.decode(&encoded.ids) == text);
            let mut end = 0;
            for range in &encoded.ranges {
                prop_assert!(range.start == end && range.end >= end, "{:?}", encoded.ranges);
                end = range.end;
            }
            prop_assert_eq!(end, text.len());
        }
    }
}

#[test]
fn a_split_character_is_shown_with_its_share() {
    let tokenizer = from_gguf("gemma"); // has no piece for these, so each byte is a token
    let ids = tokenizer.encode("a🦀b", Specials::Literal).expect("a short text");
    let shown = tokenizer.token_texts(&ids);
    let texts: Vec<&str> = shown.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(texts, ["a", "🦀 1/4", "🦀 2/4", "🦀 3/4", "🦀 4/4", "b"]);
    let part = shown[2].part_of.as_ref().expect("a share");
    assert_eq!((part.character, part.part, part.parts), ('🦀', 2, 4));
    assert_eq!(shown[0].part_of, None);
}

#[test]
fn bytes_without_a_character_are_shown_as_numbers() {
    let tokenizer = from_gguf("gemma");
    let ids = tokenizer.encode("🦀", Specials::Literal).expect("a short text");
    let shown = tokenizer.token_texts(&ids[..2]);
    assert_eq!(shown[0].text, "⟨F0⟩");
    assert_eq!(shown[1].text, "⟨9F⟩");
}

#[test]
fn ranges_of_a_split_character_are_its_bytes() {
    for name in ["qwen2", "gemma"] {
        let tokenizer = from_json(name);
        let text = "x🦀y";
        let encoded = tokenizer.encode_with_ranges(text, Specials::Literal).expect("a short text");
        for (id, range) in encoded.ids.iter().zip(&encoded.ranges) {
            assert_eq!(tokenizer.token_bytes(*id), &text.as_bytes()[range.clone()], "{name}");
        }
    }
}

#[test]
fn white_space_and_controls_become_visible_on_request() {
    assert_eq!(visible("a b\tc\r\n\0\u{7F}"), "a·b→c␍↵␀␡");
    assert_eq!(visible("\u{a0}\u{3000}\u{200b}\u{feff}\u{2029}"), "⟨U+00A0⟩⟨U+3000⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+2029⟩");
    assert_eq!(visible("社😀é"), "社😀é");
}
