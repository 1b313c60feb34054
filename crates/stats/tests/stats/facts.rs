//! The sample sizes and coverages that the bench's plans rely on, recomputed.

use glassbox_stats::Undefined;
use glassbox_stats::clustered::clustered_mean;
use glassbox_stats::power::{
    contrast_deviation, excess_flip_items, items_for_mean, mcnemar_items, mcnemar_power, mean_power, non_inferiority_items,
    non_inferiority_power,
};
use glassbox_stats::proportion::{clopper_pearson, wilson};
use glassbox_stats::several::ends_against_middle;

use crate::simulation::publish;

#[test]
fn half_widths_of_wilson() {
    for (n, at_half, at_nine_tenths) in
        [(50, 0.134, 0.085), (100, 0.096, 0.060), (200, 0.069, 0.042), (500, 0.044, 0.026), (1000, 0.031, 0.019)]
    {
        for (successes, wanted) in [(n / 2, at_half), (n * 9 / 10, at_nine_tenths)] {
            let half = wilson(successes, n, 0.95).expect("trials exist").interval.width() / 2.0;
            assert!((half - wanted).abs() < 0.000_6, "{successes} of {n}: {half}, wanted {wanted}");
        }
    }
}

/// Exact coverage at `rate` of an interval made from 0 or 1 per trial; a missing interval is a point.
fn covered(n: usize, rate: f64, contains: impl Fn(usize) -> bool) -> f64 {
    let mut ln_point = n as f64 * (1.0 - rate).ln();
    let mut sum = 0.0;
    for k in 0..=n {
        sum += if contains(k) { ln_point.exp() } else { 0.0 };
        ln_point += ((n - k) as f64 / (k + 1) as f64 * rate / (1.0 - rate)).ln();
    }
    sum
}

#[test]
fn t_intervals_on_proportions_near_one_promise_too_much_and_wilson_does_not() {
    for (n, rate, t, score) in [(20, 0.95, 0.641, 0.925), (50, 0.99, 0.395, 0.911), (200, 0.99, 0.865, 0.948), (10, 0.95, 0.401, 0.914)] {
        let keys: Vec<usize> = (0..n).collect();
        let found_t = covered(n, rate, |k| {
            let values: Vec<f64> = (0..n).map(|trial| if trial < k { 1.0 } else { 0.0 }).collect();
            match clustered_mean(&values, &keys, 0.95) {
                Ok(estimate) => estimate.interval.contains(rate),
                Err(Undefined::NoVariation { .. }) => false,
                Err(other) => panic!("{k} of {n}: {other}"),
            }
        });
        let found_score = covered(n, rate, |k| wilson(k, n, 0.95).expect("trials exist").interval.contains(rate));
        publish(&format!("coverage at n = {n}, p = {rate}"), &format!("t {found_t:.3}, Wilson {found_score:.3}"));
        assert!((found_t - t).abs() < 0.002, "n = {n}, p = {rate}: t covers {found_t}, wanted {t}");
        assert!((found_score - score).abs() < 0.002, "n = {n}, p = {rate}: Wilson covers {found_score}, wanted {score}");
    }
    let exact = covered(20, 0.95, |k| clopper_pearson(k, 20, 0.95).expect("trials exist").interval.contains(0.95));
    assert!((exact - 0.984).abs() < 0.001, "Clopper-Pearson covers {exact}");
}

#[test]
fn items_for_mcnemar() {
    for (discordance, change, items) in [
        (0.05, 0.02, 979),
        (0.05, 0.03, 434),
        (0.05, 0.05, 155),
        (0.10, 0.02, 1960),
        (0.10, 0.03, 870),
        (0.10, 0.05, 312),
        (0.10, 0.10, 77),
        (0.20, 0.03, 1742),
        (0.20, 0.05, 626),
        (0.20, 0.10, 155),
    ] {
        assert_eq!(mcnemar_items(discordance, change, 0.05, 0.8), Ok(items), "discordance {discordance}, change {change}");
        let exact = mcnemar_power(items, discordance, change, 0.05).expect("in range");
        publish(&format!("exact McNemar power, {items} items, discordance {discordance}, change {change}"), &format!("{exact:.3}"));
        // The formula is a normal approximation of a discrete test.
        assert!(exact > 0.76 && exact < 0.90, "{items} items: exact power {exact}");
    }
}

#[test]
fn items_for_non_inferiority() {
    for (discordance, margin, items) in
        [(0.05, 0.01, 3092), (0.05, 0.02, 773), (0.05, 0.03, 344), (0.10, 0.02, 1546), (0.10, 0.03, 687), (0.10, 0.05, 248)]
    {
        assert_eq!(non_inferiority_items(discordance, margin, 0.95, 0.8), Ok(items), "discordance {discordance}, margin {margin}");
        let power = non_inferiority_power(items, discordance, 0.0, margin, 0.95).expect("in range");
        let size = non_inferiority_power(items, discordance, margin, margin, 0.95).expect("in range");
        publish(
            &format!("non-inferiority, {items} items, discordance {discordance}, margin {margin}"),
            &format!("exact power {power:.3}, size {size:.4}"),
        );
        assert!((power - 0.8).abs() < 0.1, "{items} items: exact power {power}");
        assert!(size < 0.06, "{items} items: size {size}");
    }
}

#[test]
fn items_for_excess_flips_and_for_the_lost_middle() {
    assert_eq!(excess_flip_items(0.02, 0.05, 0.05, 0.8), Ok(269));
    assert_eq!(excess_flip_items(0.02, 0.10, 0.05, 0.8), Ok(102));
    let weights = ends_against_middle(5).expect("five positions");
    for (drop, items, power) in [(0.06, 100, 0.35), (0.06, 200, 0.58), (0.06, 400, 0.88), (0.10, 100, 0.70), (0.10, 200, 0.95)] {
        let deviation = contrast_deviation(&weights, &[0.75, 0.75 - drop, 0.75 - drop, 0.75 - drop, 0.75]).expect("five rates");
        let found = mean_power(items, drop, deviation, 0.05).expect("in range");
        publish(&format!("power of the U contrast, drop {drop}, {items} items"), &format!("{found:.3}"));
        assert!((found - power).abs() < 0.07, "drop {drop}, {items} items: {found}, wanted {power}");
    }
    let deviation = contrast_deviation(&weights, &[0.75, 0.65, 0.65, 0.65, 0.75]).expect("five rates");
    let items = items_for_mean(0.10, deviation, 0.05, 0.95).expect("in range");
    assert!((200..=240).contains(&items), "{items} items for 95 %");
}
