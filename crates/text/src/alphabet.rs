//! How a vocabulary writes bytes as text.

/// The writing of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// Each byte is one of 256 printable characters (`Ġ` is the space): GPT-2, Llama 3, Qwen.
    ByteLevel,
    /// Text as it is, `▁` for the space, `<0x0A>` for single bytes: Llama 1 and 2, Gemma.
    SentencePiece,
    /// Words as they are, pieces inside a word with a mark in front (`##`): BERT. Spaces are not written; they stand between words.
    Words,
}

/// `▁`, which writes the space in a SentencePiece vocabulary.
pub const SPACE_MARK: char = '\u{2581}';

impl Alphabet {
    /// The bytes that the ordinary vocabulary entry `piece` stands for.
    ///
    /// A byte-level entry with a character outside the alphabet stands for its own UTF-8, as in `transformers`. Of words, this is the text
    /// without what stands between them.
    pub fn bytes_of(self, piece: &str) -> Vec<u8> {
        match self {
            Self::ByteLevel => {
                piece.chars().map(byte_of_character).collect::<Option<Vec<u8>>>().unwrap_or_else(|| piece.as_bytes().to_vec())
            }
            Self::SentencePiece => piece.replace(SPACE_MARK, " ").into_bytes(),
            Self::Words => piece.as_bytes().to_vec(),
        }
    }
}

/// The byte that a character of the byte-level alphabet stands for.
///
/// Bytes that print in Latin-1 stand for themselves; the 68 others follow from U+0100 in rising order.
///
/// Source: the GPT-2 release, `bytes_to_unicode`.
pub(crate) fn byte_of_character(character: char) -> Option<u8> {
    let code = u32::from(character);
    match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),        // 0x00..=0x20
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7F).ok(), // 0x7F..=0xA0
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// The byte of a SentencePiece byte entry such as `<0x0A>`.
pub(crate) fn byte_of_fallback(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_level_alphabet_has_each_byte_exactly_once() {
        let mut seen = [0_u8; 256];
        for character in (0..0x200).filter_map(char::from_u32) {
            if let Some(byte) = byte_of_character(character) {
                seen[usize::from(byte)] += 1;
            }
        }
        assert_eq!(seen, [1; 256]);
        assert_eq!(byte_of_character('Ġ'), Some(b' '));
        assert_eq!(byte_of_character('Ċ'), Some(b'\n'));
    }

    #[test]
    fn byte_entries_are_read_as_the_library_writes_them() {
        for byte in 0..=255_u8 {
            assert_eq!(byte_of_fallback(&format!("<0x{byte:02X}>")), Some(byte));
        }
        for not_a_byte in ["<0x0a>", "<0x0>", "<0x000>", "0x0A", "<0x0G>", "<0x+1>", ""] {
            assert_eq!(byte_of_fallback(not_a_byte), None, "{not_a_byte}");
        }
    }

    #[test]
    fn an_entry_outside_the_alphabet_stands_for_itself() {
        assert_eq!(Alphabet::ByteLevel.bytes_of("Ġé"), vec![b' ', 0xE9]);
        assert_eq!(Alphabet::ByteLevel.bytes_of("｜"), "｜".as_bytes());
        assert_eq!(Alphabet::SentencePiece.bytes_of("▁a"), b" a");
    }
}
