//! Do the tests reject "nothing happens" as rarely as they say, and find what was planted?

use glassbox_stats::bootstrap::Resampling;
use glassbox_stats::order::{excess_flip_rates, excess_flip_test, kendall_within_items, range_beyond_chance};
use glassbox_stats::paired::sign_flip;
use glassbox_stats::power::{mcnemar_power, non_inferiority_power};
use glassbox_stats::proportion::proportion_interval;
use glassbox_stats::random::Dice;
use glassbox_stats::sequential::{DOUBLINGS, QUARTERS, obrien_fleming_looks};
use glassbox_stats::several::{benjamini_hochberg, cochran_q, contrast_of_items, ends_against_middle, holm, planned_contrast};
use glassbox_stats::{Alternative, Interval};

use crate::simulation::{Share, answer, normal, publish, sample, share_of_runs};

const FLIPS: usize = 199; // p-values at multiples of 0.005: 0.05 is among them

/// A test must not reject more than 5 % of the runs in which nothing happens, as far as the number of runs can tell.
#[track_caller]
fn size_holds(what: &str, share: Share) {
    publish(&format!("size of {what}"), &format!("{:.3} ± {:.3}", share.share, share.error));
    assert!(share.share <= 0.05 + 3.0 * share.error, "{what} rejects {share:?} of the runs in which nothing happens");
}

#[test]
fn mcnemar_rejects_at_most_five_percent_exactly() {
    let mut largest: f64 = 0.0;
    for n in [10, 30, 60, 100, 250, 600] {
        for discordance in [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8] {
            largest = largest.max(mcnemar_power(n, discordance, 0.0, 0.05).expect("in range"));
        }
    }
    publish("largest size of McNemar's test", &format!("{largest:.4}"));
    assert!(largest <= 0.0505, "largest size {largest}");
    assert!(largest > 0.045, "the grid holds no setting in which the test uses its 5 %: {largest}");
}

#[test]
fn non_inferiority_passes_a_loss_of_the_margin_in_at_most_about_five_percent_exactly() {
    let mut largest: f64 = 0.0;
    for n in [60, 100, 200, 500, 1000] {
        for (discordance, margin) in [(0.03, 0.02), (0.05, 0.02), (0.1, 0.02), (0.1, 0.05), (0.2, 0.05), (0.4, 0.1)] {
            largest = largest.max(non_inferiority_power(n, discordance, margin, margin, 0.95).expect("in range"));
        }
    }
    publish("largest size of non-inferiority", &format!("{largest:.4}"));
    assert!(largest > 0.045 && largest < LARGEST_NON_INFERIORITY, "largest size {largest}");
}

const LARGEST_NON_INFERIORITY: f64 = 0.06; // a score test of discrete data is nominal on average, not for every n

#[test]
fn sign_flips_reject_at_most_five_percent_of_symmetric_differences() {
    for n in [6, 12, 40] {
        for alternative in [Alternative::TwoSided, Alternative::Greater] {
            let share = share_of_runs(1_500, |dice, run| {
                let differences = sample(dice, n, |dice| answer(dice, 0.5) * normal(dice).powi(3));
                sign_flip(&differences, alternative, FLIPS, run).expect("items exist").p_value <= 0.05
            });
            size_holds(&format!("the sign flip, {alternative:?}, n = {n}"), share);
        }
    }
}

fn answers(dice: &mut Dice, count: usize, noise: f64) -> Vec<usize> {
    (0..count).map(|_| if dice.happens(noise) { 1 + dice.below(3) } else { 0 }).collect()
}

/// [item][answer] under 6 orders and in 3 repeats; orders stray with `noise_of_orders`, repeats with `noise`.
fn order_trial(dice: &mut Dice, n: usize, noise_of_orders: f64, noise: f64) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    (0..n).map(|_| (answers(dice, 6, noise_of_orders), answers(dice, 3, noise))).unzip()
}

#[test]
fn both_tests_of_excess_flips_reject_at_most_five_percent_and_find_an_excess() {
    for (n, noise) in [(60, 0.02), (150, 0.02), (100, 0.15)] {
        let exchange = share_of_runs(600, |dice, run| {
            let (orders, repeats) = order_trial(dice, n, noise, noise);
            excess_flip_test(&orders, &repeats, FLIPS, run).expect("answers exist").p_value <= 0.05
        });
        size_holds(&format!("the excess flip test, n = {n}, noise {noise}"), exchange);
        let flip = share_of_runs(600, |dice, run| {
            let (orders, repeats) = order_trial(dice, n, noise, noise);
            let excess = excess_flip_rates(&orders, &repeats).expect("answers exist");
            sign_flip(&excess, Alternative::TwoSided, FLIPS, run).expect("items exist").p_value <= 0.05
        });
        size_holds(&format!("the sign flip of excess flips, n = {n}, noise {noise}"), flip);
    }
    // Orders that stray with 0.045 differ in 0.087 of their pairs, repeats that stray with 0.01 in 0.02: an excess of 0.067.
    let found = share_of_runs(300, |dice, run| {
        let (orders, repeats) = order_trial(dice, 150, 0.045, 0.01);
        excess_flip_test(&orders, &repeats, FLIPS, run).expect("answers exist").p_value <= 0.05
    });
    publish("power of the excess flip test, excess 0.067 over 0.020, n = 150", &format!("{:.3}", found.share));
    assert!(found.share > 0.9, "{found:?}");
}

