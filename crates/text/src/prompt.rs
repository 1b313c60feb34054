//! A prompt: the text, its ids, and which tokens belong to which named part.

use std::ops::Range;

use serde_json::Map;

use crate::error::Error;
use crate::spans::{self, Region};
use crate::template::{ChatTemplate, RenderOptions};
use crate::tokenizer::{Encoded, Specials, Tokenizer};
use crate::vocabulary::TokenKind;

/// A part of a message or of a plain prompt, perhaps with a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// The name under which the part is found again: `system`, `document 3`, `question`.
    pub span: Option<String>,
}

impl Piece {
    /// Text without a name.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), span: None }
    }

    /// Text with a name.
    pub fn named(span: impl Into<String>, text: impl Into<String>) -> Self {
        Self { text: text.into(), span: Some(span.into()) }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, or what the template knows.
    pub role: String,
    /// The content, in parts; data, never control.
    pub pieces: Vec<Piece>,
    /// More fields that the template reads, `tool_calls` for example. A message with fields and without pieces has no
    /// `content`.
    pub fields: Map<String, serde_json::Value>,
}

impl Message {
    /// A message of `role` with parts.
    pub fn new(role: impl Into<String>, pieces: Vec<Piece>) -> Self {
        Self { role: role.into(), pieces, fields: Map::new() }
    }

    /// The parts joined.
    pub fn content(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    pub(crate) fn as_json(&self, content: String) -> serde_json::Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), self.role.clone().into());
        if !(self.pieces.is_empty() && content.is_empty() && !self.fields.is_empty()) {
            message.insert("content".to_owned(), content.into());
        }
        message.extend(self.fields.clone());
        message.into()
    }
}

/// A named part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its name; parts with the same name stay apart.
    pub name: String,
    /// Bytes of the prompt's text.
    pub bytes: Range<usize>,
    /// Tokens of the prompt. A token across a border belongs to the part (named or not) that holds most of its bytes,
    /// and on a tie to the later one; so the range may be empty for a very short part.
    pub tokens: Range<usize>,
}

/// What a model reads, with everything needed to say which token is what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The whole text, as rendered; without a BOS that only the tokenizer adds. Empty when made from ids.
    pub text: String,
    /// `[token]` ids.
    pub ids: Vec<u32>,
    /// `[token]` bytes of `text` that each token covers; empty for a BOS that the tokenizer adds.
    pub tokens: Vec<Range<usize>>,
    /// The named parts, in order of the text.
    pub spans: Vec<Span>,
    /// How many BOS tokens the ids begin with: one for models that want it, else none.
    pub bos_count: usize,
    /// [`ChatTemplate::hash`] of the template, if one was used.
    pub template_hash: Option<String>,
}

impl Prompt {
    /// Renders a conversation with the model's template and tokenises it.
    ///
    /// Content is data: the text of a control token inside a message stays text, whatever the template does with the
    /// message. For content without such texts the ids are those of `transformers`' `apply_chat_template`, but that a
    /// missing BOS is added where the tokenizer wants one.
    ///
    /// # Errors
    /// Those of [`ChatTemplate::render`] and [`Tokenizer::encode`]; [`Error::SpanLost`] when a named part, or content
    /// that looks like control tokens, cannot be found again because the template rewrites it; [`Error::Request`] when
    /// a role, a field of a message, a tool, a document or a variable holds the text of a control token: only content can be told from what
    /// the template wrote.
    pub fn chat(tokenizer: &Tokenizer, template: &ChatTemplate, messages: &[Message], options: &RenderOptions) -> Result<Self, Error> {
        if let Some(message) = messages.iter().find(|message| tokenizer.specials.occurs_in(&message.role)) {
            return Err(Error::Request {
                wanted: "roles without the text of a control token".to_owned(),
                found: crate::error::quoted(&message.role),
            });
        }
        let given = [&options.tools, &options.documents].into_iter().flatten();
        let fields = messages.iter().map(|message| &message.fields).chain([&options.variables]).flat_map(Map::values);
        if let Some(found) = given.chain(fields).find_map(|value| control_text(tokenizer, value)) {
            return Err(Error::Request {
                wanted: "fields, tools, documents and variables without the text of a control token".to_owned(),
                found: crate::error::quoted(found),
            });
        }
        let text = template.render(messages, options)?;
        let regions = spans::locate(tokenizer, template, messages, options, &text)?;
        let content: Vec<Range<usize>> = regions.iter().map(|region| region.bytes.clone()).collect();
        let encoded = encode_with_data(tokenizer, &text, &content)?;
        let mut prompt = Self::assemble(tokenizer, text, encoded, &regions);
        prompt.template_hash = Some(template.hash().to_owned());
        Ok(prompt)
    }

