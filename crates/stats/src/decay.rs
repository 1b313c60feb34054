//! How fast something is forgotten: the share that is lost with each step of a distance, and the half-life that follows from it.

use crate::bootstrap::{Resampling, quantile_of_sorted};
use crate::estimate::{Estimate, Interval, Method};
use crate::random::Dice;
use crate::undefined::{Undefined, require_at_least, require_equal_lengths, require_finite, require_probability};

/// Narrowings of the golden section for the loss, 0.618^30 = 5e-7, and for the start, whose error enters squared: 0.618^20 = 7e-5.
const NARROWINGS: (usize, usize) = (30, 20);

/// Estimates the share of what is still known that is lost with each step of distance.
///
/// Recall at distance `k` is `p(k) = g + (A - g) (1 - q)^k`: `A` at the start, `g` by guessing, and each step loses the share `q` of what is above
/// guessing. `A` and `q` maximise the likelihood of right and wrong answers; the interval weights the items at random (as
/// [`crate::bounded::bounded_mean_even`]) together with half an unseen item that recalls everything and half an unseen one that recalls only at the first
/// distance, so that it never claims certainty where nothing was lost.
///
/// - `rows`        `[item][distance]` 1 where recalled, 0 where not; means of repeats between
/// - `distances`   `[distance]` rising, 0 or more, in steps such as turns
/// - `guess`       `g`, the share that is right without having been told; below 1
/// - `resampling`  number of weightings, level and seed
///
/// The half-life is [`half_life`] of the value, and of the ends in turn. Coverage measured in `tests/stats/decay.rs`.
///
/// Source: exponential forgetting, the simplest of the curves that Wixted, Ebbesen 1991 (Psychological Science 2(6)) compare; weights as Rubin 1981.
pub fn loss_per_step<R: AsRef<[f64]>>(rows: &[R], distances: &[f64], guess: f64, resampling: Resampling) -> Result<Estimate, Undefined> {
    const QUANTITY: &str = "loss per step";
    resampling.check(QUANTITY)?;
    require_at_least(QUANTITY, "items", 2, rows.len())?;
    require_at_least(QUANTITY, "distances", 2, distances.len())?;
    require_finite(QUANTITY, distances)?;
    require_probability(QUANTITY, "guess", guess)?;
    for row in rows {
        require_equal_lengths(QUANTITY, ("row", row.as_ref().len()), ("distances", distances.len()))?;
        require_finite(QUANTITY, row.as_ref())?;
        if let Some(&found) = row.as_ref().iter().find(|score| !(0.0..=1.0).contains(*score)) {
            return Err(Undefined::OutOfRange { quantity: QUANTITY, argument: "rows", wanted: "from 0 to 1", found });
        }
    }
    if distances[0] < 0.0 || distances.windows(2).any(|pair| pair[0] >= pair[1]) || guess >= 1.0 {
        return Err(Undefined::OutOfRange { quantity: QUANTITY, argument: "distances", wanted: "rising from 0", found: distances[0] });
    }
    let mut counts = Counts::new(distances, guess);
    rows.iter().for_each(|row| counts.add(1.0, row.as_ref()));
    let value = counts.likeliest_loss();
    let (all, only_first): (Vec<f64>, Vec<f64>) =
        distances.iter().enumerate().map(|(index, _)| (1.0, f64::from(u8::from(index == 0)))).unzip();
    let mut dice = Dice::new(resampling.seed);
    let mut losses: Vec<f64> = (0..resampling.resamples)
        .map(|_| {
            let mut counts = Counts::new(distances, guess);
            rows.iter().for_each(|row| counts.add(dice.waiting_time(), row.as_ref()));
            counts.add(dice.half_waiting_time(), &all);
            counts.add(dice.half_waiting_time(), &only_first);
            counts.likeliest_loss()
        })
        .collect();
    losses.sort_by(f64::total_cmp);
    let tail = (1.0 - resampling.level) / 2.0;
    let (low, high) = (quantile_of_sorted(&losses, tail).min(value), quantile_of_sorted(&losses, 1.0 - tail).max(value));
    // Where nothing is lost beyond the first step the smallest loss is possible too.
    let low = if value == 0.0 { 0.0 } else { low };
    Ok(Estimate { value, interval: Interval { low, high, level: resampling.level }, n: rows.len(), method: Method::WeightedLikelihood })
}

/// The steps after which half of what is above guessing is lost, for a loss per step; `None` where nothing is lost.
#[must_use]
pub fn half_life(loss_per_step: f64) -> Option<f64> {
    (loss_per_step > 0.0).then(|| std::f64::consts::LN_2 / -(-loss_per_step).ln_1p())
}

/// Weighted right and wrong answers at each distance.
struct Counts<'a> {
    distances: &'a [f64],
    guess: f64,
    /// `[distance]` right, and all.
    counts: Vec<(f64, f64)>,
}

impl<'a> Counts<'a> {
    fn new(distances: &'a [f64], guess: f64) -> Self {
        Self { distances, guess, counts: vec![(0.0, 0.0); distances.len()] }
    }

    fn add(&mut self, weight: f64, row: &[f64]) {
        for ((right, all), score) in self.counts.iter_mut().zip(row) {
            *right += weight * score;
            *all += weight;
        }
    }

