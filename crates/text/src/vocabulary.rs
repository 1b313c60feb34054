//! What each id stands for: its bytes and its kind, and how the ids of a reading are made from them.

use std::collections::{HashMap, HashSet};

use tokenizers::models::bpe::{BPE, BpeTrainer, Merges, Vocab};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{AddedToken, AddedVocabulary, Model, ModelWrapper, NormalizerWrapper};

use crate::alphabet::{Alphabet, byte_of_fallback};
use crate::error::{Error, quoted};
use crate::parts::{MergeOrigin, Pieces};

/// What sort of token an id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text, made by merging.
    Ordinary,
    /// One byte of a character that has no piece of its own.
    Byte,
    /// Steers the model; written by templates, never by content: `<|im_end|>`, BOS, EOS.
    Control,
    /// Text that is always one token: runs of line breaks in Gemma, `<tool_call>` in Qwen.
    UserDefined,
    /// A row without a token (padding of the vocabulary).
    Unused,
}

/// An entry as the file lists it.
pub(crate) struct Entry {
    pub(crate) id: u32,
    pub(crate) text: String,
    pub(crate) kind: TokenKind,
}

/// Options of byte-pair merging.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeOptions {
    pub(crate) unk_token: Option<String>,
    pub(crate) fuse_unk: bool,
    pub(crate) byte_fallback: bool,
    pub(crate) ignore_merges: bool,
}

/// Options of cutting words into the longest pieces.
#[derive(Debug, Clone)]
pub(crate) struct WordOptions {
    /// What a word becomes that cannot be cut into pieces, or has too many characters.
    pub(crate) unk_token: String,
    /// Stands before pieces that do not begin a word.
    pub(crate) continuing_prefix: String,
    /// A word with more characters is unknown.
    pub(crate) most_characters: usize,
}

/// Longest word that is cut into pieces. Published models have 100, or 200; a word of `n` characters can take `n² / 2` look-ups.
pub(crate) const MOST_CHARACTERS: usize = 512;

/// All ids with their bytes and kinds.
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// Id `i` stands for `bytes[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    kinds: Vec<TokenKind>,
    names: HashMap<u32, String>,
}

/// Ids above this are not credible and would only cost memory: the largest vocabularies have 262 144.
const MAX_IDS: u32 = 4_000_000;

impl Vocabulary {
    /// Collects entries; ids may be missing (they become unused) but not repeated.
    ///
    /// Where pieces inside a word have a `continuing_prefix`, the bytes of all others begin with a space, which the text need not have.
    pub(crate) fn new(entries: &[Entry], alphabet: Alphabet, continuing_prefix: Option<&str>, place: &str) -> Result<Self, Error> {
        let Some(last) = entries.iter().map(|entry| entry.id).max() else {
            return Err(Error::tokenizer(place, "at least one token", "none"));
        };
        if last >= MAX_IDS {
            return Err(Error::tokenizer(place, format!("ids below {MAX_IDS}"), format!("id {last}")));
        }
        let mut by_id: Vec<Option<&Entry>> = vec![None; last as usize + 1];
        for entry in entries {
            if let Some(other) = by_id[entry.id as usize].replace(entry) {
                return Err(Error::tokenizer(
                    place,
                    "one token for an id",
                    format!("id {} for {} and {}", entry.id, quoted(&other.text), quoted(&entry.text)),
                ));
            }
        }
        let mut vocabulary = Self { bytes: Vec::new(), starts: vec![0], kinds: Vec::with_capacity(by_id.len()), names: HashMap::new() };
        for (id, entry) in (0_u32..).zip(&by_id) {
            let kind = entry.map_or(TokenKind::Unused, |entry| entry.kind);
            if let Some(entry) = entry {
                match kind {
                    TokenKind::Unused => {}
                    _ if let Some(prefix) = continuing_prefix => {
                        let rest = entry.text.strip_prefix(prefix).filter(|_| kind == TokenKind::Ordinary);
                        match rest {
                            Some(rest) => vocabulary.bytes.extend_from_slice(rest.as_bytes()),
                            None => vocabulary.bytes.extend([b" ", entry.text.as_bytes()].concat()),
                        }
                    }
                    TokenKind::UserDefined if alphabet == Alphabet::SentencePiece => {
                        vocabulary.bytes.extend(alphabet.bytes_of(&entry.text));
                    }
                    TokenKind::Control | TokenKind::UserDefined => {
                        vocabulary.bytes.extend_from_slice(entry.text.as_bytes());
                    }
                    TokenKind::Ordinary => vocabulary.bytes.extend(alphabet.bytes_of(&entry.text)),
                    TokenKind::Byte => {
                        let byte = byte_of_fallback(&entry.text).ok_or_else(|| {
                            Error::tokenizer(place, "a byte token such as `<0x0A>`", format!("{} (id {id})", quoted(&entry.text)))
                        })?;
                        vocabulary.bytes.push(byte);
                    }
                }
                if continuing_prefix.is_some() || matches!(kind, TokenKind::Control | TokenKind::Unused) {
                    vocabulary.names.insert(id, entry.text.clone());
                }
            }
            vocabulary.starts.push(vocabulary.bytes.len());
            vocabulary.kinds.push(kind);
        }
        Ok(vocabulary)
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        match (self.starts.get(id), self.starts.get(id + 1)) {
            (Some(&start), Some(&end)) => &self.bytes[start..end],
            _ => &[],
        }
    }

