//! Record to terminal table, HTML, JUnit, JSON, SVG and PNG; never runs a model.
//!
//! - [`Run`]: the reports of a finished run
//! - [`inspection_html`] and its siblings: the pictures of one watched forward pass
//! - [`Lang`]: the language of what a person reads
//!
//! Invariant: a record goes in and bytes come out, so every report can be made again without the model.

mod chart;
mod colour;
mod error;
mod heat;
mod inspection;
mod known;
mod picture;
mod raster;
mod rasterise;
mod run;
mod texts;
mod token_text;
mod words;

use glassbox_record::Inspection;

pub use error::ReportError;
pub use rasterise::Picture;
pub use run::Run;
pub use texts::{Lang, UnknownLang};

use texts::Texts;

/// An inspection as a page: one file, nothing from outside, readable without scripts.
///
/// # Errors
///
/// Where a map is larger than a picture can be.
pub fn inspection_html(inspection: &Inspection, lang: Lang) -> Result<String, ReportError> {
    inspection::page::html(inspection, &Texts::new(lang))
}

/// An inspection for a terminal of `width` columns.
#[must_use]
pub fn inspection_terminal(inspection: &Inspection, lang: Lang, width: usize) -> String {
    inspection::terminal::summary(inspection, &Texts::new(lang), width)
}

/// The attention maps of an inspection as one SVG picture.
///
/// # Errors
///
/// Where a map is larger than a picture can be.
pub fn inspection_svg(inspection: &Inspection) -> Result<String, ReportError> {
    let drawn = picture::sheet(inspection)?;
    Ok(drawn.svg)
}

/// The same picture as PNG.
///
/// # Errors
///
/// Where it cannot be drawn.
pub fn inspection_png(inspection: &Inspection) -> Result<Picture, ReportError> {
    rasterise::rasterise(&picture::sheet(inspection)?)
}
