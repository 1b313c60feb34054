//! Is the new condition not worse than the base by more than a margin?

use std::fmt;

use super::{PairedCounts, paired_difference};
use crate::estimate::Estimate;
use crate::undefined::{Undefined, require_open_unit, require_positive};
use crate::verdict::{Gate, Verdict};

/// How much worse the new condition may be, and what the data say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct NonInferiority {
    /// share of right answers lost from base to new; its interval has one-sided coverage `confidence` on each side
    pub loss: Estimate,
    /// largest tolerable loss, a share of items
    pub margin: f64,
    /// one-sided coverage of each end of `loss.interval`
    pub confidence: f64,
    /// Pass if the whole interval is below the margin, Fail if it is whole above
    pub verdict: Verdict,
}

/// Decides whether the new condition loses less than `margin`, with a one-sided bound on each side.
///
/// ```text
/// Pass: upper bound of (base - new) <= margin;   Fail: lower bound of (base - new) > margin
/// ```
///
/// - `counts`      outcomes of the same items under both conditions
/// - `margin`      largest tolerable loss, a share of items above 0, for example 0.02
/// - `confidence`  one-sided, for example 0.95; the interval shown is then the two-sided 90 % one
///
/// This is the question for quantisation, caches and faster kernels: "no significant difference" passes every model that was
/// tested on too few items, this passes none of them.
///
/// Source: Tango 1998 (score test against a margin); Nam 1997, Biometrics 53(4).
pub fn non_inferiority(counts: PairedCounts, margin: f64, confidence: f64) -> Result<NonInferiority, Undefined> {
    require_positive("non-inferiority", "margin", margin)?;
    require_open_unit("non-inferiority", "confidence", confidence)?;
    let level = 2.0 * confidence - 1.0;
    if level <= 0.0 {
        return Err(Undefined::OutOfRange { quantity: "non-inferiority", argument: "confidence", wanted: "above 0.5", found: confidence });
    }
    let loss = paired_difference(counts, level)?.negated();
    Ok(NonInferiority { loss, margin, confidence, verdict: Gate::Max(margin).decide(loss.interval) })
}

impl fmt::Display for NonInferiority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.loss.interval.high;
        let percent = (self.confidence * 1e4).round() / 1e2;
        write!(
            f,
            "{}: loss {:.3}, at most {bound:.3} ({percent} % one-sided {}, n = {}), margin {}",
            self.verdict, self.loss.value, self.loss.method, self.loss.n, self.margin
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(n: usize, only_base_right: usize, only_new_right: usize) -> PairedCounts {
        PairedCounts { both_right: n - only_base_right - only_new_right, only_base_right, only_new_right, both_wrong: 0 }
    }

    #[test]
    fn few_items_cannot_show_that_nothing_was_lost() {
        let result = non_inferiority(changed(20, 0, 0), 0.02, 0.95).expect("items exist");
        assert_eq!(result.verdict, Verdict::Inconclusive, "{result}");
    }

    #[test]
    fn many_unchanged_items_pass_and_a_large_loss_fails() {
        assert_eq!(non_inferiority(changed(500, 3, 3), 0.02, 0.95).expect("items exist").verdict, Verdict::Pass);
        assert_eq!(non_inferiority(changed(500, 40, 3), 0.02, 0.95).expect("items exist").verdict, Verdict::Fail);
    }

    #[test]
    fn an_improvement_never_fails() {
        for better in [1, 5, 20] {
            let result = non_inferiority(changed(100, 0, better), 0.01, 0.95).expect("items exist");
            assert_ne!(result.verdict, Verdict::Fail, "{result}");
        }
    }

    #[test]
    fn a_margin_of_zero_or_a_confidence_below_one_half_is_refused() {
        assert!(non_inferiority(changed(100, 1, 1), 0.0, 0.95).is_err());
        assert!(non_inferiority(changed(100, 1, 1), 0.02, 0.05).is_err());
    }
}
