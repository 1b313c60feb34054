use super::*;

/// Qwen's long contexts: 32 768 tokens stretched to four times as many.
fn yarn(factor: f64) -> Scaling {
    Scaling::Yarn {
        factor,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_context: 32_768.0,
        whole_pairs: true,
        attention_factor: yarn_attention_factor(factor, 1.0),
    }
}

const SHORT: [f32; 8] = [1.0, 1.05, 1.1, 1.3, 1.7, 2.0, 2.5, 3.1];
const LONG: [f32; 8] = [1.0, 1.5, 2.0, 3.5, 6.0, 9.0, 15.0, 21.0];

fn longrope() -> Scaling {
    let attention_factor = longrope_attention_factor(8.0, 32.0);
    Scaling::LongRope { short: SHORT.to_vec(), long: LONG.to_vec(), original_context: 32.0, attention_factor }
}

fn exact(width: usize, theta: f64, scaling: Scaling) -> Rotary {
    Rotary::new(width, width, theta, scaling, Pairing::Halves).expect("sound settings")
}

#[track_caller]
fn near(found: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    for (pair, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found / wanted - 1.0).abs() <= tolerance, "pair {pair}: {found}, wanted {wanted}");
    }
}

#[test]
fn scaled_frequencies_agree_with_the_textbook() {
    // Exponents and logarithms of f64, each with a relative error of some 1e-16 that an exponent of 20 grows.
    let tolerance = 1e-13;
    for (width, theta) in [(16, 1e4), (128, 1e6), (96, 1e4)] {
        for factor in [1.0, 4.0, 64.0] {
            let wanted = textbook::yarn_inv_freq(width, theta, factor, 32_768.0, (32.0, 1.0));
            near(&exact(width, theta, yarn(factor)).frequencies(7), &wanted, tolerance);
            for sequence in [1, 2048, 2049, 100_000] {
                let scaling = Scaling::DynamicNtk { factor, original_context: 2048.0 };
                let theta_now = textbook::dynamic_theta(theta, width, factor, 2048.0, sequence as f64);
                near(&exact(width, theta, scaling).frequencies(sequence), &textbook::inv_freq(width, theta_now), tolerance);
            }
        }
    }
    for (sequence, divisors) in [(1, SHORT), (32, SHORT), (33, LONG), (9999, LONG)] {
        let wanted = textbook::longrope_inv_freq(16, 1e4, &divisors.map(f64::from));
        near(&exact(16, 1e4, longrope()).frequencies(sequence), &wanted, tolerance);
    }
}

#[test]
fn yarn_keeps_blends_and_divides_the_pairs_of_qwen() {
    let (plain, scaled) = (exact(128, 1e6, Scaling::None).frequencies(1), exact(128, 1e6, yarn(4.0)).frequencies(1));
    for (pair, (plain, scaled)) in plain.iter().zip(&scaled).enumerate() {
        let ratio = plain / scaled;
        match pair {
            0..=23 => assert_eq!(ratio, 1.0, "pair {pair} is kept"),
            24..=39 => assert!(ratio > 1.0 && ratio < 4.0, "pair {pair} is blended, found ratio {ratio}"),
            _ => assert!((ratio - 4.0).abs() < 1e-12, "pair {pair} is divided, found ratio {ratio}"),
        }
    }
    for (pair, wanted) in [(23, 0.006_978_31), (24, 0.005_375_32), (30, 0.001_064_36), (39, 6.490_39e-5)] {
        assert!((scaled[pair] / wanted - 1.0).abs() < 2e-6, "pair {pair}: {}", scaled[pair]);
    }
}

#[test]
fn attention_factors_have_the_published_values() {
    for (factor, wanted) in [(1.0, 1.0), (4.0, 1.138_629), (8.0, 1.207_944), (64.0, 1.415_888)] {
        assert!((yarn_attention_factor(factor, 1.0) - wanted).abs() < 1e-6);
    }
    // DeepSeek divides one by another of the same weight: nothing is left.
    assert_eq!(yarn_attention_factor(40.0, 0.707) / yarn_attention_factor(40.0, 0.707), 1.0);
    // Phi-3 mini with 131 072 tokens over 4096: √(1 + 5 ln 2 / 12 ln 2).
    assert!((longrope_attention_factor(32.0, 4096.0) - (17.0_f64 / 12.0).sqrt()).abs() < 1e-12);
    assert_eq!(longrope_attention_factor(1.0, 4096.0), 1.0);
}

