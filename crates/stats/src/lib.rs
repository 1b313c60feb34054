//! Intervals, paired tests, bootstrap, power; checked against known truths.
//!
//! Plain functions on slices that return small structs: [`Estimate`] (value, interval, n, method) and [`TestOutcome`] (statistic, p, n,
//! method). What does not exist is [`Undefined`], never 0 and never NaN. Nothing draws a random number without a seed in its
//! arguments.
//!
//! | question | answer |
//! |---|---|
//! | how often is it right? | [`proportion::proportion_interval`] |
//! | what is the mean of per-item scores, flips, contrasts? | [`bounded::bounded_mean`] |
//! | what is this ratio, slope? | [`bootstrap::over_items`] |
//! | how fast is it forgotten? | [`decay::loss_per_step`], [`decay::half_life`] |
//! | how steep is a line, which power of n fits? | [`line::slope`] |
//! | did it change on the same items? | [`paired::paired_difference`], [`paired::mcnemar`], [`paired::sign_flip`] |
//! | is it at least not worse? | [`paired::non_inferiority`] |
//! | do several conditions differ? | [`several::planned_contrast`], [`several::cochran_q`] |
//! | does the order matter beyond noise? | [`order::excess_flip_rates`], [`order::excess_flip_test`] |
//! | how noisy is the subject? | [`repeats::noise_floor`], [`repeats::pass_all_k`] |
//! | pass or fail? | [`verdict::Gate::decide`], with legal early looks [`sequential::obrien_fleming_looks`] |
//! | how many items does that need? | [`power`] |
//!
//! Items are the unit everywhere: independent of each other, while everything measured on one item belongs together.
//!
//! ```
//! use glassbox_stats::{proportion::proportion_interval, verdict::{Gate, Verdict}};
//! let accuracy = proportion_interval(188, 200, 0.95)?;
//! assert_eq!(accuracy.to_string(), "0.940 [0.898, 0.965] (95 % Wilson, n = 200)");
//! assert_eq!(Gate::Min(0.85).decide(accuracy.interval), Verdict::Pass);
//! assert_eq!(Gate::Min(0.95).decide(accuracy.interval), Verdict::Inconclusive);
//! # Ok::<(), glassbox_stats::Undefined>(())
//! ```

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod bounded;
pub mod clustered;
pub mod decay;
pub mod estimate;
pub mod line;
pub mod order;
pub mod paired;
pub mod power;
pub mod proportion;
pub mod random;
pub mod repeats;
pub mod sequential;
pub mod several;
pub mod verdict;

mod distributions;
mod undefined;

pub use estimate::{Alternative, Estimate, Interval, Method, TestOutcome};
pub use undefined::Undefined;
