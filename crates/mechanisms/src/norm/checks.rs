use glassbox_testkit::{Values, agree, sizes_across};

use super::*;

fn rms(kernels: Kernels, x: &[f32], gain: &[f32], eps: f32) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len()];
    rms_norm(kernels, x, gain, eps, &mut out);
    out
}

fn layer(kernels: Kernels, x: &[f32], gain: &[f32], bias: Option<&[f32]>, eps: f32) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len()];
    layer_norm(kernels, x, gain, bias, eps, &mut out);
    out
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Asserts that every number is `wanted`, rounded to as many places as `wanted` was printed with.
#[track_caller]
fn prints_as(found: &[f32], wanted: &[f64], places: i32) {
    let half = 0.5 * 10_f64.powi(-places) + 1e-7;
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((f64::from(*found) - wanted).abs() <= half, "found {found}, wanted {wanted}");
    }
}

const BOTH: [Kernels; 2] = [Kernels::Textbook, Kernels::Fast];

#[test]
fn the_norms_of_the_seed_example_are_these() {
    let x = [1.0, -2.0, 3.0, 0.5];
    for kernels in BOTH {
        prints_as(&layer(kernels, &x, &[1.0; 4], None, 1e-5), &[0.2106, -1.4739, 1.3335, -0.0702], 4);
        prints_as(&rms(kernels, &x, &[1.0; 4], 1e-6), &[0.5298, -1.0596, 1.5894, 0.2649], 4);
    }
}

#[test]
fn a_gain_that_holds_one_plus_w_gives_gemmas_numbers() {
    let x = [3.0, 4.0];
    for kernels in BOTH {
        prints_as(&rms(kernels, &x, &[1.0, 1.0], 1e-6), &[0.848_528, 1.131_371], 6);
        prints_as(&rms(kernels, &x, &[1.5, 0.5], 1e-6), &[1.272_792, 0.565_685], 6); // 1 + w, as GGUF stores it
        prints_as(&rms(kernels, &x, &[0.5, -0.5], 1e-6), &[0.424_264, -0.565_685], 6); // w itself: the 1 forgotten
        prints_as(&rms(kernels, &x, &[2.5, 1.5], 1e-6), &[2.121_320, 1.697_056], 6); // the 1 added twice
    }
}

#[test]
fn both_norms_agree_with_their_textbooks_across_lane_borders() {
    let mut values = Values::seeded(1);
    for d in sizes_across(8).into_iter().chain([896, 1031]) {
        for (rows, scale, shift) in [(1, 1.0, 0.0), (3, 1e-3, 0.0), (2, 30.0, 100.0)] {
            let x: Vec<f32> = values.normals(rows * d, scale).iter().map(|x| x + shift).collect();
            let (gain, bias) = (values.normals(d, 1.0), values.normals(d, 1.0));
            let (mut single, mut truth) = (vec![0.0_f32; rows * d], vec![0.0_f64; rows * d]);
            textbook::rms_norm(&x, &gain, 1e-6, &mut single);
            textbook::rms_norm(&x, &gain, 1e-6, &mut truth);
            agree(&rms(Kernels::Fast, &x, &gain, 1e-6), &single, &truth)
                .unwrap_or_else(|error| panic!("rms, d {d}, scale {scale}: {error}"));
            for bias in [None, Some(&bias[..])] {
                textbook::layer_norm(&x, &gain, bias, 1e-5, &mut single);
                textbook::layer_norm(&x, &gain, bias, 1e-5, &mut truth);
                agree(&layer(Kernels::Fast, &x, &gain, bias, 1e-5), &single, &truth)
                    .unwrap_or_else(|error| panic!("layer, d {d}, scale {scale}: {error}"));
            }
        }
    }
}

#[test]
fn root_mean_square_norm_does_not_see_the_scale_of_its_input() {
    let x = Values::seeded(2).normals(37, 1.0);
    let scaled: Vec<f32> = x.iter().map(|x| x * 1024.0).collect(); // a power of two: every step scales exactly
    for kernels in BOTH {
        assert_eq!(bits(&rms(kernels, &scaled, &[1.0; 37], 0.0)), bits(&rms(kernels, &x, &[1.0; 37], 0.0)));
    }
}

