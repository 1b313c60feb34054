//! Do the intervals cover the truth as often as they say? Proportions exactly, by adding up every outcome; the rest by simulation.

use glassbox_stats::bootstrap::{Resampling, over_items, over_items_then_repeats, percentile_over_items};
use glassbox_stats::bounded::{bounded_mean, bounded_mean_even, bounded_mean_guarded};
use glassbox_stats::clustered::clustered_mean;
use glassbox_stats::line::slope;
use glassbox_stats::order::excess_flip_rates;
use glassbox_stats::paired::{PairedCounts, newcombe, tango};
use glassbox_stats::proportion::{clopper_pearson, proportion_interval, wilson};
use glassbox_stats::random::Dice;
use glassbox_stats::repeats::pass_all_k;
use glassbox_stats::several::{contrast_of_items, ends_against_middle};
use glassbox_stats::{Estimate, Interval, Undefined};

use crate::simulation::{Share, answer, coverage, interval_of, mean_and_least, normal, publish, sample};

type PairedInterval = fn(PairedCounts, f64) -> Result<Estimate, Undefined>;
type ProportionInterval = fn(usize, usize, f64) -> Result<Estimate, Undefined>;

/// ln k! for k up to n.
fn ln_factorials(n: usize) -> Vec<f64> {
    (0..=n)
        .scan(0.0, |sum, k| {
            *sum += (k.max(1) as f64).ln();
            Some(*sum)
        })
        .collect()
}

/// Exact coverage at one rate: the probability of the outcomes whose interval contains it.
fn exact_coverage(intervals: &[Interval], ln_factorials: &[f64], rate: f64) -> f64 {
    let n = intervals.len() - 1;
    let probability = |k: usize| {
        (ln_factorials[n] - ln_factorials[k] - ln_factorials[n - k] + k as f64 * rate.ln() + (n - k) as f64 * (1.0 - rate).ln()).exp()
    };
    (0..=n).filter(|k| intervals[*k].contains(rate)).map(probability).sum()
}

/// Mean and least coverage over rates 0.005, 0.010, ... 0.995.
fn over_rates(interval: ProportionInterval, n: usize, level: f64) -> (f64, f64) {
    let intervals: Vec<Interval> = (0..=n).map(|k| interval(k, n, level).expect("trials exist").interval).collect();
    let ln_factorials = ln_factorials(n);
    let covered: Vec<f64> = (1..200).map(|step| exact_coverage(&intervals, &ln_factorials, f64::from(step) / 200.0)).collect();
    (covered.iter().sum::<f64>() / covered.len() as f64, covered.iter().copied().fold(1.0, f64::min))
}

#[test]
fn wilson_covers_nominally_on_average_but_only_84_of_95_where_one_event_is_all_there_is() {
    for (level, n) in [(0.95, 10), (0.95, 30), (0.95, 50), (0.95, 100), (0.95, 300), (0.90, 30), (0.90, 100), (0.99, 30), (0.99, 100)] {
        let (mean, least) = over_rates(wilson, n, level);
        publish(&format!("Wilson {level}, n = {n}"), &format!("mean {mean:.4}, least {least:.4} over 0.005 .. 0.995"));
        assert!((mean - level).abs() < 0.01, "n = {n}: mean coverage {mean}, nominal {level}");
    }
    for n in [50, 500] {
        let intervals: Vec<Interval> = (0..=n).map(|k| wilson(k, n, 0.95).expect("trials exist").interval).collect();
        let covered = exact_coverage(&intervals, &ln_factorials(n), 0.17 / n as f64);
        assert!((covered - 0.84).abs() < 0.01, "n = {n}: {covered}");
    }
}

#[test]
fn clopper_pearson_never_covers_less_than_it_says() {
    for level in [0.90, 0.95, 0.99] {
        for n in [1, 5, 10, 20, 29, 100] {
            let (mean, least) = over_rates(clopper_pearson, n, level);
            publish(&format!("Clopper-Pearson {level}, n = {n}"), &format!("mean {mean:.4}, least {least:.4}"));
            assert!(least >= level, "n = {n}: least coverage {least}, nominal {level}");
        }
    }
}

