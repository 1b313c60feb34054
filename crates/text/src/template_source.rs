//! What is changed in a template's source before the library compiles it, and which sources are refused.
//!
//! The library descends once for each operator of a tag and for each `elif`, and nothing there bounds the way down; and it lets a template
//! build values that contain themselves. Both would end the process, so both are bounded here.

use crate::error::Error;

/// Words, marks and texts of the longest tag, and branches of all conditions: the longest known tag has some 150, and a template 30 branches.
pub const TEMPLATE_CHAIN: usize = 2_000;

/// Filter that bounds how deeply a value is nested before a variable holds it.
pub(crate) const KEPT: &str = "kept_by_variable";
/// As [`KEPT`], for an attribute of a namespace, which holds no namespace: it might be the same one.
pub(crate) const KEPT_IN_NAMESPACE: &str = "kept_by_namespace";

/// The source as it is compiled:
///
/// - `{% generation %}` … `{% endgeneration %}`, which mark assistant text for training, are a plain scope with the same white-space control;
/// - what `set`, `with`, `for`, and the parameters of `macro` and `call` name goes through one of the two filters above.
///
/// # Errors
/// [`Error::TemplateLimit`] where a tag, or the number of branches, is longer than [`TEMPLATE_CHAIN`]; [`Error::Template`] for a recursive loop, whose
/// values no filter meets.
pub(crate) fn prepared(name: &str, source: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(source.len());
    let mut branches = 0;
    let mut at = 0;
    while let Some(tag) = next_tag(source, at) {
        let inside = &source[tag.inside.clone()];
        let word = first_word(inside);
        branches += usize::from(word == "elif");
        if tag.tokens > TEMPLATE_CHAIN || branches > TEMPLATE_CHAIN {
            return Err(Error::TemplateLimit { name: name.to_owned(), limit: "length of a tag", value: format!("{TEMPLATE_CHAIN} words") });
        }
        out.push_str(&source[at..tag.inside.start]);
        let mut bounded_parameters = String::new();
        match word {
            "generation" => out.push_str(&inside.replacen("generation", "with", 1)),
            "endgeneration" => out.push_str(&inside.replacen("endgeneration", "endwith", 1)),
            "set" => out.push_str(&bounded_set(inside).unwrap_or_else(|| inside.to_owned())),
            "with" => out.push_str(&bounded_with(inside).unwrap_or_else(|| inside.to_owned())),
            "for" => {
                let (bounded, rest) = bounded_for(inside).unwrap_or_else(|| (inside.to_owned(), ""));
                if rest.split_whitespace().any(|word| word == "recursive") {
                    let line = source[..tag.inside.start].matches('\n').count() + 1;
                    return Err(Error::Template { name: name.to_owned(), line, message: "recursive loops are not run".to_owned() });
                }
                out.push_str(&bounded);
            }
            "macro" | "call" => {
                bounded_parameters = parameters(inside);
                out.push_str(inside);
            }
            _ => out.push_str(inside),
        }
        at = tag.inside.end;
        if !bounded_parameters.is_empty() && source[at..].starts_with("%}") {
            out.push_str("%}");
            out.push_str(&bounded_parameters);
            at += 2;
        }
        if word == "raw" {
            // Nothing is a tag up to its end.
            let end = source[at..].find("endraw").map_or(source.len(), |end| at + end);
            out.push_str(&source[at..end]);
            at = end;
        }
    }
    out.push_str(&source[at..]);
    Ok(out)
}

/// `set name = value` with the value behind a filter; `None` for `set name`, whose value is the text up to `endset`.
fn bounded_set(inside: &str) -> Option<String> {
    let (inside, mark) = without_mark(inside);
    let at = assignment(inside)?;
    let (target, value) = (&inside[..at], &inside[at + 1..]);
    if value.trim().is_empty() {
        return None; // a mistake that the library names
    }
    let filter = if target.contains('.') { KEPT_IN_NAMESPACE } else { KEPT };
    Some(format!("{target}= ({value}) | {filter} {mark}"))
}

/// `with a = 1, b = 2` with every value behind a filter; `None` where nothing is named.
fn bounded_with(inside: &str) -> Option<String> {
    let (inside, mark) = without_mark(inside);
    let start = inside.find("with")? + "with".len();
    let bounded = parts(&inside[start..]).into_iter().map(|part| {
        let at = assignment(part)?;
        (!part[at + 1..].trim().is_empty()).then(|| format!("{}= ({}) | {KEPT} ", &part[..at], &part[at + 1..]))
    });
    Some(format!("{}{}{mark}", &inside[..start], bounded.collect::<Option<Vec<_>>>()?.join(",")))
}

