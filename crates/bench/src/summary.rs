//! What several repetitions of one measurement say.

use serde::Serialize;

/// Mean, standard deviation, median and extremes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation, with `n - 1`; none of a single repetition.
    pub standard_deviation: Option<f64>,
    /// The middle one; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Of `values`; nothing of none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let standard_deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        Some(Self { mean, standard_deviation, median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_summed_up_as_the_textbook_says() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary { mean: 3.0, standard_deviation: None, median: 3.0, min: 3.0, max: 3.0 };
        assert_eq!(Summary::of(&[3.0]), Some(one));
        // Deviations from 5: 4, 1, 1, 4, squares 16 + 1 + 1 + 16 = 34; 34 / 3.
        let four = Summary { mean: 5.0, standard_deviation: Some((34.0_f64 / 3.0).sqrt()), median: 5.0, min: 1.0, max: 9.0 };
        assert_eq!(Summary::of(&[9.0, 1.0, 6.0, 4.0]), Some(four));
        assert_eq!(Summary::of(&[9.0, 1.0, 6.0]).map(|summary| summary.median), Some(6.0));
    }
}
