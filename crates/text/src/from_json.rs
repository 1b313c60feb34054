//! Reading `tokenizer.json`: every option is honoured or refused.

use std::collections::HashMap;

use serde_json::Value;
use tokenizers::AddedToken;
use tokenizers::models::bpe::Merges;

use crate::alphabet::Alphabet;
use crate::error::{Error, quoted};
use crate::json_file::{Added, File, MergesPart, ModelPart, VocabPart};
use crate::parts::{Framing, Parts};
use crate::pipeline::{MAX_NESTING, decoding, list, normalizer, split_steps};
use crate::source::JsonFiles;
use crate::vocabulary::{Entry, MergeOptions, TokenKind};

/// Takes a `tokenizer.json` apart.
pub(crate) fn read(files: &JsonFiles) -> Result<Parts, Error> {
    const FILE: &str = "tokenizer.json";
    let file: File = serde_json::from_slice(&files.tokenizer)
        .map_err(|error| Error::tokenizer(FILE, "a tokenizer file that this engine reads fully", error.to_string()))?;
    if file.version != "1.0" {
        return Err(Error::tokenizer(format!("{FILE}: version"), "`1.0`", quoted(&file.version)));
    }
    // Truncation and padding shape training batches; a prompt is neither cut nor filled.
    for (key, value) in [("truncation", &file.truncation), ("padding", &file.padding)] {
        if !value.is_null() && !value.is_object() {
            return Err(Error::tokenizer(format!("{FILE}: {key}"), "null or an object", quoted(&value.to_string())));
        }
    }

    let Merging { options, merges, ids } = merging(file.model)?;
    let decoding = decoding(&file.decoder)?;
    if decoding.alphabet == Alphabet::ByteLevel && options.byte_fallback {
        return Err(Error::tokenizer(format!("{FILE}: model.byte_fallback"), "no byte fallback beside a byte-level decoder", "both"));
    }
    let normalizer = normalizer(&file.normalizer)?;
    let mut steps = Vec::new();
    let prefix_override = files.config.as_ref().and_then(|config| config.get("add_prefix_space")).and_then(Value::as_bool);
    split_steps(&file.pre_tokenizer, prefix_override, &mut steps)?;

    let added = added_tokens(file.added_tokens, &ids, files)?;
    let mut entries: Vec<Entry> = Vec::with_capacity(ids.len() + added.len());
    let by_text: HashMap<&str, &(u32, AddedToken)> = added.iter().map(|token| (token.1.content.as_str(), token)).collect();
    for (text, id) in ids {
        let kind = match by_text.get(text.as_str()) {
            Some((_, token)) => kind_of(token),
            None if options.byte_fallback && crate::alphabet::byte_of_fallback(&text).is_some() => TokenKind::Byte,
            None => TokenKind::Ordinary,
        };
        entries.push(Entry { id, text, kind });
    }
    let known: std::collections::HashSet<String> = entries.iter().map(|entry| entry.text.clone()).collect();
    for (id, token) in &added {
        if !known.contains(&token.content) {
            entries.push(Entry { id: *id, text: token.content.clone(), kind: kind_of(token) });
        }
    }
    let framing = framing(&file.post_processor, files, &added)?;
    Ok(Parts {
        place: format!("{FILE}: model"),
        entries,
        merges,
        options,
        added,
        normalizer,
        steps,
        alphabet: decoding.alphabet,
        strips_first_space: decoding.strips_first_space,
        framing,
    })
}

fn kind_of(token: &AddedToken) -> TokenKind {
    if token.special { TokenKind::Control } else { TokenKind::UserDefined }
}

/// The model part, checked.
struct Merging {
    options: MergeOptions,
    merges: Merges,
    /// Tokens with their ids, in the order of the file.
    ids: Vec<(String, u32)>,
}

fn merging(model: ModelPart) -> Result<Merging, Error> {
    let place = |key: &str| format!("tokenizer.json: model.{key}");
    // Files from before 2020 name no type; only byte-pair models have merges.
    let kind = model.kind.as_deref();
    let (VocabPart::Ids(ids), Some(MergesPart(merges)), None | Some("BPE")) = (model.vocab, model.merges, kind) else {
        return Err(Error::tokenizer(place("type"), "`BPE`", quoted(kind.unwrap_or("a model without merges"))));
    };
    if let Some(dropout) = model.dropout.filter(|dropout| *dropout != 0.0) {
        return Err(Error::tokenizer(place("dropout"), "null (merging must not be random)", dropout.to_string()));
    }
    for (key, value) in [("continuing_subword_prefix", &model.continuing_subword_prefix), ("end_of_word_suffix", &model.end_of_word_suffix)]
    {
        if let Some(text) = value.as_ref().filter(|text| !text.is_empty()) {
            return Err(Error::tokenizer(place(key), "null or empty", quoted(text)));
        }
    }
    let options = MergeOptions {
        unk_token: model.unk_token,
        fuse_unk: model.fuse_unk.unwrap_or(false),
        byte_fallback: model.byte_fallback.unwrap_or(false),
        ignore_merges: model.ignore_merges.unwrap_or(false),
    };
    Ok(Merging { options, merges, ids })
}

