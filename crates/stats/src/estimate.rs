//! What every statistic returns: a value with its interval, or a test with its p-value, and the method's name.

use std::fmt;

use crate::undefined::{Undefined, require_finite, require_level};

/// A value with the interval that carries its doubt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// the point estimate, in the unit of the data
    pub value: f64,
    /// where the truth may lie
    pub interval: Interval,
    /// independent units behind it (items or clusters, not trials)
    pub n: usize,
    /// how the interval was made
    pub method: Method,
}

/// A closed range that covers the truth with probability `level` over repeated samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// lower end
    pub low: f64,
    /// upper end; never below `low`
    pub high: f64,
    /// nominal two-sided coverage, strictly between 0 and 1; each side misses with `(1 - level) / 2`
    pub level: f64,
}

/// The outcome of a test of "nothing happens".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestOutcome {
    /// the number the test looks at, in the unit its function states
    pub statistic: f64,
    /// probability, if nothing happens, of data at least this extreme
    pub p_value: f64,
    /// independent units behind it
    pub n: usize,
    /// how the p-value was made
    pub method: Method,
}

/// Which departures from "nothing happens" count as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternative {
    /// a change in either direction
    TwoSided,
    /// the statistic is larger than under "nothing happens"
    Greater,
    /// the statistic is smaller than under "nothing happens"
    Less,
}

/// The procedure behind an interval or a p-value, as a report prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// score interval of one proportion
    Wilson,
    /// exact interval of one proportion
    ClopperPearson,
    /// hybrid score interval of a paired difference of proportions
    Newcombe,
    /// score interval of a paired difference of proportions
    Tango,
    /// binomial test on the discordant pairs
    McNemarExact,
    /// the same, counting the observed table half
    McNemarMidP,
    /// percentiles of resampled statistics
    BootstrapPercentile,
    /// percentiles corrected for bias and for skewness
    BootstrapBca,
    /// percentiles, resampling items and then the repeats inside them
    BootstrapTwoLevel,
    /// mean of values known to lie in a range, half an outcome unseen at each end
    BoundedMean,
    /// the same, a whole outcome unseen at the end in question
    BoundedMeanGuarded,
    /// likelihood of randomly weighted items, half an outcome unseen at each end
    WeightedLikelihood,
    /// t interval over clusters
    ClusteredT,
    /// t interval over independent groups
    StratifiedNormal,
    /// sign flips, every one enumerated
    SignFlipExact,
    /// sign flips, sampled
    SignFlipSampled,
    /// labels exchanged within items, sampled
    Relabelling,
    /// Cochran's Q against chi-squared
    CochranQ,
    /// t interval of a slope by least squares
    LeastSquaresT,
}

impl Method {
    /// The name a report prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wilson => "Wilson",
            Self::ClopperPearson => "Clopper-Pearson",
            Self::Newcombe => "Newcombe",
            Self::Tango => "Tango",
            Self::McNemarExact => "exact McNemar",
            Self::McNemarMidP => "mid-p McNemar",
            Self::BootstrapPercentile => "percentile bootstrap",
            Self::BootstrapBca => "BCa bootstrap",
            Self::BootstrapTwoLevel => "two-level bootstrap",
            Self::BoundedMean => "bounded mean",
            Self::BoundedMeanGuarded => "guarded bounded mean",
            Self::WeightedLikelihood => "weighted likelihood",
            Self::ClusteredT => "clustered t",
            Self::StratifiedNormal => "stratified",
            Self::SignFlipExact => "exact sign flip",
            Self::SignFlipSampled => "sign flip",
            Self::Relabelling => "relabelling within items",
            Self::CochranQ => "Cochran's Q",
            Self::LeastSquaresT => "least squares t",
        }
    }
}

impl Interval {
    /// Makes an interval after checking that both ends are finite and in order.
    ///
    /// - `low`, `high`  ends, in the unit of the data
    /// - `level`        nominal coverage, strictly between 0 and 1
    pub fn new(low: f64, high: f64, level: f64) -> Result<Self, Undefined> {
        require_level("interval", level)?;
        require_finite("interval", &[low, high])?;
        if low > high {
            return Err(Undefined::OutOfRange { quantity: "interval", argument: "low", wanted: "at most `high`", found: low });
        }
        Ok(Self { low, high, level })
    }

    /// Whether `value` lies between the ends, both included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Distance between the ends.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// The interval of the negated quantity: of `base - new` when this one is of `new - base`.
    pub fn negated(&self) -> Self {
        Self { low: -self.high, high: -self.low, level: self.level }
    }
}

impl Estimate {
    /// The estimate of the negated quantity.
    pub fn negated(&self) -> Self {
        Self { value: -self.value, interval: self.interval.negated(), ..*self }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "[{:.digits$}, {:.digits$}]", self.low, self.high)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        // A hundredth of a percent is enough for every level in use, and hides the rounding of 1 - 0.05.
        let percent = (self.interval.level * 1e4).round() / 1e2;
        write!(f, "{:.digits$} {:.digits$} ({percent} % {}, n = {})", self.value, self.interval, self.method, self.n)
    }
}

impl fmt::Display for TestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        let floor = 10f64.powi(-i32::try_from(digits).unwrap_or(3));
        if self.p_value < floor {
            write!(f, "p < {floor:.digits$} ({}, n = {})", self.method, self.n)
        } else {
            write!(f, "p = {:.digits$} ({}, n = {})", self.p_value, self.method, self.n)
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_prints_its_doubt_its_level_its_method_and_its_size() {
        let interval = Interval::new(0.8712, 0.9736, 1.0 - 0.05).expect("ends in order");
        let estimate = Estimate { value: 0.94, interval, n: 100, method: Method::Wilson };
        assert_eq!(estimate.to_string(), "0.940 [0.871, 0.974] (95 % Wilson, n = 100)");
        assert_eq!(format!("{estimate:.1}"), "0.9 [0.9, 1.0] (95 % Wilson, n = 100)");
    }

    #[test]
    fn a_p_value_is_never_printed_as_zero() {
        let outcome = |p_value| TestOutcome { statistic: 1.0, p_value, n: 40, method: Method::McNemarExact };
        assert_eq!(outcome(0.0421).to_string(), "p = 0.042 (exact McNemar, n = 40)");
        assert_eq!(outcome(0.0004).to_string(), "p < 0.001 (exact McNemar, n = 40)");
    }

    #[test]
    fn an_interval_with_a_missing_or_crossed_end_is_refused() {
        for (low, high, level) in [(f64::NAN, 1.0, 0.95), (0.0, f64::INFINITY, 0.95), (1.0, 0.0, 0.95), (0.0, 1.0, 1.0), (0.0, 1.0, 95.0)] {
            assert!(Interval::new(low, high, level).is_err(), "low {low}, high {high}, level {level}");
        }
    }

    #[test]
    fn negating_swaps_the_ends() {
        let interval = Interval::new(-0.1, 0.3, 0.9).expect("ends in order");
        assert_eq!(interval.negated(), Interval { low: -0.3, high: 0.1, level: 0.9 });
    }
}
