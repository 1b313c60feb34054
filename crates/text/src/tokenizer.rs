//! The tokenizer: text to ids and back, byte for byte.

use std::ops::Range;

use glassbox_checkpoint::Checkpoint;
use serde_json::{Map, Value};
use tokenizers::{AddedVocabulary, Model, ModelWrapper, NormalizerWrapper, OffsetType};

use crate::alphabet::Alphabet;
use crate::error::{Error, quoted};
use crate::framing::{FramePart, Framing};
use crate::parts::{Parts, Pieces};
use crate::source::TextSource;
use crate::special::SpecialMatcher;
use crate::split::SplitStep;
use crate::vocabulary::{TokenKind, Vocabulary, library_model, readings};

/// Largest text of one call, in bytes; the library keeps some 50 bytes for each.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// How the texts of control tokens are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// `<|im_end|>` is the control token: for text that a template or a trusted author wrote.
    Parse,
    /// `<|im_end|>` is ten characters like any others: for content.
    ///
    /// Added tokens that are not control tokens (runs of spaces in Gemma, `<tool_call>` in Qwen) are still one token,
    /// as in `transformers` with `split_special_tokens=True`.
    Literal,
}

/// The ids of a text with the bytes that each covers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// `[token]` ids.
    pub ids: Vec<u32>,
    /// `[token]` byte ranges in the text, in rising order.
    ///
    /// They are disjoint, and they cover the text. Two exceptions: a token for which the text has no byte (a space that
    /// the tokenizer puts in front) is empty, and all tokens of a character that normalisation rewrote carry the whole
    /// range of that character. A vocabulary of words ([`Alphabet::Words`]) drops white space and control characters: there,
    /// no token covers them.
    pub ranges: Vec<Range<usize>>,
}

/// Turns text into ids and ids into bytes, as the model's own tokenizer does.
///
/// Made from `tokenizer.json` or from GGUF metadata; ids equal those of the `tokenizers` and `transformers` libraries.
pub struct Tokenizer {
    alphabet: Alphabet,
    strips_first_space: bool,
    normalizer: Option<NormalizerWrapper>,
    steps: Vec<SplitStep>,
    model: ModelWrapper,
    parse: AddedVocabulary,
    literal: AddedVocabulary,
    vocabulary: Vocabulary,
    pub(crate) specials: SpecialMatcher,
    pub(crate) framing: Framing,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("alphabet", &self.alphabet)
            .field("vocab_size", &self.vocab_size())
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Builds the tokenizer of a checkpoint.
    ///
    /// # Errors
    /// [`Error::NoTokenizer`], [`Error::Checkpoint`], and those of [`Tokenizer::from_source`].
    pub fn open(checkpoint: &Checkpoint) -> Result<Self, Error> {
        Self::from_source(&TextSource::open(checkpoint)?)
    }

    /// Builds the tokenizer from files that were read before.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] or [`Error::UnknownPre`] for anything in the files that would be ignored, guessed or make
    /// the library panic.
    pub fn from_source(source: &TextSource) -> Result<Self, Error> {
        match source {
            TextSource::Json(files) => Self::assemble(crate::from_json::read(files)?),
            TextSource::Gguf(metadata) => Self::assemble(crate::from_gguf::read(metadata)?),
        }
    }

    fn assemble(parts: Parts) -> Result<Self, Error> {
        let mut framing = parts.framing;
        framing.ends.sort_unstable();
        framing.ends.dedup();
        let continuing_prefix = match &parts.pieces {
            Pieces::Merged { .. } => None,
            Pieces::Longest(options) => Some(options.continuing_prefix.as_str()),
        };
        let vocabulary = Vocabulary::new(&parts.entries, parts.alphabet, continuing_prefix, &parts.place)?;
        let known = |id: &u32| (*id as usize) < vocabulary.len();
        let of_pair = framing.pair.iter().flat_map(FramePart::special_ids);
        for id in framing.prefix.iter().chain(&framing.suffix).chain(&framing.bos).chain(&framing.eos).chain(of_pair) {
            if !known(id) {
                return Err(Error::tokenizer(parts.place, format!("BOS and EOS ids below {}", vocabulary.len()), id.to_string()));
            }
        }
        framing.ends.retain(known);
        let model = library_model(&parts.entries, parts.pieces, &parts.place)?;
        let specials = SpecialMatcher::new(&parts.added)?;
        let place = format!("{}: added tokens", parts.place);
        let readings = readings(parts.added, parts.normalizer.as_ref(), &place)?;
        Ok(Self {
            alphabet: parts.alphabet,
            strips_first_space: parts.strips_first_space,
            normalizer: parts.normalizer,
            steps: parts.steps,
            model,
            parse: readings.parse,
            literal: readings.literal,
            vocabulary,
            specials,
            framing,
        })
    }

