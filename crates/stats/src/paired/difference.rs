//! Intervals for the difference of two proportions on the same items.

use super::PairedCounts;
use crate::distributions::{bisect, two_sided_z};
use crate::estimate::{Estimate, Interval, Method};
use crate::proportion::score_ends;
use crate::undefined::{Undefined, require_at_least, require_level};

/// Estimates how much the share of right answers changed from base to new, with Tango's interval.
///
/// - `counts`  outcomes of the same items under both conditions
/// - `level`   nominal coverage of both sides together, for example 0.95
///
/// The value is `(only_new_right - only_base_right) / n`, from -1 to 1; above zero the new condition is better.
///
/// Source: the recommendation of Fagerland, Lydersen, Laake 2014, Statistics in Medicine 33(16).
pub fn paired_difference(counts: PairedCounts, level: f64) -> Result<Estimate, Undefined> {
    tango(counts, level)
}

/// Estimates the same with Tango's score interval: all differences that a score test would not reject.
///
/// With `n` items, `c` right under new only, `b` under base only, a candidate difference `d`, and the most likely
/// probability `q` of "base only" under that candidate, the ends solve
///
/// ```text
/// (c - b - n d) / sqrt(n (2 q + d (1 - d))) = z  and  = -z
/// q = (sqrt(B^2 - 8 n C) - B) / 4n,  B = (2n - c + b) d - b - c,  C = -b d (1 - d)
/// ```
///
/// - `counts`, `level`  as in [`paired_difference`]
///
/// Depends on the changed items and `n` only. With no changed item it is `± z^2 / (n + z^2)`, as Wilson's would be.
///
/// Source: Tango 1998, Statistics in Medicine 17(8), eq. 7 and 10.
pub fn tango(counts: PairedCounts, level: f64) -> Result<Estimate, Undefined> {
    let value = checked_difference(counts, level)?;
    let z = two_sided_z(level);
    // The score falls as the candidate difference grows.
    let low = bisect(-1.0, value, |candidate| score(counts, candidate) > z);
    let high = bisect(value, 1.0, |candidate| score(counts, candidate) > -z);
    Ok(Estimate { value, interval: Interval { low, high, level }, n: counts.n(), method: Method::Tango })
}

/// Estimates the same from the Wilson intervals of both conditions and their correlation (Newcombe's method 10).
///
/// With shares `p_new`, `p_base`, their Wilson ends, and the correlation `r` of the table (pulled towards 0 when positive):
///
/// ```text
/// value - low  = sqrt(x^2 - 2 r x y + y^2),  x = p_new - low_new,   y = high_base - p_base
/// high - value = sqrt(x^2 - 2 r x y + y^2),  x = high_new - p_new,  y = p_base - low_base
/// r = max(a d - b c - n/2, 0) / sqrt(product of the four margins) if a d > b c, else (a d - b c) / the same
/// ```
///
/// - `counts`, `level`  as in [`paired_difference`]
///
/// Needs no iteration and can be checked by hand; [`tango`] covers slightly better.
///
/// Source: Newcombe 1998, Improved confidence intervals for paired data, Statistics in Medicine 17(22), method 10.
pub fn newcombe(counts: PairedCounts, level: f64) -> Result<Estimate, Undefined> {
    let value = checked_difference(counts, level)?;
    let (n, z) = (counts.n() as f64, two_sided_z(level));
    let share_new = (counts.both_right + counts.only_new_right) as f64 / n;
    let share_base = (counts.both_right + counts.only_base_right) as f64 / n;
    let (low_new, high_new) = score_ends(share_new, n, z);
    let (low_base, high_base) = score_ends(share_base, n, z);
    let correlation = shrunken_correlation(counts);
    let reach = |x: f64, y: f64| (x * x - 2.0 * correlation * x * y + y * y).max(0.0).sqrt();
    let low = (value - reach(share_new - low_new, high_base - share_base)).max(-1.0);
    let high = (value + reach(high_new - share_new, share_base - low_base)).min(1.0);
    Ok(Estimate { value, interval: Interval { low, high, level }, n: counts.n(), method: Method::Newcombe })
}

/// Tango's statistic for the candidate difference `d`.
fn score(counts: PairedCounts, d: f64) -> f64 {
    let (n, b, c) = (counts.n() as f64, counts.only_base_right as f64, counts.only_new_right as f64);
    let linear = (2.0 * n - c + b) * d - b - c;
    let constant = -b * d * (1.0 - d);
    let root = (linear * linear - 8.0 * n * constant).max(0.0).sqrt();
    let base_only = (root - linear) / (4.0 * n);
    let variance = n * (2.0 * base_only + d * (1.0 - d));
    let distance = c - b - n * d;
    if distance == 0.0 { 0.0 } else { distance / variance.max(0.0).sqrt() }
}

fn shrunken_correlation(counts: PairedCounts) -> f64 {
    let (a, b) = (counts.both_right as f64, counts.only_base_right as f64);
    let (c, d) = (counts.only_new_right as f64, counts.both_wrong as f64);
    let margins = (a + b) * (c + d) * (a + c) * (b + d);
    if margins == 0.0 {
        return 0.0;
    }
    let cross = a * d - b * c;
    let shrunken = if cross > 0.0 { (cross - counts.n() as f64 / 2.0).max(0.0) } else { cross };
    shrunken / margins.sqrt()
}

fn checked_difference(counts: PairedCounts, level: f64) -> Result<f64, Undefined> {
    require_level("paired difference", level)?;
    require_at_least("paired difference", "items", 1, counts.n())?;
    Ok((counts.only_new_right as f64 - counts.only_base_right as f64) / counts.n() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(both_right: usize, only_base_right: usize, only_new_right: usize, both_wrong: usize) -> PairedCounts {
        PairedCounts { both_right, only_base_right, only_new_right, both_wrong }
    }

    #[test]
    fn with_no_changed_item_tango_says_what_wilson_would() {
        let interval = tango(table(60, 0, 0, 40), 0.95).expect("items exist").interval;
        let z_squared = two_sided_z(0.95).powi(2);
        let expected = z_squared / (100.0 + z_squared);
        assert!((interval.high - expected).abs() < 1e-12 && (interval.low + expected).abs() < 1e-12, "{interval}, wanted ± {expected}");
    }

    #[test]
    fn swapping_the_conditions_mirrors_the_interval() {
        for counts in [table(1, 1, 7, 12), table(30, 0, 4, 6), table(0, 20, 0, 0), table(5, 2, 2, 5)] {
            let swapped = PairedCounts { only_base_right: counts.only_new_right, only_new_right: counts.only_base_right, ..counts };
            for interval in [tango, newcombe] {
                let there = interval(counts, 0.95).expect("items exist");
                let back = interval(swapped, 0.95).expect("items exist").negated();
                assert!((there.interval.low - back.interval.low).abs() < 1e-12, "{counts:?}: {there} against {back}");
                assert!((there.interval.high - back.interval.high).abs() < 1e-12, "{counts:?}: {there} against {back}");
                assert!(there.interval.contains(there.value), "{counts:?}: {there}");
            }
        }
    }

    #[test]
    fn a_single_item_gives_a_wide_interval_and_not_a_point() {
        for interval in [tango, newcombe] {
            for counts in [table(1, 0, 0, 0), table(0, 1, 0, 0), table(0, 0, 1, 0)] {
                let estimate = interval(counts, 0.95).expect("an item exists");
                assert!(estimate.interval.width() > 0.5, "{counts:?}: {estimate}");
            }
        }
    }
}
