//! The same items under two conditions: what changed, how surely, and is the new one at least not worse.
//!
//! - right or wrong per item: [`mcnemar`] tests, [`paired_difference`] estimates, [`non_inferiority`] decides
//! - a score per item: [`sign_flip`] tests; [`crate::bounded::bounded_mean`] or [`crate::bootstrap::over_items`] estimates
//!
//! Comparing the two accuracies as if the items were different ones ignores the pairing and wastes most of the data.

mod difference;
mod mcnemar;
mod non_inferiority;
mod sign_flip;

pub use difference::{newcombe, paired_difference, tango};
pub(crate) use mcnemar::policy_p_values;
pub use mcnemar::{mcnemar, mcnemar_exact, mcnemar_mid_p};
pub use non_inferiority::{NonInferiority, non_inferiority};
pub(crate) use sign_flip::Extremes;
pub use sign_flip::{MOST_ENUMERATED, sign_flip};

use crate::undefined::{Undefined, require_equal_lengths};

/// How often two conditions were right on the same items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairedCounts {
    /// items right under both
    pub both_right: usize,
    /// items right under the base condition only
    pub only_base_right: usize,
    /// items right under the new condition only
    pub only_new_right: usize,
    /// items wrong under both
    pub both_wrong: usize,
}

impl PairedCounts {
    /// Counts two rows of outcomes of the same items in the same order.
    ///
    /// - `base`, `new`  `[item]`, true where right
    pub fn count(base: &[bool], new: &[bool]) -> Result<Self, Undefined> {
        require_equal_lengths("paired counts", ("base", base.len()), ("new", new.len()))?;
        let mut counts = Self::default();
        for pair in base.iter().zip(new) {
            match pair {
                (true, true) => counts.both_right += 1,
                (true, false) => counts.only_base_right += 1,
                (false, true) => counts.only_new_right += 1,
                (false, false) => counts.both_wrong += 1,
            }
        }
        Ok(counts)
    }

    /// Number of items.
    pub fn n(&self) -> usize {
        self.both_right + self.only_base_right + self.only_new_right + self.both_wrong
    }

    /// Items that are right under one condition and wrong under the other.
    pub fn discordant(&self) -> usize {
        self.only_base_right + self.only_new_right
    }
}
