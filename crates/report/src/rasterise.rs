//! SVG to PNG, with an embedded Latin font and whatever other fonts the system has.

use std::sync::Arc;

use resvg::tiny_skia::{ColorU8, Pixmap, Transform};
use resvg::usvg::{self, fontdb};
use skrifa::MetadataProvider;

use crate::picture::{Drawn, Raster};
use crate::{ReportError, colour};

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
    prefer_plain_sans(&mut fonts);
    let missing = characters_without_font(&drawn.svg, &fonts);
    let options = usvg::Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(&drawn.svg, &options).map_err(ReportError::picture)?;
    let scale = (MOST_PIXELS / (drawn.width * drawn.height)).sqrt().min(2.0);
    let pixels = |length: f64| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(drawn.width), pixels(drawn.height)).ok_or_else(|| ReportError::picture("it has no area"))?;
    resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixmap.as_mut());
    for raster in &drawn.rasters {
        paint(&mut pixmap, raster, scale);
    }
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

/// Paints a matrix over its place: the drawing library is built without decoders for pictures, and cells stay sharp this way.
fn paint(pixmap: &mut Pixmap, raster: &Raster, scale: f64) {
    let palette = colour::palette();
    let width = pixmap.width() as usize;
    let cell = raster.edge * scale / raster.cells as f64;
    let (left, top) = (raster.x * scale, raster.y * scale);
    let pixels = pixmap.pixels_mut();
    let length = (raster.edge * scale).round() as usize;
    for row in 0..length {
        let query = ((row as f64 + 0.5) / cell) as usize;
        for column in 0..length {
            let key = ((column as f64 + 0.5) / cell) as usize;
            let step = raster.steps.get(query * raster.cells + key).copied().filter(|_| key < raster.cells).unwrap_or(colour::HIDDEN);
            let at = (top.round() as usize + row) * width + left.round() as usize + column;
            let colour = 3 * usize::from(step);
            if let (true, Some(pixel), [red, green, blue]) = (step != colour::HIDDEN, pixels.get_mut(at), &palette[colour..colour + 3]) {
                *pixel = ColorU8::from_rgba(*red, *green, *blue, u8::MAX).premultiply();
            }
        }
    }
}

/// Fallback takes the first font that has a character: without this, Chinese labels may come bold or with serifs.
fn prefer_plain_sans(fonts: &mut fontdb::Database) {
    let named = |face: &fontdb::FaceInfo, start: &str| face.families.iter().any(|(name, _)| name.starts_with(start));
    let cjk = |face: &fontdb::FaceInfo| face.families.iter().any(|(name, _)| name.contains(" CJK"));
    let plain = |face: &fontdb::FaceInfo| named(face, "Noto Sans CJK") && face.weight == fontdb::Weight::NORMAL;
    if fonts.faces().any(plain) {
        let others = fonts.faces().filter(|face| cjk(face) && !plain(face));
        let others: Vec<fontdb::ID> = others.map(|face| face.id).collect();
        for id in others {
            fonts.remove_face(id);
        }
    }
}

/// Characters outside Latin that no loaded font has a glyph for, each once.
fn characters_without_font(svg: &str, fonts: &fontdb::Database) -> Vec<char> {
    // Isolates give a direction and are never drawn.
    let drawn = |character: &char| !character.is_ascii() && !matches!(character, '\u{2066}'..='\u{2069}');
    let mut wanted: Vec<char> = svg.chars().filter(drawn).collect();
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