/// The added tokens of the file and those that only `tokenizer_config.json` has.
fn added_tokens(listed: Vec<Added>, ids: &[(String, u32)], files: &JsonFiles) -> Result<Vec<(u32, AddedToken)>, Error> {
    let vocabulary: HashMap<&str, u32> = ids.iter().map(|(text, id)| (text.as_str(), *id)).collect();
    let mut added = Vec::with_capacity(listed.len());
    for token in listed {
        if let Some(&id) = vocabulary.get(token.content.as_str())
            && id != token.id
        {
            return Err(Error::tokenizer(
                "tokenizer.json: added_tokens",
                format!("id {id} of the vocabulary for {}", quoted(&token.content)),
                format!("id {}", token.id),
            ));
        }
        added.push((
            token.id,
            AddedToken {
                content: token.content,
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
                normalized: token.normalized,
                special: token.special,
            },
        ));
    }
    let place = "tokenizer_config.json: added_tokens_decoder";
    let extra = files.config.as_ref().and_then(|config| config.get("added_tokens_decoder")).and_then(Value::as_object);
    // Backwards, so that of several the first stays.
    let numbered = || added.iter().enumerate().rev();
    let mut by_id: HashMap<u32, usize> = numbered().map(|(index, (id, _))| (*id, index)).collect();
    let mut by_content: HashMap<String, usize> = numbered().map(|(index, (_, token))| (token.content.clone(), index)).collect();
    for (id, token) in extra.into_iter().flatten() {
        let id: u32 = id.parse().map_err(|_| Error::tokenizer(place, "ids as keys", quoted(id)))?;
        let token: AddedToken =
            serde_json::from_value(token.clone()).map_err(|error| Error::tokenizer(place, "added tokens", error.to_string()))?;
        match by_id.get(&id).or_else(|| by_content.get(&token.content)).map(|index| &added[*index]) {
            None => {
                by_id.insert(id, added.len());
                by_content.insert(token.content.clone(), added.len());
                added.push((id, token));
            }
            Some((other, known)) if *other == id && known.content == token.content => {}
            Some((other, known)) => {
                return Err(Error::tokenizer(
                    place,
                    format!("{} with id {other} as in tokenizer.json", quoted(&known.content)),
                    format!("{} with id {id}", quoted(&token.content)),
                ));
            }
        }
    }
    Ok(added)
}

/// Which ids the tokenizer itself puts around a text.
fn framing(post_processor: &Value, files: &JsonFiles, added: &[(u32, AddedToken)]) -> Result<Framing, Error> {
    let mut framing = Framing::default();
    template_frame(post_processor, &mut framing, 0)?;

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
pub(crate) fn special_texts(files: &JsonFiles) -> serde_json::Map<String, Value> {
    let mut texts = serde_json::Map::new();
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

fn template_frame(value: &Value, framing: &mut Framing, depth: usize) -> Result<(), Error> {
    const PLACE: &str = "tokenizer.json: post_processor";
    let wrong = |found: String| Error::tokenizer(PLACE, "null, `ByteLevel`, `TemplateProcessing` or a `Sequence` of these", found);
    match value.get("type").and_then(Value::as_str) {
        None if value.is_null() => Ok(()),
        Some("ByteLevel") => Ok(()),
        Some("Sequence") if depth <= MAX_NESTING => {
            for part in list(value, "processors", "post_processor")? {
                template_frame(part, framing, depth + 1)?;
            }
            Ok(())
        }
        Some("TemplateProcessing") => {
            let mut seen_text = false;
            for part in list(value, "single", "post_processor")? {
                if part.get("Sequence").is_some() {
                    seen_text = true;
                    continue;
                }
                let name = part.pointer("/SpecialToken/id").and_then(Value::as_str);
                let ids = name
                    .and_then(|name| value.get("special_tokens")?.get(name)?.get("ids")?.as_array())
                    .ok_or_else(|| wrong(quoted(&part.to_string())))?;
                for id in ids {
                    let id = id.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| wrong(quoted(&id.to_string())))?;
                    if seen_text {
                        framing.suffix.push(id);
                    } else {
                        framing.prefix.push(id);
                    }
                }
            }
            Ok(())
        }
        other => Err(wrong(quoted(other.unwrap_or("a processor without a type")))),
    }
}
