//! Real models, when they are there: `GLASSBOX_MODELS=folder cargo test -p glassbox-text --features real`.
#![cfg(feature = "real")]

use std::path::PathBuf;
use std::time::Instant;

use glassbox_checkpoint::Checkpoint;
use glassbox_text::{Specials, Tokenizer};

fn model(name: &str) -> Tokenizer {
    let folder = std::env::var("GLASSBOX_MODELS").expect("GLASSBOX_MODELS names the folder with the models");
    let start = Instant::now();
    let checkpoint = Checkpoint::open(PathBuf::from(folder).join(name)).expect("the model opens");
    println!("open {:?}", start.elapsed());
    let t = Tokenizer::open(&checkpoint).expect("the tokenizer opens");
    println!("tokenizer {:?}", start.elapsed());
    t
}

#[test]
fn probe() {
    for name in ["qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma-3-270m-q4_k_m.gguf"] {
        let t = model(name);
        for text in ["hello world", "  hello", "Swift 社区非常活跃", "👩‍👩‍👧", "a   b\n\n\nc", "3333+777"] {
            let e = t.encode_with_ranges(text, Specials::Parse).unwrap();
            println!("{text:?} {:?} {:?} {:?}", e.ids, e.ranges, t.decode(&e.ids));
            for x in t.token_texts(&e.ids) {
                print!("[{}]", x.text);
            }
            println!();
        }
        for (what, text) in [
            ("a", "a".repeat(1 << 20)),
            ("space", " ".repeat(1 << 20)),
            ("spacesx", " ".repeat(1 << 20) + "x"),
            ("spaces half", " ".repeat(800_000) + "x"),
            ("中", "中".repeat(350_000)),
            ("mixed", "Hello world, this is a test 123. ".repeat(30_000)),
        ] {
            let start = Instant::now();
            let r = t.encode(&text, Specials::Parse).map(|ids| ids.len());
            println!("{what} {:?} {:?}", start.elapsed(), r);
        }
    }
}
