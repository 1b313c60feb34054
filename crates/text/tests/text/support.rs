//! The small tokenizers of `fixtures/make_tokenizers.py`.

use std::path::PathBuf;

use glassbox_text::{GgufVocabulary, JsonFiles, TextSource, Tokenizer};
use serde_json::Value;

/// Names of the folders: byte-level ones first, then SentencePiece ones.
pub(crate) const TOKENIZERS: [&str; 5] = ["gpt2", "llama3", "qwen2", "llama2", "gemma"];

pub(crate) fn read(name: &str, file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/tokenizers").join(name).join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn json(name: &str, file: &str) -> Value {
    serde_json::from_slice(&read(name, file)).expect("the script writes JSON")
}

pub(crate) fn json_source(name: &str) -> JsonFiles {
    let config = json(name, "tokenizer_config.json");
    let template = config.get("chat_template").and_then(Value::as_str);
    JsonFiles {
        tokenizer: read(name, "tokenizer.json"),
        templates: template.map(|text| ("default".to_owned(), text.to_owned())).into_iter().collect(),
        config: Some(config),
        ..JsonFiles::default()
    }
}

pub(crate) fn gguf_source(name: &str) -> GgufVocabulary {
    let metadata = json(name, "gguf.json");
    let list = |key: &str| metadata[key].as_array().expect("a list").clone();
    let texts = |key: &str| list(key).iter().map(|text| text.as_str().expect("a text").to_owned()).collect();
    let id = |key: &str| metadata[key].as_u64().map(|id| u32::try_from(id).expect("small"));
    GgufVocabulary {
        model: metadata["model"].as_str().expect("a text").to_owned(),
        pre: metadata["pre"].as_str().map(str::to_owned),
        tokens: texts("tokens"),
        scores: list("scores").iter().map(|score| score.as_f64().expect("a number") as f32).collect(),
        token_types: list("token_types").iter().map(|kind| kind.as_i64().expect("a number") as i32).collect(),
        merges: texts("merges"),
        bos: id("bos"),
        eos: id("eos"),
        unknown: id("unknown"),
        add_bos: metadata["add_bos"].as_bool(),
        add_space_prefix: metadata["add_space_prefix"].as_bool(),
        ..GgufVocabulary::default()
    }
}

pub(crate) fn from_json(name: &str) -> Tokenizer {
    Tokenizer::from_source(&TextSource::Json(json_source(name))).expect("the tokenizer is whole")
}

pub(crate) fn from_gguf(name: &str) -> Tokenizer {
    Tokenizer::from_source(&TextSource::Gguf(gguf_source(name))).expect("the metadata are whole")
}