    /// A prompt of plain text, for models without a template. BOS comes first if the tokenizer wants one.
    ///
    /// `specials` says whether the text of a control token in a piece is that token.
    ///
    /// # Errors
    /// Those of [`Tokenizer::encode`].
    pub fn plain(tokenizer: &Tokenizer, pieces: &[Piece], specials: Specials) -> Result<Self, Error> {
        let mut text = String::new();
        let mut regions = Vec::new();
        for piece in pieces {
            let start = text.len();
            text.push_str(&piece.text);
            if let Some(name) = &piece.span {
                regions.push(Region { name: Some(name.clone()), bytes: start..text.len() });
            }
        }
        let encoded = tokenizer.encode_with_ranges(&text, specials)?;
        Ok(Self::assemble(tokenizer, text, encoded, &regions))
    }

    /// A prompt of exact ids; nothing is added, and there is no text.
    ///
    /// A tokenizer is not needed; to refuse ids that it does not have, call [`Tokenizer::check_ids`].
    pub fn from_ids(ids: Vec<u32>) -> Self {
        let tokens = vec![0..0; ids.len()];
        Self { text: String::new(), ids, tokens, spans: Vec::new(), bos_count: 0, template_hash: None }
    }

    /// The first part of this name.
    pub fn span(&self, name: &str) -> Option<&Span> {
        self.spans.iter().find(|span| span.name == name)
    }

    fn assemble(tokenizer: &Tokenizer, text: String, encoded: Encoded, regions: &[Region]) -> Self {
        let prefix = tokenizer.prefix_missing_from(&encoded.ids);
        let mut ids = prefix.to_vec();
        let mut tokens = vec![0..0; prefix.len()];
        ids.extend(encoded.ids);
        tokens.extend(encoded.ranges);
        let bos_count = ids.iter().take_while(|id| Some(**id) == tokenizer.bos_id()).count();
        let spans = spans::tokens_of(regions, &tokens, text.len());
        Self { text, ids, tokens, spans, bos_count, template_hash: None }
    }
}

/// A text in `value`, keys included, that holds the text of a control token.
fn control_text<'v>(tokenizer: &Tokenizer, value: &'v serde_json::Value) -> Option<&'v str> {
    let mut values = vec![value];
    let holds = |text: &&str| tokenizer.specials.occurs_in(text);
    while let Some(value) = values.pop() {
        let found = match value {
            serde_json::Value::String(text) => Some(text.as_str()).filter(holds),
            serde_json::Value::Array(items) => {
                values.extend(items);
                None
            }
            serde_json::Value::Object(items) => {
                values.extend(items.values());
                items.keys().map(String::as_str).find(holds)
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Tokenises rendered text in which the `content` ranges are data.
fn encode_with_data(tokenizer: &Tokenizer, text: &str, content: &[Range<usize>]) -> Result<Encoded, Error> {
    let whole = tokenizer.encode_with_ranges(text, Specials::Parse)?;
    let touches_content = |range: &Range<usize>| {
        let part = &text[range.clone()];
        let start = range.start + part.len() - part.trim_start().len();
        let end = range.start + part.trim_end().len();
        content.iter().any(|content| content.start < end && start < content.end)
    };
    let misread =
        whole.ids.iter().zip(&whole.ranges).any(|(id, range)| tokenizer.token_kind(*id) == TokenKind::Control && touches_content(range));
    if !misread {
        return Ok(whole);
    }
    let mut trusted = Vec::new();
    let mut at = 0;
    for range in content {
        trusted.push(at..range.start);
        at = at.max(range.end);
    }
    trusted.push(at..text.len());
    let mut encoded = Encoded::default();
    let mut at = 0;
    for control in tokenizer.specials.find(text, &trusted) {
        push_data(tokenizer, text, at..control.range.start, &mut encoded)?;
        at = control.range.end;
        encoded.ids.push(control.id);
        encoded.ranges.push(control.range);
    }
    push_data(tokenizer, text, at..text.len(), &mut encoded)?;
    Ok(encoded)
}

fn push_data(tokenizer: &Tokenizer, text: &str, range: Range<usize>, encoded: &mut Encoded) -> Result<(), Error> {
    let part = tokenizer.encode_at(&text[range.clone()], Specials::Literal, range.start == 0)?;
    encoded.ids.extend(part.ids);
    encoded.ranges.extend(part.ranges.into_iter().map(|inner| inner.start + range.start..inner.end + range.start));
    Ok(())
}
