use glassbox_mechanisms::Kernels;
use glassbox_mechanisms::softmax::softmax_in_place;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How the next token is chosen.
///
/// The order is fixed: repetition penalty, temperature, softmax, top-k, top-p, min-p, draw. A filter that leaves
/// nothing keeps the most probable token. At temperature 0 the largest penalised logit wins, the lowest id at a tie.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 is greedy.
    pub temperature: f32,
    /// Keep the `k` most probable tokens; `None` keeps all.
    pub top_k: Option<usize>,
    /// Keep the smallest set of most probable tokens whose mass reaches `p`; 1 keeps all.
    pub top_p: f32,
    /// Drop tokens less probable than `min_p` times the most probable; 0 drops none.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of every token that stands in the prompt or the answer, once a token; 1 is off.
    pub repetition_penalty: f32,
    /// Seed of the draws; the same seed, model and prompt give the same text.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: None, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 }
    }
}

/// A sampling setting outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{setting} is {found}; wanted {wanted}")]
pub struct SamplingError {
    /// Name of the setting.
    pub setting: &'static str,
    /// The range that is allowed.
    pub wanted: &'static str,
    /// What was given.
    pub found: f32,
}

impl Sampling {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// Where a setting is outside its range or not a number.
    pub fn check(&self) -> Result<(), SamplingError> {
        let wrong = |setting, wanted, found| Err(SamplingError { setting, wanted, found });
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return wrong("temperature", "0 or more", self.temperature);
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong("top-p", "more than 0 and at most 1", self.top_p);
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return wrong("min-p", "0 to 1", self.min_p);
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty.is_finite()) {
            return wrong("repetition penalty", "more than 0", self.repetition_penalty);
        }
        if self.top_k == Some(0) {
            return wrong("top-k", "1 or more, or none", 0.0);
        }
        Ok(())
    }
}

/// Draws tokens by a [`Sampling`]; holds the state of its random numbers (ChaCha8).
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
}

impl Sampler {
    /// A sampler at the start of its random numbers.
    ///
    /// # Errors
    ///
    /// Where a setting is outside its range.
    pub fn new(sampling: Sampling) -> Result<Self, SamplingError> {
        sampling.check()?;
        let random = ChaCha8Rng::seed_from_u64(sampling.seed);
        Ok(Self { sampling, random })
    }

    /// The next token for `logits` [vocab], after the tokens `seen` (prompt and answer so far).
    pub fn next(&mut self, logits: &[f32], seen: &[u32]) -> u32 {
        let mut scores = logits.to_vec();
        penalise(&mut scores, seen, self.sampling.repetition_penalty);
        if self.sampling.temperature == 0.0 {
            return largest(&scores);
        }
        // After the largest is subtracted no temperature, however small, can overflow upwards: in the limit only the largest is left.
        let largest = scores.iter().copied().fold(f32::MIN, f32::max);
        for score in &mut scores {
            *score = (*score - largest) / self.sampling.temperature;
        }
        softmax_in_place(Kernels::Fast, &mut scores);
        let kept = self.keep(&scores);
        self.draw(&scores, &kept)
    }

    /// Ids that survive the filters, most probable first.
    fn keep(&self, probabilities: &[f32]) -> Vec<u32> {
        let of = |id: u32| probabilities[id as usize];
        let mut kept: Vec<u32> = (0_u32..).take(probabilities.len()).filter(|id| of(*id) > 0.0).collect();
        kept.sort_by(|a, b| of(*b).total_cmp(&of(*a)).then(a.cmp(b)));
        kept.truncate(self.sampling.top_k.unwrap_or(usize::MAX));
        if self.sampling.top_p < 1.0 {
            let total: f64 = kept.iter().map(|id| f64::from(of(*id))).sum();
            let wanted = f64::from(self.sampling.top_p) * total;
            let mut mass = 0.0;
            let reaching = kept.iter().position(|id| {
                mass += f64::from(of(*id));
                mass >= wanted
            });
            kept.truncate(reaching.map_or(kept.len(), |last| last + 1));
        }
        if let Some(best) = kept.first().map(|id| of(*id)) {
            kept.retain(|id| of(*id) >= self.sampling.min_p * best);
        }
        kept
    }

    fn draw(&mut self, probabilities: &[f32], kept: &[u32]) -> u32 {
        let mass = |id: &u32| f64::from(probabilities[*id as usize]);
        let total: f64 = kept.iter().map(mass).sum();
        // 53 random bits make every multiple of 2^-53 in [0, 1) equally likely.
        let unit = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut left = unit * total;
        for id in kept {
            left -= mass(id);
            if left < 0.0 {
                return *id;
            }
        }
        kept.last().copied().unwrap_or_else(|| largest(probabilities))
    }
}

fn penalise(scores: &mut [f32], seen: &[u32], penalty: f32) {
    if penalty == 1.0 {
        return;
    }
    let mut distinct = seen.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for id in distinct {
        if let Some(score) = scores.get_mut(id as usize) {
            let penalised = if *score > 0.0 { *score / penalty } else { *score * penalty };
            // An extreme penalty may overflow, and differences of infinities are no numbers.
            *score = penalised.clamp(f32::MIN, f32::MAX);
        }
    }
}