#[test]
fn the_policy_covers_at_least_nominally_below_30_and_nominally_on_average_above() {
    for n in [5, 10, 20, 29, 30, 50, 100, 300] {
        let (mean, mut least) = over_rates(proportion_interval, n, 0.95);
        // The rates at which few events happen lie between the steps of the grid; halving them finds the dips.
        let intervals: Vec<Interval> = (0..=n).map(|k| proportion_interval(k, n, 0.95).expect("trials exist").interval).collect();
        let ln_factorials = ln_factorials(n);
        for step in (1..400).take_while(|step| 10 * n > *step) {
            least = least.min(exact_coverage(&intervals, &ln_factorials, step as f64 * 0.05 / n as f64));
        }
        publish(&format!("proportion_interval 0.95, n = {n}"), &format!("mean {mean:.4}, least {least:.4}"));
        assert!(least >= if n < 30 { 0.95 } else { 0.92 }, "n = {n}: least coverage {least}");
        assert!(n < 30 || (mean - 0.95).abs() < 0.01, "n = {n}: mean coverage {mean}");
        assert!(mean < 0.991, "n = {n}: mean coverage {mean}");
    }
}

/// Exact coverage of a paired difference over discordances and changes, when an item that does not change is right with 3/4.
fn over_changes(interval: PairedInterval, n: usize, unchanged_matter: bool) -> (f64, f64) {
    let ln_factorials = ln_factorials(n);
    let settings: Vec<(f64, f64)> = [0.04, 0.1, 0.2, 0.3, 0.5]
        .iter()
        .flat_map(|discordance| [0.0, 0.2, 0.5, 0.8].map(|part| (discordance * (1.0 - part) / 2.0, discordance * (1.0 + part) / 2.0)))
        .collect();
    let mut covered = vec![0.0; settings.len()];
    for b in 0..=n {
        for c in 0..=n - b {
            let unchanged = n - b - c;
            // Intervals that ignore how the unchanged items split need only one split.
            for right in if unchanged_matter { 0..=unchanged } else { unchanged..=unchanged } {
                let counts = PairedCounts { both_right: right, only_base_right: b, only_new_right: c, both_wrong: unchanged - right };
                let found = interval(counts, 0.95).expect("items exist").interval;
                for (covered, (worse, better)) in covered.iter_mut().zip(&settings) {
                    if !found.contains(better - worse) {
                        continue;
                    }
                    let mut ln = ln_factorials[n] - ln_factorials[b] - ln_factorials[c] + b as f64 * worse.ln() + c as f64 * better.ln();
                    let rest = 1.0 - worse - better;
                    ln += if unchanged_matter {
                        let (right, wrong) = (right, unchanged - right);
                        right as f64 * (0.75 * rest).ln() + wrong as f64 * (0.25 * rest).ln() - ln_factorials[right] - ln_factorials[wrong]
                    } else {
                        unchanged as f64 * rest.ln() - ln_factorials[unchanged]
                    };
                    *covered += ln.exp();
                }
            }
        }
    }
    (covered.iter().sum::<f64>() / covered.len() as f64, covered.iter().copied().fold(1.0, f64::min))
}

#[test]
fn paired_differences_cover_nominally_on_average() {
    // (method, items, whether the unchanged ones matter, most mean coverage). With 30 items and one or two of them changed there are too few
    // tables to be less generous.
    let cases: [(&str, PairedInterval, usize, bool, f64); 4] = [
        ("Tango", tango, 30, false, 0.97),
        ("Tango", tango, 60, false, 0.96),
        ("Tango", tango, 120, false, 0.96),
        ("Newcombe", newcombe, 30, true, 0.975),
    ];
    for (name, interval, n, unchanged_matter, most) in cases {
        let (mean, least) = over_changes(interval, n, unchanged_matter);
        publish(&format!("{name} 0.95, n = {n}"), &format!("mean {mean:.4}, least {least:.4}"));
        assert!(mean > 0.945 && mean < most, "{name}, n = {n}: mean coverage {mean}");
        assert!(least > 0.93, "{name}, n = {n}: least coverage {least}");
    }
}

/// A population of per-item values with a known mean and range.
struct Population {
    name: &'static str,
    n: usize,
    mean: f64,
    range: (f64, f64),
    draw: fn(&mut Dice, usize) -> Vec<f64>,
}

fn excess_flips(dice: &mut Dice, n: usize, noise: f64, sensitive: f64) -> Vec<f64> {
    let answers = |dice: &mut Dice, count: usize, noise: f64| -> Vec<usize> {
        (0..count).map(|_| if dice.happens(noise) { 1 + dice.below(3) } else { 0 }).collect()
    };
    let (mut orders, mut repeats) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let noise_of_orders = if dice.happens(sensitive) { 0.5 } else { noise };
        orders.push(answers(dice, 6, noise_of_orders));
        repeats.push(answers(dice, 3, noise));
    }
    excess_flip_rates(&orders, &repeats).expect("answers exist")
}

