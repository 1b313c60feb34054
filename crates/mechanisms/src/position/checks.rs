use super::*;
use glassbox_testkit::Values;

const LLAMA3: Scaling =
    Scaling::ByWavelength { factor: 8.0, low_frequency_factor: 1.0, high_frequency_factor: 4.0, original_context: 8192.0 };

fn rotary(width: usize, theta: f64, scaling: Scaling, pairing: Pairing) -> Rotary {
    Rotary::new(width, width, theta, scaling, pairing).expect("an even width")
}

/// Turns by the angles of a short sequence.
trait Turn {
    fn rotate_in_place(&self, x: &mut [f32], heads: usize, first_position: usize) -> Result<(), MechanismError>;
}

impl Turn for Rotary {
    fn rotate_in_place(&self, x: &mut [f32], heads: usize, first_position: usize) -> Result<(), MechanismError> {
        let tokens = x.len() / (heads * self.d_head).max(1);
        self.turns(first_position..first_position + tokens, 1).rotate_in_place(x, heads)
    }
}

#[track_caller]
fn near(found: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(found.len(), wanted.len());
    for (channel, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= tolerance, "channel {channel}: {found}, wanted {wanted}");
    }
}

#[test]
fn both_pairings_give_the_vectors_of_the_book() {
    let q = [1.0, 0.5, -0.3, 0.8];
    for (pairing, wanted) in
        [(Pairing::Neighbours, [-1.0606, -0.3539, -0.3239, 0.7906]), (Pairing::Halves, [-0.9477, 0.4758, 0.4381, 0.8146])]
    {
        let mut x = q;
        rotary(4, 1e4, Scaling::None, pairing).rotate_in_place(&mut x, 1, 3).expect("one token");
        near(&x, &wanted, 5e-5);
    }
    for (pairing, wanted) in [(Pairing::Halves, [0.5403, 0.0, 0.8415, 0.0]), (Pairing::Neighbours, [0.5403, 0.8415, 0.0, 0.0])] {
        let mut x = [1.0, 0.0, 0.0, 0.0];
        rotary(4, 1e4, Scaling::None, pairing).rotate_in_place(&mut x, 1, 1).expect("one token");
        near(&x, &wanted, 5e-5);
    }
}

#[test]
fn llama3_scaling_keeps_blends_and_divides_the_right_frequencies() {
    let plain = rotary(128, 5e5, Scaling::None, Pairing::Halves);
    let scaled = rotary(128, 5e5, LLAMA3, Pairing::Halves);
    for pair in 0..64 {
        let ratio = plain.frequencies(1)[pair] / scaled.frequencies(1)[pair];
        match pair {
            0..=28 => assert_eq!(ratio, 1.0, "pair {pair} is kept"),
            29..=34 => assert!(ratio > 1.0 && ratio < 8.0, "pair {pair} is blended, found ratio {ratio}"),
            _ => assert!((ratio - 8.0).abs() < 1e-12, "pair {pair} is divided, found ratio {ratio}"),
        }
    }
    let wanted = [(29, 0.002_616_10, 0.002_166_57), (34, 0.000_938_474, 0.000_178_508), (63, 2.455_14e-6, 3.068_93e-7)];
    for (pair, before, after) in wanted {
        assert!((plain.frequencies(1)[pair] / before - 1.0_f64).abs() < 3e-6);
        assert!((scaled.frequencies(1)[pair] / after - 1.0_f64).abs() < 3e-6);
    }
}

#[test]
fn llama3_scaling_gives_the_frequencies_of_a_head_of_eight() {
    let scaling =
        |factor| Scaling::ByWavelength { factor, low_frequency_factor: 1.0, high_frequency_factor: 4.0, original_context: 8192.0 };
    for (factor, wanted) in [(8.0, [1.0, 0.037_606_0, 5.248_46e-4, 6.647_87e-6]), (32.0, [1.0, 0.037_606_0, 4.295_57e-4, 1.661_97e-6])] {
        let rotary = rotary(8, 5e5, scaling(factor), Pairing::Halves);
        for (found, wanted) in rotary.frequencies(1).iter().zip(wanted) {
            assert!((found / wanted - 1.0_f64).abs() < 3e-6, "{found} instead of {wanted}");
        }
    }
}

