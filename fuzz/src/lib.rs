//! What each target does with the bytes it is given. A target fails by a panic, by memory beyond what the bytes justify
//! ([`bounded`]), or by time (`-timeout` of the fuzzer).

mod memory;

use std::io;
use std::path::PathBuf;

use glassbox_checkpoint::{Checkpoint, CheckpointError};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::{Model, Rows};
use glassbox_record::RunReader;
use glassbox_report::{Lang, Run};
use glassbox_suite::Suite;
use glassbox_tensor::Bytes;
use glassbox_text::{ChatTemplate, Ending, JsonFiles, Message, Piece, RenderOptions, Specials, TextSource, Tokenizer};
use memory::bounded;
use serde_json::Map;

/// A weight file of a folder.
pub fn safetensors(bytes: &[u8]) {
    bounded(MIB + 64 * bytes.len(), || {
        let files = vec![file("config.json", b"{}"), file("model.safetensors", bytes)];
        use_checkpoint(Checkpoint::from_parts("folder", files));
    });
}

/// A GGUF file: metadata, tensors, tokenizer, and the model where it is one.
pub fn gguf(bytes: &[u8]) {
    bounded(16 * MIB + 1024 * bytes.len(), || {
        let checkpoint = Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(bytes.to_vec()));
        if let Ok(checkpoint) = &checkpoint {
            if let Ok(source) = TextSource::open(checkpoint) {
                use_tokenizer(&source);
            }
            use_model(checkpoint);
        }
        use_checkpoint(checkpoint);
    });
}

/// A `tokenizer.json`.
pub fn tokenizer(bytes: &[u8]) {
    bounded(64 * MIB + 4096 * bytes.len(), || {
        use_tokenizer(&TextSource::Json(JsonFiles { tokenizer: bytes.to_vec(), ..JsonFiles::default() }))
    });
}

/// A `config.json`; its first byte chooses the weights that it meets.
pub fn config(bytes: &[u8]) {
    const WEIGHTS: [&[u8]; 6] = [
        include_bytes!("../../fixtures/tiny/gemma3-mqa/model.safetensors"),
        include_bytes!("../../fixtures/tiny/gpt2/model.safetensors"),
        include_bytes!("../../fixtures/tiny/llama-gqa/model.safetensors"),
        include_bytes!("../../fixtures/tiny/llama-scaled/model.safetensors"),
        include_bytes!("../../fixtures/tiny/qwen2-gqa/model.safetensors"),
        include_bytes!("../../fixtures/tiny/qwen2-window/model.safetensors"),
    ];
    let Some((choice, json)) = bytes.split_first() else { return };
    let weights = WEIGHTS[usize::from(*choice) % WEIGHTS.len()];
    bounded(16 * MIB + 1024 * json.len(), || {
        let files = vec![file("config.json", json), ("model.safetensors".to_owned(), Bytes::new(weights))];
        if let Ok(checkpoint) = Checkpoint::from_parts("folder", files) {
            use_model(&checkpoint);
        }
    });
}

