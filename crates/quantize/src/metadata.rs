//! What stands in front of the tensors.

use glassbox_checkpoint::{GgufValue, GgufWriter};
use glassbox_text::GgufVocabulary;

use crate::source::{Source, SourceKind};
use crate::{QuantizeError, Target};

/// Keys of a source that say something about its own storage; the written file says it of itself.
const OF_THE_SOURCE: &[&str] = &["general.file_type", "general.quantization_version", "general.alignment", "glassbox.simulated"];

const QUANTIZATION_VERSION: u32 = 2; // GGML_QNT_VERSION: the block layouts of today

pub(crate) fn write(source: &Source<'_>, target: Target, writer: &mut GgufWriter) -> Result<(), QuantizeError> {
    match &source.kind {
        SourceKind::Gguf(checkpoint) => {
            let kept = |key: &str| !OF_THE_SOURCE.contains(&key) && !key.starts_with("split.");
            checkpoint.gguf_pairs().filter(|(key, _)| kept(key)).for_each(|(_, pair)| writer.set_pair(pair));
        }
        SourceKind::Folder(model, vocabulary) => {
            model.settings.iter().for_each(|(key, value)| writer.set(key, value));
            tokenizer(vocabulary.as_deref(), writer);
        }
    }
    writer.set("general.quantization_version", &GgufValue::U32(QUANTIZATION_VERSION));
    writer.set("general.file_type", &GgufValue::U32(target.file_type()));
    if target.simulated().is_some() {
        writer.set("glassbox.simulated", &GgufValue::Text(target.name().to_owned()));
    }
    Ok(())
}

fn tokenizer(vocabulary: Option<&GgufVocabulary>, writer: &mut GgufWriter) {
    let mut set = |key: &str, value: GgufValue| writer.set(&format!("tokenizer.{key}"), &value);
    let Some(vocabulary) = vocabulary else {
        set("ggml.model", GgufValue::Text("no_vocab".to_owned()));
        return;
    };
    set("ggml.model", GgufValue::Text(vocabulary.model.clone()));
    if let Some(pre) = &vocabulary.pre {
        set("ggml.pre", GgufValue::Text(pre.clone()));
    }
    set("ggml.tokens", GgufValue::Texts(vocabulary.tokens.clone()));
    set("ggml.token_type", GgufValue::I32s(vocabulary.token_types.clone()));
    if !vocabulary.scores.is_empty() {
        set("ggml.scores", GgufValue::F32s(vocabulary.scores.clone()));
    }
    if !vocabulary.merges.is_empty() {
        set("ggml.merges", GgufValue::Texts(vocabulary.merges.clone()));
    }
    let ids = [
        ("ggml.bos_token_id", vocabulary.bos),
        ("ggml.eos_token_id", vocabulary.eos),
        ("ggml.eot_token_id", vocabulary.eot),
        ("ggml.unknown_token_id", vocabulary.unknown),
        ("ggml.padding_token_id", vocabulary.padding),
        ("ggml.cls_token_id", vocabulary.cls),
        ("ggml.seperator_token_id", vocabulary.sep), // the format spells it so
    ];
    for (key, id) in ids {
        if let Some(id) = id {
            set(key, GgufValue::U32(id));
        }
    }
    let flags = [
        ("ggml.add_bos_token", vocabulary.add_bos),
        ("ggml.add_eos_token", vocabulary.add_eos),
        ("ggml.add_space_prefix", vocabulary.add_space_prefix),
    ];
    for (key, flag) in flags {
        if let Some(flag) = flag {
            set(key, GgufValue::Bool(flag));
        }
    }
    for (name, text) in &vocabulary.templates {
        let key = if name == "default" { "chat_template".to_owned() } else { format!("chat_template.{name}") };
        set(&key, GgufValue::Text(text.clone()));
    }
    let named: Vec<String> = vocabulary.templates.iter().map(|(name, _)| name.clone()).filter(|name| name != "default").collect();
    if !named.is_empty() {
        set("chat_templates", GgufValue::Texts(named));
    }
}
