//! Agreement with SciPy and statsmodels; `fixtures/make_reference.py` made the numbers.

use glassbox_stats::bootstrap::{Resampling, over_items, percentile_over_items};
use glassbox_stats::bounded::{bounded_mean_even, bounded_mean_guarded};
use glassbox_stats::clustered::{clustered_error, clustered_mean};
use glassbox_stats::order::{kendall_tau_b, kendall_within_items};
use glassbox_stats::paired::{PairedCounts, mcnemar_exact, mcnemar_mid_p, newcombe, sign_flip, tango};
use glassbox_stats::power::mcnemar_power;
use glassbox_stats::proportion::{clopper_pearson, wilson};
use glassbox_stats::random::Dice;
use glassbox_stats::repeats::{pass_all_k, pass_at_k};
use glassbox_stats::sequential::obrien_fleming_looks;
use glassbox_stats::several::{benjamini_hochberg, cochran_q, holm};
use glassbox_stats::{Alternative, Interval};
use serde_json::Value;

fn reference(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../fixtures/reference.json")).expect("the fixture is JSON");
    assert!(!all[name].is_null(), "the fixture has `{name}`");
    all[name].clone()
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a count")).expect("a small count")
}

fn numbers(value: &Value) -> Vec<f64> {
    rows(value).iter().map(number).collect()
}

#[track_caller]
fn close(what: &str, found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance, "{what}: found {found}, reference {wanted}, allowed {tolerance}");
}

#[track_caller]
fn same_ends(what: &str, found: Interval, wanted: &Value, tolerance: f64) {
    close(&format!("{what}, low"), found.low, number(&wanted[0]), tolerance);
    close(&format!("{what}, high"), found.high, number(&wanted[1]), tolerance);
}

#[test]
fn proportions_agree_with_statsmodels_and_scipy() {
    for row in rows(&reference("proportions")) {
        let (successes, n, level) = (count(&row["successes"]), count(&row["n"]), number(&row["level"]));
        let what = format!("{successes} of {n} at {level}");
        same_ends(&what, wilson(successes, n, level).expect("trials exist").interval, &row["wilson"], 1e-10);
        same_ends(&what, clopper_pearson(successes, n, level).expect("trials exist").interval, &row["clopper_pearson"], 1e-10);
    }
}

#[test]
fn paired_tests_agree_with_statsmodels_and_intervals_with_brute_force() {
    for row in rows(&reference("paired")) {
        let cell = |name| count(&row[name]);
        let counts = PairedCounts {
            both_right: cell("both_right"),
            only_base_right: cell("only_base_right"),
            only_new_right: cell("only_new_right"),
            both_wrong: cell("both_wrong"),
        };
        let what = format!("{counts:?}");
        close(&what, mcnemar_exact(counts).expect("items exist").p_value, number(&row["mcnemar_exact"]), 1e-10);
        close(&what, mcnemar_mid_p(counts).expect("items exist").p_value, number(&row["mcnemar_mid_p"]), 1e-10);
        // The brute force maximises a likelihood numerically, which is flat to 1e-8 at its top.
        same_ends(&what, tango(counts, 0.95).expect("items exist").interval, &row["tango"], 1e-6);
        same_ends(&what, newcombe(counts, 0.95).expect("items exist").interval, &row["newcombe"], 1e-10);
    }
}

#[test]
fn enumerated_sign_flips_agree_with_scipy() {
    for row in rows(&reference("sign_flips")) {
        let differences = numbers(&row["differences"]);
        for (name, alternative) in [("two-sided", Alternative::TwoSided), ("greater", Alternative::Greater), ("less", Alternative::Less)] {
            let found = sign_flip(&differences, alternative, 0, 0).expect("items exist");
            close(&format!("{name} {differences:?}"), found.p_value, number(&row[name]), 1e-12);
        }
    }
}

#[test]
fn sampled_sign_flips_agree_with_exact_coins() {
    for (worse, better) in [(5, 15), (8, 12), (2, 18), (40, 60)] {
        let mut differences = vec![1.0; better];
        differences.extend(vec![-1.0; worse]);
        let flips = 20_000;
        let found = sign_flip(&differences, Alternative::TwoSided, flips, 3).expect("items exist").p_value;
        let counts = PairedCounts { only_base_right: worse, only_new_right: better, ..PairedCounts::default() };
        let exact = mcnemar_exact(counts).expect("items exist").p_value;
        close(&format!("{worse} worse, {better} better"), found, exact, 4.0 * (exact * (1.0 - exact) / flips as f64).sqrt() + 1e-4);
    }
}

#[test]
fn bootstrap_intervals_agree_with_scipy() {
    for row in rows(&reference("bootstraps")) {
        let (values, error) = (numbers(&row["values"]), number(&row["standard_error"]));
        let mean = |drawn: &[&f64]| drawn.iter().copied().sum::<f64>() / drawn.len() as f64;
        let resampling = Resampling::seeded(17);
        // A 2.5 % quantile of 9,999 draws has a sampling error of sqrt(0.025 * 0.975 / 9,999) / 0.058 = 0.027 standard errors, the 1.1 % quantile
        // of the few values 0.037. Student's wider tails move their ends by 0.34.
        let tolerance = 4.0 * 0.037 * error;
        same_ends(
            "percentile",
            percentile_over_items(&values, mean, resampling).expect("items vary").interval,
            &row["percentile"],
            tolerance,
        );
        same_ends("BCa", over_items(&values, mean, resampling).expect("items vary").interval, &row["BCa"], tolerance);
    }
}

