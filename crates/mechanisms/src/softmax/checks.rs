use super::*;
use glassbox_testkit::Values;

#[track_caller]
fn near(found: &[f32], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len());
    for (index, (&found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((f64::from(found) - wanted).abs() <= tolerance, "at {index}: {found}, wanted {wanted}");
    }
}

fn softmax(kernels: Kernels, scores: &[f32]) -> Vec<f32> {
    let mut row = scores.to_vec();
    softmax_in_place(kernels, &mut row);
    row
}

const BOTH: [Kernels; 2] = [Kernels::Textbook, Kernels::Fast];

#[test]
fn the_rows_of_the_book_come_out_in_one_pass_and_in_two() {
    let book: [(&[f32], &[f64]); 4] = [
        (&[2.0, 1.0, 0.5, 3.0], &[0.2321, 0.0854, 0.0518, 0.6308]),
        (&[2.0, 1.0, 0.0], &[0.6652, 0.2447, 0.0900]),
        (&[50.0, 1.0, -30.0], &[1.0, 0.0, 0.0]),
        (&[1.0, 3.0, 4.0], &[0.0351, 0.2595, 0.7054]),
    ];
    for (scores, wanted) in book {
        for kernels in BOTH {
            near(&softmax(kernels, scores), wanted, 5e-5);
        }
        let mut one_pass = vec![0.0; scores.len()];
        textbook::round_into(&textbook::online_softmax(&textbook::widen(scores)), &mut one_pass);
        near(&one_pass, wanted, 5e-5);
    }
    let sharp = softmax(Kernels::Fast, &[50.0, 1.0, -30.0]);
    assert!((sharp[1] / 5.2e-22 - 1.0).abs() < 0.02 && (sharp[2] / 1.8e-35 - 1.0).abs() < 0.02, "{sharp:?}");
    let denominator = log_sum_exp(Kernels::Fast, &[2.0, 1.0, 0.0]).exp();
    assert!((denominator - 11.107).abs() < 5e-4);
}

