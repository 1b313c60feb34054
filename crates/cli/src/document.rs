//! One JSON document for programs that a person can read too: an entry a line, but numbers in a row.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use crate::exit::Failure;

/// The text of a document, without the line break at its end.
///
/// Numbers in an array stand side by side: one a line would be mostly blanks, and a map of attention has many thousands.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, NumbersInRows::default());
    value.serialize(&mut serializer).map_err(Failure::internal)?;
    String::from_utf8(bytes).map_err(Failure::internal)
}

/// Writes as [`PrettyFormatter`] does, but no line break between a number and the bracket or comma before it.
#[derive(Default)]
struct NumbersInRows {
    pretty: PrettyFormatter<'static>,
    /// An array has just opened or had its comma; which of both, for whoever comes next.
    pending: Option<bool>,
    /// The last value of the innermost array was a number.
    after_number: bool,
}

impl NumbersInRows {
    /// A number comes next: the comma alone.
    fn number<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.after_number = self.pending.is_some();
        match self.pending.take() {
            Some(false) => writer.write_all(b","),
            _ => Ok(()),
        }
    }

    /// Something else comes next: on a line of its own.
    fn other<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.after_number = false;
        match self.pending.take() {
            Some(first) => self.pretty.begin_array_value(writer, first),
            None => Ok(()),
        }
    }
}

macro_rules! as_number {
    ($($write:ident($number:ty)),+ $(,)?) => {
        $(fn $write<W: ?Sized + Write>(&mut self, writer: &mut W, value: $number) -> io::Result<()> {
            self.number(writer)?;
            self.pretty.$write(writer, value)
        })+
    };
}

impl Formatter for NumbersInRows {
    /// JSON itself escapes what lies below U+0020; a terminal obeys the others too.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for part in fragment.split_inclusive(char::is_control) {
            match part.chars().next_back().filter(|last| last.is_control()) {
                Some(control) => {
                    writer.write_all(&part.as_bytes()[..part.len() - control.len_utf8()])?;
                    write!(writer, "\\u{:04x}", u32::from(control))?;
                }
                None => writer.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }

    as_number! {
        write_i8(i8), write_i16(i16), write_i32(i32), write_i64(i64), write_i128(i128),
        write_u8(u8), write_u16(u16), write_u32(u32), write_u64(u64), write_u128(u128),
        write_f32(f32), write_f64(f64), write_number_str(&str),
    }

    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.other(writer)?;
        self.pretty.write_null(writer)
    }

    fn write_bool<W: ?Sized + Write>(&mut self, writer: &mut W, value: bool) -> io::Result<()> {
        self.other(writer)?;
        self.pretty.write_bool(writer, value)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.other(writer)?;
        self.pretty.begin_string(writer)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.other(writer)?;
        self.pretty.begin_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.pending = Some(first);
        Ok(())
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.after_number) {
            // Closes the level that `begin_array` opened, without its line break.
            self.pretty.end_array(&mut io::sink())?;
            return writer.write_all(b"]");
        }
        self.pretty.end_array(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.other(writer)?;
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.after_number = false;
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_of_a_document_steers_a_terminal_and_each_reads_back() {
        let hostile = "a\x1b[2J\x7f\u{85}é\u{9b}31m\u{9f}";
        let text = super::text(&[hostile]).expect("a text");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).expect("JSON"), [hostile]);
    }

    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_in_a_row_and_everything_else_on_its_own_line() {
        let value = json!({"a": [1, -2.5, 3e20], "b": [], "c": [{"d": [0]}, {"d": 7}], "e": ["x", 1, 2], "f": [[1, 2], [3]], "g": {}});
        let wanted = r#"{
  "a": [1,-2.5,3e+20],
  "b": [],
  "c": [
    {
      "d": [0]
    },
    {
      "d": 7
    }
  ],
  "e": [
    "x",1,2],
  "f": [
    [1,2],
    [3]
  ],
  "g": {}
}"#;
        assert_eq!(text(&value).unwrap_or_else(|failure| panic!("{failure:?}")), wanted);
        assert_eq!(serde_json::from_str::<serde_json::Value>(wanted).expect("JSON"), value);
    }
}
