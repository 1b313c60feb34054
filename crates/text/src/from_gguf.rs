//! Building a tokenizer from the `tokenizer.*` metadata of a GGUF file.

use ahash::AHashMap;
use serde_json::{Map, Value, json};
use tokenizers::models::bpe::Merges;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, NormalizerWrapper, PreTokenizerWrapper};

use crate::alphabet::{Alphabet, SPACE_MARK, byte_of_fallback};
use crate::error::{Error, quoted};
use crate::framing::Framing;
use crate::parts::{MergeOrigin, Parts, Pieces};
use crate::source::{GgufVocabulary, token_type};
use crate::split::{SplitStep, pre_rule};
use crate::vocabulary::{Entry, MergeOptions, TokenKind, WordOptions};

const PLACE: &str = "GGUF metadata: tokenizer.ggml";

/// Bytes of the longest piece whose cuts are tried; real pieces have at most a few dozen.
const LONGEST_PIECE: usize = 1024;

/// Control tokens that end a turn in the known chat formats; a GGUF file names only one of them as EOS.
const ENDS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<|end|>",
    "<|return|>",
    "<|endofprompt|>",
    "</s>",
    "<eos>",
    "<EOT>",
];

/// Takes the metadata apart.
pub(crate) fn read(source: &GgufVocabulary) -> Result<Parts, Error> {
    let kinds = kinds(source)?;
    let is_of_words = source.model == "bert";
    let entries: Vec<Entry> = (0_u32..)
        .zip(&source.tokens)
        .zip(&kinds)
        .map(|((id, text), kind)| Entry { id, text: if is_of_words { marked(text, *kind) } else { text.clone() }, kind: *kind })
        .collect();
    let added = entries
        .iter()
        .filter(|entry| matches!(entry.kind, TokenKind::Control | TokenKind::UserDefined))
        .filter(|entry| !entry.text.is_empty())
        .map(|entry| {
            let token = AddedToken::from(entry.text.clone(), entry.kind == TokenKind::Control);
            // Spaces in such a token are `▁` when it is looked for, so that a `▁` in the text counts as well.
            let spaced = source.model == "llama" && entry.kind == TokenKind::UserDefined && entry.text.contains(' ');
            (entry.id, token.normalized(spaced))
        })
        .collect();
    match source.model.as_str() {
        "gpt2" => byte_level(source, entries, added),
        "llama" => sentence_piece(source, entries, added),
        "bert" => words(source, entries, added),
        other => Err(Error::tokenizer(format!("{PLACE}.model"), "`gpt2`, `llama` or `bert`", quoted(other))),
    }
}

fn kinds(source: &GgufVocabulary) -> Result<Vec<TokenKind>, Error> {
    if !source.token_types.is_empty() && source.token_types.len() != source.tokens.len() {
        return Err(Error::tokenizer(
            format!("{PLACE}.token_type"),
            format!("one entry a token ({})", source.tokens.len()),
            source.token_types.len().to_string(),
        ));
    }
    if source.token_types.is_empty() {
        // Without types, at least the ids that the file itself calls special are control tokens.
        let special = [source.bos, source.eos, source.eot, source.padding, source.unknown, source.cls, source.sep];
        return Ok((0_u32..)
            .zip(&source.tokens)
            .map(|(id, text)| {
                if special.contains(&Some(id)) {
                    TokenKind::Control
                } else if source.model == "llama" && byte_of_fallback(text).is_some() {
                    TokenKind::Byte
                } else {
                    TokenKind::Ordinary
                }
            })
            .collect());
    }
    source
        .token_types
        .iter()
        .enumerate()
        .map(|(id, kind)| {
            Ok(match *kind {
                token_type::NORMAL => TokenKind::Ordinary,
                token_type::UNKNOWN | token_type::CONTROL => TokenKind::Control,
                token_type::USER_DEFINED => TokenKind::UserDefined,
                token_type::UNUSED => TokenKind::Unused,
                token_type::BYTE => TokenKind::Byte,
                other => {
                    return Err(Error::tokenizer(format!("{PLACE}.token_type[{id}]"), "a type from 1 to 6", other.to_string()));
                }
            })
        })
        .collect()
}

