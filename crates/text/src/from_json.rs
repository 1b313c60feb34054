//! Reading `tokenizer.json`: every option is honoured or refused.

use std::collections::HashMap;

use serde_json::Value;
use tokenizers::AddedToken;

use crate::alphabet::Alphabet;
use crate::error::{Error, quoted};
use crate::framing::framing;
use crate::json_file::{Added, File, MergesPart, ModelPart, VocabPart};
use crate::parts::{MergeOrigin, Parts, Pieces};
use crate::pipeline::{Decoding, check_word_decoder, decoding, normalizer, split_steps};
use crate::source::JsonFiles;
use crate::vocabulary::{Entry, MOST_CHARACTERS, MergeOptions, TokenKind, WordOptions};

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

    let (pieces, ids) = pieces(file.model)?;
    let (decoding, byte_fallback) = match &pieces {
        Pieces::Merged { options, .. } => (decoding(&file.decoder)?, options.byte_fallback),
        Pieces::Longest(options) => {
            check_word_decoder(&file.decoder, &options.continuing_prefix)?;
            (Decoding { alphabet: Alphabet::Words, strips_first_space: true }, false)
        }
    };
    if decoding.alphabet == Alphabet::ByteLevel && byte_fallback {
        return Err(Error::tokenizer(format!("{FILE}: model.byte_fallback"), "no byte fallback beside a byte-level decoder", "both"));
    }
    let normalizer = normalizer(&corrected(file.normalizer, files))?;
    let mut steps = Vec::new();
    let prefix_override = files.config.as_ref().and_then(|config| config.get("add_prefix_space")).and_then(Value::as_bool);
    split_steps(&file.pre_tokenizer, prefix_override, &mut steps)?;

    let added = added_tokens(file.added_tokens, &ids, files)?;
    let mut entries: Vec<Entry> = Vec::with_capacity(ids.len() + added.len());
    let by_text: HashMap<&str, &(u32, AddedToken)> = added.iter().map(|token| (token.1.content.as_str(), token)).collect();
    for (text, id) in ids {
        let kind = match by_text.get(text.as_str()) {
            Some((_, token)) => kind_of(token),
            None if byte_fallback && crate::alphabet::byte_of_fallback(&text).is_some() => TokenKind::Byte,
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
        pieces,
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

/// The normaliser with what `tokenizer_config.json` says about it: `transformers` lets these keys win.
fn corrected(mut normalizer: Value, files: &JsonFiles) -> Value {
    if let (Some("BertNormalizer"), Some(config)) = (normalizer.get("type").and_then(Value::as_str), &files.config) {
        for (key, option) in
            [("do_lower_case", "lowercase"), ("strip_accents", "strip_accents"), ("tokenize_chinese_chars", "handle_chinese_chars")]
        {
            if let Some(value) = config.get(key) {
                normalizer[option] = value.clone();
            }
        }
    }
    normalizer
}

/// The model part, checked, and its tokens with their ids in the order of the file.
fn pieces(model: ModelPart) -> Result<(Pieces, Vec<(String, u32)>), Error> {
    let place = |key: &str| format!("tokenizer.json: model.{key}");
    // Files from before 2020 name no type; then only byte-pair models have merges, and only WordPiece has a longest word.
    let kind = match model.kind.as_deref() {
        None if model.merges.is_none() && model.max_input_chars_per_word.is_some() => Some("WordPiece"),
        kind => kind,
    };
    match (model.vocab, model.merges, kind) {
        (VocabPart::Ids(ids), Some(MergesPart(merges)), None | Some("BPE")) => {
            if let Some(dropout) = model.dropout.filter(|dropout| *dropout != 0.0) {
                return Err(Error::tokenizer(place("dropout"), "null (merging must not be random)", dropout.to_string()));
            }
            let affixes =
                [("continuing_subword_prefix", &model.continuing_subword_prefix), ("end_of_word_suffix", &model.end_of_word_suffix)];
            for (key, value) in affixes {
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
            Ok((Pieces::Merged { merges, origin: MergeOrigin::List, options }, ids))
        }
        (VocabPart::Ids(ids), None, Some("WordPiece")) => {
            let merging_only = [
                ("dropout", model.dropout.is_some()),
                ("end_of_word_suffix", model.end_of_word_suffix.is_some()),
                ("fuse_unk", model.fuse_unk.is_some()),
                ("byte_fallback", model.byte_fallback.is_some()),
                ("ignore_merges", model.ignore_merges.is_some()),
            ];
            if let Some((key, _)) = merging_only.iter().find(|(_, there)| *there) {
                return Err(Error::tokenizer(place(key), "only options that `WordPiece` has", "one more"));
            }
            let options = WordOptions {
                unk_token: model.unk_token.unwrap_or_else(|| "[UNK]".to_owned()),
                continuing_prefix: model.continuing_subword_prefix.unwrap_or_else(|| "##".to_owned()),
                most_characters: model.max_input_chars_per_word.unwrap_or(100),
            };
            if options.most_characters > MOST_CHARACTERS {
                let wanted = format!("at most {MOST_CHARACTERS}: the time that a word takes grows with the square of its length");
                return Err(Error::tokenizer(place("max_input_chars_per_word"), wanted, options.most_characters.to_string()));
            }
            Ok((Pieces::Longest(options), ids))
        }
        (_, merges, kind) => {
            let found = if merges.is_some() { "a model that is neither" } else { "a model without merges" };
            Err(Error::tokenizer(place("type"), "`BPE` or `WordPiece`", quoted(kind.unwrap_or(found))))
        }
    }
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
