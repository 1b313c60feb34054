use glassbox_mechanisms::softmax::log_partition;
use serde::Serialize;

/// One candidate for the next token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NextToken {
    /// Token id.
    pub id: u32,
    /// Raw score, before any temperature, penalty or truncation.
    pub logit: f32,
    /// Natural logarithm of its probability at temperature 1; at most 0.
    pub log_probability: f64,
}

/// The distribution over the next token that one row of logits describes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextTokens {
    /// The most probable tokens, best first; equal logits in rising id.
    pub top: Vec<NextToken>,
    /// Entropy of the whole distribution in nats.
    pub entropy_nats: f64,
}

impl NextTokens {
    /// The `count` best of `logits` [vocab].
    #[must_use]
    pub fn of(logits: &[f32], count: usize) -> Self {
        let log_partition = log_partition(logits);
        let log_probability = |logit: f32| f64::from(logit) - log_partition;
        // An impossible token has no part: 0 ln 0 is 0.
        let entropy_nats = -logits.iter().map(|logit| log_probability(*logit)).map(|log| log.exp() * log.max(-1e30)).sum::<f64>();
        let mut order: Vec<u32> = (0_u32..).take(logits.len()).collect();
        let better = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        if count < order.len() {
            order.select_nth_unstable_by(count, better);
            order.truncate(count);
        }
        order.sort_unstable_by(better);
        let candidate = |id: u32| {
            let logit = logits[id as usize];
            NextToken { id, logit, log_probability: log_probability(logit) }
        };
        Self { top: order.into_iter().map(candidate).collect(), entropy_nats }
    }
}

#[cfg(test)]
mod tests {
    use glassbox_mechanisms::softmax::log_probability;

    use super::*;

    #[test]
    fn the_log_probability_of_one_token_is_the_one_in_the_list() {
        let logits = [0.25, -3.0, 11.5, f32::NEG_INFINITY, 11.5];
        for token in NextTokens::of(&logits, logits.len()).top {
            assert_eq!(log_probability(&logits, token.id), Some(token.log_probability));
        }
        assert_eq!(log_probability(&logits, 5), None);
    }

    #[test]
    fn raw_log_probabilities_are_those_of_the_textbook() {
        let next = NextTokens::of(&[0.0, 2.0, 1.0], 2);
        assert_eq!(next.top.iter().map(|token| token.id).collect::<Vec<_>>(), [1, 2]);
        assert!((next.top[0].log_probability + 0.407_606).abs() < 1e-6, "{:?}", next.top);
        assert!((next.top[1].log_probability + 1.407_606).abs() < 1e-6, "{:?}", next.top);
    }

    #[test]
    fn equal_logits_come_in_rising_id_and_a_uniform_row_has_entropy_ln_n() {
        let next = NextTokens::of(&[1.0; 5], 3);
        assert_eq!(next.top.iter().map(|token| token.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert!((next.entropy_nats - 5.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn an_impossible_token_does_not_spoil_the_entropy() {
        let next = NextTokens::of(&[0.0, f32::NEG_INFINITY], 2);
        assert_eq!(next.entropy_nats, 0.0);
        assert_eq!(next.top[1].log_probability, f64::NEG_INFINITY);
    }
}
