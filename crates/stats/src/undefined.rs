//! Why a number does not exist: too little data, data that is not a number, or a question outside its range.

/// The reason a statistic has no value for the given data.
///
/// A statistic that does not exist is never replaced by 0, 1 or NaN: zero width would claim certainty, NaN would spread
/// silently into reports. Turn it into a verdict with [`crate::verdict::Gate::decide_estimate`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Undefined {
    /// Fewer independent units than the statistic needs.
    #[error("{quantity} needs at least {wanted} {unit}, found {found}")]
    TooFew {
        /// what was asked for, as a report would name it
        quantity: &'static str,
        /// what is counted, in the plural ("items", "clusters")
        unit: &'static str,
        /// smallest count for which the statistic exists
        wanted: usize,
        /// count that was given
        found: usize,
    },
    /// A value is NaN or infinite.
    #[error("{quantity} needs finite numbers, found {value} at index {index}")]
    NotFinite {
        /// what was asked for
        quantity: &'static str,
        /// position of the first such value in its slice, from 0
        index: usize,
        /// the value
        value: f64,
    },
    /// An argument lies outside the range in which the statistic is defined.
    #[error("{quantity} needs `{argument}` {wanted}, found {found}")]
    OutOfRange {
        /// what was asked for
        quantity: &'static str,
        /// name of the argument
        argument: &'static str,
        /// the range, in words
        wanted: &'static str,
        /// the value that was given
        found: f64,
    },
    /// Two slices that belong together have different lengths.
    #[error("{quantity} needs `{left_name}` and `{right_name}` of equal length, found {left} and {right}")]
    LengthsDiffer {
        /// what was asked for
        quantity: &'static str,
        /// name of the first slice
        left_name: &'static str,
        /// name of the second slice
        right_name: &'static str,
        /// length of the first slice
        left: usize,
        /// length of the second slice
        right: usize,
    },
    /// Every value is the same, so the data cannot say how much it would vary.
    #[error("{quantity} has no interval: all {n} values are {value}")]
    NoVariation {
        /// what was asked for
        quantity: &'static str,
        /// number of values
        n: usize,
        /// the value they share
        value: f64,
    },
    /// A correlation with something that does not vary.
    #[error("{quantity} needs `{argument}` to vary, found it constant")]
    Constant {
        /// what was asked for
        quantity: &'static str,
        /// name of the argument that is constant
        argument: &'static str,
    },
    /// A ratio or another partial statistic does not exist on too many resamples.
    #[error("{quantity} is not a number on {undefined} of {resamples} resamples")]
    UndefinedOnResamples {
        /// what was asked for
        quantity: &'static str,
        /// resamples on which the statistic was not finite
        undefined: usize,
        /// resamples drawn
        resamples: usize,
    },
}

/// Accepts a confidence level strictly between 0 and 1.
pub(crate) fn require_level(quantity: &'static str, level: f64) -> Result<(), Undefined> {
    require_open_unit(quantity, "level", level)
}

/// Accepts a number strictly between 0 and 1.
pub(crate) fn require_open_unit(quantity: &'static str, argument: &'static str, found: f64) -> Result<(), Undefined> {
    if found > 0.0 && found < 1.0 {
        return Ok(());
    }
    Err(Undefined::OutOfRange { quantity, argument, wanted: "strictly between 0 and 1", found })
}

/// Accepts a number from 0 to 1, both included.
pub(crate) fn require_probability(quantity: &'static str, argument: &'static str, found: f64) -> Result<(), Undefined> {
    if (0.0..=1.0).contains(&found) {
        return Ok(());
    }
    Err(Undefined::OutOfRange { quantity, argument, wanted: "from 0 to 1", found })
}

/// Accepts a finite number above zero.
pub(crate) fn require_positive(quantity: &'static str, argument: &'static str, found: f64) -> Result<(), Undefined> {
    if found > 0.0 && found.is_finite() {
        return Ok(());
    }
    Err(Undefined::OutOfRange { quantity, argument, wanted: "finite and above 0", found })
}

/// Accepts a slice without NaN or infinity.
pub(crate) fn require_finite(quantity: &'static str, values: &[f64]) -> Result<(), Undefined> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Undefined::NotFinite { quantity, index, value: values[index] }),
    }
}

/// Accepts a count that reaches `wanted`.
pub(crate) fn require_at_least(quantity: &'static str, unit: &'static str, wanted: usize, found: usize) -> Result<(), Undefined> {
    if found >= wanted {
        return Ok(());
    }
    Err(Undefined::TooFew { quantity, unit, wanted, found })
}

/// Accepts two slices of one length; each is given with its name.
pub(crate) fn require_equal_lengths(
    quantity: &'static str,
    (left_name, left): (&'static str, usize),
    (right_name, right): (&'static str, usize),
) -> Result<(), Undefined> {
    if left == right {
        return Ok(());
    }
    Err(Undefined::LengthsDiffer { quantity, left_name, right_name, left, right })
}
