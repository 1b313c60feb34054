//! The running softmax in slow motion: what one row remembers after each tile of keys. For teaching; nothing computes with it.
#![forbid(unsafe_code)]

use crate::softmax::textbook::Online;

/// What a row remembers after a tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The largest score so far.
    pub max: f64,
    /// `Σ exp(score - max)` so far.
    pub sum: f64,
    /// The factor that this tile's new maximum put on everything summed and mixed before: `exp(max_before - max)`, 1 if it is the same.
    pub rescale: f64,
    /// `Σ exp(score - max) v` so far, `[d_head]`; divided by `sum`, the attention over the keys seen.
    pub mixed: Vec<f64>,
}

/// One row of attention, tile by tile.
///
/// - `scores`  `[key]`, after scale and soft-cap; minus infinity for hidden keys
/// - `values`  one a key, each `[d_head]`
/// - `tile`    keys of a step
///
/// The last step's `mixed / sum` is the attention of the row, and `max + ln(sum)` its log-sum-exp.
pub fn steps<'a>(scores: &'a [f64], values: &'a [Vec<f64>], tile: usize) -> impl Iterator<Item = Step> + 'a {
    let mut seen = Online::EMPTY;
    let mut mixed = vec![0.0; values.first().map_or(0, Vec::len)];
    scores.chunks(tile.max(1)).zip(values.chunks(tile.max(1))).map(move |(scores, values)| {
        let before = seen;
        seen = scores.iter().fold(seen, |seen, &score| seen.push(score));
        let weight = |score: f64| if score == f64::NEG_INFINITY { 0.0 } else { (score - seen.m).exp() };
        let rescale = if before.m == seen.m { 1.0 } else { weight(before.m) };
        for (channel, mixed) in mixed.iter_mut().enumerate() {
            let added: f64 = scores.iter().zip(values).map(|(&score, value)| weight(score) * value[channel]).sum();
            *mixed = *mixed * rescale + added;
        }
        Step { max: seen.m, sum: seen.l, rescale, mixed: mixed.clone() }
    })
}

#[cfg(test)]
mod checks {
    use super::*;
    use crate::softmax::textbook::{log_sum_exp, softmax};

    #[test]
    fn the_last_step_is_the_attention_of_the_row() {
        let scores: Vec<f64> = (0..23).map(|key| f64::from(key * 7 % 23) - 9.0).collect();
        let values: Vec<Vec<f64>> = (0..23).map(|key| vec![f64::from(key), 1.0]).collect();
        let weights = softmax(&scores);
        let wanted: f64 = weights.iter().zip(&values).map(|(weight, value)| weight * value[0]).sum();
        for tile in [1, 2, 5, 23, 64] {
            let last = steps(&scores, &values, tile).last().expect("at least one tile");
            assert!((last.mixed[0] / last.sum - wanted).abs() < 1e-12);
            assert!((last.mixed[1] / last.sum - 1.0).abs() < 1e-12);
            assert!((last.max + last.sum.ln() - log_sum_exp(&scores)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_new_maximum_rescales_what_came_before_and_an_old_one_does_not() {
        let values = vec![vec![1.0]; 4];
        let seen: Vec<Step> = steps(&[0.0, f64::NEG_INFINITY, 2.0, 1.0], &values, 1).collect();
        assert_eq!(seen.iter().map(|step| step.max).collect::<Vec<_>>(), [0.0, 0.0, 2.0, 2.0]);
        assert_eq!(seen.iter().map(|step| step.rescale).collect::<Vec<_>>(), [0.0, 1.0, (-2.0_f64).exp(), 1.0]);
        assert_eq!(seen[3].sum, (-2.0_f64).exp() + 1.0 + (-1.0_f64).exp());
    }

    #[test]
    fn hidden_keys_alone_leave_nothing() {
        let last = steps(&[f64::NEG_INFINITY; 3], &vec![vec![1e4]; 3], 2).last().expect("two tiles");
        assert_eq!((last.max, last.sum, last.mixed), (f64::NEG_INFINITY, 0.0, vec![0.0]));
    }
}
