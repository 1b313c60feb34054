//! Templates and tokenizer files changed at random from a fixed seed: read or refused, never a panic.

use glassbox_testkit::mutations;
use glassbox_text::{ChatTemplate, JsonFiles, Message, Piece, RenderOptions, Specials, TextSource, Tokenizer};
use serde_json::Map;

#[test]
fn a_changed_template_renders_or_is_refused() {
    let message = |role: &str, text: &str| Message::new(role, vec![Piece::text(text)]);
    let messages = [message("system", "be brief"), message("user", "hi\n"), message("assistant", "<|im_end|>")];
    let mut rendered = 0;
    for bytes in mutations("template", 2_000) {
        let source = String::from_utf8_lossy(&bytes);
        let template = ChatTemplate::compile("changed", &source, Map::new());
        rendered += usize::from(template.is_ok_and(|template| template.render(&messages, &RenderOptions::default()).is_ok()));
    }
    assert!(rendered > 100, "only {rendered} of the changed templates still render: the changes are too coarse to reach anything");
}

#[test]
fn a_changed_tokenizer_file_encodes_or_is_refused() {
    let mut read = 0;
    for tokenizer in mutations("tokenizer", 2_000) {
        let Ok(tokenizer) = Tokenizer::from_source(&TextSource::Json(JsonFiles { tokenizer, ..JsonFiles::default() })) else { continue };
        read += 1;
        if let Ok(ids) = tokenizer.encode("Hello  3333 \u{2029} 깰<s>", Specials::Parse) {
            assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
            let _ = (tokenizer.decode(&ids), tokenizer.token_texts(&ids));
        }
    }
    assert!(read > 0, "no changed file can be read: the changes are too coarse to reach anything");
}