#[test]
fn single_precision_stays_within_its_rounding_of_the_exact_angles() {
    for (width, scaling) in [(16, Scaling::None), (12, Scaling::Linear { factor: 3.0 }), (20, Scaling::None), (128, LLAMA3)] {
        let exact = rotary(width, 5e5, scaling.clone(), Pairing::Halves);
        let single = Rotary::in_single_precision(width, width, 5e5, scaling.clone(), Pairing::Halves).expect("an even width");
        for (pair, (exact, single)) in exact.frequencies(1).iter().zip(single.frequencies(1)).enumerate() {
            // An exponent rounded to f32 counts ln(theta) times.
            assert!((single / exact - 1.0).abs() < 2e-6, "width {width}, pair {pair}: {single} and {exact}");
        }
        let x = numbers(2 * width, 5);
        let (mut a, mut b) = (x.clone(), x);
        exact.rotate_in_place(&mut a, 1, 126).expect("two tokens");
        single.rotate_in_place(&mut b, 1, 126).expect("two tokens");
        near(&b, &a, 2e-4);
        assert_ne!(a, b);
    }
}

#[test]
fn single_precision_has_the_frequencies_of_transformers() {
    // `1.0 / (10000.0 ** (torch.arange(0, 10, 2, dtype=torch.float) / 10))` of torch 2.15, all digits of the f32.
    let rotary = Rotary::in_single_precision(10, 10, 1e4, Scaling::None, Pairing::Halves).expect("an even width");
    let wanted = [1.0, 0.158_489_316_701_889_04, 0.025_118_863_210_082_054, 0.003_981_070_592_999_458, 0.000_630_957_307_294_011_1];
    assert_eq!(rotary.frequencies(1), wanted);
}

#[test]
fn listed_divisors_do_what_the_formula_does() {
    let (plain, scaled) = (rotary(8, 5e5, Scaling::None, Pairing::Halves), rotary(8, 5e5, LLAMA3, Pairing::Halves));
    let divisors: Vec<f32> =
        plain.frequencies(1).iter().zip(scaled.frequencies(1)).map(|(plain, scaled)| (plain / scaled) as f32).collect();
    let listed = plain.clone().divided_by(&divisors).expect("one a pair");
    for (listed, scaled) in listed.frequencies(1).iter().zip(scaled.frequencies(1)) {
        assert!((listed / scaled - 1.0).abs() < 1e-7);
    }
    assert_eq!(plain.clone().divided_by(&[1.0; 4]).expect("one a pair").frequencies(1), plain.frequencies(1));
    assert!(plain.clone().divided_by(&[1.0; 3]).is_err());
    assert!(plain.divided_by(&[1.0, 0.0, 1.0, 1.0]).is_err());
}

#[test]
fn linear_scaling_divides_every_frequency() {
    let (plain, scaled) =
        (rotary(16, 1e6, Scaling::None, Pairing::Halves), rotary(16, 1e6, Scaling::Linear { factor: 8.0 }, Pairing::Halves));
    for (plain, scaled) in plain.frequencies(1).iter().zip(scaled.frequencies(1)) {
        assert_eq!(plain / 8.0, scaled);
    }
}

#[test]
fn positions_are_not_rounded_to_a_short_type() {
    assert!((15_962_f64.cos() - -0.908_016).abs() < 5e-7 && (15_936_f64.cos() - -0.267_950).abs() < 5e-7);
    for position in [256, 257, 259, 260, 15_936, 15_962, 1_000_003] {
        let mut x = [1.0, 0.0];
        rotary(2, 1e4, Scaling::None, Pairing::Halves).rotate_in_place(&mut x, 1, position).expect("one token");
        assert!((f64::from(x[0]) - (position as f64).cos()).abs() < 6e-8, "cos({position}) = {}", x[0]);
    }
}

