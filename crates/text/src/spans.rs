//! Finding the parts of messages again in the text that a template made of them.
//!
//! The conversation is rendered a second time with private-use characters around each part. Without these marks the
//! second text must equal the first; then their places are the places of the parts. A template that trims messages
//! would trim differently with a mark at the edge, so that a second try puts the marks inside the outer white space.

use std::ops::Range;

use crate::error::Error;
use crate::prompt::{Message, Span};
use crate::python;
use crate::template::{ChatTemplate, RenderOptions};
use crate::tokenizer::Tokenizer;

/// A place of content in the rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) name: Option<String>,
    pub(crate) bytes: Range<usize>,
}

/// First characters of the blocks that marks may be taken from: the two supplementary private-use planes.
const BLOCKS: [u32; 2] = [0xF_0000, 0x10_0000];
/// Characters of a block: 65 534, two for a part.
const BLOCK: u32 = 0xFFFE;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edges {
    /// Marks at the very edge of each message.
    Outer,
    /// Marks inside the white space at both ends of a message.
    Inner,
}

/// Finds all parts that matter: named ones, and all parts of messages that hold the text of a control token.
///
/// In rising order, disjoint. `plain` is the rendered text.
pub(crate) fn locate(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    messages: &[Message],
    options: &RenderOptions,
    plain: &str,
) -> Result<Vec<Region>, Error> {
    let marked: Vec<bool> = messages
        .iter()
        .map(|message| message.pieces.iter().any(|piece| piece.span.is_some()) || tokenizer.specials.occurs_in(&message.content()))
        .collect();
    if !marked.contains(&true) {
        return Ok(Vec::new());
    }
    let parts = messages.iter().zip(&marked).filter(|(_, marked)| **marked).map(|(message, _)| message.pieces.len()).sum::<usize>();
    let base = free_block(plain, messages, parts)?;
    let mut why = Error::SpanLost { name: first_name(messages), why: "the template rewrites message texts".to_owned() };
    for edges in [Edges::Outer, Edges::Inner] {
        let marks = Marks::new(messages, &marked, base, edges);
        let rendered = match template.render_contents(messages, &marks.contents, options) {
            Ok(rendered) => rendered,
            Err(error @ Error::TemplateLimit { .. }) => return Err(error),
            Err(_) => continue, // a mark changed what the template thinks of the message
        };
        match marks.read(&rendered, plain) {
            Ok(regions) => return Ok(regions),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn first_name(messages: &[Message]) -> String {
    messages
        .iter()
        .flat_map(|message| &message.pieces)
        .find_map(|piece| piece.span.clone())
        .unwrap_or_else(|| "content with the text of a control token".to_owned())
}

/// A block of private-use characters that occurs neither in the text nor in the messages.
fn free_block(plain: &str, messages: &[Message], parts: usize) -> Result<u32, Error> {
    let needed = u32::try_from(2 * parts).unwrap_or(u32::MAX);
    let used = |block: u32| {
        let in_block = |c: char| (block..block + BLOCK).contains(&u32::from(c));
        plain.contains(in_block) || messages.iter().flat_map(|message| &message.pieces).any(|piece| piece.text.contains(in_block))
    };
    BLOCKS.into_iter().find(|block| needed <= BLOCK && !used(*block)).ok_or_else(|| Error::SpanLost {
        name: first_name(messages),
        why: format!("wanted a private-use plane that the text leaves free for {needed} marks, found none"),
    })
}

/// One part that is marked.
struct Part<'m> {
    name: Option<&'m str>,
    open: char,
    close: char,
    /// False for parts that consist of outer white space only, which inner marks cannot hold.
    placed: bool,
}

struct Marks<'m> {
    contents: Vec<String>,
    parts: Vec<Part<'m>>,
    base: u32,
}

impl<'m> Marks<'m> {
    fn new(messages: &'m [Message], marked: &[bool], base: u32, edges: Edges) -> Self {
        let mut marks = Self { contents: Vec::new(), parts: Vec::new(), base };
        let mut next = base;
        for (message, marked) in messages.iter().zip(marked) {
            let content = message.content();
            if !marked {
                marks.contents.push(content);
                continue;
            }
            let inner = content.trim_start_matches(python::is_python_space);
            let lead = content.len() - inner.len();
            let tail = lead + inner.trim_end_matches(python::is_python_space).len();
            let clamp = |at: usize| match edges {
                Edges::Outer => at,
                Edges::Inner => at.clamp(lead, tail),
            };
            let placed = edges == Edges::Outer || lead < tail;
            let mut text = String::new();
            let mut done = 0;
            let mut at = 0;
            for piece in &message.pieces {
                let mark = |code| char::from_u32(code).expect("private-use planes hold no surrogates");
                let part = Part { name: piece.span.as_deref(), open: mark(next), close: mark(next + 1), placed };
                next += 2;
                for (edge, mark) in [(at, part.open), (at + piece.text.len(), part.close)] {
                    text.push_str(&content[done..clamp(edge).max(done)]);
                    done = done.max(clamp(edge));
                    if placed {
                        text.push(mark);
                    }
                }
                at += piece.text.len();
                marks.parts.push(part);
            }
            text.push_str(&content[done..]);
            marks.contents.push(text);
        }
        marks
    }

    fn read(&self, rendered: &str, plain: &str) -> Result<Vec<Region>, Error> {
        let lost = |part: Option<&Part<'_>>, why: &str| Error::SpanLost {
            name: part
                .and_then(|part| part.name)
                .or_else(|| self.parts.iter().find_map(|part| part.name))
                .unwrap_or("content with the text of a control token")
                .to_owned(),
            why: why.to_owned(),
        };
        let mut stripped = String::with_capacity(plain.len());
        let mut regions: Vec<Region> = Vec::new();
        let mut open: Option<(usize, usize)> = None;
        let mut times = vec![0_usize; self.parts.len()];
        for character in rendered.chars() {
            let code = u32::from(character);
            let offset = code.wrapping_sub(self.base) as usize;
            if code < self.base || offset >= 2 * self.parts.len() {
                stripped.push(character);
                continue;
            }
            let index = offset / 2;
            let part = &self.parts[index];
            match open {
                None if character == part.open => open = Some((index, stripped.len())),
                Some((opened, start)) if opened == index && character == part.close => {
                    open = None;
                    times[index] += 1;
                    regions.push(Region { name: part.name.map(str::to_owned), bytes: start..stripped.len() });
                }
                _ => return Err(lost(Some(part), "the template cuts its text")),
            }
        }
        if let Some((index, _)) = open {
            return Err(lost(Some(&self.parts[index]), "the template cuts its text"));
        }
        if stripped != plain {
            return Err(lost(None, "the template rewrites message texts"));
        }
        for (part, times) in self.parts.iter().zip(times) {
            let why = match times {
                _ if part.name.is_none() => continue,
                1 => continue,
                0 if part.placed => "the template leaves its message out",
                0 => "its message is only white space, which the template trims",
                _ => "the template writes its message more than once",
            };
            return Err(lost(Some(part), why));
        }
        Ok(regions)
    }
}

