//! Tokens shown as the text they cover, also where a character is split over several tokens.

use std::ops::Range;

use crate::alphabet::Alphabet;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::TokenKind;

/// A token as a person reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenText {
    /// The id.
    pub id: u32,
    /// Its exact bytes.
    pub bytes: Vec<u8>,
    /// Whole characters as they are; a share of a character as `😀 1/3`, inside other text in brackets; bytes that
    /// belong to no character as `⟨F0 9F⟩`. In a vocabulary of words, as it is written there: `##ing`.
    pub text: String,
    /// The first character of which this token holds only a share.
    pub part_of: Option<PartOf>,
    /// What sort of token it is.
    pub kind: TokenKind,
}

/// A token's share of a character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOf {
    /// The character.
    pub character: char,
    /// Which share, from 1.
    pub part: usize,
    /// Into how many tokens the character is split.
    pub parts: usize,
}

impl Tokenizer {
    /// Shows each of `ids`, which are the tokens of a text in a row.
    pub fn token_texts(&self, ids: &[u32]) -> Vec<TokenText> {
        let mut bytes = Vec::new();
        let ranges: Vec<Range<usize>> = ids
            .iter()
            .map(|id| {
                let start = bytes.len();
                bytes.extend_from_slice(self.token_bytes(*id));
                start..bytes.len()
            })
            .collect();
        let chunks = chunks(&bytes);
        let mut first_chunk = 0;
        let mut shown: Vec<TokenText> = Vec::with_capacity(ids.len());
        for (&id, range) in ids.iter().zip(&ranges) {
            while chunks.get(first_chunk).is_some_and(|chunk| chunk.bytes.end <= range.start) {
                first_chunk += 1;
            }
            let inside = chunks[first_chunk..].iter().take_while(|chunk| chunk.bytes.start < range.end);
            let (text, part_of) = show(inside, range, &ranges, &bytes);
            let kind = self.token_kind(id);
            let text = match kind {
                TokenKind::Unused => self.token_name(id),
                // The text is not known from here: letters were changed, white space dropped. The vocabulary's own writing is the truth.
                _ if self.alphabet() == Alphabet::Words => self.token_name(id),
                _ => text,
            };
            shown.push(TokenText { id, bytes: bytes[range.clone()].to_vec(), text, part_of, kind });
        }
        shown
    }
}

/// One character, or bytes that are none.
struct Chunk {
    bytes: Range<usize>,
    character: Option<char>,
}

fn chunks(bytes: &[u8]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            chunks.push(Chunk { bytes: at..at + character.len_utf8(), character: Some(character) });
            at += character.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            chunks.push(Chunk { bytes: at..at + chunk.invalid().len(), character: None });
            at += chunk.invalid().len();
        }
    }
    chunks
}

fn show<'c>(
    inside: impl Iterator<Item = &'c Chunk>,
    range: &Range<usize>,
    tokens: &[Range<usize>],
    bytes: &[u8],
) -> (String, Option<PartOf>) {
    let mut text = String::new();
    let mut part_of = None;
    for chunk in inside {
        let held = chunk.bytes.start.max(range.start)..chunk.bytes.end.min(range.end);
        match chunk.character {
            Some(character) if held == chunk.bytes => text.push(character),
            Some(character) => {
                let holders = || {
                    tokens
                        .iter()
                        .skip(tokens.partition_point(|token| token.end <= chunk.bytes.start))
                        .take_while(|token| token.start < chunk.bytes.end)
                        .filter(|token| !token.is_empty())
                };
                let share = PartOf {
                    character,
                    part: 1 + holders().take_while(|token| token.start < range.start).count(),
                    parts: holders().count(),
                };
                let label = format!("{character} {}/{}", share.part, share.parts);
                if held == *range {
                    text.push_str(&label);
                } else {
                    text.push_str(&format!("⟨{label}⟩"));
                }
                part_of.get_or_insert(share);
            }
            None => {
                let hex: Vec<String> = bytes[held].iter().map(|byte| format!("{byte:02X}")).collect();
                text.push_str(&format!("⟨{}⟩", hex.join(" ")));
            }
        }
    }
    (text, part_of)
}

/// Makes white space and control characters visible: `·` for a space, `↵` for a line feed, `→` for a tab, the control
/// pictures for other controls, and `⟨U+200B⟩` for characters that take no room or look like a space.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' ' => shown.push('·'),
            '\n' => shown.push('↵'),
            '\t' => shown.push('→'),
            '\0'..='\u{1F}' => {
                shown.push(char::from_u32(0x2400 + u32::from(character)).expect("control pictures exist"));
            }
            '\u{7F}' => shown.push('\u{2421}'),
            _ if character.is_control() || character.is_whitespace() || is_invisible(character) => {
                shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Format characters that change the look of others or have none; joiners inside emoji are among them, on purpose.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E01EF}')
}