#[test]
fn rotation_at_position_zero_changes_nothing() {
    for pairing in [Pairing::Halves, Pairing::Neighbours] {
        let x = [1.5, -0.0, f32::INFINITY, f32::MIN_POSITIVE / 8.0, 0.0, -3.0, f32::NAN, 7.0];
        let mut turned = x;
        rotary(8, 1e4, Scaling::None, pairing).rotate_in_place(&mut turned, 1, 0).expect("one token");
        assert_eq!(turned.map(f32::to_bits), x.map(f32::to_bits));
    }
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut values = Values::seeded(seed);
    std::iter::repeat_with(|| values.between(-1.0, 1.0)).take(count).collect()
}

#[test]
fn rotated_dot_product_depends_only_on_distance() {
    for pairing in [Pairing::Halves, Pairing::Neighbours] {
        let rotary = rotary(32, 1e4, Scaling::None, pairing);
        let (q, k) = (numbers(32, 1), numbers(32, 2));
        let product = |query: usize, key: usize| {
            let (mut q, mut k) = (q.clone(), k.clone());
            rotary.rotate_in_place(&mut q, 1, query).expect("one token");
            rotary.rotate_in_place(&mut k, 1, key).expect("one token");
            q.iter().zip(&k).map(|(q, k)| f64::from(q * k)).sum::<f64>()
        };
        let wanted = product(7, 0);
        for shift in [1, 100, 5_000, 100_000] {
            assert!((product(7 + shift, shift) - wanted).abs() < 3e-6, "{pairing:?}, moved by {shift}");
        }
        assert!((product(8, 0) - wanted).abs() > 1e-3);
    }
}

#[test]
fn rotation_agrees_with_the_textbook_and_keeps_what_is_beyond_its_width() {
    let (d_head, width, heads, tokens, first) = (12, 8, 3, 5, 1000);
    for (pairing, textbook) in
        [(Pairing::Halves, textbook::rotate_halves as fn(&mut [f64], usize, &[f64])), (Pairing::Neighbours, textbook::rotate_neighbours)]
    {
        let rotary = Rotary::new(d_head, width, 1e4, Scaling::None, pairing).expect("a partial width");
        let x = numbers(tokens * heads * d_head, 3);
        let mut found = x.clone();
        rotary.rotate_in_place(&mut found, heads, first).expect("whole tokens");
        for (row, (x, found)) in x.chunks(d_head).zip(found.chunks(d_head)).enumerate() {
            let mut truth: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            textbook(&mut truth, first + row / heads, &textbook::inv_freq(width, 1e4));
            let truth: Vec<f32> = truth.iter().map(|&x| x as f32).collect();
            near(found, &truth, 2e-7);
            assert_eq!(found[width..], x[width..]);
        }
    }
}

#[test]
fn a_token_turns_the_same_alone_or_in_company() {
    let rotary = rotary(16, 1e4, LLAMA3, Pairing::Halves);
    let x = numbers(9 * 2 * 16, 4);
    let mut together = x.clone();
    rotary.rotate_in_place(&mut together, 2, 30).expect("nine tokens");
    for (token, (x, wanted)) in x.chunks(32).zip(together.chunks(32)).enumerate() {
        let mut alone = x.to_vec();
        rotary.rotate_in_place(&mut alone, 2, 30 + token).expect("one token");
        assert_eq!(alone, wanted);
    }
}