fn rows(dice: &mut Dice, n: usize, rates: [f64; 5]) -> Vec<[f64; 5]> {
    (0..n).map(|_| rates.map(|rate| answer(dice, rate))).collect()
}

fn as_right(rows: &[[f64; 5]]) -> Vec<[bool; 5]> {
    rows.iter().map(|row| row.map(|score| score == 1.0)).collect()
}

#[test]
fn the_planned_contrast_and_cochrans_q_hold_their_size() {
    let weights = ends_against_middle(5).expect("five positions");
    for (n, rate) in [(20, 0.75), (60, 0.75), (100, 0.95)] {
        let contrast = share_of_runs(1_500, |dice, run| {
            let contrasts = contrast_of_items(&rows(dice, n, [rate; 5]), &weights).expect("complete rows");
            sign_flip(&contrasts, Alternative::TwoSided, FLIPS, run).expect("items exist").p_value <= 0.05
        });
        size_holds(&format!("the U contrast, n = {n}, rate {rate}"), contrast);
        let q = share_of_runs(1_500, |dice, _| cochran_q(&as_right(&rows(dice, n, [rate; 5]))).expect("items exist").p_value <= 0.05);
        size_holds(&format!("Cochran's Q, n = {n}, rate {rate}"), q);
    }
}

/// Right with 3/4 at no depth; items differ in difficulty (deviation 1 in the logit), and the middle sags by `depth` logits times a curve.
fn lost_middle(dice: &mut Dice, n: usize, depth: f64) -> Vec<[f64; 5]> {
    const INTERCEPT: f64 = 1.3149; // mean of 1 / (1 + exp(-(INTERCEPT + normal))) is 0.75
    (0..n)
        .map(|_| {
            let item = INTERCEPT + normal(dice);
            [0.3, -0.6, -1.2, -0.6, 0.3].map(|curve| answer(dice, 1.0 / (1.0 + (-(item + depth * curve)).exp())))
        })
        .collect()
}

#[test]
fn the_planned_contrast_finds_a_lost_middle_more_often_than_cochrans_q() {
    let weights = ends_against_middle(5).expect("five positions");
    // (logits, the contrast they make, items, power of Q, power of the contrast) as the bench plans with them.
    for (depth, drop, n, of_q, of_contrast) in
        [(0.3298, 0.06, 100, 0.28, 0.35), (0.3298, 0.06, 200, 0.45, 0.58), (0.3298, 0.06, 400, 0.81, 0.88), (0.5396, 0.10, 100, 0.61, 0.70)]
    {
        let contrast = share_of_runs(600, |dice, run| {
            let contrasts = contrast_of_items(&lost_middle(dice, n, depth), &weights).expect("complete rows");
            sign_flip(&contrasts, Alternative::TwoSided, FLIPS, run).expect("items exist").p_value <= 0.05
        });
        let q = share_of_runs(1_000, |dice, _| cochran_q(&as_right(&lost_middle(dice, n, depth))).expect("items exist").p_value <= 0.05);
        publish(
            &format!("power for a drop of {drop}, n = {n}"),
            &format!("Q {:.3} ± {:.3}, contrast {:.3} ± {:.3}", q.share, q.error, contrast.share, contrast.error),
        );
        // The planned figures carry about two points of sampling error of their own.
        assert!((q.share - of_q).abs() < 0.04 + 3.0 * q.error, "drop {drop}, n = {n}: Q {q:?}, planned {of_q}");
        assert!(
            (contrast.share - of_contrast).abs() < 0.04 + 3.0 * contrast.error,
            "drop {drop}, n = {n}: contrast {contrast:?}, planned {of_contrast}"
        );
        assert!(contrast.share > q.share, "drop {drop}, n = {n}: contrast {contrast:?}, Q {q:?}");
    }
}

#[test]
fn a_gate_on_the_contrast_fails_a_healthy_subject_seldom() {
    let weights = ends_against_middle(5).expect("five positions");
    let failed = share_of_runs(400, |dice, run| {
        let resampling = Resampling { resamples: 399, level: 0.95, seed: run };
        let contrast =
            planned_contrast(&rows(dice, 80, [0.8, 0.75, 0.75, 0.75, 0.8]), &weights, 0.0..=1.0, resampling).expect("complete rows");
        contrast.estimate.interval.low > 0.05
    });
    publish("FAIL of a gate at the true contrast 0.05", &format!("{:.3} ± {:.3}", failed.share, failed.error));
    assert!(failed.share <= 0.025 + 3.0 * failed.error, "{failed:?}");
}

