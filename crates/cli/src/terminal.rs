//! What goes to the screen: results on standard output, everything else on standard error.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::document;
use crate::exit::Failure;

/// Writes a result to standard output.
///
/// # Errors
///
/// Where the reader has gone away or the disk is full.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a value to standard output as one JSON document, byte for byte: it holds no character that steers a terminal.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print_exactly(&format!("{}\n", document::text(value)?))?;
    Ok(())
}

/// Writes what a model told: byte for byte into a file or another program; on a terminal, where it might steer, control characters are pictures.
pub(crate) fn print_told(text: &str) -> std::io::Result<()> {
    if std::io::stdout().is_terminal() { print_exactly(&harmless(text)) } else { print_exactly(text) }
}

fn print_exactly(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Control characters, but for tab and line break, as pictures of themselves.
fn harmless(text: &str) -> String {
    let picture = |character: char| match character {
        '\n' | '\t' => character,
        '\0'..='\x1F' => char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7F' => '\u{2421}',
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    };
    text.chars().map(picture).collect()
}

/// The beginning of a text for a column of a table, its spaces and control characters made visible.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 48;
    let begin: String = text.chars().take(CHARACTERS).collect();
    let more = if begin.len() < text.len() { "…" } else { "" };
    format!("{}{more}", glassbox_text::visible(&begin))
}

/// A table without lines; no header where `header` is empty.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table
}

/// Writes a table to standard output, without blanks at the ends of its lines.
pub(crate) fn print_table(mut table: Table) -> std::io::Result<()> {
    // The first column holds names to be copied: it is never broken over lines.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    print_lines(&lines.join("\n"))
}

/// Writes lines to standard output, without blanks at their ends: they would only spoil what is copied or compared.
pub(crate) fn print_lines(text: &str) -> std::io::Result<()> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    print(&format!("{}\n", lines.join("\n")))
}

/// Writes a remark to standard error. A remark that nobody can read is no reason to stop.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error, and a hint on a line of its own.
pub(crate) fn say_error(error: &str, hint: Option<&str>) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{red}error{red:#}: {error}");
    if let Some(hint) = hint {
        let _ = writeln!(err, "{cyan}hint{cyan:#}:  {hint}");
    }
}

/// A progress bar on standard error; hidden where that is no terminal or `quiet`.
pub(crate) fn progress(total: usize, what: &str, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    let style = ProgressStyle::with_template("{msg:12} {wide_bar} {pos}/{len} {elapsed_precise} (left {eta_precise})")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar.set_message(what.to_owned());
    bar
}

/// A progress bar that counts bytes on standard error, with rate and remaining time; hidden where that is no terminal or `quiet`.
pub(crate) fn byte_progress(what: &str, quiet: bool) -> ProgressBar {
    let bar = progress(0, what, quiet);
    let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} (left {eta})";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Columns to write into: those of the terminal, or 100 where there is none.
pub(crate) fn width() -> usize {
    Table::new().set_content_arrangement(ContentArrangement::Dynamic).width().map_or(100, usize::from)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_model_tells_cannot_steer_a_terminal() {
        assert_eq!(super::harmless("a\tb\n é\x1b[31m\r\x07\x7f\u{9b}2J"), "a\tb\n é␛[31m␍␇␡\u{FFFD}2J");
    }
}
