//! Where chat templates expect Python: JSON text, string methods, white space.

use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use crate::template_values;

/// The filter `tojson` as `transformers` defines it: `json.dumps` without HTML escapes and without ASCII escapes.
pub(crate) fn to_json(value: &Value, args: &Kwargs) -> Result<Value, Error> {
    let ascii: Option<bool> = args.get("ensure_ascii")?;
    let indent: Option<Value> = args.get("indent")?;
    let separators: Option<Value> = args.get("separators")?;
    let sort_keys: Option<bool> = args.get("sort_keys")?;
    args.assert_all_used()?;
    let indent = match indent.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(indent)?.min(MAX_INDENT)),
        }),
    };
    let (item, key) = match separators.filter(|pair| !pair.is_none()) {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some(pair) => {
            let part = |index: usize| -> Result<String, Error> {
                let part = pair.get_item(&Value::from(index))?;
                part.as_str().map(str::to_owned).ok_or_else(|| invalid("`separators` of tojson must be two strings"))
            };
            (part(0)?, part(1)?)
        }
    };
    let mut writer =
        JsonWriter { out: String::new(), ascii: ascii.unwrap_or(false), indent, item, key, sort_keys: sort_keys.unwrap_or(false) };
    writer.write(value, 0)?;
    Ok(Value::from(writer.out))
}

const MAX_INDENT: usize = 64; // spaces a level; more is no layout
const MAX_DEPTH: usize = 100; // levels; Python stops near 1000, our stack is smaller

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

struct JsonWriter {
    out: String,
    ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
}

impl JsonWriter {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!("tojson: more than {MAX_DEPTH} levels")));
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => {
                if value.is_integer() {
                    self.out.push_str(&value.to_string());
                } else {
                    self.out.push_str(&python_float(f64::try_from(value.clone())?));
                }
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.open('[');
                for (index, item) in items.iter().enumerate() {
                    self.before(index, depth);
                    self.write(item, depth + 1)?;
                }
                self.close(']', items.len(), depth);
            }
            ValueKind::Map => {
                let mut pairs = Vec::new();
                for key in value.try_iter()? {
                    let name = match key.kind() {
                        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
                        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
                        ValueKind::None => "null".to_owned(),
                        ValueKind::Number if key.is_integer() => key.to_string(),
                        ValueKind::Number => python_float(f64::try_from(key.clone())?),
                        other => return Err(invalid(format!("tojson: a key of type {other}"))),
                    };
                    pairs.push((name, value.get_item(&key)?));
                }
                if self.sort_keys {
                    pairs.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.open('{');
                for (index, (name, item)) in pairs.iter().enumerate() {
                    self.before(index, depth);
                    self.string(name);
                    self.out.push_str(&self.key.clone());
                    self.write(item, depth + 1)?;
                }
                self.close('}', pairs.len(), depth);
            }
            other => {
                return Err(invalid(format!("tojson: a value of type {other} is not JSON")));
            }
        }
        Ok(())
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    fn before(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push_str(&self.item.clone());
        }
        self.line(depth + 1);
    }

    fn close(&mut self, bracket: char, items: usize, depth: usize) {
        if items > 0 {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{C}' => self.out.push_str("\\f"),
                '\0'..='\u{1F}' => self.out.push_str(&format!("\\u{:04x}", u32::from(character))),
                _ if self.ascii && !character.is_ascii() => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }
}

/// A float as Python's `repr` and `json.dumps` write it: shortest digits, exponent below 1e-4 and from 1e16.
pub(crate) fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a number as exponent");
    if value == 0.0 || (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// White space as Python's `str` sees it: Unicode's, and the four separators U+001C to U+001F.
pub(crate) fn is_python_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&character)
}

/// `str.strip` without an argument.
pub(crate) fn python_strip(text: &str) -> &str {
    text.trim_matches(is_python_space)
}

/// The filter `trim`: Python's white space, or the given characters.
pub(crate) fn trim(text: &str, characters: Option<String>) -> String {
    match characters {
        None => python_strip(text).to_owned(),
        Some(characters) => text.trim_matches(|c| characters.contains(c)).to_owned(),
    }
}

