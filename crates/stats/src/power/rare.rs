//! Events that should never happen: what zero of n says.

use super::whole_items;
use crate::undefined::{Undefined, require_at_least, require_open_unit};

/// Computes how many trials without an event bound its rate.
///
/// ```text
/// n = ln(1 - confidence) / ln(1 - rate), rounded up;   about 3 / rate for 95 %
/// ```
///
/// - `rate`        the bound wanted, for example 0.01
/// - `confidence`  one-sided, for example 0.95
///
/// Source: Hanley, Lippman-Hand 1983, If nothing goes wrong, is everything all right?, JAMA 249(13).
pub fn trials_without_event(rate: f64, confidence: f64) -> Result<usize, Undefined> {
    require_open_unit("trials without event", "rate", rate)?;
    require_open_unit("trials without event", "confidence", confidence)?;
    Ok(whole_items((1.0 - confidence).ln() / (-rate).ln_1p()))
}

/// Computes the rate that `trials` without an event leave possible.
///
/// ```text
/// rate = 1 - (1 - confidence)^(1 / n)
/// ```
///
/// - `trials`      n, all without the event
/// - `confidence`  one-sided, for example 0.95
///
/// Source: as [`trials_without_event`]; it is the one-sided Clopper-Pearson bound.
pub fn rate_bound_without_event(trials: usize, confidence: f64) -> Result<f64, Undefined> {
    require_at_least("rate without event", "trials", 1, trials)?;
    require_open_unit("rate without event", "confidence", confidence)?;
    Ok(-((1.0 - confidence).ln() / trials as f64).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_of_n_bounds_the_rate() {
        for (rate, trials) in [(0.10, 29), (0.05, 59), (0.01, 299), (0.005, 598), (0.001, 2995)] {
            assert_eq!(trials_without_event(rate, 0.95), Ok(trials), "rate {rate}");
            let bound = |trials| rate_bound_without_event(trials, 0.95).expect("trials exist");
            assert!(bound(trials) <= rate && bound(trials - 1) > rate, "{trials} trials: {}", bound(trials));
        }
    }

    #[test]
    fn a_rate_of_zero_needs_more_trials_than_exist() {
        assert!(trials_without_event(0.0, 0.95).is_err());
        assert!(rate_bound_without_event(0, 0.95).is_err());
    }
}
