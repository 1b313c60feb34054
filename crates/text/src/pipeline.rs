//! The steps of `tokenizer.json`: normaliser, splitting, decoder. Each option is honoured or refused.

use serde_json::Value;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::alphabet::Alphabet;
use crate::error::{Error, quoted};
use crate::split::{GPT2, SplitStep};

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
    ("BertNormalizer", &["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"]),
    ("BertPreTokenizer", &[]),
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

pub(crate) fn list<'v>(value: &'v Value, key: &str, place: &str) -> Result<&'v Vec<Value>, Error> {
    value.get(key).and_then(Value::as_array).ok_or_else(|| Error::tokenizer(format!("tokenizer.json: {place}.{key}"), "a list", "none"))
}

pub(crate) fn normalizer(value: &Value) -> Result<Option<NormalizerWrapper>, Error> {
    const KNOWN: &[&str] = &[
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Lowercase",
        "StripAccents",
        "Strip",
        "Prepend",
        "Replace",
        "Precompiled",
        "BertNormalizer",
        "Sequence",
    ];
    fn check(value: &Value, place: &str, depth: usize) -> Result<(), Error> {
        if component(value, place, KNOWN)? == "Sequence" {
            if depth > MAX_NESTING {
                return Err(too_deep(place));
            }
            for (i, part) in list(value, "normalizers", place)?.iter().enumerate() {
                check(part, &format!("{place}.normalizers[{i}]"), depth + 1)?;
            }
        }
        // The library stumbles over a match without characters, and over an expression that needs backtracking on a long text.
        let pattern = |kind: &str| value.pointer(&format!("/pattern/{kind}")).and_then(Value::as_str);
        let regex = pattern("Regex").filter(|regex| {
            let least = regex_syntax::parse(regex).ok().and_then(|parsed| parsed.properties().minimum_len());
            least.is_none_or(|bytes| bytes == 0)
        });
        if let Some(pattern) = regex.or(pattern("String").filter(|text| text.is_empty())) {
            let wanted = "an expression without look-around that matches at least one character";
            return Err(Error::tokenizer(format!("tokenizer.json: {place}.pattern"), wanted, quoted(pattern)));
        }
        Ok(())
    }
    if value.is_null() {
        return Ok(None);
    }
    check(value, "normalizer", 0)?;
    let grown = growth(value)?;
    if grown > MAX_GROWTH {
        let wanted = format!("steps that make a text at most {MAX_GROWTH} times as long");
        return Err(Error::tokenizer("tokenizer.json: normalizer", wanted, "more"));
    }
    serde_json::from_value(value.clone())
        .map(Some)
        .map_err(|error| Error::tokenizer("tokenizer.json: normalizer", "a normalizer", error.to_string()))
}

/// How many times as long a normaliser may make a text: the known ones stay below 40.
const MAX_GROWTH: usize = 64;
/// Steps of splitting, each of which looks at every word: the known files have at most six.
const MAX_STEPS: usize = 32;

/// How many times as long a checked normaliser makes a text at most, in bytes.
fn growth(value: &Value) -> Result<usize, Error> {
    let content = || value.get("content").and_then(Value::as_str).unwrap_or_default().len();
    Ok(match value.get("type").and_then(Value::as_str).unwrap_or_default() {
        "Sequence" => list(value, "normalizers", "normalizer")?
            .iter()
            .try_fold(1_usize, |grown, part| growth(part).map(|more| grown.saturating_mul(more)))?,
        "NFKC" | "NFKD" | "Precompiled" => 11, // U+FDFA: 3 bytes become 33
        "NFC" | "NFD" | "Lowercase" => 3,
        "Prepend" => 1 + value.get("prepend").and_then(Value::as_str).unwrap_or_default().len(),
        "Replace" => match value.pointer("/pattern/String").and_then(Value::as_str) {
            Some(text) => content().div_ceil(text.len().max(1)).max(1),
            _ => content().max(1), // a match is at least one byte
        },
        _ => 1,
    })
}

pub(crate) const MAX_NESTING: usize = 8; // real files nest once

fn too_deep(place: &str) -> Error {
    Error::tokenizer(format!("tokenizer.json: {place}"), format!("at most {MAX_NESTING} nested sequences"), "more")
}

pub(crate) fn split_steps(value: &Value, prefix_override: Option<bool>, steps: &mut Vec<SplitStep>) -> Result<(), Error> {
    fn walk(value: &Value, place: &str, prefix_override: Option<bool>, steps: &mut Vec<SplitStep>, depth: usize) -> Result<(), Error> {
        const KNOWN: &[&str] = &[
            "Split",
            "ByteLevel",
            "Metaspace",
            "Digits",
            "Punctuation",
            "Whitespace",
            "WhitespaceSplit",
            "UnicodeScripts",
            "BertPreTokenizer",
            "Sequence",
        ];
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
    walk(value, "pre_tokenizer", prefix_override, steps, 0)?;
    if steps.len() > MAX_STEPS {
        return Err(Error::tokenizer("tokenizer.json: pre_tokenizer", format!("at most {MAX_STEPS} steps"), steps.len().to_string()));
    }
    // Bytes written as characters twice would be twice as long each time.
    if steps.iter().filter(|step| matches!(step, SplitStep::Bytes)).count() > 1 {
        return Err(Error::tokenizer("tokenizer.json: pre_tokenizer", "one `ByteLevel` step", "more"));
    }
    Ok(())
}

fn library_step(value: &Value, place: &str) -> Result<PreTokenizerWrapper, Error> {
    serde_json::from_value(value.clone())
        .map_err(|error| Error::tokenizer(format!("tokenizer.json: {place}"), "a pre-tokenizer", error.to_string()))
}

pub(crate) struct Decoding {
    pub(crate) alphabet: Alphabet,
    pub(crate) strips_first_space: bool,
}

/// Recognises the decoders whose effect on bytes is known exactly.
pub(crate) fn decoding(value: &Value) -> Result<Decoding, Error> {
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
                strips_first_space = step.get_prepend_scheme() != PrependScheme::Never;
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

/// The decoder of words and pieces of words: spaces between words, the mark of continuing pieces taken away. What it cleans up (`hello !` to
/// `hello!`) is never done here.
pub(crate) fn check_word_decoder(value: &Value, continuing_prefix: &str) -> Result<(), Error> {
    let kind = value.get("type").and_then(Value::as_str);
    if value.is_null() || kind == Some("WordPiece") && value.get("prefix").and_then(Value::as_str) == Some(continuing_prefix) {
        return Ok(());
    }
    let wanted = format!("null, or `WordPiece` with the prefix {} of the model", quoted(continuing_prefix));
    Err(Error::tokenizer("tokenizer.json: decoder", wanted, quoted(&value.to_string())))
}