#[test]
fn bounded_means_agree_with_gamma_weights_of_numpy() {
    for row in rows(&reference("bounded_means")) {
        let (values, range) = (numbers(&row["values"]), number(&row["low"])..=number(&row["high"]));
        // As for the bootstrap; the longer tail of few differing items is up to three times as long as a normal one.
        let tolerance = 4.0 * 0.08 * number(&row["deviation"]);
        for (name, found) in [
            ("guarded", bounded_mean_guarded(&values, range.clone(), Resampling::seeded(17))),
            ("even", bounded_mean_even(&values, range, Resampling::seeded(17))),
        ] {
            same_ends(&format!("{} {name}", row["name"]), found.expect("items exist").interval, &row[name], tolerance);
        }
    }
}

#[test]
fn cochrans_q_and_corrections_agree_with_statsmodels() {
    let several = reference("several");
    for table in rows(&several["cochran_q"]) {
        let answers: Vec<Vec<bool>> =
            rows(&table["rows"]).iter().map(|row| numbers(row).iter().map(|score| *score == 1.0).collect()).collect();
        let found = cochran_q(&answers).expect("items exist");
        close("Q", found.statistic, number(&table["q"]), 1e-9);
        close("p of Q", found.p_value, number(&table["p"]), 1e-10);
    }
    let p_values = numbers(&several["p_values"]);
    for (name, found) in [("holm", holm(&p_values)), ("benjamini_hochberg", benjamini_hochberg(&p_values))] {
        for (found, wanted) in found.expect("probabilities").iter().zip(numbers(&several[name])) {
            close(name, *found, wanted, 1e-12);
        }
    }
}

#[test]
fn kendalls_tau_agrees_with_scipy_and_its_shuffles_with_the_exact_p() {
    for row in rows(&reference("kendall")) {
        let (x, y) = (numbers(&row["x"]), numbers(&row["y"]));
        close("tau-b", kendall_tau_b(&x, &y).expect("values vary"), number(&row["tau_b"]), 1e-12);
        if let Some(exact) = row["exact_p"].as_f64() {
            let shuffles = 20_000;
            let found = kendall_within_items(&x, &y, &vec!["one item"; x.len()], Alternative::TwoSided, shuffles, 5).expect("values vary");
            close("p", found.p_value, exact, 4.0 * (exact * (1.0 - exact) / shuffles as f64).sqrt() + 1e-4);
        }
    }
}

#[test]
fn clustered_errors_agree_with_statsmodels() {
    for row in rows(&reference("clustered")) {
        let (values, clusters) = (numbers(&row["values"]), rows(&row["clusters"]).iter().map(count).collect::<Vec<_>>());
        let found = clustered_error(&values, &clusters).expect("clusters exist");
        close("mean", found.mean, number(&row["mean"]), 1e-12);
        close("standard error", found.standard_error, number(&row["standard_error"]), 1e-12);
        same_ends("t interval", clustered_mean(&values, &clusters, 0.95).expect("clusters vary").interval, &row["interval"], 1e-8);
    }
}

#[test]
fn boundaries_of_early_looks_agree_with_multivariate_normal_integrals() {
    for row in rows(&reference("sequential")) {
        let looks = obrien_fleming_looks(&numbers(&row["shares"]), number(&row["alpha"])).expect("looks in order");
        for ((look, spent), z) in looks.iter().zip(numbers(&row["alpha_spent"])).zip(numbers(&row["z"])) {
            close("alpha spent", look.alpha_spent, spent, 1e-10);
            // SciPy's integral in three and four dimensions is itself sampled, to about 1e-6.
            close(&format!("z at {}", look.share), look.z, z, 2e-5);
        }
    }
}

#[test]
fn exact_power_of_mcnemar_agrees_with_enumerating_every_table() {
    for row in rows(&reference("mcnemar_powers")) {
        let (n, discordance, change) = (count(&row["n"]), number(&row["discordance"]), number(&row["change"]));
        let found = mcnemar_power(n, discordance, change, 0.05).expect("in range");
        close(&format!("n = {n}, discordance {discordance}, change {change}"), found, number(&row["power"]), 1e-9);
    }
}

#[test]
fn pass_rates_agree_with_binomial_coefficients() {
    for row in rows(&reference("passes")) {
        let (passes, repeats, k) = (count(&row["passes"]), count(&row["repeats"]), count(&row["k"]));
        close("pass@k", pass_at_k(passes, repeats, k).expect("k fits"), number(&row["at"]), 1e-12);
        close("pass^k", pass_all_k(passes, repeats, k).expect("k fits"), number(&row["all"]), 1e-12);
    }
}

#[test]
fn random_bits_are_those_of_the_chacha_specification() {
    let random = reference("random");
    let mut dice = Dice::new(random["seed"].as_u64().expect("a seed"));
    for word in rows(&random["bits"]) {
        assert_eq!(dice.bits().to_string(), word.as_str().expect("decimal digits"));
    }
}
