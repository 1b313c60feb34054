//! Reading `tokenizer.json`: every option is honoured or refused.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use tokenizers::models::bpe::Merges;
use tokenizers::pre_tokenizers::metaspace::Metaspace;
use tokenizers::{AddedToken, NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::alphabet::Alphabet;
use crate::error::{Error, quoted};
use crate::parts::{Framing, Parts};
use crate::source::JsonFiles;
use crate::split::{GPT2, SplitStep};
use crate::vocabulary::{Entry, MergeOptions, TokenKind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: String,
    #[serde(default)]
    truncation: Value,
    #[serde(default)]
    padding: Value,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    model: ModelPart,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// The model's keys of all types that exist, so that another type gets a clear message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPart {
    #[serde(rename = "type")]
    kind: Option<String>,
    vocab: VocabPart,
    #[serde(default)]
    merges: Option<MergesPart>,
    #[serde(default)]
    dropout: Option<f32>,
    #[serde(default)]
    unk_token: Option<String>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: Option<bool>,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default)]
    ignore_merges: Option<bool>,
    #[serde(default, rename = "unk_id")]
    _unk_id: Option<u32>,
    #[serde(default, rename = "max_input_chars_per_word")]
    _max_input_chars_per_word: Option<u32>,
}

/// A token → id object; anything else only says that the model is not byte-pair encoding.
enum VocabPart {
    Ids(Vec<(String, u32)>),
    Other,
}

impl<'de> Deserialize<'de> for VocabPart {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = VocabPart;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tokens and ids")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VocabPart, A::Error> {
                let mut ids = Vec::new();
                while let Some(pair) = map.next_entry::<String, u32>()? {
                    ids.push(pair);
                }
                Ok(VocabPart::Ids(ids))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<VocabPart, A::Error> {
                while seq.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(VocabPart::Other)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Merges as pairs; old files write each as one string with a space.
struct MergesPart(Merges);

impl<'de> Deserialize<'de> for MergesPart {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Merge((String, String));
        impl<'de> Deserialize<'de> for Merge {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;
                impl<'de> Visitor<'de> for Reader {
                    type Value = Merge;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a merge: two strings, or one with a space between")
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<Merge, E> {
                        let (left, right) = text.split_once(' ').ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
                        if right.contains(' ') {
                            return Err(E::invalid_value(de::Unexpected::Str(text), &self));
                        }
                        Ok(Merge((left.to_owned(), right.to_owned())))
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Merge, A::Error> {
                        let wanted = "two strings";
                        let left = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &wanted))?;
                        let right = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &wanted))?;
                        if seq.next_element::<de::IgnoredAny>()?.is_some() {
                            return Err(de::Error::invalid_length(3, &wanted));
                        }
                        Ok(Merge((left, right)))
                    }
                }
                deserializer.deserialize_any(Reader)
            }
        }
        Ok(Self(Vec::<Merge>::deserialize(deserializer)?.into_iter().map(|merge| merge.0).collect()))
    }
}

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
    for (id, token) in extra.into_iter().flatten() {
        let id: u32 = id.parse().map_err(|_| Error::tokenizer(place, "ids as keys", quoted(id)))?;
        let token: AddedToken =
            serde_json::from_value(token.clone()).map_err(|error| Error::tokenizer(place, "added tokens", error.to_string()))?;
        let same = added.iter().find(|(other, known)| *other == id || known.content == token.content);
        match same {
            None => added.push((id, token)),
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

/// Keys of each component that the library reads; it would silently skip others.
const COMPONENTS: &[(&str, &[&str])] = &[
    ("NFC", &[]),
    ("NFD", &[]),
    ("NFKC", &[]),
    ("NFKD", &[]),
    ("Lowercase", &[]),
    ("StripAccents", &[]),
    ("Strip", &["strip_left", "strip_right"]),
    ("Prepend", &["prepend"]),
    ("Replace", &["pattern", "content"]),
    ("Precompiled", &["precompiled_charsmap"]),
    ("Split", &["pattern", "behavior", "invert"]),
    ("ByteLevel", &["add_prefix_space", "trim_offsets", "use_regex"]),
    ("Metaspace", &["replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"]),
    ("Digits", &["individual_digits"]),
    ("Punctuation", &["behavior"]),
    ("Whitespace", &[]),
    ("WhitespaceSplit", &[]),
    ("UnicodeScripts", &[]),
];

/// The `type` of a component whose keys are all known and whose type is `allowed`.
fn component<'v>(value: &'v Value, place: &str, allowed: &[&str]) -> Result<&'v str, Error> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if !allowed.contains(&kind) {
        return Err(Error::tokenizer(
            format!("tokenizer.json: {place}.type"),
            allowed.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", "),
            quoted(kind),
        ));
    }
    if let Some((_, keys)) = COMPONENTS.iter().find(|(name, _)| *name == kind) {
        let unread =
            value.as_object().into_iter().flat_map(|object| object.keys()).find(|key| *key != "type" && !keys.contains(&key.as_str()));
        if let Some(key) = unread {
            return Err(Error::tokenizer(
                format!("tokenizer.json: {place}.{key}"),
                format!("only options that `{kind}` has ({})", keys.join(", ")),
                "one more",
            ));
        }
    }
    Ok(kind)
}