/// Python methods that the compatibility layer of the template library lacks or defines differently.
pub(crate) fn method(state: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if let Some(text) = value.as_str()
        && let Some(result) = string_method(text, name, args)
    {
        return result;
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

fn string_method(text: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "strip" | "lstrip" | "rstrip" => strip(text, name, args),
        "split" | "rsplit" => split(text, name == "rsplit", args),
        "splitlines" => from_args::<(Option<bool>,)>(args).map(|(keep,)| strings(split_lines(text, keep.unwrap_or(false)))),
        "partition" | "rpartition" => from_args::<(&str,)>(args).and_then(|(separator,)| {
            if separator.is_empty() {
                return Err(invalid("empty separator"));
            }
            Ok(strings(match name {
                "partition" => match text.split_once(separator) {
                    Some((before, after)) => vec![before, separator, after],
                    None => vec![text, "", ""],
                },
                _ => match text.rsplit_once(separator) {
                    Some((before, after)) => vec![before, separator, after],
                    None => vec!["", "", text],
                },
            }))
        }),
        "removeprefix" => from_args::<(&str,)>(args).map(|(prefix,)| Value::from(text.strip_prefix(prefix).unwrap_or(text))),
        "removesuffix" => from_args::<(&str,)>(args).map(|(suffix,)| Value::from(text.strip_suffix(suffix).unwrap_or(text))),
        "index" | "rindex" => from_args::<(&str,)>(args).and_then(|(part,)| {
            let at = if name == "index" { text.find(part) } else { text.rfind(part) };
            at.map(|at| Value::from(text[..at].chars().count())).ok_or_else(|| invalid("substring not found"))
        }),
        "format" => match template_values::check_widths(text) {
            Ok(()) => return None,
            Err(error) => Err(error),
        },
        "casefold" => from_args::<()>(args).map(|()| Value::from(text.to_lowercase())),
        _ => return None,
    })
}

fn strings(parts: Vec<&str>) -> Value {
    parts.into_iter().map(Value::from).collect()
}

fn strip(text: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let (characters,): (Option<&str>,) = from_args(args)?;
    let drop = |character: char| match characters {
        Some(characters) => characters.contains(character),
        None => is_python_space(character),
    };
    Ok(Value::from(match name {
        "strip" => text.trim_matches(drop),
        "lstrip" => text.trim_start_matches(drop),
        _ => text.trim_end_matches(drop),
    }))
}

fn split(text: &str, from_right: bool, args: &[Value]) -> Result<Value, Error> {
    let (positional, keywords): (&[Value], Kwargs) = minijinja::value::from_args(args)?;
    let separator: Option<Value> = match positional.first() {
        Some(separator) => Some(separator.clone()),
        None => keywords.get("sep")?,
    };
    let most: Option<i64> = match positional.get(1) {
        Some(most) => Some(i64::try_from(most.clone())?),
        None => keywords.get("maxsplit")?,
    };
    keywords.assert_all_used()?;
    let most = usize::try_from(most.unwrap_or(-1)).unwrap_or(usize::MAX - 1);
    let parts: Vec<&str> = match separator.filter(|separator| !separator.is_none()) {
        Some(separator) => {
            let separator = separator.as_str().ok_or_else(|| invalid("the separator of split must be a string"))?;
            if separator.is_empty() {
                return Err(invalid("empty separator"));
            }
            if from_right {
                let mut parts: Vec<&str> = text.rsplitn(most + 1, separator).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(most + 1, separator).collect()
            }
        }
        None => split_at_space(text, most, from_right),
    };
    Ok(strings(parts))
}

/// `str.split()`: cuts at runs of white space, keeps no empty part.
fn split_at_space(text: &str, most: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = if from_right { text.trim_end_matches(is_python_space) } else { text.trim_start_matches(is_python_space) };
    while !rest.is_empty() {
        if parts.len() == most {
            parts.push(rest);
            break;
        }
        if from_right {
            let start = rest.char_indices().rev().find(|(_, c)| is_python_space(*c)).map_or(0, |(at, c)| at + c.len_utf8());
            parts.push(&rest[start..]);
            rest = rest[..start].trim_end_matches(is_python_space);
        } else {
            let end = rest.find(is_python_space).unwrap_or(rest.len());
            parts.push(&rest[..end]);
            rest = rest[end..].trim_start_matches(is_python_space);
        }
    }
    if from_right {
        parts.reverse();
    }
    parts
}

/// `str.splitlines`: all line ends that Python knows, `\r\n` as one.
fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let is_end = |c: char| matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(end) = rest.find(is_end) else {
            lines.push(rest);
            break;
        };
        let length = if rest[end..].starts_with("\r\n") { 2 } else { rest[end..].chars().next().map_or(0, char::len_utf8) };
        let after = end + length;
        lines.push(&rest[..if keep_ends { after } else { end }]);
        rest = &rest[after..];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, expected) in [
            (1e-7, "1e-07"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5, "1.5"),
            (-0.0, "-0.0"),
            (2.0, "2.0"),
            (1.234e100, "1.234e+100"),
            (123456789.125, "123456789.125"),
        ] {
            assert_eq!(python_float(value), expected);
        }
    }

    #[test]
    fn splitting_follows_python() {
        assert_eq!(split_at_space("  a b  c ", usize::MAX, false), ["a", "b", "c"]);
        assert_eq!(split_at_space("  a b  c ", 1, false), ["a", "b  c "]);
        assert_eq!(split_at_space("  a b  c ", 1, true), ["  a b", "c"]);
        assert_eq!(split_lines("a\r\nb\u{2028}c\n", false), ["a", "b", "c"]);
        assert_eq!(split_lines("a\r\nb\n\n", true), ["a\r\n", "b\n", "\n"]);
    }
}
