//! Does the order of the parts of a prompt change the answer, beyond what changes without any reordering?
//!
//! - per item: [`flip_rate`] of its answers under several orders
//! - against the noise floor: [`excess_flip_rates`] for the size, [`excess_flip_test`] for the p-value
//! - a trend along the position: [`kendall_tau_b`], [`kendall_within_items`]
//! - spread of accuracy over conditions: [`range_beyond_chance`]

mod flips;
mod kendall;
mod range;

pub use flips::{excess_flip_rates, excess_flip_test, flip_rate};
pub use kendall::{kendall_tau_b, kendall_within_items};
pub use range::{RangeBeyondChance, range_beyond_chance};