fn list<'v>(value: &'v Value, key: &str, place: &str) -> Result<&'v Vec<Value>, Error> {
    value.get(key).and_then(Value::as_array).ok_or_else(|| Error::tokenizer(format!("tokenizer.json: {place}.{key}"), "a list", "none"))
}

fn normalizer(value: &Value) -> Result<Option<NormalizerWrapper>, Error> {
    const KNOWN: &[&str] =
        &["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Replace", "Precompiled", "Sequence"];
    fn check(value: &Value, place: &str, depth: usize) -> Result<(), Error> {
        if component(value, place, KNOWN)? == "Sequence" {
            if depth > MAX_NESTING {
                return Err(too_deep(place));
            }
            for (i, part) in list(value, "normalizers", place)?.iter().enumerate() {
                check(part, &format!("{place}.normalizers[{i}]"), depth + 1)?;
            }
        }
        // Replacement by an expression is only safe when the expression needs no backtracking.
        if let Some(pattern) = value.pointer("/pattern/Regex").and_then(Value::as_str)
            && ["(?=", "(?!", "(?<", "(?>", "\\1"].iter().any(|look| pattern.contains(look))
        {
            return Err(Error::tokenizer(format!("tokenizer.json: {place}.pattern"), "an expression without look-around", quoted(pattern)));
        }
        Ok(())
    }
    if value.is_null() {
        return Ok(None);
    }
    check(value, "normalizer", 0)?;
    serde_json::from_value(value.clone())
        .map(Some)
        .map_err(|error| Error::tokenizer("tokenizer.json: normalizer", "a normalizer", error.to_string()))
}

const MAX_NESTING: usize = 8; // real files nest once

fn too_deep(place: &str) -> Error {
    Error::tokenizer(format!("tokenizer.json: {place}"), format!("at most {MAX_NESTING} nested sequences"), "more")
}

