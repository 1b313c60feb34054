//! Writing a `tokenizer.json` as the `tokenizer.*` metadata of a GGUF file.
//!
//! GGUF says less than `tokenizer.json`: splitting is a name out of a table, and an added token has no options. What cannot be said is
//! refused, and what was said is read again and held against the original on texts of many kinds.

use std::collections::{BTreeSet, HashMap};

use tokenizers::models::bpe::Merges;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::alphabet::{Alphabet, SPACE_MARK};
use crate::error::{Error, quoted};
use crate::framing::Framing;
use crate::from_gguf::{CONTINUING, LONGEST_WORD, keeps_capitals, merges_from_scores};
use crate::parts::{Parts, Pieces};
use crate::source::{GgufVocabulary, JsonFiles, TextSource, token_type};
use crate::split::{PRE_RULES, SplitStep};
use crate::tokenizer::{Specials, Tokenizer};
use crate::vocabulary::{Entry, MergeOptions, TokenKind, WordOptions};

/// The metadata that give the same ids as these files.
///
/// - `rows`  of the embedding table; ids without a token are filled up to it, as converters do
///
/// # Errors
///
/// Those of [`Tokenizer::from_source`]; [`Error::Tokenizer`] where GGUF has no words for an option, or the two read a text differently.
pub fn gguf_vocabulary(files: &JsonFiles, rows: usize) -> Result<GgufVocabulary, Error> {
    let original = Tokenizer::from_source(&TextSource::Json(files.clone()))?;
    original.check_fits(rows)?;
    let parts = crate::from_json::read(files)?;
    if let Some((_, token)) = parts.added.iter().find(|(_, token)| token.lstrip || token.rstrip || token.single_word) {
        return Err(cannot(
            "added_tokens",
            "tokens without `lstrip`, `rstrip` and `single_word`, for which GGUF has no keys",
            &quoted(&token.content),
        ));
    }
    let mut written = GgufVocabulary { templates: files.templates.clone(), ..GgufVocabulary::default() };
    list(&parts, rows, &mut written);
    frame(&parts, &mut written)?;
    let candidates = match (&parts.pieces, parts.alphabet) {
        (Pieces::Longest(options), _) => {
            words(&parts, options, &mut written)?;
            vec![written]
        }
        (Pieces::Merged { merges, options, .. }, Alphabet::ByteLevel) => {
            byte_level(&parts, merges, options, &mut written)?;
            vec![written]
        }
        (Pieces::Merged { merges, .. }, _) => {
            sentence_piece(&parts, merges, &mut written)?;
            // Several steps can put the space in front; which of them do is seen by trying.
            [true, false].map(|prefix| GgufVocabulary { add_space_prefix: Some(prefix), ..written.clone() }).into()
        }
    };
    let mut difference = None;
    for candidate in candidates {
        match first_difference(&original, &candidate)? {
            None => return Ok(candidate),
            found => difference = difference.or(found),
        }
    }
    let text = difference.unwrap_or_default();
    Err(cannot(
        "model",
        "a tokenizer that GGUF metadata can describe",
        &format!("one that reads {} otherwise than its description", quoted(&text)),
    ))
}

fn cannot(key: &str, wanted: &str, found: &str) -> Error {
    Error::tokenizer(format!("tokenizer.json: {key}"), format!("{wanted}, to be written as GGUF"), found)
}

/// Tokens and their kinds by id.
fn list(parts: &Parts, rows: usize, written: &mut GgufVocabulary) {
    written.tokens = (0..rows).map(|id| format!("[PAD{id}]")).collect();
    written.token_types = vec![token_type::UNUSED; rows];
    for Entry { id, text, kind } in &parts.entries {
        // Converters write the marks of such tokens as spaces, and readers turn them back.
        let spaced = parts.alphabet == Alphabet::SentencePiece && *kind == TokenKind::UserDefined;
        written.tokens[*id as usize] = if spaced { text.replace(SPACE_MARK, " ") } else { text.clone() };
        written.token_types[*id as usize] = match kind {
            TokenKind::Ordinary => token_type::NORMAL,
            TokenKind::Byte => token_type::BYTE,
            TokenKind::Control => token_type::CONTROL,
            TokenKind::UserDefined => token_type::USER_DEFINED,
            TokenKind::Unused => token_type::UNUSED,
        };
    }
}