#[test]
fn impossible_settings_are_refused_with_their_numbers() {
    let new = |width, theta, scaling| Rotary::new(8, width, theta, scaling, Pairing::Halves);
    assert!(new(10, 1e4, Scaling::None).expect_err("wider than the head").to_string().contains("found 10"));
    assert!(new(7, 1e4, Scaling::None).is_err() && new(0, 1e4, Scaling::None).is_err());
    for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(new(8, theta, Scaling::None).is_err());
    }
    assert!(new(8, 1e4, Scaling::Linear { factor: 0.0 }).is_err());
    let even = Scaling::ByWavelength { factor: 8.0, low_frequency_factor: 4.0, high_frequency_factor: 4.0, original_context: 8192.0 };
    assert!(new(8, 1e4, even).expect_err("nothing lies between").to_string().contains("high_freq_factor"));
    assert!(rotary(8, 1e4, Scaling::None, Pairing::Halves).rotate_in_place(&mut [0.0; 9], 1, 0).is_err());
}

#[test]
fn learned_positions_are_added_and_end_with_their_table() {
    let table = [0.5, 1.0, 2.0, 3.0];
    let mut x = [10.0, 20.0];
    add_learned(&mut x, &table, 2, 1).expect("the second position");
    assert_eq!(x, [12.0, 23.0]);
    let error = add_learned(&mut [0.0; 4], &table, 2, 1).expect_err("a third position").to_string();
    assert!(error.contains("1..3") && error.contains("2 positions"), "{error}");
}

#[test]
fn sinusoidal_positions_agree_with_the_textbook() {
    let table = sinusoidal(0..50, 7);
    assert_eq!(sinusoidal(13..50, 7), table[13 * 7..], "a position has its vector wherever the table begins");
    for position in 0..50 {
        let truth: Vec<f32> = textbook::sinusoidal(position, 7).iter().map(|&x| x as f32).collect();
        near(&table[position * 7..(position + 1) * 7], &truth, 1e-7);
    }
    assert_eq!(table[..4], [0.0, 1.0, 0.0, 1.0]);
}

/// A planted bug: pairs of neighbours where halves are meant. The vectors of the book must tell them apart.
#[test]
fn the_wrong_pairing_is_caught_by_the_books_vector_and_not_by_position_zero() {
    let turned = |pairing, position| {
        let mut x = [1.0, 0.5, -0.3, 0.8];
        rotary(4, 1e4, Scaling::None, pairing).rotate_in_place(&mut x, 1, position).expect("one token");
        x
    };
    assert_eq!(turned(Pairing::Halves, 0), turned(Pairing::Neighbours, 0));
    assert_ne!(turned(Pairing::Halves, 3), turned(Pairing::Neighbours, 3));
}

#[test]
fn alibi_slopes_have_the_published_values_also_for_head_counts_that_are_not_powers_of_two() {
    let alibi = Alibi::new(8.0).expect("the paper's");
    let slopes = |heads: usize| (0..heads).map(|head| alibi.slope(head, heads)).collect::<Vec<f32>>();
    assert_eq!(slopes(1), [0.003_906_25]);
    assert_eq!(slopes(6), [0.25, 0.0625, 0.015_625, 0.003_906_25, 0.5, 0.125]);
    assert_eq!(slopes(8), [0.5, 0.25, 0.125, 0.0625, 0.031_25, 0.015_625, 0.007_812_5, 0.003_906_25]);
    near(&slopes(12)[8..], &[std::f32::consts::FRAC_1_SQRT_2, 0.353_553, 0.176_777, 0.088_388_3], 1e-6);
    assert_eq!(slopes(12)[..8], slopes(8));
    for max_bias in [8.0, 4.0, 11.0] {
        let alibi = Alibi::new(max_bias).expect("a positive number");
        for heads in (1..=20).chain([40, 71, 112]) {
            for (head, truth) in textbook::alibi_slopes(heads, max_bias).iter().enumerate() {
                assert!((f64::from(alibi.slope(head, heads)) / truth - 1.0).abs() < 1e-7, "head {head} of {heads}");
            }
        }
    }
    for none in [0.0, -8.0, f64::NAN] {
        assert!(Alibi::new(none).expect_err("no slope").to_string().contains("max_bias"));
    }
}
