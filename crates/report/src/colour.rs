//! One sequential colour scale for weights from 0 to 1, readable on light and dark ground and without colour vision:
//! lightness rises evenly from almost black to almost white while the hue turns from violet over teal to yellow.

/// Steps of the palette: one byte of an indexed picture.
pub(crate) const STEPS: usize = 256;

/// The colour of an attention weight. The cube root spreads small weights, so that a head that looks at 2,000 tokens alike
/// does not look like one that looks at nothing.
pub(crate) fn of(weight: f32) -> [u8; 3] {
    on_scale(place(weight))
}

/// Where a weight stands on the scale, 0 to 1.
pub(crate) fn place(weight: f32) -> f32 {
    if weight.is_nan() { 0.0 } else { weight.clamp(0.0, 1.0).cbrt() }
}

/// The colour of a place on the scale; values outside 0 to 1 are cut, what is no number is black.
pub(crate) fn on_scale(place: f32) -> [u8; 3] {
    let position = if place.is_nan() { 0.0 } else { f64::from(place.clamp(0.0, 1.0)) };
    // Begins lighter than the ground of a dark page, so that the shape of the matrix is seen on it.
    let lightness = 0.20 + 0.76 * position;
    let chroma = 0.055 + 0.30 * position * (1.0 - position);
    let hue = (300.0 - 200.0 * position).to_radians();
    oklab_to_srgb(lightness, chroma * hue.cos(), chroma * hue.sin())
}

/// The step of the palette that is no colour: a key that the query cannot see.
pub(crate) const HIDDEN: u8 = 0;

/// The step of a weight in the palette.
pub(crate) fn step(weight: f32) -> u8 {
    1 + (place(weight) * 254.0).round() as u8
}

/// Every colour of the palette, three bytes each; the first is [`HIDDEN`].
pub(crate) fn palette() -> Vec<u8> {
    (0..STEPS).flat_map(|step| on_scale((step as f32 - 1.0) / 254.0)).collect()
}

/// A colour as `#rrggbb`.
pub(crate) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Oklab to sRGB bytes (Ottosson 2020, "A perceptual color space for image processing").
fn oklab_to_srgb(lightness: f64, a: f64, b: f64) -> [u8; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    linear.map(|channel| {
        let channel = channel.clamp(0.0, 1.0);
        let encoded = if channel <= 0.003_130_8 { 12.92 * channel } else { 1.055 * channel.powf(1.0 / 2.4) - 0.055 };
        (encoded * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2), 0 to 1.
    fn luminance([red, green, blue]: [u8; 3]) -> f64 {
        let linear = |byte: u8| {
            let channel = f64::from(byte) / 255.0;
            if channel <= 0.040_45 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn a_larger_weight_is_never_darker() {
        let all: Vec<f64> = (0..STEPS).map(|step| luminance(of(step as f32 / 255.0))).collect();
        assert!(all.windows(2).all(|pair| pair[1] >= pair[0] - 0.002), "{all:?}");
        assert!(all[0] < 0.03 && all[STEPS - 1] > 0.8, "{} to {}", all[0], all[STEPS - 1]);
    }

    #[test]
    fn what_is_no_weight_has_a_colour_too() {
        assert_eq!(of(f32::NAN), of(0.0));
        assert_eq!(of(7.0), of(1.0));
        assert_eq!([step(f32::INFINITY), step(f32::NAN), step(-1.0)], [255, 1, 1]);
    }
}
