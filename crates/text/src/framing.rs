//! What a tokenizer puts around a text, or around two.

use serde_json::{Map, Value};
use tokenizers::AddedToken;

use crate::error::{Error, quoted};
use crate::pipeline::{MAX_NESTING, list};
use crate::source::JsonFiles;

/// The ids around a text, and the texts of special tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Framing {
    /// Ids that the tokenizer puts before a text; `[BOS]` or nothing in nearly all models.
    pub(crate) prefix: Vec<u32>,
    /// Ids that the tokenizer puts after a text; a prompt is to be continued, so only encoders get them.
    pub(crate) suffix: Vec<u32>,
    /// Types of the tokens before a text, of its own, and of those after it; 0 where nothing is said.
    pub(crate) types: [u32; 3],
    /// Two texts in a row; empty where the tokenizer has no words for it.
    pub(crate) pair: Vec<FramePart>,
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    /// All ids that end a generated text.
    pub(crate) ends: Vec<u32>,
    /// `bos_token`, `eos_token`, …: what templates see.
    pub(crate) texts: Map<String, Value>,
}

/// One step of a row of special tokens and texts, with the type of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FramePart {
    Special { ids: Vec<u32>, kind: u32 },
    Text { which: Which, kind: u32 },
}

/// One of two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    First,
    Second,
}

impl FramePart {
    /// The ids of a special token, none of a text.
    pub(crate) fn special_ids(&self) -> &[u32] {
        match self {
            Self::Special { ids, .. } => ids,
            Self::Text { .. } => &[],
        }
    }
}

impl Framing {
    /// `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`, the second text with its separator of type 1: how encoders are trained.
    pub(crate) fn of_encoder(start: u32, separator: u32) -> Self {
        let special = |id: u32, kind: u32| FramePart::Special { ids: vec![id], kind };
        let text = |which: Which, kind: u32| FramePart::Text { which, kind };
        Self {
            prefix: vec![start],
            suffix: vec![separator],
            pair: vec![special(start, 0), text(Which::First, 0), special(separator, 0), text(Which::Second, 1), special(separator, 1)],
            ..Self::default()
        }
    }

    /// One text between its special tokens.
    pub(crate) fn single(&self) -> Vec<FramePart> {
        let [before, text, after] = self.types;
        vec![
            FramePart::Special { ids: self.prefix.clone(), kind: before },
            FramePart::Text { which: Which::First, kind: text },
            FramePart::Special { ids: self.suffix.clone(), kind: after },
        ]
    }
}

/// Which ids the tokenizer itself puts around a text: the post-processor, corrected by `tokenizer_config.json`.
pub(crate) fn framing(post_processor: &Value, files: &JsonFiles, added: &[(u32, AddedToken)]) -> Result<Framing, Error> {
    let mut framing = Framing::default();
    read_processor(post_processor, &mut framing, 0)?;

    let id_of = |text: &str| added.iter().find(|(_, token)| token.content == text).map(|(id, _)| *id);
    let texts = special_texts(files);
    let named = |key: &str| texts.get(key).and_then(Value::as_str).and_then(id_of);
    framing.bos = named("bos_token").or_else(|| framing.prefix.first().copied());
    framing.eos = named("eos_token");
    framing.ends.extend(framing.eos);
    framing.ends.extend(&files.end_ids);
    let flag = |key: &str| files.config.as_ref().and_then(|config| config.get(key)).and_then(Value::as_bool);
    match (flag("add_bos_token"), framing.bos) {
        (Some(true), Some(bos)) if framing.prefix.is_empty() => framing.prefix = vec![bos],
        (Some(false), Some(bos)) if framing.prefix == [bos] => framing.prefix.clear(),
        _ => {}
    }
    if flag("add_eos_token") == Some(true) && framing.suffix.is_empty() {
        framing.suffix.extend(framing.eos);
    }
    if flag("split_special_tokens") == Some(true) {
        return Err(Error::tokenizer(
            "tokenizer_config.json: split_special_tokens",
            "false or nothing (control tokens in templates must be read as such)",
            "true",
        ));
    }
    framing.texts = texts;
    Ok(framing)
}