/// Probability that two answers differ when each strays with `noise` to one of three others.
const fn flip_chance(noise: f64) -> f64 {
    1.0 - (1.0 - noise) * (1.0 - noise) - noise * noise / 3.0
}

const POPULATIONS: &[Population] = &[
    Population { name: "uniform", n: 40, mean: 0.5, range: (0.0, 1.0), draw: |dice, n| sample(dice, n, Dice::unit) },
    Population {
        name: "right or wrong, 0.7",
        n: 60,
        mean: 0.7,
        range: (0.0, 1.0),
        draw: |dice, n| sample(dice, n, |dice| answer(dice, 0.7)),
    },
    Population {
        name: "right or wrong, 0.9",
        n: 60,
        mean: 0.9,
        range: (0.0, 1.0),
        draw: |dice, n| sample(dice, n, |dice| answer(dice, 0.9)),
    },
    Population {
        name: "means of 5 repeats, items of 0.99 and 0.6",
        n: 60,
        mean: 0.795,
        range: (0.0, 1.0),
        draw: |dice, n| {
            sample(dice, n, |dice| {
                let rate = if dice.happens(0.5) { 0.99 } else { 0.6 };
                (0..5).map(|_| answer(dice, rate)).sum::<f64>() / 5.0
            })
        },
    },
    Population { name: "excess flips, noise 5 %", n: 100, mean: 0.0, range: (-1.0, 1.0), draw: |dice, n| excess_flips(dice, n, 0.05, 0.0) },
    Population {
        name: "excess flips, noise 2 %, one item in five sensitive",
        n: 100,
        mean: 0.2 * (flip_chance(0.5) - flip_chance(0.02)),
        range: (-1.0, 1.0),
        draw: |dice, n| excess_flips(dice, n, 0.02, 0.2),
    },
    Population {
        name: "U contrast, no effect at 0.75",
        n: 60,
        mean: 0.0,
        range: (-1.0, 1.0),
        draw: |dice, n| {
            let rows: Vec<Vec<f64>> = (0..n).map(|_| sample(dice, 5, |dice| answer(dice, 0.75))).collect();
            contrast_of_items(&rows, &ends_against_middle(5).expect("five positions"))
                .expect("complete rows")
                .iter()
                .map(|u| u.clamp(-1.0, 1.0))
                .collect()
        },
    },
];

/// Populations in which few items differ, where a bootstrap collapses.
const NEARLY_CONSTANT: &[Population] = &[
    Population {
        name: "right or wrong, 0.98",
        n: 50,
        mean: 0.98,
        range: (0.0, 1.0),
        draw: |dice, n| sample(dice, n, |dice| answer(dice, 0.98)),
    },
    Population {
        name: "right or wrong, 0.99",
        n: 50,
        mean: 0.99,
        range: (0.0, 1.0),
        draw: |dice, n| sample(dice, n, |dice| answer(dice, 0.99)),
    },
    Population {
        name: "excess flips, noise 0.5 %",
        n: 60,
        mean: 0.0,
        range: (-1.0, 1.0),
        draw: |dice, n| excess_flips(dice, n, 0.005, 0.0),
    },
    Population {
        name: "flips of 3 items in 100",
        n: 60,
        mean: 0.018,
        range: (0.0, 1.0),
        draw: |dice, n| sample(dice, n, |dice| if dice.happens(0.03) { 0.6 } else { 0.0 }),
    },
];

fn coverages(
    populations: &[Population],
    runs: u64,
    interval: impl Fn(&[f64], &Population, Resampling) -> Result<Estimate, Undefined>,
) -> Vec<Share> {
    let of = |population: &Population| {
        coverage(runs, population.mean, |dice, run| {
            let values = (population.draw)(dice, population.n);
            interval_of(interval(&values, population, Resampling { resamples: DRAWS, level: 0.95, seed: run }))
        })
    };
    populations.iter().map(of).collect()
}

fn listed(populations: &[Population], shares: &[Share]) -> String {
    populations
        .iter()
        .zip(shares)
        .map(|(population, share)| format!("\n    {:.3} {} (n = {})", share.share, population.name, population.n))
        .collect()
}

const DRAWS: usize = 399; // quantiles at whole ranks; more draws change the mean coverage by less than 0.002
const RUNS: u64 = 400; // standard error 0.011 per population, 0.004 for the mean of seven

