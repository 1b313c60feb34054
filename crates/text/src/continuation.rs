//! A context and the text that is to follow it, as tokens of which one knows where the border is.

use crate::error::{Error, quoted};
use crate::tokenizer::{Specials, Tokenizer};

/// A context and a given continuation, ready to be scored.
///
/// Tokens do not add up: `Ans` and `wer` together may be one token. Both texts are tokenised together, as a model reads them; white
/// space at the end of the context belongs to the continuation, because a token begins with the space before it. Only where a token
/// would still lie across the border are the two tokenised apart, and [`Continuation::is_apart`] says so: such a score is that of a text
/// that the model rarely saw cut in this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// `[token]` ids of the context, with the BOS of models that want one, and of the continuation.
    pub ids: Vec<u32>,
    /// The first token of the continuation; at least one token is at or after it. 0 where nothing stands before it.
    pub start: usize,
    /// Whether a token would have lain across the border, so that both texts were tokenised by themselves.
    pub is_apart: bool,
}

impl Continuation {
    /// Tokenises `continuation` after `context`, which may be empty.
    ///
    /// # Errors
    /// Those of [`Tokenizer::encode`]; [`Error::Request`] for a continuation that has no tokens.
    pub fn new(tokenizer: &Tokenizer, context: &str, continuation: &str, specials: Specials) -> Result<Self, Error> {
        let none = || Error::Request { wanted: "a continuation with at least one token".to_owned(), found: quoted(continuation) };
        if continuation.is_empty() {
            return Err(none());
        }
        let text = [context, continuation].concat();
        let border = context.trim_end().len();
        let together = tokenizer.encode_with_ranges(&text, specials)?;
        let start = together.ranges.partition_point(|range| range.end <= border);
        let is_apart = together.ranges.get(start).is_some_and(|range| range.start < border);
        let (ids, start) = if is_apart {
            let mut ids = tokenizer.encode(&text[..border], specials)?;
            let start = ids.len();
            ids.extend(tokenizer.encode_at(&text[border..], specials, false)?.ids);
            (ids, start)
        } else {
            (together.ids, start)
        };
        if start >= ids.len() {
            return Err(none());
        }
        let prefix = tokenizer.prefix_missing_from(&ids);
        let start = start + prefix.len();
        Ok(Self { ids: [prefix, &ids].concat(), start, is_apart })
    }

    /// The tokens of the continuation.
    pub fn continuation(&self) -> &[u32] {
        &self.ids[self.start..]
    }
}
