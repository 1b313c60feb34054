//! Tokens in a row, shaded by a weight: readable with five tokens and with thousands.

use crate::token_text::label;

/// A token as a template shows it.
pub(crate) struct HeatToken {
    /// The text, line ends kept so that the prompt keeps its shape.
    pub(crate) text: String,
    /// Class of the shade, `h0` to `h9`.
    pub(crate) class: String,
    /// Position, text and weight, shown when pointed at.
    pub(crate) title: String,
}

/// Shades of a row of tokens: the largest weight is the darkest. Weights that are missing count as 0.
pub(crate) fn row<'a>(texts: impl Iterator<Item = &'a str>, weights: &[f64]) -> Vec<HeatToken> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    texts
        .enumerate()
        .map(|(position, text)| {
            let weight = weights.get(position).copied().unwrap_or(0.0);
            let title = format!("{position} {}: {:.2} %", label(text, 40), 100.0 * weight);
            HeatToken { text: shown(text), class: class(if largest > 0.0 { weight / largest } else { 0.0 }), title }
        })
        .collect()
}

/// The same without weights.
pub(crate) fn plain<'a>(texts: impl Iterator<Item = (&'a str, u32)>) -> Vec<HeatToken> {
    let numbered = texts.enumerate();
    let token = |(position, (text, id)): (usize, (&str, u32))| HeatToken {
        text: shown(text),
        class: if position % 2 == 0 { "h1".to_owned() } else { "h2".to_owned() },
        title: format!("{position}: {} (id {id})", label(text, 40)),
    };
    numbered.map(token).collect()
}

/// The class of a share from 0 to 1.
pub(crate) fn class(share: f64) -> String {
    let level = if share.is_nan() { 0.0 } else { (share.clamp(0.0, 1.0) * 9.0).round() };
    format!("h{level:.0}")
}

/// A token inside running text: line ends visible and kept, other controls visible.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "∅".to_owned();
    }
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("⏎\n"),
            ' ' => shown.push(' '),
            _ => shown.push_str(&label(character.encode_utf8(&mut [0; 4]), 1)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_is_the_darkest_and_nothing_is_no_shade() {
        let row = row(["a", "b", "\n"].into_iter(), &[0.0, 0.5, 0.25]);
        assert_eq!(row.iter().map(|token| token.class.as_str()).collect::<Vec<_>>(), ["h0", "h9", "h5"]);
        assert_eq!(row[2].text, "⏎\n");
        assert_eq!(row[1].title, "1 b: 50.00 %");
    }
}