/// `bos_token`, `eos_token`, … as templates see them.
pub(crate) fn special_texts(files: &JsonFiles) -> Map<String, Value> {
    let mut texts = Map::new();
    for source in [&files.special_tokens_map, &files.config].into_iter().flatten() {
        for (key, value) in source.as_object().into_iter().flatten() {
            if let Some(text) = token_text(value).filter(|_| key.ends_with("_token")) {
                texts.insert(key.clone(), Value::from(text));
            }
        }
    }
    texts
}

/// A special token in a configuration: a string, or an object with `content`.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content").and_then(Value::as_str))
}

const PLACE: &str = "tokenizer.json: post_processor";

fn wrong(found: &str) -> Error {
    let wanted = "null, `ByteLevel`, `TemplateProcessing`, `BertProcessing` or a `Sequence` of these";
    Error::tokenizer(PLACE, wanted, quoted(found))
}

fn read_processor(value: &Value, framing: &mut Framing, depth: usize) -> Result<(), Error> {
    match value.get("type").and_then(Value::as_str) {
        None if value.is_null() => Ok(()),
        Some("ByteLevel") => Ok(()),
        Some("Sequence") if depth <= MAX_NESTING => {
            for part in list(value, "processors", "post_processor")? {
                read_processor(part, framing, depth + 1)?;
            }
            Ok(())
        }
        Some("BertProcessing") => {
            let id = |key: &str| {
                let id = value.get(key).and_then(|pair| pair.get(1)).and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
                id.ok_or_else(|| wrong(&value.to_string()))
            };
            *framing = Framing::of_encoder(id("cls")?, id("sep")?);
            Ok(())
        }
        Some("TemplateProcessing") => read_template(value, framing),
        other => Err(wrong(other.unwrap_or("a processor without a type"))),
    }
}

fn read_template(template: &Value, framing: &mut Framing) -> Result<(), Error> {
    let mut seen_text = false;
    for part in row(template, list(template, "single", "post_processor")?)? {
        match part {
            FramePart::Special { ids, kind } if seen_text => {
                framing.suffix.extend(ids);
                framing.types[2] = kind;
            }
            FramePart::Special { ids, kind } => {
                framing.prefix.extend(ids);
                framing.types[0] = kind;
            }
            FramePart::Text { which: Which::First, kind } if !seen_text => {
                framing.types[1] = kind;
                seen_text = true;
            }
            FramePart::Text { .. } => return Err(wrong(&template["single"].to_string())),
        }
    }
    if let Some(pair) = template.get("pair").filter(|pair| !pair.is_null()) {
        framing.pair = row(template, pair.as_array().ok_or_else(|| wrong(&pair.to_string()))?)?;
    }
    Ok(())
}

/// Special tokens and texts in a row.
fn row(template: &Value, parts: &[Value]) -> Result<Vec<FramePart>, Error> {
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let mut row = Vec::with_capacity(parts.len());
    for part in parts {
        let wrong = || wrong(&part.to_string());
        let kind = number(part.pointer("/Sequence/type_id").or_else(|| part.pointer("/SpecialToken/type_id"))).unwrap_or(0);
        if let Some(text) = part.get("Sequence") {
            let which = match text.get("id").and_then(Value::as_str) {
                Some("A") => Which::First,
                Some("B") => Which::Second,
                _ => return Err(wrong()),
            };
            row.push(FramePart::Text { which, kind });
            continue;
        }
        let name = part.pointer("/SpecialToken/id").and_then(Value::as_str);
        let ids = name.and_then(|name| template.get("special_tokens")?.get(name)?.get("ids")?.as_array()).ok_or_else(wrong)?;
        let ids = ids.iter().map(|id| number(Some(id))).collect::<Option<Vec<u32>>>().ok_or_else(wrong)?;
        row.push(FramePart::Special { ids, kind });
    }
    Ok(row)
}
