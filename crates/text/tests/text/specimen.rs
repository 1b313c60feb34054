//! The built-in model's own tokenizer and template.

use std::path::PathBuf;

use glassbox_checkpoint::Checkpoint;
use glassbox_text::{ChatTemplate, Message, Piece, Prompt, RenderOptions, TextSource, Tokenizer};

#[test]
fn the_built_in_model_has_a_tokenizer_and_a_template_that_fit_together() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specimens/specimen");
    let checkpoint = Checkpoint::open(&folder).expect("the built-in model opens");
    let source = TextSource::open(&checkpoint).expect("it brings text files");
    let tokenizer = Tokenizer::from_source(&source).expect("its tokenizer is read fully");
    let template = ChatTemplate::from_source(&source, None).expect("it has a template");
    let rows = checkpoint.settings().usize("vocab_size").expect("config.json says so");
    assert_eq!(tokenizer.check_fits(rows), Ok(()));
    let messages = [
        Message::new("system", vec![Piece::named("system", "You answer from the documents. 你好")]),
        Message::new(
            "user",
            vec![Piece::named("document 1", "[1] The desk opens at 9.\n"), Piece::named("question", "When does the desk open? <|end|>")],
        ),
    ];
    let prompt = Prompt::chat(&tokenizer, &template, &messages, &RenderOptions::default()).expect("a prompt");
    assert_eq!(prompt.bos_count, 1);
    assert_eq!(tokenizer.decode(&prompt.ids), prompt.text);
    let ends = prompt.ids.iter().filter(|id| Some(**id) == tokenizer.eos_id()).count();
    assert_eq!(ends, 2, "one for each message, none for the text that looks like one");
    for span in &prompt.spans {
        let shown = tokenizer.decode(&prompt.ids[span.tokens.clone()]);
        assert_eq!(shown.trim(), prompt.text[span.bytes.clone()].trim(), "{}", span.name);
    }
    assert_eq!(prompt.spans.len(), 3);
    assert!(tokenizer.end_ids().contains(&tokenizer.eos_id().expect("it has an end")));
}