#[test]
fn scaled_frequencies_in_single_precision_are_those_of_transformers() {
    // `ROPE_INIT_FUNCTIONS` of transformers 5.24 on torch 2.15, a head of 16, theta 10 000, all digits of the f32.
    let dynamic = Scaling::DynamicNtk { factor: 2.0, original_context: 64.0 };
    let of_64 = |beta_fast, beta_slow, whole_pairs| Scaling::Yarn {
        factor: 4.0,
        beta_fast,
        beta_slow,
        original_context: 64.0,
        whole_pairs,
        attention_factor: 1.0,
    };
    let rest = [
        0.007_905_694_656_074_047,
        0.002_499_999_944_120_645_5,
        0.000_790_569_465_607_404_7,
        0.000_250_000_011_874_362_8,
        7.905_694_656_074_047e-5,
    ];
    let blended = |first: [f64; 3]| [&first[..], &rest[..]].concat();
    for (scaling, sequence, wanted) in [
        (
            dynamic.clone(),
            100,
            vec![
                1.0,
                0.283_945_143_222_808_84,
                0.080_624_841_153_621_67,
                0.022_893_030_196_428_3,
                0.006_500_365_212_559_7,
                0.001_845_746_999_606_490_1,
                0.000_524_090_894_032_269_7,
                0.000_148_813_065_607_100_73,
            ],
        ),
        (dynamic, 64, exact_in_f32(Scaling::None)),
        (of_64(32.0, 1.0, true), 1, blended([1.0, 0.237_170_815_467_834_47, 0.049_999_997_019_767_76])),
        (of_64(16.0, 2.0, false), 1, blended([1.0, 0.148_490_250_110_626_22, 0.025_000_000_372_529_03])),
        (
            longrope(),
            32,
            vec![
                1.0,
                0.301_169_306_039_810_2,
                0.090_909_093_618_392_94,
                0.024_325_214_326_381_683,
                0.005_882_353_056_222_2,
                0.001_581_138_931_214_809_4,
                0.000_399_999_989_895_150_07,
                0.000_102_008_962_130_639_7,
            ],
        ),
        (
            longrope(),
            33,
            vec![
                1.0,
                0.210_818_499_326_705_93,
                0.050_000_000_745_058_06,
                0.009_035_078_808_665_276,
                0.001_666_666_707_023_978_2,
                0.000_351_364_200_469_106_44,
                6.666_666_740_784_422e-5,
                1.505_846_557_847_689_8e-5,
            ],
        ),
    ] {
        let rotary = Rotary::in_single_precision(16, 16, 1e4, scaling, Pairing::Halves).expect("sound settings");
        assert_eq!(rotary.frequencies(sequence), wanted, "{rotary:?}");
    }
}

fn exact_in_f32(scaling: Scaling) -> Vec<f64> {
    Rotary::in_single_precision(16, 16, 1e4, scaling, Pairing::Halves).expect("sound settings").frequencies(1)
}

#[test]
fn the_attention_factor_multiplies_what_turns_at_every_position_and_nothing_else() {
    let x: Vec<f32> = (0..20).map(|channel| 0.3 + channel as f32).collect();
    for pairing in [Pairing::Halves, Pairing::Neighbours] {
        let turned = |scaling: Scaling, position: usize| {
            let mut x = x.clone();
            let rotary = Rotary::new(20, 16, 1e4, scaling, pairing).expect("sound settings");
            rotary.turns(position..position + 1, 1).rotate_in_place(&mut x, 1).expect("one token");
            x
        };
        let with =
            |attention_factor| Scaling::LongRope { short: SHORT.to_vec(), long: LONG.to_vec(), original_context: 32.0, attention_factor };
        for position in [0, 1, 31] {
            for (channel, (one, three)) in turned(with(1.0), position).iter().zip(turned(with(3.0), position)).enumerate() {
                let wanted = if channel < 16 { 3.0 * one } else { *one };
                assert!((three - wanted).abs() < 2e-5, "{pairing:?}, position {position}, channel {channel}");
            }
        }
    }
}

#[test]
fn impossible_stretchings_are_refused_with_their_numbers() {
    let refusal = |width, theta, scaling| Rotary::new(16, width, theta, scaling, Pairing::Halves).expect_err("impossible").to_string();
    let message = refusal(8, 1e4, longrope());
    assert!(message.contains("short_factor") && message.contains('4') && message.contains('8'), "{message}");
    let dynamic = |factor| Scaling::DynamicNtk { factor, original_context: 64.0 };
    assert!(refusal(2, 1e4, dynamic(2.0)).contains("width"));
    assert!(refusal(8, 1e4, dynamic(0.5)).contains("`factor` is 0.5"));
    let of = |beta_fast, original_context, attention_factor| Scaling::Yarn {
        factor: 2.0,
        beta_fast,
        beta_slow: 1.0,
        original_context,
        whole_pairs: true,
        attention_factor,
    };
    assert!(refusal(8, 1e4, of(0.5, 64.0, 1.0)).contains("beta_fast"));
    assert!(refusal(8, 1e4, of(32.0, 0.0, 1.0)).contains("original_max_position_embeddings"));
    assert!(refusal(8, 1e4, of(32.0, 64.0, f64::NAN)).contains("attention_factor"));
    assert!(refusal(8, 1.0, of(32.0, 64.0, 1.0)).contains("theta"));
}

/// Planted bugs of others: betas that cannot be set, no attention factor, the divided frequency for all pairs, one list for all lengths.
#[test]
fn partly_implemented_stretchings_are_caught() {
    let right = exact(128, 1e6, yarn(4.0)).frequencies(1);
    let fixed_betas = textbook::yarn_inv_freq(128, 1e6, 4.0, 32_768.0, (4.0, 1.0));
    assert!(right.iter().zip(&fixed_betas).any(|(right, wrong)| (right / wrong - 1.0).abs() > 0.01));
    let linear = exact(128, 1e6, Scaling::Linear { factor: 4.0 }).frequencies(1);
    assert!(right.iter().zip(&linear).any(|(right, wrong)| (right / wrong - 1.0).abs() > 0.5));
    assert!((yarn(4.0).attention_factor() - 1.0).abs() > 0.1 && (longrope().attention_factor() - 1.0).abs() > 0.1);
    assert_ne!(exact(16, 1e4, longrope()).frequencies(32), exact(16, 1e4, longrope()).frequencies(33));
}
