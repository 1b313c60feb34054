//! An inspection on a terminal.

use std::fmt::Write;

use glassbox_record::Inspection;
use unicode_width::UnicodeWidthStr;

use crate::texts::Texts;
use crate::token_text::{label, printable};

/// Characters of a full bar.
const BAR: f64 = 30.0;
/// Shades from nothing to all.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Tokens, next tokens, and the entropy of every head.
pub(crate) fn summary(inspection: &Inspection, t: &Texts, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", inspection.model.name, inspection.model.description);
    let _ = writeln!(text, "\n{}", t.with("token-count", &[("count", &inspection.tokens.len())]));
    tokens(&mut text, inspection, width);
    if inspection.next_entropy_nats.is_some() {
        let _ = writeln!(text, "\n{}", t.get("next-tokens"));
    }
    for token in &inspection.next {
        let name = label(&token.text, 20);
        let pad = " ".repeat(22_usize.saturating_sub(name.width()));
        let bar = "█".repeat((BAR * token.probability).round() as usize);
        let _ = writeln!(text, "  {name}{pad}{:>7} {:>9.3} {:>7.4} {bar}", token.id, token.logit, token.probability);
    }
    let _ = writeln!(text, "\n{}", t.get("head-grid"));
    if super::nothing_to_measure(inspection) {
        let _ = writeln!(text, "{}", t.get("head-grid-nothing"));
    } else {
        let _ = writeln!(text, "{}\n  0 {} 1", t.get("head-grid-explained"), SHADES.iter().collect::<String>());
        grid(&mut text, inspection, t);
    }
    printable(&text)
}

/// The tokens between bars, wrapped at the width; the middle of a long prompt is left out.
fn tokens(text: &mut String, inspection: &Inspection, width: usize) {
    const ENDS: usize = 120;
    let count = inspection.tokens.len();
    let mut column = 0;
    for (position, token) in inspection.tokens.iter().enumerate() {
        let left_out = count > 2 * ENDS && (ENDS..count - ENDS).contains(&position);
        if left_out && position > ENDS {
            continue;
        }
        let shown = if left_out { format!("… {} …", count - 2 * ENDS) } else { label(&token.text, 30) };
        if column + shown.width() + 1 > width.max(20) {
            text.push('\n');
            column = 0;
        }
        let _ = write!(text, "{shown}|");
        column += shown.width() + 1;
    }
    text.push('\n');
}

fn grid(text: &mut String, inspection: &Inspection, t: &Texts) {
    for layer in 0..inspection.model.layers {
        let of_layer = inspection.heads.iter().filter(|head| head.layer == layer);
        let shades: String = of_layer
            .map(|head| head.normalised_entropy.map_or(' ', |entropy| SHADES[((entropy.clamp(0.0, 1.0) * 4.0).round() as usize).min(4)]))
            .flat_map(|shade| [shade, shade])
            .collect();
        let _ = writeln!(text, "  {} {layer:>3}  {shades}", t.get("layer"));
    }
}
