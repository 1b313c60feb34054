//! What each target does with the bytes it is given. A target fails by a panic, by memory beyond what the bytes justify
//! ([`bounded`]), or by time (`-timeout` of the fuzzer).

mod memory;
mod place;
mod tiny;
mod using;

use std::io;

use glassbox_checkpoint::Checkpoint;
use glassbox_model::GgufModel;
use glassbox_quantize::Target;
use glassbox_record::RunReader;
use glassbox_report::{Lang, Run};
use glassbox_suite::Suite;
use glassbox_tensor::Bytes;
use glassbox_text::{ChatTemplate, Ending, JsonFiles, Message, Piece, RenderOptions, TextSource};
use memory::bounded;
use place::{choose, place};
use serde_json::Map;

/// A weight file of a folder.
pub fn safetensors(bytes: &[u8]) {
    bounded(MIB + 64 * bytes.len(), || {
        let files = vec![file("config.json", b"{}"), file("model.safetensors", bytes)];
        using::checkpoint(Checkpoint::from_parts("folder", files));
    });
}

/// A GGUF file: metadata, tensors, tokenizer, and the model where it is one.
pub fn gguf(bytes: &[u8]) {
    bounded(16 * MIB + 1024 * bytes.len(), || {
        let checkpoint = Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(bytes.to_vec()));
        if let Ok(checkpoint) = &checkpoint {
            if let Ok(source) = TextSource::open(checkpoint) {
                using::tokenizer(&source);
            }
            using::model(checkpoint);
        }
        using::checkpoint(checkpoint);
    });
}

/// Metadata and tensor table of a GGUF file; its first byte chooses the model, whose tensor data follow.
pub fn metadata(bytes: &[u8]) {
    let Some((chosen, header)) = choose(&tiny::GGUF_FILES, bytes) else { return };
    let (seed, whole) = tiny::GGUF_FILES[chosen];
    let data = &whole[(seed.len() - 1).next_multiple_of(ALIGNMENT)..];
    bounded(16 * MIB + 1024 * header.len(), || {
        let mut file = header.to_vec();
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(data);
        let checkpoint = Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(file));
        if let Ok(checkpoint) = &checkpoint {
            using::model(checkpoint);
        }
        using::checkpoint(checkpoint);
    });
}

/// One part of a model in two GGUF files (first byte) beside the other as it is.
pub fn parts(bytes: &[u8]) {
    const PARTS: [(&str, &[u8]); 2] = [
        ("model-00001-of-00002.gguf", include_bytes!("../seeds/parts/first").split_at(1).1),
        ("model-00002-of-00002.gguf", include_bytes!("../seeds/parts/second").split_at(1).1),
    ];
    let Some((chosen, part)) = choose(&PARTS, bytes) else { return };
    let path = place(&PARTS, chosen, part).join(PARTS[chosen].0);
    bounded(16 * MIB + 1024 * part.len(), || {
        let checkpoint = Checkpoint::open(path);
        if let Ok(checkpoint) = &checkpoint {
            using::model(checkpoint);
        }
        using::checkpoint(checkpoint);
    });
}

/// A GGUF file written again in another storage type (first byte).
pub fn quantize(bytes: &[u8]) {
    let Some((chosen, file)) = choose(&Target::ALL, bytes) else { return };
    bounded(16 * MIB + 1024 * file.len(), || {
        if let Ok(checkpoint) = Checkpoint::from_gguf_bytes("model.gguf", Bytes::new(file.to_vec())) {
            using::quantized(&checkpoint, Target::ALL[chosen]);
        }
    });
}

