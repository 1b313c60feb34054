//! Splitting text into words before byte-pair merging, and the table of GGUF splitting rules.

use fancy_regex::Regex;
use tokenizers::pattern::Invert;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{PreTokenizedString, PreTokenizer, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::Error;

/// GPT-2's rule, also the one inside the `ByteLevel` step of tokenizer.json.
pub(crate) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Longest run of white space that the expression engine is sure to manage: it keeps one state a character, and at
/// most 1 000 000 of them.
pub(crate) const LONGEST_RUN: usize = 900_000;

/// One rule of the table of `tokenizer.ggml.pre` names.
pub(crate) struct PreRule {
    /// Names that mean this rule, the first is the canonical one.
    pub(crate) names: &'static [&'static str],
    /// Regular expressions, applied one after the other to what the earlier left whole.
    pub(crate) patterns: &'static [&'static str],
    /// Whether a word that is a vocabulary entry skips merging.
    pub(crate) ignore_merges: bool,
    /// Whether the model family's tokenizer.json normalises to NFC; GGUF has no key for it.
    pub(crate) nfc: bool,
    /// Whether BOS is added when the file does not say.
    pub(crate) adds_bos: bool,
}

/// The splitting rules that GGUF files name, as the model families' tokenizer.json files have them.
pub(crate) const PRE_RULES: &[PreRule] = &[
    PreRule { names: &["gpt-2", "phi-2", "mpt", "olmo", "exaone4"], patterns: &[GPT2], ignore_merges: false, nfc: false, adds_bos: false },
    PreRule {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2"],
        patterns: &[LLAMA3],
        ignore_merges: true,
        nfc: false,
        adds_bos: true,
    },
    PreRule { names: &["dbrx", "smaug-bpe"], patterns: &[LLAMA3], ignore_merges: false, nfc: false, adds_bos: false },
    PreRule { names: &["qwen2", "deepseek-r1-qwen", "megrez"], patterns: &[QWEN2], ignore_merges: false, nfc: true, adds_bos: false },
    PreRule { names: &["qwen35"], patterns: &[QWEN35], ignore_merges: false, nfc: true, adds_bos: false },
    PreRule { names: &["stablelm2"], patterns: &[QWEN2], ignore_merges: false, nfc: false, adds_bos: false },
    PreRule {
        names: &["smollm", "starcoder", "refact", "codeshell", "command-r"],
        patterns: &[r"\p{N}", GPT2],
        ignore_merges: false,
        nfc: false,
        adds_bos: false,
    },
    PreRule { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, nfc: false, adds_bos: true },
    PreRule { names: &["gpt-4o", "llama4"], patterns: &[GPT4O], ignore_merges: false, nfc: false, adds_bos: false },
];

/// The rule of a `tokenizer.ggml.pre` name.
///
/// # Errors
/// [`Error::UnknownPre`] for a name that is not in the table or is missing: another rule would give other ids without
/// a word.
pub(crate) fn pre_rule(name: Option<&str>) -> Result<&'static PreRule, Error> {
    name.and_then(|name| PRE_RULES.iter().find(|rule| rule.names.contains(&name))).ok_or_else(|| Error::UnknownPre {
        found: name.map_or_else(|| "no such key".to_owned(), crate::error::quoted),
        known: PRE_RULES.iter().flat_map(|rule| rule.names).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    })
}

/// One step of splitting.
pub(crate) enum SplitStep {
    /// Cuts at the matches of an expression.
    Pattern { regex: Regex, behavior: SplitDelimiterBehavior, invert: bool },
    /// Puts a space before a piece that has none.
    Prefix,
    /// Puts a `▁` before the text where the prompt begins, whatever it begins with, as SentencePiece does.
    FirstMark,
    /// Rewrites each byte as a character of the byte-level alphabet.
    Bytes,
    /// Writes spaces as `▁` and perhaps puts one in front.
    Metaspace(Metaspace),
    /// A step that cannot fail on long text, left to the library.
    Library(PreTokenizerWrapper),
}

impl SplitStep {
    /// Cuts at matches of `pattern`; each match and each rest is a piece.
    pub(crate) fn isolated(pattern: &str) -> Result<Self, Error> {
        Self::pattern(pattern, SplitDelimiterBehavior::Isolated, false)
    }

    pub(crate) fn pattern(pattern: &str, behavior: SplitDelimiterBehavior, invert: bool) -> Result<Self, Error> {
        let regex = Regex::new(pattern).map_err(|error| {
            Error::tokenizer("pre_tokenizer", "a regular expression that compiles", format!("{} ({error})", crate::error::quoted(pattern)))
        })?;
        Ok(Self::Pattern { regex, behavior, invert })
    }

    /// Applies this step to all pieces that are not yet tokens.
    ///
    /// `at_start` says whether the text begins where the prompt begins; a leading `▁` that belongs only to the first
    /// text depends on it.
    pub(crate) fn apply(&self, pieces: &mut PreTokenizedString, at_start: bool, bytes: usize) -> Result<(), Error> {
        let library = |error: tokenizers::Error| Error::Library(error.to_string());
        match self {
            Self::Pattern { regex, behavior, invert } => pieces
                .split(|_, piece| if *invert { piece.split(Invert(regex), *behavior) } else { piece.split(regex, *behavior) })
                .map_err(|error| Error::TextTooHard { bytes, limit: LONGEST_RUN, rule: regex.as_str().to_owned(), why: error.to_string() }),
            Self::Prefix => pieces
                .split(|_, mut piece| {
                    if !piece.get().starts_with(' ') {
                        piece.prepend(" ");
                    }
                    Ok(vec![piece])
                })
                .map_err(library),
            Self::FirstMark => pieces
                .split(|_, mut piece| {
                    if at_start && piece.offsets_original().0 == 0 {
                        piece.prepend("\u{2581}");
                    }
                    Ok(vec![piece])
                })
                .map_err(library),
            Self::Bytes => ByteLevel::new(false, false, false).pre_tokenize(pieces).map_err(library),
            Self::Metaspace(step) => {
                if step.get_prepend_scheme() == PrependScheme::First && !at_start {
                    let mut later = step.clone();
                    later.set_prepend_scheme(PrependScheme::Never);
                    later.pre_tokenize(pieces).map_err(library)
                } else {
                    step.pre_tokenize(pieces).map_err(library)
                }
            }
            Self::Library(step) => step.pre_tokenize(pieces).map_err(library),
        }
    }
}
