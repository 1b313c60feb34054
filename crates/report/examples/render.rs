//! Draws reports from what a run or an inspection left behind, without a model.
//!
//! `cargo run -p glassbox-report --example render -- <run folder | inspection.json> <folder for the results> [en|zh-CN]`

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use glassbox_record::{Inspection, RunReader};
use glassbox_report::{Lang, Run, inspection_html, inspection_png, inspection_svg, inspection_terminal};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = arguments.as_slice() else {
        return Err("wanted: <run folder | inspection.json> <folder for the results> [en|zh-CN]".into());
    };
    let lang: Lang = rest.first().map_or(Ok(Lang::En), |tag| tag.parse())?;
    let (from, to) = (Path::new(from), Path::new(to));
    fs::create_dir_all(to)?;
    if from.is_dir() {
        let run = Run::load(&RunReader::open(from)?)?;
        for path in run.write_reports(to, lang)? {
            writeln!(out, "{} {}", fs::metadata(&path)?.len(), path.display())?;
        }
        writeln!(out, "{}", run.terminal_summary(lang, 100))?;
        return Ok(());
    }
    let inspection: Inspection = serde_json::from_slice(&fs::read(from)?)?;
    let picture = inspection_png(&inspection)?;
    for warning in &picture.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let documents = [
        ("inspection.html", inspection_html(&inspection, lang)?.into_bytes()),
        ("inspection.svg", inspection_svg(&inspection)?.into_bytes()),
        ("inspection.png", picture.png),
    ];
    for (name, bytes) in documents {
        writeln!(out, "{} {name}", bytes.len())?;
        fs::write(to.join(name), bytes)?;
    }
    writeln!(out, "{}", inspection_terminal(&inspection, lang, 100))?;
    Ok(())
}
