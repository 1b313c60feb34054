//! A folder with `vocab.txt` and no `tokenizer.json`: the same tokenizer, written as that file would be.

use std::collections::HashMap;

use glassbox_checkpoint::WordList;
use serde_json::{Map, Value, json};

use crate::error::{Error, quoted};
use crate::framing::special_texts;
use crate::source::JsonFiles;

/// Classes of `transformers` that read `vocab.txt` so.
const CLASSES: &[&str] =
    &["BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer", "ElectraTokenizerFast"];

const FILE: &str = "vocab.txt";

/// The files as a folder with `tokenizer.json` has them; the options stay in `tokenizer_config.json`, where they are read later.
///
/// # Errors
/// [`Error::Tokenizer`] for a list or an option that means another tokenizer.
pub(crate) fn json_files(list: &WordList) -> Result<JsonFiles, Error> {
    check_options(list)?;
    let mut files =
        JsonFiles { config: list.tokenizer_config.clone(), special_tokens_map: list.special_tokens_map.clone(), ..JsonFiles::default() };
    let text = std::str::from_utf8(&list.words).map_err(|error| Error::tokenizer(FILE, "one token a line, in UTF-8", error.to_string()))?;
    let ids = ids_of_lines(text)?;
    let texts = special_texts(&files);
    let special = |key: &str, default: &str| texts.get(key).and_then(Value::as_str).unwrap_or(default).to_owned();
    let needed = |key: &str, default: &str| {
        let text = special(key, default);
        match ids.get(text.as_str()) {
            Some(id) => Ok((text, *id)),
            None => Err(Error::tokenizer(FILE, format!("the {key} {}", quoted(&text)), "no such line")),
        }
    };
    let (unk, unk_id) = needed("unk_token", "[UNK]")?;
    let (cls, cls_id) = needed("cls_token", "[CLS]")?;
    let (sep, sep_id) = needed("sep_token", "[SEP]")?;
    let optional = [special("pad_token", "[PAD]"), special("mask_token", "[MASK]")];
    let optional = optional.into_iter().filter_map(|text| ids.get(text.as_str()).map(|id| (text.clone(), *id)));
    let mut specials: Vec<(String, u32)> = vec![(unk.clone(), unk_id), (cls, cls_id), (sep, sep_id)];
    specials.extend(optional);
    specials.sort_by_key(|(_, id)| *id);
    specials.dedup();
    let added = specials.iter().map(|(text, id)| {
        json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
    });
    let vocab: Map<String, Value> = ids.iter().map(|(text, id)| ((*text).to_owned(), Value::from(*id))).collect();
    let file = json!({
        "version": "1.0",
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["", cls_id], "sep": ["", sep_id]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
        "model": {"type": "WordPiece", "unk_token": unk, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab},
    });
    files.tokenizer = file.to_string().into_bytes();
    Ok(files)
}

/// Tokens by their line; of a token that stands there twice, the later line counts, as in `transformers`.
fn ids_of_lines(text: &str) -> Result<HashMap<&str, u32>, Error> {
    let mut ids = HashMap::new();
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    for (id, line) in (0_u32..).zip(lines) {
        ids.insert(line.strip_suffix('\r').unwrap_or(line), id);
    }
    // The last id must be there for the ids to be those of the lines; empty lines are tokens that no text becomes.
    if ids.len() < 2 { Err(Error::tokenizer(FILE, "one token a line", format!("{} lines", ids.len()))) } else { Ok(ids) }
}

fn check_options(list: &WordList) -> Result<(), Error> {
    let config = |key: &str| list.tokenizer_config.as_ref().and_then(|config| config.get(key)).filter(|value| !value.is_null());
    let place = |key: &str| format!("tokenizer_config.json: {key}");
    if let Some(class) = config("tokenizer_class").filter(|class| !class.as_str().is_some_and(|class| CLASSES.contains(&class))) {
        return Err(Error::tokenizer(place("tokenizer_class"), format!("for {FILE} one of {}", CLASSES.join(", ")), class.to_string()));
    }
    if config("do_basic_tokenize").is_some_and(|value| *value != Value::Bool(true)) {
        return Err(Error::tokenizer(place("do_basic_tokenize"), "true", "another value"));
    }
    if config("never_split").is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty())) {
        return Err(Error::tokenizer(place("never_split"), "null or an empty list", "some words"));
    }
    match list.added_tokens.as_ref().and_then(Value::as_object) {
        Some(added) if !added.is_empty() => Err(Error::tokenizer(
            "added_tokens.json",
            "no tokens beside those of vocab.txt (a tokenizer.json says how they are found)",
            format!("{} of them", added.len()),
        )),
        _ => Ok(()),
    }
}
