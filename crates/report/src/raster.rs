//! Attention matrices as small pictures: one pixel a cell, coloured by the scale.

use base64::Engine;

use crate::ReportError;
use crate::colour;

/// The steps of the palette of `edge × edge` weights in row order; keys after the query without weight are hidden.
pub(crate) fn steps(weights: &[f32], edge: usize) -> Vec<u8> {
    let hidden = |index: usize, weight: f32| weight == 0.0 && index % edge.max(1) > index / edge.max(1);
    let step = |(index, weight): (usize, &f32)| if hidden(index, *weight) { colour::HIDDEN } else { colour::step(*weight) };
    weights.iter().enumerate().map(step).collect()
}

/// A PNG of `edge × edge` steps of the palette, one pixel a cell; hidden ones are transparent.
pub(crate) fn png(steps: &[u8], edge: usize) -> Result<Vec<u8>, ReportError> {
    let size = u32::try_from(edge).map_err(|_| ReportError::TooLarge { what: "an attention map", edge })?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size, size);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(colour::palette());
    encoder.set_trns(vec![0]);
    let mut writer = encoder.write_header().map_err(ReportError::picture)?;
    writer.write_image_data(steps).map_err(ReportError::picture)?;
    writer.finish().map_err(ReportError::picture)?;
    Ok(bytes)
}

/// The same as a `data:` address.
pub(crate) fn png_data(steps: &[u8], edge: usize) -> Result<String, ReportError> {
    Ok(format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(png(steps, edge)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_the_steps_of_its_weights() {
        let bytes = png(&steps(&[1.0, 0.0, 0.0, 0.125], 2), 2).expect("drawn");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
        reader.next_frame(&mut pixels).expect("a frame");
        assert_eq!(&pixels[..4], [255, colour::HIDDEN, 1, 128]);
    }
}