/// The tokens of each named region.
///
/// The text is cut into the regions and the rests between them; each token with bytes belongs to the cut that holds
/// most of them, on a tie to the later.
pub(crate) fn tokens_of(regions: &[Region], tokens: &[Range<usize>], text_bytes: usize) -> Vec<Span> {
    let mut cuts: Vec<(Range<usize>, Option<usize>)> = Vec::new();
    let mut at = 0;
    for (index, region) in regions.iter().enumerate() {
        cuts.push((at..region.bytes.start, None));
        cuts.push((region.bytes.clone(), Some(index)));
        at = region.bytes.end;
    }
    cuts.push((at..text_bytes, None));
    let mut owners: Vec<(usize, usize)> = Vec::with_capacity(tokens.len()); // token, cut; both rising
    let mut first_cut = 0;
    for (token, bytes) in tokens.iter().enumerate().filter(|(_, bytes)| bytes.start < bytes.end) {
        while cuts.get(first_cut).is_some_and(|(cut, _)| cut.end <= bytes.start) {
            first_cut += 1;
        }
        let owner =
            (first_cut..cuts.len()).take_while(|cut| cuts[*cut].0.start < bytes.end).max_by_key(|cut| overlap(&cuts[*cut].0, bytes)); // the last of equal ones
        owners.extend(owner.map(|cut| (token, cut)));
    }
    cuts.iter()
        .enumerate()
        .filter_map(|(cut, (bytes, region))| {
            let name = regions[(*region)?].name.clone()?;
            let first = owners.partition_point(|(_, owner)| *owner < cut);
            let end = owners.partition_point(|(_, owner)| *owner <= cut);
            let tokens = match owners[first..end] {
                [] => {
                    let next = owners.get(end).map_or(tokens.len(), |(token, _)| *token);
                    next..next
                }
                [(first, _)] => first..first + 1,
                [(first, _), .., (last, _)] => first..last + 1,
            };
            Some(Span { name, bytes: bytes.clone(), tokens })
        })
        .collect()
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}
