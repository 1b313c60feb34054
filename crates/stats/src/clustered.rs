//! Standard errors that belong to the mean they stand beside: clustered by item, or weighted as the mean is.

use std::collections::HashMap;
use std::hash::Hash;

use crate::distributions::{student_quantile, two_sided_z};
use crate::estimate::{Estimate, Interval, Method};
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite, require_level};

/// A mean with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanWithError {
    /// the mean, in the unit of the data
    pub mean: f64,
    /// its standard error, in the same unit; 0 only if all values are equal
    pub standard_error: f64,
    /// independent clusters behind it
    pub clusters: usize,
}

/// Estimates the standard error of a mean over all values when values of one cluster belong together.
///
/// With `n` values of mean `m` in `C` clusters:
///
/// ```text
/// SE^2 = C / (C - 1) * sum_c (sum_{i in c} (y_i - m))^2 / n^2
/// ```
///
/// - `values`    `[trial]`, any unit
/// - `clusters`  `[trial]`, the item, document or conversation that the trial belongs to
///
/// With one trial per cluster this is the ordinary `s / sqrt(n)`. One cluster gives no standard error, and never 0. Says nothing about
/// sources of variation that were not repeated, such as the order of the prompt or the sampling seed.
///
/// Source: Liang, Zeger 1986 with the factor C / (C - 1); Miller 2024, Adding Error Bars to Evals (arXiv:2411.00640).
pub fn clustered_error<K: Eq + Hash>(values: &[f64], clusters: &[K]) -> Result<MeanWithError, Undefined> {
    const QUANTITY: &str = "clustered standard error";
    require_equal_lengths(QUANTITY, ("values", values.len()), ("clusters", clusters.len()))?;
    require_finite(QUANTITY, values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let mut place_of = HashMap::new();
    let mut sums: Vec<f64> = Vec::new();
    for (value, cluster) in values.iter().zip(clusters) {
        let place = *place_of.entry(cluster).or_insert(sums.len());
        if place == sums.len() {
            sums.push(0.0);
        }
        sums[place] += value - mean;
    }
    require_at_least(QUANTITY, "clusters", 2, sums.len())?;
    let count = sums.len() as f64;
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    Ok(MeanWithError { mean, standard_error: (count / (count - 1.0) * squares).sqrt() / n, clusters: sums.len() })
}

/// Estimates a mean over clustered values with the t interval of `C - 1` degrees of freedom.
///
/// ```text
/// mean ± t(1 - tail; C - 1) SE,   tail = (1 - level) / 2
/// ```
///
/// - `values`, `clusters`  as in [`clustered_error`]
/// - `level`               nominal coverage of both sides together
///
/// For continuous values such as losses and latencies. Not for right-or-wrong scores near 0 or 1, where its true coverage falls to 64 %
/// (n = 20, p = 0.95): average each item and use [`crate::bounded::bounded_mean`].
///
/// Source: as [`clustered_error`]; degrees of freedom as in Bell, McCaffrey 2002 for equal clusters.
pub fn clustered_mean<K: Eq + Hash>(values: &[f64], clusters: &[K], level: f64) -> Result<Estimate, Undefined> {
    require_level("clustered mean", level)?;
    let found = clustered_error(values, clusters)?;
    if found.standard_error == 0.0 {
        return Err(Undefined::NoVariation { quantity: "clustered mean", n: values.len(), value: found.mean });
    }
    let half = student_quantile((1.0 + level) / 2.0, (found.clusters - 1) as f64) * found.standard_error;
    let interval = Interval { low: found.mean - half, high: found.mean + half, level };
    Ok(Estimate { value: found.mean, interval, n: found.clusters, method: Method::ClusteredT })
}

/// How the means of several groups become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// each group counts by its number of values: the mean over all values
    BySize,
    /// each group counts the same: the mean of the groups' means
    Equally,
}

