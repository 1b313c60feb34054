use glassbox_mechanisms::softmax::log_partition;

use crate::NextTokens;

/// What a layer's residual stream would answer, were it the last (the logit lens; nostalgebraist 2020).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LayerAnswer {
    /// The most probable tokens, best first.
    pub next: NextTokens,
    /// Of the token that was asked about: 1 is the most probable; of equal logits the lower id comes first.
    pub rank: usize,
    /// Natural logarithm of its probability.
    pub log_probability: f64,
    /// How far this distribution is from the model's own, in nats: `Σ p ln(p / q)`, `p` the model's.
    pub kl_to_end_nats: f64,
}

impl LayerAnswer {
    /// - `logits`  [vocab], read out of the layer
    /// - `end`     [vocab], the model's own
    /// - `token`   the one asked about, an id of the vocabulary
    /// - `count`   how many of the most probable tokens to keep
    ///
    /// # Panics
    ///
    /// Where the rows differ in length or `token` is in neither.
    #[must_use]
    pub fn of(logits: &[f32], end: &[f32], token: u32, count: usize) -> Self {
        assert_eq!(logits.len(), end.len(), "both rows are of one vocabulary");
        let of_row = |row: &[f32]| {
            let log_partition = log_partition(row);
            row.iter().map(|logit| f64::from(*logit) - log_partition).collect::<Vec<f64>>()
        };
        let (q, p) = (of_row(logits), of_row(end));
        let of_token = logits[token as usize];
        let before = |(id, logit): &(u32, &f32)| **logit > of_token || **logit == of_token && *id < token;
        let rank = 1 + (0_u32..).zip(logits).filter(before).count();
        // A token that the model holds impossible adds nothing.
        let term = |(p, q): (&f64, &f64)| if p.is_finite() { p.exp() * (p - q) } else { 0.0 };
        let kl_to_end_nats = p.iter().zip(&q).map(term).sum();
        Self { next: NextTokens::of(logits, count), rank, log_probability: q[token as usize], kl_to_end_nats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sure_rows_differ_by_what_one_can_write_down() {
        // p = (3/4, 1/4), q = (1/2, 1/2): 3/4 ln(3/2) + 1/4 ln(1/2) = 0.130812
        let end = [3.0_f32.ln(), 0.0];
        let answer = LayerAnswer::of(&[0.0, 0.0], &end, 1, 1);
        assert!((answer.kl_to_end_nats - 0.130_812_035_941).abs() < 1e-7, "{answer:?}");
        assert!((answer.log_probability + 2.0_f64.ln()).abs() < 1e-12);
        assert_eq!(answer.rank, 2, "of equals the lower id comes first");
        assert_eq!(LayerAnswer::of(&end, &end, 0, 1).kl_to_end_nats, 0.0);
    }

    #[test]
    fn a_token_that_the_model_holds_impossible_does_not_spoil_the_distance() {
        let end = [0.0, f32::NEG_INFINITY];
        let answer = LayerAnswer::of(&[0.0, 0.0], &end, 1, 1);
        assert!((answer.kl_to_end_nats - 2.0_f64.ln()).abs() < 1e-12, "{answer:?}");
    }
}