    pub(crate) fn kind(&self, id: u32) -> TokenKind {
        self.kinds.get(id as usize).copied().unwrap_or(TokenKind::Unused)
    }

    /// The text of a control or unused entry; of a vocabulary of words, the text of any entry.
    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(crate) fn control_ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.kinds).filter(|(_, kind)| **kind == TokenKind::Control).map(|(id, _)| id)
    }
}

/// Builds the library's model, after checking what it would panic on.
pub(crate) fn library_model(entries: &[Entry], pieces: Pieces, place: &str) -> Result<ModelWrapper, Error> {
    match pieces {
        Pieces::Merged { merges, origin, options } => merging_model(entries, merges, origin, &options, place).map(ModelWrapper::BPE),
        Pieces::Longest(options) => word_model(entries, options, place).map(ModelWrapper::WordPiece),
    }
}

/// The tokens that text can become: control tokens of more than one character are left out, so that no text can become one.
fn reachable(entries: &[Entry], unk_token: Option<&str>, place: &str) -> Result<Vocab, Error> {
    let is_unk = |text: &str| unk_token == Some(text);
    let vocab: Vocab = entries
        .iter()
        .filter(|entry| match entry.kind {
            TokenKind::Control => entry.text.chars().count() < 2 || is_unk(&entry.text),
            TokenKind::Unused => false,
            _ => true,
        })
        .map(|entry| (entry.text.clone(), entry.id))
        .collect();
    match unk_token {
        Some(unk) if !vocab.contains_key(unk) => {
            Err(Error::tokenizer(format!("{place}.unk_token"), "a token of the vocabulary", quoted(unk)))
        }
        _ => Ok(vocab),
    }
}

fn word_model(entries: &[Entry], options: WordOptions, place: &str) -> Result<WordPiece, Error> {
    let vocab = reachable(entries, Some(&options.unk_token), place)?;
    WordPiece::builder()
        .vocab(vocab)
        .unk_token(options.unk_token)
        .continuing_subword_prefix(options.continuing_prefix)
        .max_input_chars_per_word(options.most_characters)
        .build()
        .map_err(|error| Error::tokenizer(place, "a usable WordPiece model", error.to_string()))
}

fn merging_model(entries: &[Entry], merges: Merges, origin: MergeOrigin, options: &MergeOptions, place: &str) -> Result<BPE, Error> {
    let vocab = reachable(entries, options.unk_token.as_deref(), place)?;
    let merges = match origin {
        MergeOrigin::List => usable(merges, entries, &vocab, place)?,
        MergeOrigin::Scores => merges,
    };
    BPE::builder()
        .vocab_and_merges(vocab, merges)
        .unk_token_if(options.unk_token.clone())
        .fuse_unk(options.fuse_unk)
        .byte_fallback(options.byte_fallback)
        .ignore_merges(options.ignore_merges)
        .build()
        .map_err(|error| Error::tokenizer(place, "a usable byte-pair model", error.to_string()))
}

