//! How a token is written where it must fit: on one line, with its white space visible, and never as markup.

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
        label.extend(inner.chars().map(visible));
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
    let shown = |character: char| match character {
        '\n' | '\u{a0}' | '\u{3000}' => character,
        '\u{80}'..='\u{9f}' => '·',
        _ => visible(character),
    };
    text.chars().map(shown).collect()
}

/// A character that cannot be seen as one that can.
fn visible(character: char) -> char {
    match character {
        '\n' => '⏎',
        '\t' => '⇥',
        '\r' => '␍',
        '\u{7f}' => '␡',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('␀'),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{2028}' | '\u{2029}' => '·',
        '\u{a0}' | '\u{3000}' => '␣',
        _ => character,
    }
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
        assert_eq!(label("\u{202e}abc", 12), "·abc");
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
        assert_eq!(printable("a\u{1b}[31m\u{9b}2J\u{202e}\nb\u{3000}"), "a␛[31m·2J·\nb\u{3000}");
    }

    #[test]
    fn no_token_can_become_markup() {
        let hostile = "\"><img src=x onerror=alert(1)></script>&'\u{1}";
        let escaped = escape(hostile);
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{1}']), "{escaped}");
    }
}
