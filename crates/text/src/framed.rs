//! What an encoder reads: one text or two, between special tokens, each token with its type.

use std::ops::Range;

use crate::error::Error;
use crate::framing::{FramePart, Which};
use crate::tokenizer::{Encoded, Specials, Tokenizer};

/// One text, or two, as an encoder reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Framed {
    /// `[token]` ids, special tokens among them.
    pub ids: Vec<u32>,
    /// `[token]` types: 0 for the first text and what stands around it, 1 for the second and what follows it, unless the tokenizer says
    /// otherwise.
    pub token_types: Vec<u32>,
    /// `[token]` which of the texts a token is of (0 or 1) and which of its bytes it covers; none for a token that the tokenizer adds.
    pub sources: Vec<Option<(usize, Range<usize>)>>,
    /// Tokens of the texts that were left out at their ends, for want of room.
    pub left_out: usize,
}

impl Tokenizer {
    /// The ids of `first`, or of `first` and `second`, with everything that the tokenizer puts around them: `[CLS] first [SEP]` or
    /// `[CLS] first [SEP] second [SEP]`.
    ///
    /// - `most_tokens`  room for all of them; a text that is too long loses its end. Of two, the longer one loses first; where both are
    ///   longer than half the room, each gets half of it (as `longest_first` of `transformers`)
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`Error::Request`] where the tokenizer has no way to join two texts, or there is no room for the special
    /// tokens alone.
    pub fn encode_framed(&self, first: &str, second: Option<&str>, specials: Specials, most_tokens: usize) -> Result<Framed, Error> {
        let frame = match second {
            None => self.framing.single(),
            Some(_) if self.framing.pair.is_empty() => {
                return Err(Error::Request {
                    wanted: "a tokenizer that says how two texts are joined".to_owned(),
                    found: "one for single texts".to_owned(),
                });
            }
            Some(_) => self.framing.pair.clone(),
        };
        let around: usize = frame.iter().map(|part| part.special_ids().len()).sum();
        let room = most_tokens.checked_sub(around).ok_or_else(|| Error::Request {
            wanted: format!("room for {around} special tokens"),
            found: format!("room for {most_tokens}"),
        })?;
        let mut texts = vec![self.encode_with_ranges(first, specials)?];
        texts.extend(second.map(|second| self.encode_with_ranges(second, specials)).transpose()?);
        let before: usize = texts.iter().map(|text| text.ids.len()).sum();
        shorten(&mut texts, room);
        let kept: usize = texts.iter().map(|text| text.ids.len()).sum();

        let mut framed = Framed { left_out: before - kept, ..Framed::default() };
        for part in frame {
            match part {
                FramePart::Special { ids, kind } => {
                    framed.token_types.extend(ids.iter().map(|_| kind));
                    framed.sources.extend(ids.iter().map(|_| None));
                    framed.ids.extend(ids);
                }
                FramePart::Text { which, kind } => {
                    let index = usize::from(which == Which::Second);
                    let Some(text) = texts.get(index) else { continue };
                    framed.token_types.extend(text.ids.iter().map(|_| kind));
                    framed.sources.extend(text.ranges.iter().map(|range| Some((index, range.clone()))));
                    framed.ids.extend(&text.ids);
                }
            }
        }
        Ok(framed)
    }

    /// A text in small letters, but for the control tokens that are written in it.
    #[must_use]
    pub fn lower_cased(&self, text: &str) -> String {
        let mut lower = String::with_capacity(text.len());
        let mut end = 0;
        for control in self.specials.find(text, std::slice::from_ref(&(0..text.len()))) {
            lower.push_str(&text[end..control.range.start].to_lowercase());
            lower.push_str(&text[control.range.clone()]);
            end = control.range.end;
        }
        lower + &text[end..].to_lowercase()
    }
}

/// Cuts the ends of one text, or of two, so that together they have at most `room` tokens.
fn shorten(texts: &mut [Encoded], room: usize) {
    let lengths: Vec<usize> = texts.iter().map(|text| text.ids.len()).collect();
    let kept = match lengths[..] {
        [first, second] if first + second > room => {
            let shorter = first.min(second);
            // The shorter stays whole as long as the longer one is not cut below it.
            let (short, long) = if 2 * shorter > room { (room / 2, room - room / 2) } else { (shorter, room - shorter) };
            if first <= second { vec![short, long] } else { vec![long, short] }
        }
        [first] => vec![first.min(room)],
        _ => lengths,
    };
    for (text, kept) in texts.iter_mut().zip(kept) {
        text.ids.truncate(kept);
        text.ranges.truncate(kept);
    }
}