    /// The ids of `text` alone: nothing is put before or after it.
    ///
    /// # Errors
    /// [`Error::TextTooLong`] above [`MAX_TEXT_BYTES`]; [`Error::TextTooHard`] when the splitting rule gives up, which
    /// it does for some 900 000 white-space characters in a row.
    pub fn encode(&self, text: &str, specials: Specials) -> Result<Vec<u32>, Error> {
        Ok(self.encode_at(text, specials, true)?.ids)
    }

    /// Like [`Tokenizer::encode`], with the bytes of the text that each token covers.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_with_ranges(&self, text: &str, specials: Specials) -> Result<Encoded, Error> {
        self.encode_at(text, specials, true)
    }

    /// The ids of `text` as a whole prompt: what the tokenizer puts before a text (BOS, if the model wants one) comes
    /// first, unless the text begins with it already.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_prompt(&self, text: &str, specials: Specials) -> Result<Vec<u32>, Error> {
        let ids = self.encode(text, specials)?;
        let mut framed = self.prefix_missing_from(&ids).to_vec();
        framed.extend(ids);
        Ok(framed)
    }

    /// What has to be put before `ids` so that they begin as the model wants; empty when they do.
    pub(crate) fn prefix_missing_from(&self, ids: &[u32]) -> &[u32] {
        if ids.starts_with(&self.framing.prefix) { &[] } else { &self.framing.prefix }
    }

    pub(crate) fn encode_at(&self, text: &str, specials: Specials, at_start: bool) -> Result<Encoded, Error> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(Error::TextTooLong { bytes: text.len(), limit: MAX_TEXT_BYTES });
        }
        if text.is_empty() {
            return Ok(Encoded::default());
        }
        let added = match specials {
            Specials::Parse => &self.parse,
            Specials::Literal => &self.literal,
        };
        let library = |error: tokenizers::Error| Error::Library(error.to_string());
        let mut pieces = added.extract_and_normalize(self.normalizer.as_ref(), text);
        for step in &self.steps {
            step.apply(&mut pieces, at_start, text.len())?;
        }
        pieces.tokenize(|piece| self.model.tokenize(piece.get())).map_err(library)?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::Byte).map_err(library)?;
        let ids = encoding.get_ids().to_vec();
        let ranges = self.exact_ranges(text, &ids, encoding.get_offsets());
        Ok(Encoded { ids, ranges })
    }

    /// Sharpens the library's ranges, which for a part of a character span the whole character, and closes gaps where
    /// normalisation dropped characters.
    fn exact_ranges(&self, text: &str, ids: &[u32], coarse: &[(usize, usize)]) -> Vec<Range<usize>> {
        if self.alphabet == Alphabet::Words {
            return coarse.iter().map(|&(start, end)| start.min(text.len())..end.min(text.len()).max(start)).collect();
        }
        let text = text.as_bytes();
        let mut cursor = 0;
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(ids.len());
        for (&id, &(start, end)) in ids.iter().zip(coarse) {
            let (start, end) = (start.min(text.len()), end.min(text.len()).max(start));
            let kind = self.vocabulary.kind(id);
            let range = if matches!(kind, TokenKind::Control | TokenKind::UserDefined) {
                start..end // may cover white space that the token swallows
            } else {
                let bytes = self.vocabulary.bytes(id);
                let from = cursor.max(start); // beyond the start: inside a character
                let fits = |bytes: &[u8]| self.covered(&text[from..end.max(from)], bytes).map(|length| from..from + length);
                let without_prefix = || bytes.strip_prefix(b" ").filter(|_| from == start).and_then(fits);
                fits(bytes).or_else(without_prefix).unwrap_or(start..end)
            };
            if range.start > cursor {
                extend(&mut ranges, cursor, range.start);
            }
            cursor = cursor.max(range.end);
            ranges.push(range);
        }
        extend(&mut ranges, cursor, text.len());
        ranges
    }

    /// How many bytes of `text` the token bytes are; `None` if `text` does not begin with them. A `▁` in the text of a
    /// SentencePiece model is read as a space.
    fn covered(&self, text: &[u8], token: &[u8]) -> Option<usize> {
        const MARK: &[u8] = "\u{2581}".as_bytes();
        let mut rest = text;
        for byte in token {
            rest = if *byte == b' ' && self.alphabet == Alphabet::SentencePiece && rest.starts_with(MARK) {
                &rest[MARK.len()..]
            } else {
                rest.strip_prefix(std::slice::from_ref(byte))?
            };
        }
        Some(text.len() - rest.len())
    }

    /// The exact bytes of a token; empty for an id without a token. In a vocabulary of words, those that do not go on a word begin with a
    /// space.
    ///
    /// The bytes of a text's tokens in a row are the text, but for a space that the tokenizer put in front and for
    /// characters that it normalised.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.vocabulary.bytes(id)
    }

    /// What sort of token `id` is.
    pub fn token_kind(&self, id: u32) -> TokenKind {
        self.vocabulary.kind(id)
    }

    /// A name for people: the text of control and unused tokens, and of others their bytes as text; in a vocabulary of words, each as it
    /// is written there (`##ing`).
    pub fn token_name(&self, id: u32) -> String {
        match self.vocabulary.name(id) {
            Some(name) => name.to_owned(),
            None => String::from_utf8_lossy(self.vocabulary.bytes(id)).into_owned(),
        }
    }

    /// The id of a control token, by its text.
    pub fn control_id(&self, text: &str) -> Option<u32> {
        self.vocabulary.control_ids().find(|&id| self.vocabulary.name(id) == Some(text))
    }

    /// The text of `ids`, control tokens written out; bytes that are no UTF-8 become U+FFFD.
    ///
    /// One leading space is dropped where the tokenizer itself puts one in front. Nothing else is cleaned up: `hello !`
    /// keeps its space.
    pub fn decode(&self, ids: &[u32]) -> String {
        self.decode_where(ids, |_| true)
    }

    /// Like [`Tokenizer::decode`], without control tokens: the text that a reader wants to see.
    pub fn decode_content(&self, ids: &[u32]) -> String {
        self.decode_where(ids, |id| self.token_kind(id) != TokenKind::Control)
    }

    fn decode_where(&self, ids: &[u32], wanted: impl Fn(u32) -> bool) -> String {
        let bytes: Vec<u8> = ids.iter().filter(|id| wanted(**id)).flat_map(|id| self.vocabulary.bytes(*id)).copied().collect();
        let bytes = match bytes.strip_prefix(b" ") {
            Some(rest) if self.strips_first_space => rest,
            _ => &bytes,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Whether [`Tokenizer::decode`] drops one leading space.
    pub(crate) fn strips_first_space(&self) -> bool {
        self.strips_first_space
    }

    /// Number of ids, unused ones included: the largest id plus 1.
    pub fn vocab_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// Checks that every id has a row in an embedding table of `rows` rows.
    ///
    /// More rows than ids are usual: tables are padded to round sizes.
    ///
    /// # Errors
    /// [`Error::VocabularyTooLarge`].
    pub fn check_fits(&self, rows: usize) -> Result<(), Error> {
        if self.vocab_size() <= rows {
            return Ok(());
        }
        let id = u32::try_from(self.vocab_size() - 1).expect("ids are u32");
        Err(Error::VocabularyTooLarge { rows, id, token: quoted(&self.token_name(id)).trim_matches('`').to_owned() })
    }

    /// Checks that every id is in the vocabulary.
    ///
    /// # Errors
    /// [`Error::UnknownId`] with the first that is not.
    pub fn check_ids(&self, ids: &[u32]) -> Result<(), Error> {
        match ids.iter().find(|id| **id as usize >= self.vocab_size()) {
            None => Ok(()),
            Some(&id) => Err(Error::UnknownId { id, ids: self.vocab_size() }),
        }
    }

    /// The token that begins a text, if the model has one, whether or not it is added.
    pub fn bos_id(&self) -> Option<u32> {
        self.framing.bos
    }

    /// The token that ends a text.
    pub fn eos_id(&self) -> Option<u32> {
        self.framing.eos
    }

    /// All ids that end a generated text, rising: EOS and the ends of turns.
    pub fn end_ids(&self) -> &[u32] {
        &self.framing.ends
    }

    /// The ids that the tokenizer puts before a text: BOS, or nothing.
    pub fn prefix_ids(&self) -> &[u32] {
        &self.framing.prefix
    }

    /// The ids that the tokenizer puts after a text. A prompt is to be continued, so only [`Tokenizer::encode_framed`] adds them.
    pub fn suffix_ids(&self) -> &[u32] {
        &self.framing.suffix
    }

    /// How the vocabulary writes bytes.
    pub fn alphabet(&self) -> Alphabet {
        self.alphabet
    }

    /// `bos_token`, `eos_token`, … as chat templates see them.
    pub fn special_texts(&self) -> &Map<String, Value> {
        &self.framing.texts
    }
}

/// Gives the bytes `end..next`, which no token covers, to the last tokens that end at `end`.
fn extend(ranges: &mut [Range<usize>], end: usize, next: usize) {
    for range in ranges.iter_mut().rev().take_while(|range| range.end == end && range.start < range.end) {
        range.end = next;
    }
}
