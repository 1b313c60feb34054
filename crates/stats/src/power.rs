//! Before sending anything: how many items a question needs, and what so many items can detect.
//!
//! - one proportion against a gate: [`verdict_odds`], [`items_for_verdict`], [`detectable_rate`]
//! - two conditions, right or wrong: [`mcnemar_items`], [`mcnemar_power`], [`detectable_change`]
//! - not worse than: [`non_inferiority_items`], [`non_inferiority_power`]
//! - means of per-item numbers (excess flips, contrasts, differences): [`items_for_mean`], [`detectable_mean`], [`mean_power`],
//!   with [`excess_flip_items`] and [`contrast_deviation`] for the spread
//! - events that should never happen: [`trials_without_event`], [`rate_bound_without_event`]
//!
//! *Detectable* is an effect that the stated share of runs decides on, not one that a lucky run may.

mod change;
mod mean;
mod proportion;
mod rare;

pub use change::{detectable_change, mcnemar_items, mcnemar_power, non_inferiority_items, non_inferiority_power};
pub use mean::{contrast_deviation, detectable_mean, excess_flip_items, items_for_mean, mean_power};
pub use proportion::{MOST_TRIALS, VerdictOdds, detectable_rate, items_for_verdict, verdict_odds};
pub use rare::{rate_bound_without_event, trials_without_event};

/// Rounds a sample size up, unless it exceeds a whole number by rounding only.
fn whole_items(items: f64) -> usize {
    (items - 1e-9).ceil().max(1.0) as usize
}