/// A chat template.
pub fn template(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    bounded(256 * MIB, || {
        let variables: Map<String, serde_json::Value> =
            [("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, text)| (name.to_owned(), text.into())).into_iter().collect();
        let Ok(template) = ChatTemplate::compile("fuzzed", source, variables) else { return };
        let message = |role: &str, text: &str| Message::new(role, vec![Piece::text(text)]);
        let messages = [message("system", "be brief"), message("user", "hi\n"), message("assistant", "<|im_end|>"), message("user", "")];
        for ending in [Ending::Answer, Ending::Closed, Ending::Continue] {
            let _ = template.render(&messages, &RenderOptions { ending, ..RenderOptions::default() });
        }
    });
}

/// A suite; whatever data file it names is a small one.
pub fn suite(bytes: &[u8]) {
    const DATA: &[u8] = include_bytes!("../../suites/data/facts.en.jsonl");
    bounded(64 * MIB + 1024 * bytes.len(), || {
        let read = |name: &str| (name.to_owned(), if name.len() < 256 { Ok(DATA.to_vec()) } else { Err(io::ErrorKind::NotFound.into()) });
        match Suite::parse("suite.yaml", bytes, &read) {
            Ok(suite) => drop(suite.plan()),
            Err(error) => assert!(error.to_string().contains("suite.yaml") || error.to_string().contains(".jsonl"), "{error}"),
        }
    });
}

/// One file of a run, chosen by the first byte, beside the others of a whole run; read, and reported where it can be read.
pub fn record(bytes: &[u8]) {
    const FILES: [(&str, &[u8]); 6] = [
        ("manifest.json", include_bytes!("../../crates/record/tests/old/v1/manifest.json")),
        ("plan.jsonl", include_bytes!("../../crates/record/tests/old/v1/plan.jsonl")),
        ("trials.jsonl", include_bytes!("../../crates/record/tests/old/v1/trials.jsonl")),
        ("looks.jsonl", include_bytes!("../../crates/record/tests/old/v1/looks.jsonl")),
        ("scores.jsonl", include_bytes!("../../crates/record/tests/old/v1/scores.jsonl")),
        ("verdicts.json", include_bytes!("../../crates/record/tests/old/v1/verdicts.json")),
    ];
    let Some((choice, text)) = bytes.split_first() else { return };
    let chosen = usize::from(*choice) % FILES.len();
    let folder = scratch();
    for (index, (name, whole)) in FILES.iter().enumerate() {
        std::fs::write(folder.join(name), if index == chosen { text } else { whole }).expect("the scratch folder can be written");
    }
    bounded(64 * MIB + 1024 * text.len(), || {
        let Ok(reader) = RunReader::open(&folder) else { return };
        let _ = (reader.plan(), reader.attempts(), reader.outcomes(), reader.looks(), reader.scores(), reader.verdicts());
        if let Ok(run) = Run::load(&reader) {
            let _ = (run.html(Lang::default()), run.junit(), run.json(), run.terminal_summary(Lang::default(), 80));
        }
    });
}

const MIB: usize = 1 << 20;

fn file(name: &str, bytes: &[u8]) -> (String, Bytes) {
    (name.to_owned(), Bytes::new(bytes.to_vec()))
}

/// A folder of this process, on a disk of memory where there is one.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = base.join(format!("glassbox-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
    folder
}

fn use_checkpoint(opened: Result<Checkpoint, CheckpointError>) {
    let checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("model.gguf") || message.starts_with("folder"), "{message}");
            assert!(message.len() < 2_000, "a message of {} bytes", message.len());
            return;
        }
    };
    let mut ranges = Vec::new();
    let names: Vec<String> = checkpoint.tensor_names().map(str::to_owned).collect();
    for name in names {
        if let Ok(tensor) = checkpoint.require_tensor(&name) {
            assert_eq!(tensor.values().expect("an opened tensor decodes").len(), tensor.shape.iter().product::<usize>());
            ranges.push(tensor.bytes.as_ptr_range());
        }
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "two tensors share bytes");
    let settings = checkpoint.settings();
    for key in ["general.architecture", "llama.block_count", "hidden_size", "rope_scaling"] {
        let _ = (settings.optional_str(key), settings.optional_usize(key), settings.optional_f64(key), settings.section(key));
        let _ = (settings.optional_str_list(key), settings.optional_usize_per_layer(key, 2));
    }
    let _ = (settings.finish(), checkpoint.tokenizer_source(), checkpoint.storage_shares(), checkpoint.content_hash());
}

fn use_tokenizer(source: &TextSource) {
    let Ok(tokenizer) = Tokenizer::from_source(source) else { return };
    for text in
        ["", "Hello  world\n", "3333+777 I'VE <s> </s>", "a\u{301} \u{2029} 깰 👩‍👩‍👧", "<|im_end|>▁Ġ<0x0A>aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]
    {
        for specials in [Specials::Parse, Specials::Literal] {
            if let Ok(ids) = tokenizer.encode(text, specials) {
                assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()), "an id outside the vocabulary");
                let _ = (tokenizer.decode(&ids), tokenizer.decode_content(&ids), tokenizer.token_texts(&ids));
            }
        }
    }
    let _ = ChatTemplate::from_source(source, None);
}

/// Two tokens through the model, where there is one and its vocabulary has them.
fn use_model(checkpoint: &Checkpoint) {
    let Ok(model) = Model::open(checkpoint, Kernels::Fast) else { return };
    let Ok(mut cache) = model.new_cache(2, MIB as u64) else { return };
    let _ = model.forward(&[0, 1], &mut cache, Rows::Last, &Workers::new(1));
}