    /// `q` where the likelihood, at its best `A`, is largest.
    fn likeliest_loss(&self) -> f64 {
        // Of losses that are equally likely, as where nothing is lost, the smallest.
        let (loss, best) = largest((0.0, 1.0), NARROWINGS.0, |loss| self.at_best_start(loss));
        if self.at_best_start(0.0) >= best - 1e-7 * best.abs() { 0.0 } else { loss }
    }

    fn at_best_start(&self, loss: f64) -> f64 {
        let kept: Vec<f64> = self.distances.iter().map(|distance| (1.0 - loss).powf(*distance)).collect();
        let likelihood = |start: f64| {
            let term = |((right, all), kept): (&(f64, f64), &f64)| {
                let p = self.guess + (start - self.guess) * kept;
                weighted_ln(*right, p) + weighted_ln(all - right, 1.0 - p)
            };
            self.counts.iter().zip(&kept).map(term).sum()
        };
        largest((self.guess, 1.0), NARROWINGS.1, likelihood).1
    }
}

/// `weight ln p`, 0 where nothing has weight.
fn weighted_ln(weight: f64, p: f64) -> f64 {
    if weight <= 0.0 { 0.0 } else { weight * p.max(1e-12).ln() }
}

/// Where a function with one peak is largest, and how large (golden section; the ends are looked at too).
fn largest((low, high): (f64, f64), narrowings: usize, of: impl Fn(f64) -> f64) -> (f64, f64) {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (low, high);
    let (mut c, mut d) = (b - golden * (b - a), a + golden * (b - a));
    let (mut at_c, mut at_d) = (of(c), of(d));
    for _ in 0..narrowings {
        if at_c >= at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - golden * (b - a);
            at_c = of(c);
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + golden * (b - a);
            at_d = of(d);
        }
    }
    let inside = f64::midpoint(a, b);
    [low, inside, high]
        .into_iter()
        .map(|x| (x, of(x)))
        .fold((low, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(rows: &[Vec<f64>], distances: &[f64]) -> Estimate {
        loss_per_step(rows, distances, 0.0, Resampling { resamples: 399, level: 0.95, seed: 1 }).expect("enough items")
    }

    #[test]
    fn a_curve_that_follows_the_model_gives_its_own_loss() {
        // 1000 items of which 0.9 (1 - 0.1)^k recall at distance k, as whole items: 900, 729, 590.49 ~ 590, 531.
        let rows: Vec<Vec<f64>> =
            (0..1000).map(|item| [900, 810, 729, 656].map(|recalled| f64::from(u8::from(item < recalled))).to_vec()).collect();
        let found = estimate(&rows, &[0.0, 1.0, 2.0, 3.0]);
        assert!((found.value - 0.1).abs() < 1e-3, "{found}");
        assert!(found.interval.contains(0.1) && found.interval.high - found.interval.low < 0.03, "{found}");
        assert!((half_life(0.1).expect("something is lost") - 6.578_813_478_960_585).abs() < 1e-12); // ln 2 / -ln 0.9
    }

    #[test]
    fn where_nothing_is_lost_the_loss_is_0_and_its_interval_says_how_sure_that_is() {
        let found = estimate(&vec![vec![1.0; 4]; 50], &[1.0, 5.0, 10.0, 20.0]);
        assert_eq!((found.value, found.interval.low), (0.0, 0.0));
        // Of 51 items one forgets: 1 - (50 / 51)^(1/19) = 0.001 a step; half of one, with luck, up to some times that.
        assert!(found.interval.high > 0.0005 && found.interval.high < 0.02, "{found}");
        assert_eq!(half_life(found.value), None);
    }

    #[test]
    fn guessing_is_not_remembering() {
        let rows: Vec<Vec<f64>> =
            (0..200).map(|item| vec![1.0, f64::from(u8::from(item % 4 == 0)), f64::from(u8::from(item % 4 == 1))]).collect();
        let resampling = Resampling { resamples: 399, level: 0.95, seed: 1 };
        let guessed = loss_per_step(&rows, &[0.0, 10.0, 20.0], 0.25, resampling).expect("enough items");
        assert!(guessed.value > 0.4, "what is left is guessing: {guessed}");
        let known = loss_per_step(&rows, &[0.0, 10.0, 20.0], 0.0, resampling).expect("enough items");
        assert!(known.value < 0.15, "{known}");
    }

    #[test]
    fn what_cannot_be_fitted_is_undefined() {
        let resampling = Resampling { resamples: 99, level: 0.95, seed: 1 };
        assert!(loss_per_step(&[[1.0, 0.0]], &[0.0, 1.0], 0.0, resampling).is_err());
        assert!(loss_per_step(&[[1.0, 0.0]; 5], &[1.0, 1.0], 0.0, resampling).is_err());
        assert!(loss_per_step(&[[1.0, 2.0]; 5], &[0.0, 1.0], 0.0, resampling).is_err());
        assert!(loss_per_step(&[[1.0]; 5], &[0.0], 0.0, resampling).is_err());
        assert!(loss_per_step(&[[1.0, 0.0]; 5], &[0.0, 1.0], 1.0, resampling).is_err());
    }
}
