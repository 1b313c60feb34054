//! The sign-flip test: if the conditions are exchangeable, each item's difference was as likely to have the other sign.

use crate::estimate::{Alternative, Method, TestOutcome};
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_finite};

/// Up to this many items with a difference every combination of signs is enumerated, so that no seed matters.
pub const MOST_ENUMERATED: u32 = 13; // 2^13 = 8192 combinations, fewer than a usual sample of 9,999

/// Tests whether per-item differences are centred on zero, by flipping their signs.
///
/// ```text
/// p = share of sign combinations whose sum is at least as extreme as the observed one (all 2^m of them), or
/// p = (1 + as extreme) / (1 + flips) when sampled
/// ```
///
/// - `differences`  `[item]`, new minus base of each independent item, any unit; several trials of an item are averaged first
/// - `alternative`  which direction counts
/// - `flips`        combinations to sample when more than [`MOST_ENUMERATED`] items differ; 9,999 is customary
/// - `seed`         of the sample
///
/// The outcome's `statistic` is the mean difference. Items without a difference do not change p. If none differs, p = 1.
///
/// Exact when both signs of an item's difference are equally likely if nothing happens: true when two exchangeable conditions
/// are compared once each. For skewed differences (a mean of several trials against one, an unbalanced contrast) it is
/// approximate; `tests/stats/size.rs` measures by how much.
///
/// Source: Fisher 1935, The Design of Experiments, section 21; Phipson, Smyth 2010 for the added 1 (arXiv:1603.05766).
pub fn sign_flip(differences: &[f64], alternative: Alternative, flips: usize, seed: u64) -> Result<TestOutcome, Undefined> {
    require_finite("sign-flip test", differences)?;
    require_at_least("sign-flip test", "items", 1, differences.len())?;
    let n = differences.len();
    let changed: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let observed: f64 = changed.iter().sum();
    let extremes = Extremes::of(observed, &changed, alternative);
    let (p_value, method) = if changed.len() <= MOST_ENUMERATED as usize {
        (enumerated(&changed, extremes), Method::SignFlipExact)
    } else {
        require_at_least("sign-flip test", "flips", 1, flips)?;
        (sampled(&changed, extremes, flips, seed), Method::SignFlipSampled)
    };
    Ok(TestOutcome { statistic: observed / n as f64, p_value, n, method })
}

/// Sums that count as at least as extreme as the observed one.
#[derive(Clone, Copy)]
pub(crate) struct Extremes {
    at_least: f64,
    at_most: f64,
}

impl Extremes {
    /// Sums that are equal on paper differ in the last bits, so a sum within rounding of the observed one counts as equal.
    pub(crate) fn of(observed: f64, terms: &[f64], alternative: Alternative) -> Self {
        let rounding = 1e-12 * terms.iter().map(|term| term.abs()).sum::<f64>();
        let (at_least, at_most) = match alternative {
            Alternative::TwoSided => (observed.abs() - rounding, rounding - observed.abs()),
            Alternative::Greater => (observed - rounding, f64::NEG_INFINITY),
            Alternative::Less => (f64::INFINITY, observed + rounding),
        };
        Self { at_least, at_most }
    }

    pub(crate) fn include(self, sum: f64) -> bool {
        sum >= self.at_least || sum <= self.at_most
    }
}

fn enumerated(changed: &[f64], extremes: Extremes) -> f64 {
    let combinations = 1u64 << changed.len();
    let as_extreme = (0..combinations).filter(|signs| extremes.include(signed_sum(changed, *signs))).count();
    as_extreme as f64 / combinations as f64
}

fn sampled(changed: &[f64], extremes: Extremes, flips: usize, seed: u64) -> f64 {
    let mut dice = Dice::new(seed);
    let as_extreme = (0..flips).filter(|_| extremes.include(changed.chunks(64).map(|chunk| signed_sum(chunk, dice.bits())).sum())).count();
    (1 + as_extreme) as f64 / (1 + flips) as f64
}

/// The sum of at most 64 terms, negated where the bit of `signs` is set.
fn signed_sum(terms: &[f64], signs: u64) -> f64 {
    terms.iter().enumerate().map(|(bit, term)| f64::from_bits(term.to_bits() ^ ((signs >> bit) << 63))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired::{PairedCounts, mcnemar_exact};

    #[test]
    fn on_right_and_wrong_it_is_the_exact_mcnemar_test() {
        for (worse, better) in [(0, 4), (1, 9), (3, 3), (2, 8), (6, 7)] {
            let mut differences = vec![0.0; 30];
            differences[..worse].fill(-1.0);
            differences[worse..worse + better].fill(1.0);
            let flipped = sign_flip(&differences, Alternative::TwoSided, 0, 0).expect("items exist").p_value;
            let counts = PairedCounts { both_right: 30 - worse - better, only_base_right: worse, only_new_right: better, both_wrong: 0 };
            let exact = mcnemar_exact(counts).expect("items exist").p_value;
            assert!((flipped - exact).abs() < 1e-12, "{worse} worse, {better} better: {flipped} against {exact}");
        }
    }

    #[test]
    fn the_two_directions_share_only_the_observed_sum() {
        let differences = [0.1, 0.25, -0.05, 0.4, 0.0, 0.31];
        let p = |alternative| sign_flip(&differences, alternative, 0, 0).expect("items exist").p_value;
        // 5 items differ: P(sum >= observed) + P(sum <= observed) = 1 + P(sum = observed) = 1 + 1/32.
        assert!((p(Alternative::Greater) + p(Alternative::Less) - 1.0 - 1.0 / 32.0).abs() < 1e-12);
    }

    #[test]
    fn sums_that_are_equal_on_paper_count_as_equal() {
        // 0.1 + 0.2 - 0.3 is not 0 in binary; every combination with the same absolute sum must count.
        let p = sign_flip(&[0.1, 0.2, -0.3], Alternative::TwoSided, 0, 0).expect("items exist").p_value;
        assert_eq!(p, 1.0);
    }

    #[test]
    fn a_sampled_p_value_is_never_zero_and_depends_on_nothing_but_the_seed() {
        let differences: Vec<f64> = (0..40).map(|item| 1.0 + f64::from(item) / 40.0).collect();
        let p = |seed| sign_flip(&differences, Alternative::Greater, 999, seed).expect("items exist");
        assert_eq!(p(3), p(3));
        assert_eq!(p(3).p_value, 1.0 / 1000.0);
        assert_eq!(p(3).method, Method::SignFlipSampled);
    }

    #[test]
    fn items_that_do_not_differ_change_nothing_and_only_such_items_give_p_one() {
        let few = sign_flip(&[0.5, -0.1, 0.2], Alternative::TwoSided, 0, 0).expect("items exist");
        let padded = sign_flip(&[0.5, 0.0, -0.1, 0.0, 0.2], Alternative::TwoSided, 0, 0).expect("items exist");
        assert_eq!(few.p_value, padded.p_value);
        assert_eq!(sign_flip(&[0.0; 9], Alternative::TwoSided, 0, 0).expect("items exist").p_value, 1.0);
    }

    #[test]
    fn a_missing_number_is_refused_with_its_place() {
        let found = sign_flip(&[0.1, f64::NAN], Alternative::TwoSided, 99, 0);
        assert!(matches!(found, Err(Undefined::NotFinite { index: 1, .. })), "{found:?}");
    }
}
