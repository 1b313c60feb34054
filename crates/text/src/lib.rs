//! Tokenizer, chat template, named spans of a prompt, byte-true display.
//!
//! ```text
//! messages with named pieces ─► ChatTemplate ─► text ─► Tokenizer ─► Prompt { ids, tokens, spans }
//!                                                                       │
//! generated ids ─► StreamDecoder ─► text pieces        token_texts ◄────┘
//! ```

mod alphabet;
mod clock;
mod continuation;
mod display;
mod error;
mod framed;
mod framing;
mod from_gguf;
mod from_json;
mod json_file;
mod parts;
mod pipeline;
mod prompt;
mod python;
mod source;
mod spans;
mod special;
mod split;
mod stream;
mod template;
mod template_source;
mod template_values;
mod to_gguf;
mod tokenizer;
mod vocabulary;
mod word_list;

pub use alphabet::{Alphabet, SPACE_MARK};
pub use clock::CivilTime;
pub use continuation::Continuation;
pub use display::{PartOf, TokenText, visible};
pub use error::Error;
pub use framed::Framed;
pub use prompt::{Message, Piece, Prompt, Span};
pub use source::{GgufVocabulary, JsonFiles, TextSource};
pub use stream::{StreamDecoder, StreamFrom};
pub use template::{ChatTemplate, Ending, RenderOptions, TEMPLATE_FUEL, TEMPLATE_NESTING, TEMPLATE_OUTPUT_BYTES, TEMPLATE_SOURCE_BYTES};
pub use template_source::TEMPLATE_CHAIN;
pub use to_gguf::gguf_vocabulary;
pub use tokenizer::{Encoded, MAX_TEXT_BYTES, Specials, Tokenizer};
pub use vocabulary::TokenKind;