/// `for name in values` with the values behind a filter, and what comes after the values.
fn bounded_for(inside: &str) -> Option<(String, &str)> {
    let start = word_at(inside, 0, &["in"])? + "in".len();
    let end = word_at(inside, start, &["if", "recursive"]).unwrap_or(without_mark(inside).0.len());
    let values = &inside[start..end];
    (!values.trim().is_empty()).then(|| (format!("{} ({values}) | {KEPT} {}", &inside[..start], &inside[end..]), &inside[end..]))
}

/// Tags that put the parameters of a `macro` or `call` behind a filter before anything else happens.
fn parameters(inside: &str) -> String {
    let (inside, mark) = without_mark(inside);
    // `call f(x)` has no parameters: its first bracket belongs to what is called.
    let own = |open: &usize| first_word(inside) == "macro" || inside[..*open].trim_end().ends_with("call");
    let Some((open, close)) = inside.find('(').filter(own).and_then(|open| Some((open, closing(inside, open)?))) else {
        return String::new();
    };
    let names = parts(&inside[open + 1..close]).into_iter().map(|part| part.split('=').next().unwrap_or_default().trim());
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    names.filter(is_name).map(|name| format!("{{% set {name} = ({name}) | {KEPT} {mark}%}}")).collect()
}

/// What is inside a tag without the mark of white-space control at its end, and the mark.
fn without_mark(inside: &str) -> (&str, &str) {
    inside.split_at(if inside.ends_with(['-', '+']) { inside.len() - 1 } else { inside.len() })
}

/// Byte of the `=` that assigns.
fn assignment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut scan = Scan::default();
    (0..bytes.len()).find(|at| {
        let here = scan.step(bytes, *at) == Some(b'=') && scan.depth == 0;
        let before = at.checked_sub(1).map(|before| bytes[before]);
        here && bytes.get(at + 1) != Some(&b'=') && !matches!(before, Some(b'=' | b'!' | b'<' | b'>'))
    })
}

/// Byte, from `start` on, of the first of these words that stands outside of brackets and texts.
fn word_at(text: &str, start: usize, words: &[&str]) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut scan = Scan::default();
    let in_word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii());
    (start..bytes.len()).find(|at| {
        let code = scan.step(bytes, *at).is_some()
            && scan.depth == 0
            && at.checked_sub(1).is_none_or(|before| !in_word(before) && bytes[before] != b'.');
        code && words.iter().any(|word| bytes[*at..].starts_with(word.as_bytes()) && !in_word(at + word.len()))
    })
}

/// Byte of the bracket that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut scan = Scan::default();
    (open..bytes.len()).find(|at| scan.step(bytes, *at).is_some() && scan.depth == 0)
}