/// What stands around a text, and the ids with a name.
fn frame(parts: &Parts, written: &mut GgufVocabulary) -> Result<(), Error> {
    let framing = &parts.framing;
    let named = |key: &str| {
        let text = framing.texts.get(key)?.as_str()?;
        parts.entries.iter().find(|entry| entry.text == text).map(|entry| entry.id)
    };
    if parts.alphabet == Alphabet::Words {
        return frame_of_encoder(framing, named("pad_token"), written);
    }
    (written.bos, written.eos) = (framing.bos, framing.eos);
    (written.unknown, written.padding) = (named("unk_token"), named("pad_token"));
    written.eot = framing.ends.iter().copied().find(|end| Some(*end) != framing.eos);
    for (what, ids, one) in [("before", &framing.prefix, framing.bos), ("after", &framing.suffix, framing.eos)] {
        if !(ids.is_empty() || ids.len() == 1 && ids.first() == one.as_ref()) {
            return Err(cannot("post_processor", &format!("nothing, or one special token, {what} a text"), &format!("the ids {ids:?}")));
        }
    }
    written.add_bos = Some(!framing.prefix.is_empty());
    written.add_eos = Some(!framing.suffix.is_empty());
    Ok(())
}

/// One token before a text and one after it, and two texts joined as encoders join them: GGUF knows no other way.
fn frame_of_encoder(framing: &Framing, padding: Option<u32>, written: &mut GgufVocabulary) -> Result<(), Error> {
    let ([cls], [sep]) = (&framing.prefix[..], &framing.suffix[..]) else {
        let found = format!("the ids {:?} and {:?}", framing.prefix, framing.suffix);
        return Err(cannot("post_processor", "one special token before a text and one after it", &found));
    };
    let usual = Framing::of_encoder(*cls, *sep);
    if framing.types != usual.types || !framing.pair.is_empty() && framing.pair != usual.pair {
        return Err(cannot("post_processor", "`[CLS] A [SEP] B [SEP]`, `B [SEP]` with type 1", "another template"));
    }
    (written.cls, written.sep, written.padding) = (Some(*cls), Some(*sep), padding);
    Ok(())
}

fn byte_level(parts: &Parts, merges: &Merges, options: &MergeOptions, written: &mut GgufVocabulary) -> Result<(), Error> {
    let nfc = match &parts.normalizer {
        None => false,
        Some(NormalizerWrapper::NFC(_)) => true,
        Some(_) => return Err(cannot("normalizer", "null or `NFC`", "another one")),
    };
    let mut patterns = Vec::new();
    for step in &parts.steps {
        match step {
            SplitStep::Prefix => written.add_space_prefix = Some(true),
            SplitStep::Pattern { regex, behavior: SplitDelimiterBehavior::Isolated, invert: false } => patterns.push(regex.as_str()),
            SplitStep::Library(PreTokenizerWrapper::Digits(digits)) if digits.individual_digits => patterns.push(r"\p{N}"),
            SplitStep::Bytes => {}
            _ => return Err(cannot("pre_tokenizer", "steps of the table of splitting rules", "another step")),
        }
    }
    let rule = PRE_RULES
        .iter()
        .find(|rule| rule.patterns == patterns && rule.ignore_merges == options.ignore_merges && rule.nfc == nfc)
        .ok_or_else(|| {
            let names = PRE_RULES.iter().map(|rule| quoted(rule.names[0])).collect::<Vec<_>>().join(", ");
            let found = format!("{} (NFC {nfc}, ignore_merges {})", quoted(&patterns.join("  ")), options.ignore_merges);
            cannot("pre_tokenizer", &format!("the splitting rule of one of {names}"), &found)
        })?;
    written.model = "gpt2".to_owned();
    written.pre = Some(rule.names[0].to_owned());
    written.merges = merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
    Ok(())
}

fn sentence_piece(parts: &Parts, merges: &Merges, written: &mut GgufVocabulary) -> Result<(), Error> {
    written.model = "llama".to_owned();
    let ids: HashMap<&str, u32> = parts.entries.iter().map(|entry| (entry.text.as_str(), entry.id)).collect();
    // The score of a piece is minus its place among the pieces that merging makes, best first.
    written.scores = vec![0.0; written.tokens.len()];
    let mut scored = BTreeSet::new();
    for (left, right) in merges {
        if let Some(id) = ids.get(format!("{left}{right}").as_str())
            && scored.insert(*id)
        {
            written.scores[*id as usize] = -(scored.len() as f32);
        }
    }
    let again = merges_from_scores(&parts.entries, &written.scores);
    if made(merges) != made(&again) || merges.len() != again.len() {
        return Err(cannot("model.merges", "merges in the order of scores of pieces", "merges in another order"));
    }
    Ok(())
}