#[test]
fn layer_norm_does_not_see_a_shift_of_its_input() {
    let x: Vec<f32> = Values::seeded(3).normals(64, 1.0).iter().map(|x| (x * 256.0).round()).collect();
    let shifted: Vec<f32> = x.iter().map(|x| x + 4096.0).collect(); // whole numbers: every sum is exact
    assert_eq!(bits(&layer(Kernels::Fast, &shifted, &[1.0; 64], None, 1e-5)), bits(&layer(Kernels::Fast, &x, &[1.0; 64], None, 1e-5)));
}

#[test]
fn normalised_rows_have_mean_0_and_mean_square_1() {
    let x = Values::seeded(4).normals(3 * 96, 5.0);
    let (layered, rooted) = (layer(Kernels::Fast, &x, &[1.0; 96], None, 1e-12), rms(Kernels::Fast, &x, &[1.0; 96], 1e-12));
    for (layered, rooted) in layered.chunks(96).zip(rooted.chunks(96)) {
        assert!(layered.iter().sum::<f32>().abs() < 1e-4);
        for row in [layered, rooted] {
            assert!((row.iter().map(|y| y * y).sum::<f32>() / 96.0 - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn a_row_of_zeros_stays_zero_and_a_constant_row_becomes_its_bias() {
    for kernels in BOTH {
        assert_eq!(rms(kernels, &[0.0; 9], &[2.0; 9], 1e-6), [0.0; 9]);
        assert_eq!(layer(kernels, &[4.0; 8], &[2.0; 8], Some(&[0.5; 8]), 1e-5), [0.5; 8]);
    }
}

#[test]
fn a_row_is_normalised_alone_as_in_company() {
    let mut values = Values::seeded(5);
    let (x, gain, bias) = (values.normals(5 * 30, 1.0), values.normals(30, 1.0), values.normals(30, 1.0));
    let (together, together_layer) = (rms(Kernels::Fast, &x, &gain, 1e-6), layer(Kernels::Fast, &x, &gain, Some(&bias), 1e-5));
    for (row, x) in x.chunks(30).enumerate() {
        assert_eq!(bits(&rms(Kernels::Fast, x, &gain, 1e-6)), bits(&together[row * 30..][..30]));
        assert_eq!(bits(&layer(Kernels::Fast, x, &gain, Some(&bias), 1e-5)), bits(&together_layer[row * 30..][..30]));
    }
}

#[test]
fn a_nan_stays_in_its_row_and_is_not_swallowed() {
    let mut x = vec![1.0; 2 * 9];
    x[3] = f32::NAN;
    let out = rms(Kernels::Fast, &x, &[1.0; 9], 1e-6);
    assert!(out[..9].iter().all(|y| y.is_nan()) && out[9..].iter().all(|y| y.is_finite()));
}

/// The norms with one thing wrong.
fn planted(wrong: &str, x: &[f32], gain: &[f32], eps: f32) -> Vec<f32> {
    let d = x.len() as f32;
    let mean = if wrong == "root mean square with the mean taken off" { x.iter().sum::<f32>() / d } else { 0.0 };
    let squares: f32 = x.iter().map(|x| (x - mean) * (x - mean)).sum();
    let scale = match wrong {
        "eps outside the root" => 1.0 / ((squares / d).sqrt() + eps),
        "divided by d - 1" => 1.0 / (squares / (d - 1.0) + eps).sqrt(),
        "the sum instead of the mean" => 1.0 / (squares + eps).sqrt(),
        _ => 1.0 / (squares / d + eps).sqrt(),
    };
    x.iter().zip(gain).map(|(x, gain)| (x - mean) * scale * gain).collect()
}

#[test]
fn planted_bugs_are_caught() {
    let mut values = Values::seeded(6);
    let (x, gain) = (values.normals(65, 1e-2), values.normals(65, 1.0));
    let (mut single, mut truth) = (vec![0.0_f32; 65], vec![0.0_f64; 65]);
    textbook::rms_norm(&x, &gain, 1e-6, &mut single);
    textbook::rms_norm(&x, &gain, 1e-6, &mut truth);
    assert!(agree(&planted("nothing", &x, &gain, 1e-6), &single, &truth).is_ok());
    for wrong in ["eps outside the root", "divided by d - 1", "the sum instead of the mean", "root mean square with the mean taken off"] {
        assert!(agree(&planted(wrong, &x, &gain, 1e-6), &single, &truth).is_err(), "{wrong}");
    }
}