#[test]
fn bounded_means_cover_nominally_on_average() {
    let shares = coverages(POPULATIONS, RUNS, |values, population, resampling| {
        bounded_mean_even(values, population.range.0..=population.range.1, resampling)
    });
    let (mean, least) = mean_and_least(&shares);
    publish("bounded mean 0.95", &format!("mean {:.4} ± {:.4}, least {least:.3}{}", mean.share, mean.error, listed(POPULATIONS, &shares)));
    assert!((mean.share - 0.95).abs() < 0.01 + 3.0 * mean.error, "mean coverage {mean:?}");
    assert!(least > 0.90, "least coverage {least}{}", listed(POPULATIONS, &shares));
}

#[test]
fn bounded_means_stay_honest_where_few_items_differ_and_the_bootstrap_does_not() {
    let bounded = coverages(NEARLY_CONSTANT, 300, |values, population, resampling| {
        bounded_mean(values, population.range.0..=population.range.1, resampling)
    });
    let bootstrap = coverages(NEARLY_CONSTANT, 300, |values, _, resampling| over_items(values, mean_of, resampling));
    publish("bounded mean 0.95, few items differ", &listed(NEARLY_CONSTANT, &bounded));
    publish("BCa bootstrap 0.95, few items differ", &listed(NEARLY_CONSTANT, &bootstrap));
    assert!(bounded.iter().all(|share| share.share > 0.95 - 3.0 * share.error), "{}", listed(NEARLY_CONSTANT, &bounded));
    assert!(bootstrap.iter().all(|share| share.share < 0.90), "{}", listed(NEARLY_CONSTANT, &bootstrap));
}

#[test]
fn guarded_bounded_means_never_cover_less_than_they_say() {
    let small = |population: &Population| Population { n: population.n / 4, ..*population };
    let populations: Vec<Population> = POPULATIONS.iter().chain(NEARLY_CONSTANT).map(small).collect();
    let shares = coverages(&populations, 300, |values, population, resampling| {
        bounded_mean_guarded(values, population.range.0..=population.range.1, resampling)
    });
    publish("guarded bounded mean 0.95", &listed(&populations, &shares));
    assert!(shares.iter().all(|share| share.share > 0.95 - 3.0 * share.error), "{}", listed(&populations, &shares));
}

fn mean_of(drawn: &[&f64]) -> f64 {
    drawn.iter().copied().sum::<f64>() / drawn.len() as f64
}

/// Values without a natural range, as latencies and divergences are.
const UNBOUNDED: &[Population] = &[
    Population { name: "normal", n: 60, mean: 0.0, range: (0.0, 0.0), draw: |dice, n| sample(dice, n, normal) },
    Population { name: "exponential", n: 60, mean: 1.0, range: (0.0, 0.0), draw: |dice, n| sample(dice, n, Dice::waiting_time) },
    Population { name: "uniform", n: 60, mean: 0.5, range: (0.0, 0.0), draw: |dice, n| sample(dice, n, Dice::unit) },
    Population {
        name: "sum of two exponentials",
        n: 60,
        mean: 2.0,
        range: (0.0, 0.0),
        draw: |dice, n| sample(dice, n, |dice| dice.waiting_time() + dice.waiting_time()),
    },
];

#[test]
fn bootstrap_intervals_cover_nearly_nominally_from_sixty_items_on() {
    type Bootstrap = fn(&[f64], fn(&[&f64]) -> f64, Resampling) -> Result<Estimate, Undefined>;
    for (name, bootstrap) in [("BCa", over_items as Bootstrap), ("percentile", percentile_over_items)] {
        let shares = coverages(UNBOUNDED, 600, |values, _, resampling| bootstrap(values, mean_of, resampling));
        let (mean, least) = mean_and_least(&shares);
        publish(
            &format!("{name} bootstrap 0.95"),
            &format!("mean {:.4} ± {:.4}, least {least:.3}{}", mean.share, mean.error, listed(UNBOUNDED, &shares)),
        );
        assert!((mean.share - 0.95).abs() < 0.01 + 3.0 * mean.error, "{name}: mean coverage {mean:?}");
        assert!(least > 0.90, "{name}: least coverage {least}");
    }
}

