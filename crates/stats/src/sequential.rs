//! Looking before all the data are in, without paying for it with false verdicts.
//!
//! A 95 % interval inspected four times as the data grow misses the truth at some look in about 13 % of runs, not 5 %. An
//! error-spending plan gives each look its own, wider level so that all looks together miss in 5 %.

use crate::distributions::{bisect, normal_quantile, normal_tail};
use crate::undefined::{Undefined, require_at_least, require_open_unit};

/// One planned inspection of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// share of the planned items that are in, from 0 (excluded) to 1
    pub share: f64,
    /// two-sided error spent up to and including this look
    pub alpha_spent: f64,
    /// standard errors beyond which the look decides
    pub z: f64,
    /// two-sided level of the interval to show and to decide with at this look
    pub level: f64,
}

/// Looks at a quarter, half, three quarters and all of the items.
pub const QUARTERS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// Looks for a plan that doubles its items twice and stops at all of them.
pub const DOUBLINGS: [f64; 3] = [0.25, 0.5, 1.0];

/// Plans looks that together miss the truth with probability `alpha`, spending little early (O'Brien-Fleming type).
///
/// Each side spends up to share `t` of the items, with the normal quantile `z`:
///
/// ```text
/// spent(t) = 2 (1 - F(z(1 - alpha/4) / sqrt(t))),   so that spent(1) = alpha / 2
/// ```
///
/// and each look's boundary is the one at which a Brownian path that has not yet crossed crosses with the newly spent
/// probability.
///
/// - `shares`  of the planned items at each look: rising, the last one 1, for example [`QUARTERS`]
/// - `alpha`   two-sided error of all looks together, for example 0.05
///
/// At each look take the interval of that look's `level` and decide on it with [`crate::verdict::Gate::decide`]; go on while it is
/// Inconclusive. The number of looks may change on the way, their shares only in ignorance of the results. Holds for
/// statistics that are close to normal at the first look; with 25 items of a proportion near 1 it is conservative.
///
/// Source: Lan, DeMets 1983, Biometrika 70(3); boundaries as in Jennison, Turnbull 2000, Group Sequential Methods, chapters 7 and 19.
pub fn obrien_fleming_looks(shares: &[f64], alpha: f64) -> Result<Vec<Look>, Undefined> {
    require_open_unit("plan of looks", "alpha", alpha)?;
    require_at_least("plan of looks", "looks", 1, shares.len())?;
    let rising = shares.windows(2).all(|pair| pair[0] < pair[1]);
    if !rising || shares[0] <= 0.0 || shares[shares.len() - 1] != 1.0 {
        let found = shares[shares.len() - 1];
        return Err(Undefined::OutOfRange {
            quantity: "plan of looks",
            argument: "shares",
            wanted: "rising from above 0 to exactly 1",
            found,
        });
    }
    let mut paths = Paths::start();
    let mut looks = Vec::with_capacity(shares.len());
    let mut spent_before = 0.0;
    for &share in shares {
        let spent = one_sided_spent(share, alpha);
        let z = paths.boundary(share, spent - spent_before);
        looks.push(Look { share, alpha_spent: 2.0 * spent, z, level: 1.0 - 2.0 * normal_tail(z) });
        paths = paths.survivors(share, z);
        spent_before = spent;
    }
    Ok(looks)
}

fn one_sided_spent(share: f64, alpha: f64) -> f64 {
    2.0 * normal_tail(-normal_quantile(alpha / 4.0) / share.sqrt())
}

/// Density, at the last look, of the Brownian paths that have not crossed a boundary yet.
struct Paths {
    share: f64,
    /// (place, density times Simpson weight)
    points: Vec<(f64, f64)>,
}

const GRID: usize = 400; // intervals between the boundaries; boundaries agree with 800 to 1e-9

impl Paths {
    fn start() -> Self {
        Self { share: 0.0, points: vec![(0.0, 1.0)] }
    }

    /// The boundary that the surviving paths first exceed, on one side, with the given probability at `share`.
    fn boundary(&self, share: f64, probability: f64) -> f64 {
        let step = (share - self.share).sqrt();
        let crossing = |z: f64| -> f64 {
            let place = z * share.sqrt();
            self.points.iter().map(|(from, mass)| mass * normal_tail((place - from) / step)).sum()
        };
        bisect(0.0, 40.0, |z| crossing(z) > probability)
    }

    /// The paths still between `-z` and `z` standard errors at `share`.
    fn survivors(&self, share: f64, z: f64) -> Self {
        let (end, step) = (z * share.sqrt(), (share - self.share).sqrt());
        let width = 2.0 * end / GRID as f64;
        let density = |place: f64| -> f64 {
            let from = |(from, mass): &(f64, f64)| mass * (-0.5 * ((place - from) / step).powi(2)).exp();
            self.points.iter().map(from).sum::<f64>() / (step * (2.0 * std::f64::consts::PI).sqrt())
        };
        let point = |index: usize| {
            let place = -end + width * index as f64;
            let simpson = if index == 0 || index == GRID {
                1.0
            } else if index % 2 == 1 {
                4.0
            } else {
                2.0
            };
            (place, density(place) * simpson * width / 3.0)
        };
        Self { share, points: (0..=GRID).map(point).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_look_is_the_ordinary_interval() {
        let looks = obrien_fleming_looks(&[1.0], 0.05).expect("one look");
        assert!((looks[0].z - 1.959_963_984_540_054).abs() < 1e-9, "{looks:?}");
        assert!((looks[0].level - 0.95).abs() < 1e-9, "{looks:?}");
    }

    #[test]
    fn the_boundaries_at_the_quarters_are_the_published_ones() {
        // 4.333, 2.963, 2.359, 2.014: Lan-DeMets O'Brien-Fleming type, one-sided 0.025, as group-sequential software prints them.
        let looks = obrien_fleming_looks(&QUARTERS, 0.05).expect("four looks");
        for (look, expected) in looks.iter().zip([4.333, 2.963, 2.359, 2.014]) {
            assert!((look.z - expected).abs() < 6e-4, "at {}: {} wanted {expected}", look.share, look.z);
        }
        assert!((looks[3].alpha_spent - 0.05).abs() < 1e-10);
    }

    #[test]
    fn levels_narrow_as_data_arrive_and_never_reach_the_single_look() {
        for shares in [&QUARTERS[..], &DOUBLINGS[..], &[0.1, 0.2, 0.3, 0.9, 1.0]] {
            let looks = obrien_fleming_looks(shares, 0.05).expect("looks in order");
            assert!(looks.windows(2).all(|pair| pair[0].level > pair[1].level), "{looks:?}");
            assert!(looks.iter().all(|look| look.level > 0.95), "{looks:?}");
        }
    }

    #[test]
    fn looks_out_of_order_or_without_an_end_are_refused() {
        for shares in [&[][..], &[0.5][..], &[0.5, 0.5, 1.0], &[0.5, 0.2, 1.0], &[0.0, 1.0], &[f64::NAN, 1.0], &[0.5, 1.5]] {
            assert!(obrien_fleming_looks(shares, 0.05).is_err(), "{shares:?}");
        }
    }
}