/// The parts between the commas outside of brackets and texts.
fn parts(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut scan, mut parts, mut start) = (Scan::default(), Vec::new(), 0);
    for at in 0..bytes.len() {
        if scan.step(bytes, at) == Some(b',') && scan.depth == 0 {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A `{{ … }}` or `{% … %}`.
struct Tag {
    /// Bytes between the braces.
    inside: std::ops::Range<usize>,
    /// Words, marks and texts.
    tokens: usize,
}

/// The first tag from byte `at` on; comments are none. A tag without an end reaches to the end of the source.
fn next_tag(source: &str, mut at: usize) -> Option<Tag> {
    let bytes = source.as_bytes();
    loop {
        at += source[at..].find('{')?;
        match bytes.get(at + 1) {
            Some(b'#') => at = source[at..].find("#}").map_or(source.len(), |end| at + end + 2),
            Some(kind @ (b'%' | b'{')) => return Some(tag_from(bytes, at + 2, *kind)),
            _ => at += 1,
        }
    }
}

fn tag_from(bytes: &[u8], start: usize, kind: u8) -> Tag {
    let close = if kind == b'{' { b'}' } else { kind };
    let mut scan = Scan::default();
    let mut tokens = 0;
    let mut in_word = false;
    for at in start..bytes.len() {
        let open = kind == b'%' || scan.depth == 0;
        let in_text = scan.quote.is_some();
        if !in_text && open && bytes[at] == close && bytes.get(at + 1) == Some(&b'}') {
            return Tag { inside: start..at, tokens };
        }
        let code = scan.step(bytes, at);
        let word = code.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii());
        let begins_text = !in_text && scan.quote.is_some();
        let is_mark = code.is_some_and(|byte| !byte.is_ascii_whitespace()) && !word;
        tokens += usize::from(begins_text || is_mark || (word && !in_word));
        in_word = word;
    }
    Tag { inside: start..bytes.len(), tokens }
}

/// Where in an expression the scan is.
#[derive(Default)]
struct Scan {
    quote: Option<u8>,
    escaped: bool,
    /// Open brackets of all kinds.
    depth: usize,
}

impl Scan {
    /// Goes over the byte at `at`; gives it where it is code and not a text in quotes.
    fn step(&mut self, bytes: &[u8], at: usize) -> Option<u8> {
        let byte = bytes[at];
        if let Some(quote) = self.quote {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == quote {
                self.quote = None;
            }
            return None;
        }
        match byte {
            b'"' | b'\'' => {
                self.quote = Some(byte);
                return None;
            }
            b'(' | b'[' | b'{' => self.depth += 1,
            b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Some(byte)
    }
}

fn first_word(inside: &str) -> &str {
    let inside = inside.trim_start_matches(['-', '+']).trim_start();
    let end = inside.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inside.len());
    &inside[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(source: &str) -> String {
        super::prepared("test", source).expect("short")
    }

    #[test]
    fn what_a_variable_keeps_goes_through_a_filter_and_all_else_stays() {
        for (source, expected) in [
            ("{%- set a = 1 -%}", "{%- set a = ( 1 ) | kept_by_variable -%}"),
            ("{% set ns.a = '=%}' ~ x %}", "{% set ns.a = ( '=%}' ~ x ) | kept_by_namespace %}"),
            ("{% set a, b = f(x=1), {'c': 2} %}", "{% set a, b = ( f(x=1), {'c': 2} ) | kept_by_variable %}"),
            ("{% set a | replace('b', new='c') %}x{% endset %}", "{% set a | replace('b', new='c') %}x{% endset %}"),
            ("{% set a == 1 %}{% set a = %}", "{% set a == 1 %}{% set a = %}"),
            ("{% with a=1, b=[2, 3] -%}", "{% with a= (1) | kept_by_variable , b= ([2, 3] ) | kept_by_variable -%}"),
            ("{%- for a, b in x.items() if a in b -%}", "{%- for a, b in ( x.items() ) | kept_by_variable if a in b -%}"),
            ("{% for in_ in 'x in y' %}", "{% for in_ in ( 'x in y' ) | kept_by_variable %}"),
            (
                "{% macro f(a, b=g(1)) -%}x",
                "{% macro f(a, b=g(1)) -%}{% set a = (a) | kept_by_variable -%}{% set b = (b) | kept_by_variable -%}x",
            ),
            ("{% call(a) f(b) %}x", "{% call(a) f(b) %}{% set a = (a) | kept_by_variable %}x"),
            ("{% call f(b) %}x{% for %}{% with %}{% macro f() %}", "{% call f(b) %}x{% for %}{% with %}{% macro f() %}"),
            ("{%- generation -%}x{% endgeneration %}", "{%- with -%}x{% endwith %}"),
            ("{# {% set a = 1 %} #}{{ {'a': {}}}}{% raw %}{% set a = 1 %}{% endraw %}", ""),
            ("set a = 1 {{ '{% set a = 1 %}' }} {%", ""),
        ] {
            assert_eq!(prepared(source), if expected.is_empty() { source } else { expected });
        }
    }

    #[test]
    fn the_length_of_a_tag_is_bounded_and_texts_count_as_one_word() {
        let long = |inside: &str| super::prepared("test", &format!("{{{{ {inside} }}}}")).is_err();
        assert!(long(&"-".repeat(TEMPLATE_CHAIN + 1)) && long(&"a.".repeat(TEMPLATE_CHAIN)) && long(&"é ".repeat(TEMPLATE_CHAIN + 1)));
        assert!(!long(&format!("'{}'", "- ".repeat(TEMPLATE_CHAIN))) && !long(&"a".repeat(TEMPLATE_CHAIN)));
        assert!(super::prepared("test", &"{% elif a %}".repeat(TEMPLATE_CHAIN + 1)).is_err());
    }
}
