//! Text as it is generated: pieces that never cut a character.

use crate::tokenizer::Tokenizer;
use crate::vocabulary::TokenKind;

/// What a stream of ids shows, and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFrom {
    /// The ids are a whole text: the pieces joined are [`Tokenizer::decode_content`] of all ids.
    Start,
    /// The ids go on after a prompt: a leading space is text, nothing is dropped.
    Continuation,
}

/// Turns ids into text pieces one by one.
///
/// The pieces joined equal the decoded text of all ids. A character whose bytes come in several tokens appears with its
/// last token; bytes that can never become a character appear at once as U+FFFD, so that nothing stalls. Control tokens
/// are silent.
#[derive(Debug, Clone)]
pub struct StreamDecoder {
    /// The beginning of a character, at most three bytes.
    pending: Vec<u8>,
    drops_space: bool,
    shows_control: bool,
}

impl StreamDecoder {
    /// A decoder for a stream that begins as `from` says.
    pub fn new(tokenizer: &Tokenizer, from: StreamFrom) -> Self {
        Self { pending: Vec::new(), drops_space: from == StreamFrom::Start && tokenizer.strips_first_space(), shows_control: false }
    }

    /// Also writes control tokens, as [`Tokenizer::decode`] does.
    #[must_use]
    pub fn with_control_tokens(mut self) -> Self {
        self.shows_control = true;
        self
    }

    /// The text that is certain once `id` has come; often empty.
    ///
    /// `tokenizer` is the one that the decoder was made with.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> String {
        if !self.shows_control && tokenizer.token_kind(id) == TokenKind::Control {
            return String::new();
        }
        let mut bytes = tokenizer.token_bytes(id);
        if self.drops_space && !bytes.is_empty() {
            self.drops_space = false;
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        }
        self.pending.extend_from_slice(bytes);
        self.take_certain()
    }

    /// The rest at the end of the text: U+FFFD when it ends inside a character, else nothing.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.pending);
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// Bytes held back until their character is complete.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    fn take_certain(&mut self) -> String {
        let mut text = String::new();
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).expect("checked up to here"));
                    match error.error_len() {
                        Some(broken) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[broken..];
                        }
                        None => {
                            rest = after; // may still become a character
                            break;
                        }
                    }
                }
            }
        }
        self.pending = rest.to_vec();
        text
    }
}