fn byte_level(source: &GgufVocabulary, entries: Vec<Entry>, added: Vec<(u32, AddedToken)>) -> Result<Parts, Error> {
    let rule = pre_rule(source.pre.as_deref())?;
    let mut merges = Merges::with_capacity(source.merges.len());
    for (rank, merge) in source.merges.iter().enumerate() {
        // A part is never empty, so the separating space is not the first character.
        let pair = merge
            .char_indices()
            .skip(1)
            .find(|(_, character)| *character == ' ')
            .map(|(at, _)| (merge[..at].to_owned(), merge[at + 1..].to_owned()));
        merges.push(
            pair.ok_or_else(|| Error::tokenizer(format!("{PLACE}.merges[{rank}]"), "two tokens with a space between", quoted(merge)))?,
        );
    }
    if merges.is_empty() {
        return Err(Error::tokenizer(format!("{PLACE}.merges"), "merges", "none"));
    }
    let mut steps = Vec::new();
    if source.add_space_prefix == Some(true) {
        steps.push(SplitStep::Prefix);
    }
    for pattern in rule.patterns {
        steps.push(SplitStep::isolated(pattern)?);
    }
    steps.push(SplitStep::Bytes);
    let normalizer = if rule.nfc { Some(library(json!({"type": "NFC"}))?) } else { None };
    Ok(Parts {
        place: PLACE.to_owned(),
        framing: framing(source, &entries, rule.adds_bos)?,
        entries,
        pieces: Pieces::Merged {
            merges,
            origin: MergeOrigin::List,
            options: MergeOptions { ignore_merges: rule.ignore_merges, ..MergeOptions::default() },
        },
        added,
        normalizer,
        steps,
        alphabet: Alphabet::ByteLevel,
        strips_first_space: false,
    })
}