/// The id of the largest score; the lowest id at a tie. A score that is not a number never wins.
fn largest(scores: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, score) in (0_u32..).zip(scores) {
        if *score > best.1 {
            best = (id, *score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(sampling: &Sampling, logits: &[f32], draws: usize) -> Vec<f64> {
        let mut sampler = Sampler::new(sampling.clone()).expect("valid settings");
        let mut counts = vec![0.0; logits.len()];
        for _ in 0..draws {
            counts[sampler.next(logits, &[]) as usize] += 1.0 / draws as f64;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_largest_logit_and_the_lowest_id_at_a_tie() {
        let mut sampler = Sampler::new(Sampling::default()).expect("valid settings");
        assert_eq!(sampler.next(&[0.5, 2.0, 2.0, f32::NAN], &[]), 1);
    }

    #[test]
    fn draws_follow_the_softmax_within_five_standard_errors() {
        let sampling = Sampling { temperature: 0.5, seed: 7, ..Sampling::default() };
        let draws = 20_000;
        // Log-probabilities of the logits [2, 1, 0] at temperature 0.5.
        let expected = [-0.142_932_f64, -2.142_932, -4.142_932].map(f64::exp);
        for (share, p) in shares(&sampling, &[2.0, 1.0, 0.0], draws).into_iter().zip(expected) {
            let standard_error = (p * (1.0 - p) / draws as f64).sqrt();
            assert!((share - p).abs() < 5.0 * standard_error, "share {share}, expected {p} ± {standard_error}");
        }
    }

    #[test]
    fn each_filter_removes_exactly_what_it_names() {
        let hot = Sampling { temperature: 1.0, seed: 1, ..Sampling::default() };
        let logits = [0.5_f32.ln(), 0.3_f32.ln(), 0.15_f32.ln(), 0.05_f32.ln()];
        let survivors = |sampling: Sampling| shares(&sampling, &logits, 4_000).iter().filter(|share| **share > 0.0).count();
        assert_eq!(survivors(hot.clone()), 4);
        assert_eq!(survivors(Sampling { top_k: Some(2), ..hot.clone() }), 2);
        assert_eq!(survivors(Sampling { top_p: 0.7, ..hot.clone() }), 2);
        assert_eq!(survivors(Sampling { top_p: 0.81, ..hot.clone() }), 3);
        assert_eq!(survivors(Sampling { min_p: 0.2, ..hot.clone() }), 3);
        assert_eq!(survivors(Sampling { min_p: 1.0, ..hot }), 1);
    }

    #[test]
    fn a_repetition_penalty_lowers_a_seen_token_once_whatever_its_sign() {
        let mut scores = [-2.0, 2.0, 1.0];
        penalise(&mut scores, &[0, 1, 1, 1], 1.5);
        assert_eq!(scores, [-3.0, 2.0 / 1.5, 1.0]);
    }

    #[test]
    fn the_smallest_temperatures_are_greedy_in_the_limit() {
        let logits = [-3.0, 7.0, 6.999_999, -80.0, 0.0];
        for temperature in [f32::from_bits(1), f32::MIN_POSITIVE, 1e-38, 1e-30, 1e-9] {
            for seed in 0..20 {
                let mut sampler = Sampler::new(Sampling { temperature, seed, ..Sampling::default() }).expect("valid settings");
                assert_eq!(sampler.next(&logits, &[]), 1, "temperature {temperature}");
            }
        }
        // Of equal logits each stays possible, as in the limit.
        let cold = Sampling { temperature: 1e-38, ..Sampling::default() };
        let both = shares(&cold, &[1.0, 5.0, 5.0], 1_000);
        assert!(both[0] == 0.0 && both[1] > 0.4 && both[2] > 0.4, "{both:?}");
    }

    #[test]
    fn no_setting_in_its_range_makes_a_sampler_lose_the_order_of_the_logits() {
        for temperature in [0.0, 1e-38, 1.0] {
            for repetition_penalty in [f32::MIN_POSITIVE, 1e-38, f32::MAX] {
                for min_p in [0.0, 1.0] {
                    let sampling = Sampling { temperature, repetition_penalty, min_p, ..Sampling::default() };
                    let mut sampler = Sampler::new(sampling.clone()).expect("valid settings");
                    // Rewarded beyond measure the seen tokens win; punished beyond measure they lose.
                    let wanted: &[u32] = if repetition_penalty < 1.0 { &[1, 2] } else { &[3] };
                    let chosen = sampler.next(&[-9.0, 40.0, 41.0, 30.0, -1.0], &[1, 2]);
                    assert!(wanted.contains(&chosen), "{sampling:?} chose {chosen}");
                }
            }
        }
        let hot = Sampling { temperature: f32::MAX, ..Sampling::default() };
        assert!(shares(&hot, &[0.0, 50.0], 1_000).iter().all(|share| (share - 0.5).abs() < 0.1));
    }

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let draw = |seed| {
            let mut sampler = Sampler::new(Sampling { temperature: 1.0, seed, ..Sampling::default() }).expect("valid settings");
            (0..32).map(|_| sampler.next(&[0.0; 50], &[])).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn settings_outside_their_range_are_refused_by_name() {
        let refused = |sampling: Sampling| sampling.check().expect_err("out of range").to_string();
        assert_eq!(refused(Sampling { temperature: -1.0, ..Sampling::default() }), "temperature is -1; wanted 0 or more");
        assert_eq!(refused(Sampling { top_p: 0.0, ..Sampling::default() }), "top-p is 0; wanted more than 0 and at most 1");
        assert!(refused(Sampling { repetition_penalty: f32::NAN, ..Sampling::default() }).starts_with("repetition penalty is NaN"));
    }
}