fn split_steps(value: &Value, prefix_override: Option<bool>, steps: &mut Vec<SplitStep>) -> Result<(), Error> {
    fn walk(value: &Value, place: &str, prefix_override: Option<bool>, steps: &mut Vec<SplitStep>, depth: usize) -> Result<(), Error> {
        const KNOWN: &[&str] =
            &["Split", "ByteLevel", "Metaspace", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "UnicodeScripts", "Sequence"];
        let bad = |error: serde_json::Error| Error::tokenizer(format!("tokenizer.json: {place}"), "a pre-tokenizer", error.to_string());
        match component(value, place, KNOWN)? {
            "Sequence" => {
                if depth > MAX_NESTING {
                    return Err(too_deep(place));
                }
                for (i, part) in list(value, "pretokenizers", place)?.iter().enumerate() {
                    walk(part, &format!("{place}.pretokenizers[{i}]"), None, steps, depth + 1)?;
                }
            }
            "ByteLevel" => {
                let flag = |key: &str| value.get(key).and_then(Value::as_bool);
                if prefix_override.or(flag("add_prefix_space")).unwrap_or(true) {
                    steps.push(SplitStep::Prefix);
                }
                if flag("use_regex").unwrap_or(true) {
                    steps.push(SplitStep::isolated(GPT2)?);
                }
                steps.push(SplitStep::Bytes);
            }
            "Split" => {
                let regex = value.pointer("/pattern/Regex").and_then(Value::as_str);
                if let Some(regex) = regex {
                    let behavior: SplitDelimiterBehavior =
                        serde_json::from_value(value.get("behavior").cloned().unwrap_or_default()).map_err(bad)?;
                    let invert = value.get("invert").and_then(Value::as_bool).unwrap_or(false);
                    steps.push(SplitStep::pattern(regex, behavior, invert)?);
                } else {
                    steps.push(SplitStep::Library(library_step(value, place)?));
                }
            }
            "Metaspace" => {
                let step: Metaspace = serde_json::from_value(value.clone()).map_err(bad)?;
                if step.get_replacement() != crate::alphabet::SPACE_MARK {
                    return Err(Error::tokenizer(
                        format!("tokenizer.json: {place}.replacement"),
                        "`▁`",
                        quoted(&step.get_replacement().to_string()),
                    ));
                }
                steps.push(SplitStep::Metaspace(step));
            }
            _ => steps.push(SplitStep::Library(library_step(value, place)?)),
        }
        Ok(())
    }
    if value.is_null() {
        return Ok(());
    }
    walk(value, "pre_tokenizer", prefix_override, steps, 0)
}

fn library_step(value: &Value, place: &str) -> Result<PreTokenizerWrapper, Error> {
    serde_json::from_value(value.clone())
        .map_err(|error| Error::tokenizer(format!("tokenizer.json: {place}"), "a pre-tokenizer", error.to_string()))
}

struct Decoding {
    alphabet: Alphabet,
    strips_first_space: bool,
}

/// Recognises the decoders whose effect on bytes is known exactly.
fn decoding(value: &Value) -> Result<Decoding, Error> {
    const PLACE: &str = "tokenizer.json: decoder";
    const WANTED: &str =
        "`ByteLevel`, `Metaspace`, or `Replace` of `▁` by a space with `ByteFallback`, `Fuse` and a `Strip` of one leading space";
    let refuse = |found: &Value| Error::tokenizer(PLACE, WANTED, quoted(&found.to_string()));
    let kind = |value: &Value| value.get("type").and_then(Value::as_str).map(str::to_owned);
    let parts: Vec<&Value> = match kind(value).as_deref() {
        Some("Sequence") => list(value, "decoders", "decoder")?.iter().collect(),
        Some(_) => vec![value],
        None => return Err(refuse(value)),
    };
    let mut alphabet = None;
    let mut strips_first_space = false;
    for part in parts {
        match kind(part).as_deref() {
            Some("ByteLevel") => alphabet = Some(Alphabet::ByteLevel),
            Some("Metaspace") => {
                let step: Metaspace = serde_json::from_value(part.clone()).map_err(|_| refuse(part))?;
                if step.get_replacement() != crate::alphabet::SPACE_MARK {
                    return Err(refuse(part));
                }
                alphabet = Some(Alphabet::SentencePiece);
                strips_first_space = step.get_prepend_scheme() != tokenizers::pre_tokenizers::metaspace::PrependScheme::Never;
            }
            Some("Replace")
                if part.pointer("/pattern/String").and_then(Value::as_str) == Some("▁")
                    && part.get("content").and_then(Value::as_str) == Some(" ") =>
            {
                alphabet = Some(Alphabet::SentencePiece);
            }
            Some("ByteFallback" | "Fuse") => {}
            Some("Strip")
                if part.get("content").and_then(Value::as_str) == Some(" ")
                    && part.get("start").and_then(Value::as_u64) == Some(1)
                    && part.get("stop").and_then(Value::as_u64) == Some(0) =>
            {
                strips_first_space = true;
            }
            _ => return Err(refuse(part)),
        }
    }
    Ok(Decoding { alphabet: alphabet.ok_or_else(|| refuse(value))?, strips_first_space })
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