fn sentence_piece(source: &GgufVocabulary, entries: Vec<Entry>, added: Vec<(u32, AddedToken)>) -> Result<Parts, Error> {
    if source.scores.len() != source.tokens.len() {
        return Err(Error::tokenizer(
            format!("{PLACE}.scores"),
            format!("one score a token ({})", source.tokens.len()),
            source.scores.len().to_string(),
        ));
    }
    if let Some(id) = source.scores.iter().position(|score| !score.is_finite()) {
        return Err(Error::tokenizer(format!("{PLACE}.scores[{id}]"), "a finite number", source.scores[id].to_string()));
    }
    if source.remove_extra_whitespaces == Some(true) {
        return Err(Error::tokenizer(format!("{PLACE}.remove_extra_whitespaces"), "false or nothing", "true"));
    }
    if source.has_charsmap {
        return Err(Error::tokenizer(format!("{PLACE}.precompiled_charsmap"), "no normalisation rules", "some"));
    }
    let prefix = source.add_space_prefix.unwrap_or(true);
    if let Some(long) = entries.iter().find(|entry| entry.text.len() > LONGEST_PIECE) {
        return Err(Error::tokenizer(
            format!("{PLACE}.tokens[{}]", long.id),
            format!("at most {LONGEST_PIECE} bytes"),
            format!("{} bytes", long.text.len()),
        ));
    }
    let unk_token = source.unknown.and_then(|id| entries.get(id as usize)).map(|entry| entry.text.clone());
    let byte_fallback = entries.iter().any(|entry| entry.kind == TokenKind::Byte);
    Ok(Parts {
        place: PLACE.to_owned(),
        framing: framing(source, &entries, true)?,
        pieces: Pieces::Merged {
            merges: merges_from_scores(&entries, &source.scores),
            origin: MergeOrigin::Scores,
            options: MergeOptions { unk_token, fuse_unk: true, byte_fallback, ignore_merges: false },
        },
        entries,
        added,
        normalizer: Some(library(json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"}))?),
        steps: if prefix { vec![SplitStep::FirstMark] } else { Vec::new() },
        alphabet: Alphabet::SentencePiece,
        strips_first_space: prefix,
    })
}

/// A token of a vocabulary of words as its folder writes it: the file marks the beginnings of words, the folder the pieces that go on.
fn marked(text: &str, kind: TokenKind) -> String {
    match text.strip_prefix(SPACE_MARK) {
        Some(word) => word.to_owned(),
        None if kind == TokenKind::Control || text.starts_with('[') && text.ends_with(']') => text.to_owned(),
        None => format!("{CONTINUING}{text}"),
    }
}

/// What the converter takes away from pieces that go on a word.
pub(crate) const CONTINUING: &str = "##";

/// A word with more characters is unknown; the file does not say how many, and every published model has this.
pub(crate) const LONGEST_WORD: usize = 100;

/// Whether a vocabulary of words was made without making capitals small. The file does not say; a vocabulary that has them was.
pub(crate) fn keeps_capitals(entries: &[Entry]) -> bool {
    let has_capital = |entry: &&Entry| entry.text.bytes().any(|byte| byte.is_ascii_uppercase());
    // `[UNK]` and `[unused7]` are not of the text.
    let of_text = |entry: &&Entry| entry.kind == TokenKind::Ordinary && !entry.text.starts_with('[');
    entries.iter().filter(of_text).any(|entry| has_capital(&entry))
}

fn words(source: &GgufVocabulary, entries: Vec<Entry>, added: Vec<(u32, AddedToken)>) -> Result<Parts, Error> {
    let id = |what: &str, stated: Option<u32>, text: &str| {
        let named = || entries.iter().find(|entry| entry.text == text).map(|entry| entry.id);
        let id = stated.or_else(named).filter(|id| (*id as usize) < entries.len());
        id.ok_or_else(|| {
            Error::tokenizer(format!("{PLACE}.{what}"), format!("an id below {}, or a token {text}", entries.len()), "neither")
        })
    };
    let unknown = id("unknown_token_id", source.unknown, "[UNK]")?;
    let start = id("cls_token_id", source.cls.or(source.bos), "[CLS]")?;
    let separator = id("seperator_token_id", source.sep.or(source.eos), "[SEP]")?;
    let lowercase = !keeps_capitals(&entries);
    let normalizer =
        json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": lowercase});
    let mut framing = Framing::of_encoder(start, separator);
    framing.texts = special_texts(source);
    Ok(Parts {
        place: PLACE.to_owned(),
        pieces: Pieces::Longest(WordOptions {
            unk_token: entries[unknown as usize].text.clone(),
            continuing_prefix: CONTINUING.to_owned(),
            most_characters: LONGEST_WORD,
        }),
        framing,
        entries,
        added,
        normalizer: Some(library(normalizer)?),
        steps: vec![SplitStep::Library(PreTokenizerWrapper::BertPreTokenizer(BertPreTokenizer))],
        alphabet: Alphabet::Words,
        strips_first_space: true,
    })
}

/// Merges that give the same ids as SentencePiece's "best score first": each way to cut a piece into two pieces,
/// ordered by the score of the whole, then longer left parts first.
///
/// Only ordinary pieces take part: text must not merge into control or byte tokens. All parts and wholes are tokens by construction.
///
/// Source: the order of `transformers`' conversion of SentencePiece models.
pub(crate) fn merges_from_scores(entries: &[Entry], scores: &[f32]) -> Merges {
    struct Cut<'a> {
        score: f32,
        left_characters: usize,
        right_characters: usize,
        /// Of the whole among `entries`, then the ids of the parts: the order where all else is equal.
        order: (usize, u32, u32),
        left: &'a str,
        right: &'a str,
    }
    let ordinary = |entry: &&Entry| entry.kind == TokenKind::Ordinary;
    let ids: AHashMap<&str, u32> = entries.iter().filter(ordinary).map(|entry| (entry.text.as_str(), entry.id)).collect();
    let mut cuts = Vec::new();
    for (at_entry, entry) in entries.iter().enumerate().filter(|(_, entry)| ordinary(entry)) {
        let characters = entry.text.chars().count();
        for (left_characters, (at, _)) in entry.text.char_indices().enumerate().skip(1) {
            let (left, right) = entry.text.split_at(at);
            if let (Some(left_id), Some(right_id)) = (ids.get(left), ids.get(right)) {
                cuts.push(Cut {
                    score: scores[entry.id as usize],
                    left_characters,
                    right_characters: characters - left_characters,
                    order: (at_entry, *left_id, *right_id),
                    left,
                    right,
                });
            }
        }
    }
    cuts.sort_unstable_by(|a, b| {
        b.score
            .partial_cmp(&a.score)
            .expect("scores were checked to be finite")
            .then(b.left_characters.cmp(&a.left_characters))
            .then(b.right_characters.cmp(&a.right_characters))
            .then(a.order.cmp(&b.order))
    });
    cuts.into_iter().map(|cut| (cut.left.to_owned(), cut.right.to_owned())).collect()
}

fn framing(source: &GgufVocabulary, entries: &[Entry], adds_bos_by_default: bool) -> Result<Framing, Error> {
    let mut framing = Framing { bos: source.bos, eos: source.eos, ..Framing::default() };
    for (key, id) in named_ids(source) {
        if id as usize >= entries.len() {
            return Err(Error::tokenizer(format!("{PLACE}: id of `{key}`"), format!("an id below {}", entries.len()), id.to_string()));
        }
    }
    framing.texts = special_texts(source);
    if source.add_bos.unwrap_or(adds_bos_by_default) {
        framing.prefix.extend(source.bos);
    }
    if source.add_eos == Some(true) {
        framing.suffix.extend(source.eos);
    }
    framing.ends.extend(source.eos);
    framing.ends.extend(source.eot.iter().chain(&source.eom));
    framing.ends.extend(
        entries.iter().filter(|entry| entry.kind == TokenKind::Control && ENDS.contains(&entry.text.as_str())).map(|entry| entry.id),
    );
    Ok(framing)
}

fn named_ids(source: &GgufVocabulary) -> impl Iterator<Item = (&'static str, u32)> {
    [("bos_token", source.bos), ("eos_token", source.eos), ("unk_token", source.unknown), ("pad_token", source.padding)]
        .into_iter()
        .filter_map(|(key, id)| Some((key, id?)))
}

/// `bos_token`, `eos_token`, … as templates see them.
pub(crate) fn special_texts(source: &GgufVocabulary) -> Map<String, Value> {
    named_ids(source)
        .filter_map(|(key, id)| {
            let text = source.tokens.get(id as usize)?;
            Some((key.to_owned(), Value::from(text.clone())))
        })
        .collect()
}

fn library(value: Value) -> Result<NormalizerWrapper, Error> {
    serde_json::from_value(value).map_err(|error| Error::tokenizer("normalizer", "a normalizer", error.to_string()))
}
