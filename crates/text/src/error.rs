//! The one error type of this crate.

/// Why a tokenizer, a template or a prompt could not be made.
///
/// Every message says what was wanted, what was found and where; [`Error::hint`] proposes one action.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tokenizer's file cannot be read as what it should be.
    #[error("tokenizer `{place}` cannot be used: wanted {wanted}, found {found}")]
    Tokenizer {
        /// File and key, for example `tokenizer.json: model.merges[3]`.
        place: String,
        /// What this engine accepts there.
        wanted: String,
        /// What is there.
        found: String,
    },
    /// The model has weights and no tokenizer.
    #[error("no tokenizer: wanted tokenizer.json or GGUF metadata, found {found}")]
    NoTokenizer {
        /// What the checkpoint has instead.
        found: String,
    },
    /// The checkpoint cannot be read.
    #[error("{0}")]
    Checkpoint(String),
    /// `tokenizer.ggml.pre` names a splitting rule that this engine does not know.
    #[error("key `tokenizer.ggml.pre` names an unknown splitting rule: wanted one of {known}, found {found}")]
    UnknownPre {
        /// The name in the file, or a note that it is missing.
        found: String,
        /// All known names.
        known: String,
    },
    /// The tokenizer has ids for which the model has no embedding.
    #[error("tokenizer does not fit the model: wanted ids below {rows} (rows of the embedding), found id {id} (`{token}`)")]
    VocabularyTooLarge {
        /// Rows of the model's embedding table.
        rows: usize,
        /// The largest id of the tokenizer.
        id: u32,
        /// Its text.
        token: String,
    },
    /// More text than one call may tokenise.
    #[error("text is too long to tokenise: wanted at most {limit} bytes, found {bytes}")]
    TextTooLong {
        /// Bytes given.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The splitting rule ran into its own limit on this text.
    #[error(
        "text cannot be split into words: wanted runs of white space below {limit} characters, found a text of {bytes} bytes on which the rule `{rule}` gave up ({why})"
    )]
    TextTooHard {
        /// Bytes of the text.
        bytes: usize,
        /// Longest run that is safe.
        limit: usize,
        /// The regular expression.
        rule: String,
        /// The expression engine's own words.
        why: String,
    },
    /// The tokenizer library refused a text.
    #[error("text could not be tokenised: {0}")]
    Library(String),
    /// An id that no token has.
    #[error("id {id} is not in the vocabulary: wanted an id below {ids}")]
    UnknownId {
        /// The id.
        id: u32,
        /// Number of ids.
        ids: usize,
    },
    /// The model brings no template of this name.
    #[error("no chat template {wanted}: the model has {known}")]
    NoTemplate {
        /// The name asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// The template itself is wrong, or uses what this engine does not have.
    #[error("chat template `{name}` line {line}: {message}")]
    Template {
        /// Name of the template.
        name: String,
        /// Line, from 1; 0 when unknown.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The template called `raise_exception`.
    #[error("chat template refuses these messages: {0}")]
    TemplateRaised(String),
    /// The template did more than a template may do.
    #[error("chat template `{name}` exceeds the {limit} limit of {value}")]
    TemplateLimit {
        /// Name of the template.
        name: String,
        /// `fuel`, `output size`, `nesting`, `length of a tag` or `source size`.
        limit: &'static str,
        /// The limit with its unit.
        value: String,
    },
    /// The template asks for the date, and no clock was given.
    #[error("chat template asks for the date (`strftime_now`), but no time was given")]
    NoClock,
    /// Named text cannot be found again in the rendered prompt.
    #[error("span `{name}` cannot be located in the rendered prompt: {why}")]
    SpanLost {
        /// Name of the span, or a description of unnamed content.
        name: String,
        /// What the template did with it.
        why: String,
    },
    /// The request for a prompt contradicts itself.
    #[error("prompt cannot be made: wanted {wanted}, found {found}")]
    Request {
        /// What would be right.
        wanted: String,
        /// What was asked.
        found: String,
    },
}

impl Error {
    /// One action that may help, when there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Tokenizer { .. } => "use a model whose tokenizer is byte-pair encoding or WordPiece, or give ids instead of text",
            Self::UnknownPre { .. } => "convert the model again with a current converter, or use its tokenizer.json",
            Self::VocabularyTooLarge { .. } => "tokenizer and weights come from different models",
            Self::TextTooLong { .. } | Self::TextTooHard { .. } => "split the text",
            Self::NoTokenizer { .. } => "give ids instead of text, or add the model's tokenizer.json",
            Self::Library(_) | Self::Checkpoint(_) => return None,
            Self::UnknownId { .. } => "the ids come from another tokenizer",
            Self::NoTemplate { .. } => "this may be a base model: give it plain text",
            Self::Template { .. } => "give a template of your own",
            Self::TemplateRaised(_) => "change the order or the roles of the messages",
            Self::TemplateLimit { .. } => "the template is not a sane chat template; give one of your own",
            Self::NoClock => "set `RenderOptions::now`",
            Self::SpanLost { .. } => "the template rewrites message texts; name whole messages only, or use plain text",
            Self::Request { .. } => return None,
        })
    }

    pub(crate) fn tokenizer(place: impl Into<String>, wanted: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Tokenizer { place: place.into(), wanted: wanted.into(), found: found.into() }
    }
}

/// Shortens a foreign string for a message, on a character border.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60; // characters; a message stays on one line
    if text.chars().count() <= SHOWN {
        return format!("`{}`", text.escape_debug());
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("`{}…` ({} bytes)", head.escape_debug(), text.len())
}
