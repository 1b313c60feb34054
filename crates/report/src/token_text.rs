//! How a token is written where it must fit: on one line, with its white space visible, and never as markup.

use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text of a token as a label: line ends and other controls as signs, a leading or trailing space as `␣`, at most `limit` characters.
pub(crate) fn label(text: &str, limit: usize) -> String {
    let inner = text.trim_matches(' ');
    let (before, after) = (text.len() - text.trim_start_matches(' ').len(), text.len() - text.trim_end_matches(' ').len());
    let mut label = String::new();
    if inner.is_empty() {
        label = "␣".repeat(text.len().min(limit));
    } else {
        label.push_str(&"␣".repeat(before));
        inner.chars().for_each(|character| push_visible(&mut label, character));
        label.push_str(&"␣".repeat(after));
    }
    if label.is_empty() {
        return "∅".to_owned();
    }
    if label.chars().count() > limit {
        label = label.chars().take(limit.saturating_sub(1)).chain(std::iter::once('…')).collect();
    }
    label
}

/// The text of a token as a label of at most so many columns of a terminal; a Chinese character takes two.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let whole = label(text, columns.max(1));
    if whole.width() <= columns {
        return whole;
    }
    let mut fitted = String::new();
    for character in whole.trim_end_matches('…').chars() {
        if fitted.width() + character.width().unwrap_or(0) >= columns {
            break;
        }
        fitted.push(character);
    }
    fitted.push('…');
    fitted
}

/// A sentence as HTML: escaped, and what stands between backticks as code.
pub(crate) fn with_code(sentence: &str) -> String {
    let escaped = escape(sentence);
    let parts: Vec<&str> = escaped.split('`').collect();
    let mut html = String::new();
    for (index, part) in parts.iter().enumerate() {
        let (inside, closed) = (index % 2 == 1, index + 1 < parts.len());
        match (inside, closed) {
            (true, true) => html.extend(["<code>", part, "</code>"]),
            (true, false) => html.extend(["`", part]),
            (false, _) => html.push_str(part),
        }
    }
    html
}

/// Text for a terminal: controls other than line ends become visible, so that no name or answer can steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        match character {
            // Variation selectors choose the look of the character before them and steer nothing.
            '\n' | '\u{a0}' | '\u{3000}' | '\u{fe00}'..='\u{fe0f}' => printable.push(character),
            _ => push_visible(&mut printable, character),
        }
    }
    printable
}

/// A character as it is, or, where it cannot be seen, as a sign or by its number.
pub(crate) fn push_visible(text: &mut String, character: char) {
    match character {
        '\n' => text.push('⏎'),
        '\t' => text.push('⇥'),
        '\r' => text.push('␍'),
        '\u{7f}' => text.push('␡'),
        '\0'..='\u{1f}' => text.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('␀')),
        '\u{a0}' | '\u{3000}' => text.push('␣'),
        _ if takes_no_room(character) => {
            let _ = write!(text, "⟨U+{:04X}⟩", u32::from(character));
        }
        _ => text.push(character),
    }
}

/// Controls and format characters: they change the look of others, or have none.
fn takes_no_room(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// A label that keeps its direction to itself, so that numbers beside it stay where they are: between U+2068 and U+2069 where it is written
/// from right to left, else as it is. A label holds neither of both itself.
pub(crate) fn isolated(label: &str) -> String {
    if is_right_to_left(label) { format!("\u{2068}{label}\u{2069}") } else { label.to_owned() }
}

/// Whether a text has characters of scripts that are written from right to left: Hebrew, Arabic and their kin.
pub(crate) fn is_right_to_left(text: &str) -> bool {
    text.chars().any(|character| {
        matches!(character,
            '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
    })
}

/// The text with every character that means something in markup replaced; safe in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_controls_become_visible() {
        assert_eq!(label(" the", 12), "␣the");
        assert_eq!(label("\n\n", 12), "⏎⏎");
        assert_eq!(label("  ", 12), "␣␣");
        assert_eq!(label("", 12), "∅");
        assert_eq!(label("\u{202e}abc", 12), "⟨U+202E⟩abc");
        // A joiner that is split over three tokens, as its last piece names it.
        assert_eq!(label("\u{200d} 3/3", 16), "⟨U+200D⟩ 3/3");
        assert_eq!(label("extraordinary", 6), "extra…");
    }

    #[test]
    fn a_label_fits_its_columns() {
        assert_eq!(fit("extraordinary", 6), "extra…");
        assert_eq!(fit("支持中心", 5), "支持…");
        assert_eq!(fit("支持", 4), "支持");
    }

    #[test]
    fn code_in_a_sentence_is_escaped_too() {
        assert_eq!(with_code("`a<b` is 1, `"), "<code>a&lt;b</code> is 1, `");
    }

    #[test]
    fn nothing_printed_can_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[31m\u{9b}2J\u{202e}\nb\u{3000}"), "a␛[31m⟨U+009B⟩2J⟨U+202E⟩\nb\u{3000}");
    }

    #[test]
    fn only_what_is_written_from_right_to_left_is_isolated_and_nothing_can_break_out() {
        assert_eq!([isolated("the"), isolated("词"), isolated("!1")], ["the", "词", "!1"]);
        assert_eq!(isolated("שלום"), "\u{2068}שלום\u{2069}");
        let hostile = isolated(&label("\u{2069}مرحبا\u{2068}", 40));
        assert_eq!(hostile.matches(['\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}']).count(), 2, "{hostile}");
    }

    #[test]
    fn no_token_can_become_markup() {
        let hostile = "\"><img src=x onerror=alert(1)></script>&'\u{1}";
        let escaped = escape(hostile);
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{1}']), "{escaped}");
    }
}