#[test]
fn kendall_within_items_rejects_at_most_five_percent() {
    let items: Vec<usize> = (0..100).map(|trial| trial / 5).collect();
    let positions: Vec<f64> = (0..100).map(|trial| f64::from(trial % 5)).collect();
    let share = share_of_runs(600, |dice, run| {
        let difficulty = sample(dice, 20, Dice::unit);
        let scores: Vec<f64> = items.iter().map(|item| answer(dice, difficulty[*item])).collect();
        kendall_within_items(&positions, &scores, &items, Alternative::TwoSided, FLIPS, run).is_ok_and(|outcome| outcome.p_value <= 0.05)
    });
    size_holds("Kendall's tau within items", share);
}

#[test]
fn the_range_is_no_evidence_by_itself_and_its_excess_is_no_estimate() {
    let (mut by_chance, mut excess) = (0.0, 0.0);
    let share = share_of_runs(400, |dice, run| {
        let found = range_beyond_chance(&rows(dice, 60, [0.75; 5]), FLIPS, run).expect("complete rows");
        by_chance += found.range / 400.0;
        excess += found.excess / 400.0;
        found.p_value <= 0.05
    });
    size_holds("the range over five conditions", share);
    publish("range over five equal conditions, n = 60", &format!("mean {by_chance:.3}, mean excess {excess:.4}"));
    assert!(by_chance > 0.10, "five equal conditions seem to differ by {by_chance}");
    assert!(excess.abs() < 0.01, "mean excess {excess}");
    let mut planted = 0.0;
    share_of_runs(200, |dice, run| {
        planted += range_beyond_chance(&rows(dice, 60, [0.9, 0.75, 0.75, 0.75, 0.6]), FLIPS, run).expect("complete rows").excess / 200.0;
        true
    });
    publish("excess when the true range is 0.30, n = 60", &format!("{planted:.3}"));
    assert!(planted > 0.15 && planted < 0.26, "the excess estimates a range of 0.30 as {planted}");
}

#[test]
fn holm_and_benjamini_hochberg_keep_their_promises() {
    // Ten correlated tests in all of which nothing happens, by normal scores that share a half.
    let p_values = |dice: &mut Dice, shifts: [f64; 10]| -> Vec<f64> {
        let shared = normal(dice);
        shifts.map(|shift| tail(0.5f64.sqrt() * (shared + normal(dice)) + shift)).to_vec()
    };
    let family = share_of_runs(3_000, |dice, _| holm(&p_values(dice, [0.0; 10])).expect("probabilities").iter().any(|p| *p <= 0.05));
    size_holds("Holm's family of ten", family);
    // Five real effects: the mean share of false ones among the discoveries is at most q = 0.10.
    let (runs, mut false_share) = (3_000, 0.0);
    share_of_runs(runs, |dice, _| {
        let adjusted = benjamini_hochberg(&p_values(dice, [0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0])).expect("probabilities");
        let (wrong, all) = (adjusted[..5].iter().filter(|p| **p <= 0.1).count(), adjusted.iter().filter(|p| **p <= 0.1).count());
        false_share += wrong as f64 / all.max(1) as f64 / runs as f64;
        true
    });
    publish("false discoveries at q = 0.10, half of ten true", &format!("{false_share:.3}"));
    // The share per run has a deviation of at most 0.2, its mean over 3,000 runs 0.004.
    assert!(false_share < 0.10 && false_share > 0.02, "{false_share}");
}

/// P(Z > z), to 1e-7.
///
/// Source: Abramowitz, Stegun 1964, 26.2.17.
fn tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let upper = series * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z >= 0.0 { upper } else { 1.0 - upper }
}

/// Share of runs in which some look's interval leaves out the true rate.
fn misses_at_some_look(rate: f64, looks: &[(f64, f64)]) -> Share {
    const ITEMS: usize = 400;
    share_of_runs(4_000, |dice, _| {
        let (mut seen, mut successes) = (0, 0);
        looks.iter().any(|(share, level)| {
            while seen < (share * ITEMS as f64) as usize {
                successes += usize::from(dice.happens(rate));
                seen += 1;
            }
            let interval: Interval = proportion_interval(successes, seen, *level).expect("trials exist").interval;
            !interval.contains(rate)
        })
    })
}

#[test]
fn looking_four_times_misses_five_percent_with_a_plan_and_thirteen_without() {
    for shares in [&QUARTERS[..], &DOUBLINGS[..]] {
        let plan: Vec<(f64, f64)> =
            obrien_fleming_looks(shares, 0.05).expect("looks in order").iter().map(|look| (look.share, look.level)).collect();
        for rate in [0.5, 0.8, 0.95] {
            let planned = misses_at_some_look(rate, &plan);
            size_holds(&format!("{} planned looks at rate {rate}", shares.len()), planned);
        }
    }
    let careless = misses_at_some_look(0.5, &QUARTERS.map(|share| (share, 0.95)));
    publish("misses of four unplanned looks at 95 %", &format!("{:.3} ± {:.3}", careless.share, careless.error));
    assert!((careless.share - 0.126).abs() < 0.03, "{careless:?}");
}