/// One file of a folder in two shards (first byte) beside the others as they are: opened, tokenized, run, and written as GGUF.
pub fn folder(bytes: &[u8]) {
    const FILES: [(&str, &[u8]); 9] = [
        ("config.json", include_bytes!("../seeds/folder/config.json").split_at(1).1),
        ("model.safetensors.index.json", include_bytes!("../seeds/folder/model.safetensors.index.json").split_at(1).1),
        ("model-00001-of-00002.safetensors", include_bytes!("../seeds/folder/model-00001-of-00002.safetensors").split_at(1).1),
        ("model-00002-of-00002.safetensors", include_bytes!("../seeds/folder/model-00002-of-00002.safetensors").split_at(1).1),
        ("tokenizer.json", include_bytes!("../seeds/folder/tokenizer.json").split_at(1).1),
        ("tokenizer_config.json", include_bytes!("../seeds/folder/tokenizer_config.json").split_at(1).1),
        ("special_tokens_map.json", include_bytes!("../seeds/folder/special_tokens_map.json").split_at(1).1),
        ("generation_config.json", include_bytes!("../seeds/folder/generation_config.json").split_at(1).1),
        ("chat_template.jinja", include_bytes!("../seeds/folder/chat_template.jinja").split_at(1).1),
    ];
    let Some((chosen, changed)) = choose(&FILES, bytes) else { return };
    bounded(64 * MIB + 4096 * changed.len(), || {
        let content = |index: usize, whole: &'static [u8]| if index == chosen { Bytes::new(changed.to_vec()) } else { Bytes::new(whole) };
        // The template file hides those of the settings, which are therefore read without it.
        let is_there = |index: usize| FILES[index].0 != "chat_template.jinja" || FILES[chosen].0 != "tokenizer_config.json";
        let files = FILES.iter().enumerate().filter(|(index, _)| is_there(*index));
        let files = files.map(|(index, (name, whole))| ((*name).to_owned(), content(index, whole))).collect();
        let checkpoint = Checkpoint::from_parts("folder", files);
        if let Ok(checkpoint) = &checkpoint {
            if let Ok(source) = TextSource::open(checkpoint) {
                using::tokenizer(&source);
            }
            using::model(checkpoint);
            using::quantized(checkpoint, Target::Q8_0);
            let _ = checkpoint.settings_hash();
        }
        using::checkpoint(checkpoint);
    });
}

/// A `tokenizer.json`.
pub fn tokenizer(bytes: &[u8]) {
    bounded(64 * MIB + 4096 * bytes.len(), || {
        using::tokenizer(&TextSource::Json(JsonFiles { tokenizer: bytes.to_vec(), ..JsonFiles::default() }))
    });
}

/// A `config.json`; its first byte chooses the weights that it meets, of every family.
pub fn config(bytes: &[u8]) {
    let Some((chosen, json)) = choose(&tiny::CONFIGS, bytes) else { return };
    let weights = tiny::CONFIGS[chosen];
    bounded(16 * MIB + 1024 * json.len(), || {
        let files = vec![file("config.json", json), ("model.safetensors".to_owned(), Bytes::new(weights))];
        if let Ok(checkpoint) = Checkpoint::from_parts("folder", files) {
            using::model(&checkpoint);
            drop(GgufModel::of(&checkpoint));
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

const ENGLISH: &[u8] = include_bytes!("../seeds/data/en");
const CHINESE: &[u8] = include_bytes!("../seeds/data/zh");

/// A suite; whatever data file it names is a small one.
pub fn suite(bytes: &[u8]) {
    bounded(64 * MIB + 1024 * bytes.len(), || plan("suite.yaml", bytes, ENGLISH));
}

/// A data file of the suite *evidence position*.
pub fn data(bytes: &[u8]) {
    bounded(64 * MIB + 4096 * bytes.len(), || plan("suite.yaml", include_bytes!("../../suites/evidence.yaml"), bytes));
}

fn plan(path: &str, suite: &[u8], english: &[u8]) {
    let data = |name: &str| if name.contains(".zh.") { CHINESE } else { english };
    let read = |name: &str| (name.to_owned(), if name.len() < 256 { Ok(data(name).to_vec()) } else { Err(io::ErrorKind::NotFound.into()) });
    match Suite::parse(path, suite, &read) {
        Ok(suite) => drop(suite.plan()),
        Err(error) => assert!(error.to_string().contains("suite.yaml") || error.to_string().contains(".jsonl"), "{error}"),
    }
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
    let Some((chosen, text)) = choose(&FILES, bytes) else { return };
    let folder = place(&FILES, chosen, text);
    bounded(64 * MIB + 1024 * text.len(), || {
        let Ok(reader) = RunReader::open(&folder) else { return };
        // The others are whole, so what can go wrong with the changed one goes wrong here.
        let readable = match FILES[chosen].0 {
            "plan.jsonl" => reader.plan().is_ok(),
            "trials.jsonl" => reader.attempts().is_ok(),
            "looks.jsonl" => reader.looks().is_ok(),
            "scores.jsonl" => reader.scores().is_ok(),
            "verdicts.json" => reader.verdicts().is_ok(),
            _ => true,
        };
        if readable && let Ok(run) = Run::load(&reader) {
            let _ = (run.html(Lang::default()), run.junit(), run.json(), run.terminal_summary(Lang::default(), 80));
        }
    });
}

const MIB: usize = 1 << 20;

const ALIGNMENT: usize = 32; // of the GGUF files in fixtures/tiny

fn file(name: &str, bytes: &[u8]) -> (String, Bytes) {
    (name.to_owned(), Bytes::new(bytes.to_vec()))
}