/// The listed merges without those into or out of a control token: text must not become control, and control never merges.
fn usable(mut merges: Merges, entries: &[Entry], vocab: &Vocab, place: &str) -> Result<Merges, Error> {
    let control: HashSet<&str> = entries.iter().filter(|entry| entry.kind == TokenKind::Control).map(|entry| entry.text.as_str()).collect();
    let mut whole = String::new();
    let mut rank = 0_usize;
    let mut unknown = None;
    merges.retain(|(left, right)| {
        whole.clear();
        whole.extend([left.as_str(), right]);
        let missing = [left, right, &whole].into_iter().find(|part| !vocab.contains_key(*part));
        if let Some(part) = missing.filter(|part| unknown.is_none() && !control.contains(part.as_str())) {
            unknown = Some((rank, part.clone()));
        }
        rank += 1;
        missing.is_none()
    });
    match unknown {
        None => Ok(merges),
        Some((rank, part)) => Err(Error::tokenizer(
            format!("{place}.merges[{rank}]"),
            "parts and whole that are tokens of the vocabulary",
            format!("{} which is none", quoted(&part)),
        )),
    }
}

/// Sets the unknown token only when there is one; the library's builder takes no option.
trait UnkTokenIf {
    fn unk_token_if(self, token: Option<String>) -> Self;
}

impl UnkTokenIf for tokenizers::models::bpe::BpeBuilder {
    fn unk_token_if(self, token: Option<String>) -> Self {
        match token {
            Some(token) => self.unk_token(token),
            None => self,
        }
    }
}

/// The two readings of added tokens: all of them, and all but the control tokens.
pub(crate) struct Readings {
    pub(crate) parse: AddedVocabulary,
    pub(crate) literal: AddedVocabulary,
}

/// Enters the added tokens with the ids that the file states.
pub(crate) fn readings(added: Vec<(u32, AddedToken)>, normalizer: Option<&NormalizerWrapper>, place: &str) -> Result<Readings, Error> {
    let mut ids = HashMap::new();
    for (id, token) in &added {
        if token.content.is_empty() {
            return Err(Error::tokenizer(place, "added tokens with a text", format!("an empty one (id {id})")));
        }
        if let Some(other) = ids.insert(token.content.clone(), *id)
            && other != *id
        {
            return Err(Error::tokenizer(
                place,
                "one id for an added token",
                format!("ids {other} and {id} for {}", quoted(&token.content)),
            ));
        }
    }
    let mut parse = AddedVocabulary::new();
    parse
        .add_tokens(added.into_iter().map(|(_, token)| token), &StatedIds(ids), normalizer)
        .map_err(|error| Error::tokenizer(place, "usable added tokens", error.to_string()))?;
    let mut literal = parse.clone();
    literal.set_encode_special_tokens(true);
    Ok(Readings { parse, literal })
}

/// Tells the library which id each added token has; it would number unknown ones itself.
struct StatedIds(HashMap<String, u32>);

impl Model for StatedIds {
    type Trainer = BpeTrainer;

    fn tokenize(&self, _: &str) -> tokenizers::Result<Vec<tokenizers::Token>> {
        Ok(Vec::new())
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.get(token).copied()
    }

    fn id_to_token(&self, _: u32) -> Option<String> {
        None
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        self.0.clone()
    }

    fn get_vocab_size(&self) -> usize {
        self.0.len()
    }

    fn save(&self, _: &std::path::Path, _: Option<&str>) -> tokenizers::Result<Vec<std::path::PathBuf>> {
        Ok(Vec::new())
    }

    fn get_trainer(&self) -> BpeTrainer {
        BpeTrainer::default()
    }
}
