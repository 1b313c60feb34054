//! Tokens in a row, shaded by a weight: readable with five tokens and with thousands.

use std::fmt::Write;

use crate::token_text::{escape, is_right_to_left, isolated, label, push_visible};

/// Tokens above which neighbours without shade become one element.
const MANY: usize = 400;

/// Tokens as HTML, shaded by their weights: the largest weight is the darkest. Weights that are missing count as 0.
///
/// Each token tells its position and weight when pointed at; in a long row only those that are shaded do.
pub(crate) fn row<'a>(texts: impl ExactSizeIterator<Item = &'a str>, weights: &[f64]) -> String {
    let largest = weights.iter().copied().filter(|weight| weight.is_finite()).fold(0.0, f64::max);
    let many = texts.len() > MANY;
    let mut html = String::new();
    for (position, text) in texts.enumerate() {
        let weight = weights.get(position).copied().unwrap_or(0.0);
        let level = level(if largest > 0.0 { weight / largest } else { 0.0 });
        if many && level == 0 && is_right_to_left(text) {
            html.extend(["<bdi>", &escape(&shown(text)), "</bdi>"]);
        } else if many && level == 0 {
            html.push_str(&escape(&shown(text)));
        } else {
            token(&mut html, text, level, &format!("{position} {}: {:.2} %", isolated(&label(text, 40)), 100.0 * weight));
        }
    }
    html
}

/// Tokens as HTML with alternating shades, so that their borders are seen.
pub(crate) fn plain<'a>(tokens: impl Iterator<Item = (&'a str, u32)>) -> String {
    let mut html = String::new();
    for (position, (text, id)) in tokens.enumerate() {
        let level = if position % 2 == 0 { 1 } else { 2 };
        token(&mut html, text, level, &format!("{position}: {} (id {id})", isolated(&label(text, 40))));
    }
    html
}

/// The class of a share from 0 to 1, `h0` to `h9`.
pub(crate) fn class(share: f64) -> String {
    format!("h{}", level(share))
}

fn level(share: f64) -> u8 {
    if share.is_nan() { 0 } else { (share.clamp(0.0, 1.0) * 9.0).round() as u8 }
}

fn token(html: &mut String, text: &str, level: u8, title: &str) {
    let _ = write!(html, "<span class=\"h{level}\" title=\"{}\">{}</span>", escape(title), escape(&shown(text)));
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
            _ => push_visible(&mut shown, character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_is_the_darkest_and_nothing_is_no_shade() {
        let html = row(["a", "<b>", "\n"].into_iter(), &[0.0, 0.5, 0.25]);
        let wanted = "<span class=\"h0\" title=\"0 a: 0.00 %\">a</span>\
                      <span class=\"h9\" title=\"1 &lt;b&gt;: 50.00 %\">&lt;b&gt;</span>\
                      <span class=\"h5\" title=\"2 ⏎: 25.00 %\">⏎\n</span>";
        assert_eq!(html, wanted);
    }

    #[test]
    fn a_long_row_keeps_every_text_and_shades_only_what_was_read() {
        let texts: Vec<String> = (0..2_000).map(|number| format!("<{number}>")).collect();
        let mut weights = vec![0.0001; 2_000];
        weights[700] = 0.9;
        let html = row(texts.iter().map(String::as_str), &weights);
        assert_eq!(html.matches("<span").count(), 1);
        assert!((0..2_000).all(|number| html.contains(&format!("&lt;{number}&gt;"))));
        assert!(html.contains("title=\"700 &lt;700&gt;: 90.00 %\""));
    }

    #[test]
    fn a_token_written_from_right_to_left_keeps_its_direction_to_itself() {
        let short = row(["שלום"].into_iter(), &[0.5]);
        assert_eq!(short, "<span class=\"h9\" title=\"0 \u{2068}שלום\u{2069}: 50.00 %\">שלום</span>");
        let long = row(std::iter::repeat_n("مرحبا", 500).collect::<Vec<_>>().into_iter(), &[0.5]);
        assert_eq!(long.matches("<bdi>مرحبا</bdi>").count(), 499);
    }

    #[test]
    fn weights_that_are_no_numbers_shade_nothing() {
        let html = row(["a", "b"].into_iter(), &[f64::NAN, f64::INFINITY]);
        assert!(html.contains("h0") && !html.contains("h5"), "{html}");
    }
}