/// Why scores are divided by √d_head: without it their spread grows with the width until softmax is all or nothing.
#[test]
fn dot_products_of_independent_normals_have_variance_d_and_after_scaling_1() {
    const SAMPLES: usize = 20_000;
    for d_head in [4, 64, 256] {
        let mut values = Values::seeded(d_head as u64);
        let dots: Vec<f64> = (0..SAMPLES)
            .map(|_| {
                let (q, k) = (values.normals(d_head, 1.0), values.normals(d_head, 1.0));
                q.iter().zip(&k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum()
            })
            .collect();
        let variance = |scale: f64| dots.iter().map(|dot| (dot * scale).powi(2)).sum::<f64>() / SAMPLES as f64;
        // A sum of d products of normals has kurtosis 3 + 6 / d, so the estimate's standard error is d · √((2 + 6 / d) / samples).
        let d = d_head as f64;
        let standard_error = d * ((2.0 + 6.0 / d) / SAMPLES as f64).sqrt();
        assert!((variance(1.0) - d).abs() < 4.0 * standard_error, "d_head {d_head}: {} ± {standard_error}", variance(1.0));
        assert!((variance(d.sqrt().recip()) - 1.0).abs() < 4.0 * standard_error / d, "d_head {d_head}");
        assert!((variance(1.0) - d / 2.0).abs() > 4.0 * standard_error, "the test tells d from d / 2");
    }
}

#[test]
fn soft_cap_bends_scores_before_softmax_and_zero_is_off() {
    for kernels in BOTH {
        let mut scores = [100.0, 60.0, 20.0];
        soft_cap_in_place(kernels, 50.0, &mut scores);
        near(&scores[..2], &[48.2014, 41.683], 5e-4);
        near(&softmax(kernels, &scores), &[0.998_527, 0.001_473, 2.1e-13], 1e-6);
        near(&softmax(kernels, &[100.0, 60.0, 20.0]), &[1.0, 4e-18, 2e-35], 1e-18);
        soft_cap_in_place(kernels, 0.0, &mut scores);
        near(&scores[..2], &[48.2014, 41.683], 5e-4);
    }
}

#[test]
fn a_fully_masked_row_attends_to_nothing_and_gives_zero() {
    for kernels in BOTH {
        for len in [0, 1, 7, 8, 9, 64] {
            let masked = vec![f32::NEG_INFINITY; len];
            assert_eq!(softmax(kernels, &masked), vec![0.0; len]);
            assert_eq!(log_sum_exp(kernels, &masked), f32::NEG_INFINITY);
        }
    }
    assert_eq!(Running::EMPTY.merge(Running::EMPTY), (Running::EMPTY, 0.0, 0.0));
}

#[test]
fn a_nan_or_an_infinite_score_is_shown_and_not_swallowed() {
    for kernels in BOTH {
        for bad in [f32::NAN, f32::INFINITY] {
            for place in [0, 3, 8, 9] {
                let mut scores = vec![1.0; 10];
                scores[place] = bad;
                assert!(softmax(kernels, &scores).iter().any(|weight| weight.is_nan()), "{bad} at {place}");
            }
        }
        assert!(softmax(kernels, &[f32::NAN, f32::NEG_INFINITY]).iter().any(|weight| weight.is_nan()));
    }
}

/// A row of `len` scores between -`range` and `range`.
fn scores(len: usize, range: f32, seed: u64) -> Vec<f32> {
    let mut values = Values::seeded(seed);
    std::iter::repeat_with(|| values.between(-range, range)).take(len).collect()
}

const LENGTHS: [usize; 9] = [1, 2, 7, 8, 9, 63, 64, 65, 513];

#[test]
fn weights_agree_with_the_textbook_and_sum_to_one() {
    for len in LENGTHS {
        for range in [0.0, 1.0, 20.0, 3e4] {
            let row = scores(len, range, len as u64);
            let truth = textbook::softmax(&textbook::widen(&row));
            let found = softmax(Kernels::Fast, &row);
            for (found, truth) in found.iter().zip(&truth) {
                // One rounding of the difference (its spacing is what a saturating score leaves), exp, sum and division.
                let allowed = truth * (2e-6 + f64::from(range) * 1.2e-7) + 1e-45;
                assert!((f64::from(*found) - truth).abs() <= allowed, "{found} instead of {truth}, len {len}, range {range}");
            }
            assert!((found.iter().map(|&weight| f64::from(weight)).sum::<f64>() - 1.0).abs() < 1e-6);
            let log_sum = f64::from(log_sum_exp(Kernels::Fast, &row));
            let truth = textbook::log_sum_exp(&textbook::widen(&row));
            assert!((log_sum - truth).abs() <= 1e-6 + truth.abs() * 1.2e-7, "{log_sum} instead of {truth}");
        }
    }
}

#[test]
fn adding_a_number_to_every_score_changes_no_weight() {
    let row: Vec<f32> = scores(65, 4.0, 3).iter().map(|score| (score * 1024.0).round() / 1024.0).collect();
    let moved: Vec<f32> = row.iter().map(|score| score + 256.0).collect();
    assert_eq!(softmax(Kernels::Fast, &row), softmax(Kernels::Fast, &moved));
}

#[test]
fn merging_halves_in_either_grouping_gives_the_whole_within_rounding() {
    let part = |seed: u64| {
        let row = scores(40, 30.0, seed);
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        (row.clone(), Running { max, sum: row.iter().map(|score| (score - max).exp()).sum() })
    };
    for seed in 0..50 {
        let [(x, a), (y, b), (z, c)] = [seed, seed + 100, seed + 200].map(part);
        let (left, right) = (a.merge(b).0.merge(c).0, a.merge(b.merge(c).0).0);
        assert_eq!(left.max, right.max);
        assert!((left.sum / right.sum - 1.0).abs() < 1e-6);
        let truth = textbook::log_sum_exp(&textbook::widen(&[x, y, z].concat()));
        assert!((f64::from(left.log_sum_exp()) - truth).abs() < 1e-5);
        assert_eq!(a.merge(Running::EMPTY), (a, 1.0, 0.0));
    }
}

#[test]
fn the_running_softmax_of_the_textbook_is_its_softmax() {
    for len in LENGTHS {
        let row = textbook::widen(&scores(len, 50.0, len as u64));
        for (one_pass, two_pass) in textbook::online_softmax(&row).iter().zip(textbook::softmax(&row)) {
            assert!((one_pass - two_pass).abs() <= 1e-13);
        }
    }
}

#[test]
fn vector_code_gives_the_bits_of_portable_code() {
    for len in LENGTHS {
        for range in [1.0, 200.0] {
            let row = scores(len, range, len as u64);
            let (mut vector, mut portable) = (row.clone(), row.clone());
            fast::soft_cap_in_place(30.0, &mut vector);
            fast::soft_cap_here(30.0, &mut portable);
            assert_eq!(vector, portable);
            fast::softmax_in_place(&mut vector);
            fast::softmax_here(&mut portable);
            assert_eq!(vector, portable);
            assert_eq!(fast::log_sum_exp(&row).to_bits(), fast::log_sum_exp_here(&row).to_bits());
        }
    }
}

/// A planted bug: softmax without subtracting the maximum.
#[test]
fn a_softmax_without_the_maximum_is_caught_by_saturating_scores() {
    let unsafe_softmax = |scores: &[f32]| {
        let sum: f32 = scores.iter().map(|score| score.exp()).sum();
        scores.iter().map(|score| score.exp() / sum).collect::<Vec<f32>>()
    };
    let (mild, saturating) = ([2.0, 1.0, 0.0], [1000.0, 999.0, 998.0]);
    near(&unsafe_softmax(&mild), &[0.6652, 0.2447, 0.0900], 5e-5);
    assert!(unsafe_softmax(&saturating).iter().any(|weight| weight.is_nan()));
    assert_eq!(softmax(Kernels::Fast, &saturating), softmax(Kernels::Fast, &mild));
}