/// Marks the beginnings of words instead of the pieces that go on. How text is normalised and split GGUF does not say: its readers do as
/// the first model of this kind did.
fn words(parts: &Parts, options: &WordOptions, written: &mut GgufVocabulary) -> Result<(), Error> {
    if options.continuing_prefix != CONTINUING {
        return Err(cannot("model.continuing_subword_prefix", "`##`", &quoted(&options.continuing_prefix)));
    }
    if options.most_characters != LONGEST_WORD {
        let wanted = LONGEST_WORD.to_string();
        return Err(cannot("model.max_input_chars_per_word", &wanted, &options.most_characters.to_string()));
    }
    let is_usual = |normalizer: &BertNormalizer| {
        normalizer.clean_text && normalizer.handle_chinese_chars && normalizer.lowercase && normalizer.strip_accents != Some(false)
    };
    let normalised = matches!(&parts.normalizer, Some(NormalizerWrapper::BertNormalizer(normalizer)) if is_usual(normalizer));
    if !normalised || keeps_capitals(&parts.entries) {
        return Err(cannot("normalizer", "`BertNormalizer` with all its steps, capitals made small", "another one"));
    }
    if !matches!(parts.steps[..], [SplitStep::Library(PreTokenizerWrapper::BertPreTokenizer(_))]) {
        return Err(cannot("pre_tokenizer", "`BertPreTokenizer`", "another one"));
    }
    for Entry { id, text, kind } in parts.entries.iter().filter(|entry| entry.kind != TokenKind::Control) {
        written.tokens[*id as usize] = match text.strip_prefix(CONTINUING) {
            Some(rest) if *kind == TokenKind::Ordinary => rest.to_owned(),
            _ => format!("{SPACE_MARK}{text}"),
        };
    }
    written.model = "bert".to_owned();
    written.unknown = parts.entries.iter().find(|entry| entry.text == options.unk_token).map(|entry| entry.id);
    Ok(())
}

/// The pieces that merges make, each where it is made first.
fn made(merges: &Merges) -> Vec<String> {
    let mut seen = BTreeSet::new();
    merges.iter().map(|(left, right)| format!("{left}{right}")).filter(|piece| seen.insert(piece.clone())).collect()
}

/// Texts on which tokenizers are known to differ.
const PROBES: &[&str] = &[
    "Hello world",
    " hello  world ",
    "   three\n\n\tlines\r\n  x",
    "I'VE we're don't 'RE",
    "3333+777 501 1234567 ½ ٣",
    "x != y and a.b == c(); // 中文",
    "你好，世界。Việt Nam ñandú Straße",
    "깰 각 👩‍👩‍👧 😀 é e\u{301} ﬁ",
    "\u{2029} ꏤ\u{feff}\u{a0}\u{3000}",
    "▁ Ġ <0x0A> <s> </s> <unk> <|im_end|> [MASK]",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
];

/// A text that the description reads otherwise than the original, if one is found.
fn first_difference(original: &Tokenizer, written: &GgufVocabulary) -> Result<Option<String>, Error> {
    let described = Tokenizer::from_source(&TextSource::Gguf(written.clone()))?;
    if original.end_ids().iter().any(|id| !described.end_ids().contains(id)) {
        return Err(cannot("eos_token", "at most two ends of a text beside the known ones", &format!("the ids {:?}", original.end_ids())));
    }
    let specials: Vec<String> = (0..original.vocab_size() as u32)
        .filter(|id| original.token_kind(*id) == TokenKind::Control)
        .map(|id| original.token_name(id))
        .collect();
    let joined = format!("a{}b", specials.iter().take(50).map(|text| format!("{text} x")).collect::<String>());
    // Where a space goes in front, old folders put one after each control token as well, and metadata cannot say so (README,
    // known differences): there, only content is compared.
    let content_only = written.add_space_prefix == Some(true) && written.model == "llama";
    let readings: &[Specials] = if content_only { &[Specials::Literal] } else { &[Specials::Parse, Specials::Literal] };
    for text in PROBES.iter().copied().chain([joined.as_str()]) {
        for specials in readings {
            if original.encode_prompt(text, *specials)? != described.encode_prompt(text, *specials)? {
                return Ok(Some(text.to_owned()));
            }
        }
    }
    Ok(None)
}