/// Estimates the mean over groups of independent values, with the standard error of exactly that mean.
///
/// ```text
/// mean = sum_g w_g m_g,   SE^2 = sum_g w_g^2 s_g^2 / n_g
/// ```
///
/// - `groups`     `[group][value]`, for example the subjects of a benchmark
/// - `weighting`  `w_g = n_g / n` or `1 / groups`; the two means differ and so do their errors
/// - `level`      nominal coverage of both sides together (normal)
///
/// Every group needs two values: the spread of one value is unknown, not 0.
///
/// Source: Cochran 1977, Sampling Techniques, eq. 5.12.
pub fn mean_of_groups<G: AsRef<[f64]>>(groups: &[G], weighting: Weighting, level: f64) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "mean of groups";
    require_level(QUANTITY, level)?;
    require_at_least(QUANTITY, "groups", 1, groups.len())?;
    let total: usize = groups.iter().map(|group| group.as_ref().len()).sum();
    let (mut value, mut variance) = (0.0, 0.0);
    for group in groups {
        let group = group.as_ref();
        require_at_least(QUANTITY, "values in every group", 2, group.len())?;
        require_finite(QUANTITY, group)?;
        let n = group.len() as f64;
        let mean = group.iter().sum::<f64>() / n;
        let spread = group.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let weight = match weighting {
            Weighting::BySize => n / total as f64,
            Weighting::Equally => 1.0 / groups.len() as f64,
        };
        value += weight * mean;
        variance += weight * weight * spread / n;
    }
    if variance == 0.0 {
        return Err(Undefined::NoVariation { quantity: QUANTITY, n: total, value });
    }
    let half = two_sided_z(level) * variance.sqrt();
    let interval = Interval { low: value - half, high: value + half, level };
    Ok(Estimate { value, interval, n: total, method: Method::StratifiedNormal })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(successes: usize, n: usize) -> Vec<f64> {
        (0..n).map(|trial| if trial < successes { 1.0 } else { 0.0 }).collect()
    }

    #[test]
    fn fourteen_right_of_307_have_a_standard_error_of_0_0119() {
        let items: Vec<usize> = (0..307).collect();
        let found = clustered_error(&right(14, 307), &items).expect("many clusters");
        assert!((found.standard_error - 0.011_926).abs() < 5e-7, "{found:?}");
    }

    #[test]
    fn each_mean_over_groups_has_its_own_error() {
        // (weighting, mean, standard error) of 90 right of 100 beside 450 right of 900.
        let groups = [right(90, 100), right(450, 900)];
        for (weighting, mean, error) in [(Weighting::BySize, 0.54, 0.015_308), (Weighting::Equally, 0.70, 0.017_228)] {
            let found = mean_of_groups(&groups, weighting, 0.95).expect("groups vary");
            let found_error = found.interval.width() / 2.0 / two_sided_z(0.95);
            assert!((found.value - mean).abs() < 1e-12, "{weighting:?}: {found}");
            assert!((found_error - error).abs() < 5e-7, "{weighting:?}: {found_error}, wanted {error}");
        }
    }

    #[test]
    fn one_cluster_has_no_standard_error_however_many_trials_it_has() {
        for trials in [1, 50] {
            let found = clustered_error(&right(1, trials), &vec!["only item"; trials]);
            assert!(matches!(found, Err(Undefined::TooFew { unit: "clusters", wanted: 2, found: 1, .. })), "{found:?}");
        }
        assert!(matches!(mean_of_groups(&[[1.0]], Weighting::BySize, 0.95), Err(Undefined::TooFew { .. })));
        assert!(clustered_error::<usize>(&[], &[]).is_err());
    }

    #[test]
    fn copies_of_the_same_trials_do_not_shrink_the_error() {
        let once = clustered_error(&right(12, 40), &(0..40).collect::<Vec<_>>()).expect("many clusters");
        let five_times: Vec<f64> = right(12, 40).into_iter().flat_map(|value| [value; 5]).collect();
        let items: Vec<usize> = (0..200).map(|trial| trial / 5).collect();
        let copied = clustered_error(&five_times, &items).expect("many clusters");
        assert!((once.standard_error - copied.standard_error).abs() < 1e-12, "{once:?} against {copied:?}");
    }

    #[test]
    fn values_that_all_agree_give_no_interval_instead_of_one_without_width() {
        let found = clustered_mean(&right(10, 10), &(0..10).collect::<Vec<_>>(), 0.95);
        assert!(matches!(found, Err(Undefined::NoVariation { .. })), "{found:?}");
    }
}
