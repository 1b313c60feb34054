//! SVG to PNG, with an embedded Latin font and whatever other fonts the system has.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};
use skrifa::MetadataProvider;

use crate::ReportError;
use crate::picture::Drawn;

/// A picture, and what a reader of it should know.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The PNG file.
    pub png: Vec<u8>,
    /// Such as characters that no font on this machine can draw.
    pub warnings: Vec<String>,
}

/// Most pixels of a picture: 64 million are 256 MiB while it is drawn.
const MOST_PIXELS: f64 = 64e6;

/// Draws the SVG at two pixels a unit, or fewer where it would be too large.
pub(crate) fn rasterise(drawn: &Drawn) -> Result<Picture, ReportError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_system_fonts();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let missing = characters_without_font(&drawn.svg, &fonts);
    let options = usvg::Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(&drawn.svg, &options).map_err(ReportError::picture)?;
    let scale = (MOST_PIXELS / (drawn.width * drawn.height)).sqrt().min(2.0);
    let pixels = |length: f64| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(drawn.width), pixels(drawn.height)).ok_or_else(|| ReportError::picture("it has no area"))?;
    resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixmap.as_mut());
    let warnings = if missing.is_empty() {
        Vec::new()
    } else {
        let shown: String = missing.iter().take(8).collect();
        vec![format!(
            "no font on this machine draws `{shown}`{}; install one, for Chinese such as Noto Sans CJK",
            if missing.len() > 8 { " and others" } else { "" }
        )]
    };
    Ok(Picture { png: pixmap.encode_png().map_err(ReportError::picture)?, warnings })
}

/// Characters outside Latin that no loaded font has a glyph for, each once.
fn characters_without_font(svg: &str, fonts: &fontdb::Database) -> Vec<char> {
    let mut wanted: Vec<char> = svg.chars().filter(|character| !character.is_ascii()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    for face in fonts.faces() {
        if wanted.is_empty() {
            break;
        }
        let left = fonts.with_face_data(face.id, |data, index| {
            let font = skrifa::FontRef::from_index(data, index).ok()?;
            let glyphs = font.charmap();
            Some(wanted.iter().copied().filter(|character| glyphs.map(*character).is_none()).collect::<Vec<_>>())
        });
        if let Some(left) = left.flatten() {
            wanted = left;
        }
    }
    wanted
}