#[test]
fn clustered_intervals_cover_nominally_when_trials_of_an_item_belong_together() {
    let mut shares = Vec::new();
    for (clusters, trials, shared) in [(10, 5, 1.0), (20, 3, 0.5), (40, 8, 2.0), (40, 1, 0.0)] {
        let keys: Vec<usize> = (0..clusters * trials).map(|trial| trial / trials).collect();
        shares.push(coverage(4_000, 0.0, |dice, _| {
            let effects = sample(dice, clusters, normal);
            let values: Vec<f64> = keys.iter().map(|key| shared * effects[*key] + normal(dice)).collect();
            interval_of(clustered_mean(&values, &keys, 0.95))
        }));
    }
    let (mean, least) = mean_and_least(&shares);
    publish("clustered t 0.95", &format!("mean {:.4} ± {:.4}, least {least:.4}", mean.share, mean.error));
    assert!((mean.share - 0.95).abs() < 0.01, "mean coverage {mean:?}");
    assert!(least > 0.94, "least coverage {least}");
}

#[test]
fn two_level_bootstraps_of_means_are_too_wide() {
    // Items of deviation 0.5, repeats of deviation 1, 4 repeats: the variance grows by 1 + (3/16) / (1/4 + 1/4) = 1.375.
    let (runs, mut wider) = (60, 0.0);
    let mut dice = Dice::new(3);
    for seed in 0..runs {
        let items: Vec<Vec<f64>> = (0..40)
            .map(|_| {
                let effect = 0.5 * normal(&mut dice);
                sample(&mut dice, 4, |dice| effect + normal(dice))
            })
            .collect();
        let means: Vec<f64> = items.iter().map(|repeats| repeats.iter().sum::<f64>() / 4.0).collect();
        let resampling = Resampling { resamples: 999, level: 0.95, seed };
        let two = over_items_then_repeats(&items, |repeats| repeats.iter().sum::<f64>() / 4.0, resampling).expect("items vary");
        let one = percentile_over_items(&means, mean_of, resampling).expect("items vary");
        wider += two.interval.width() / one.interval.width() / runs as f64;
    }
    publish("width of two-level over one-level bootstrap", &format!("{wider:.3}, from theory {:.3}", 1.375f64.sqrt()));
    // Each ratio has a sampling error of about 0.06, their mean 0.008.
    assert!((wider - 1.375f64.sqrt()).abs() < 0.04, "wider by {wider}");
}

#[test]
fn two_level_bootstraps_of_pass_all_k_sit_too_high() {
    let (repeats, k) = (5, 3);
    let all_pass = |scores: &[f64]| {
        let passes = scores.iter().filter(|score| **score == 1.0).count();
        pass_all_k(passes, scores.len(), k).expect("k fits")
    };
    let resampling = Resampling { resamples: 399, level: 0.95, seed: 1 };
    let truth = 0.7f64.powi(3);
    let two = coverage(150, truth, |dice, _| {
        let items: Vec<Vec<f64>> = (0..150).map(|_| sample(dice, repeats, |dice| answer(dice, 0.7))).collect();
        interval_of(over_items_then_repeats(&items, all_pass, resampling))
    });
    let one = coverage(300, truth, |dice, _| {
        let values: Vec<f64> = (0..150).map(|_| all_pass(&sample(dice, repeats, |dice| answer(dice, 0.7)))).collect();
        interval_of(bounded_mean(&values, 0.0..=1.0, resampling))
    });
    publish(
        "coverage of pass^3 from 5 repeats of 150 items",
        &format!("two-level {:.3}, bounded mean of unbiased values {:.3}", two.share, one.share),
    );
    assert!(two.share < 0.75, "{two:?}");
    assert!(one.share > 0.95 - 3.0 * one.error, "{one:?}");
}

#[test]
fn the_interval_of_a_slope_covers_as_it_says_with_three_points_already() {
    let shares: Vec<_> = [3, 5, 15]
        .into_iter()
        .map(|n| {
            let share = coverage(20_000, 2.0, |dice, _| {
                let points: Vec<(f64, f64)> = (0..n).map(|x| (f64::from(x), 7.0 + 2.0 * f64::from(x) + normal(dice))).collect();
                interval_of(slope(&points, 0.95))
            });
            publish(&format!("slope, n = {n}"), &format!("{:.4} ± {:.4}", share.share, share.error));
            // Exact for normal noise: only the number of runs stands between the share and 0.95; four errors miss once in 16,000 tests.
            assert!((share.share - 0.95).abs() < 4.0 * share.error, "n = {n}: {share:?}");
            share
        })
        .collect();
    let (mean, least) = mean_and_least(&shares);
    publish("slope", &format!("mean {:.4}, least {least:.4}", mean.share));
}
