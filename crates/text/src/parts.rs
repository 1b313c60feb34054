//! A tokenizer taken apart: what both file formats are read into before it is assembled.

use tokenizers::models::bpe::Merges;
use tokenizers::{AddedToken, NormalizerWrapper};

use crate::alphabet::Alphabet;
use crate::framing::Framing;
use crate::split::SplitStep;
use crate::vocabulary::{Entry, MergeOptions, WordOptions};

pub(crate) struct Parts {
    /// File and key, for messages.
    pub(crate) place: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) pieces: Pieces,
    pub(crate) added: Vec<(u32, AddedToken)>,
    pub(crate) normalizer: Option<NormalizerWrapper>,
    pub(crate) steps: Vec<SplitStep>,
    pub(crate) alphabet: Alphabet,
    /// Whether decoding drops one space that encoding put in front.
    pub(crate) strips_first_space: bool,
    pub(crate) framing: Framing,
}

/// How words become tokens.
pub(crate) enum Pieces {
    /// Byte-pair encoding: characters are merged, best merge first.
    Merged { merges: Merges, origin: MergeOrigin, options: MergeOptions },
    /// WordPiece: the longest token that a word begins with, then the longest that its rest begins with.
    Longest(WordOptions),
}

/// Where merges come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeOrigin {
    /// A list in the file, which may name anything.
    List,
    /// The scores of the pieces: parts and wholes are tokens by construction.
    Scores,
}
