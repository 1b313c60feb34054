//! Seeded randomness whose stream is part of the contract: the same seed gives the same numbers in every release.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Name of the generator, for the run record.
pub const GENERATOR: &str = "ChaCha8, key = seed as 8 little-endian bytes then 24 zero bytes";

/// Turns names into a seed, so that each metric of each run has its own stream.
///
/// FNV-1a, 64 bits, over each part followed by one zero byte (so that `["ab", "c"]` and `["a", "bc"]` differ).
///
/// - `parts`  for example the fingerprint of the run and the name of the metric
///
/// Source: Fowler, Noll, Vo; RFC 9923.
pub fn seed_from(parts: &[&str]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325; // FNV's 64-bit offset basis
    const PRIME: u64 = 0x0000_0100_0000_01b3; // FNV's 64-bit prime
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A stream of random choices from one seed.
///
/// The generator is ChaCha8, whose output is fixed by specification; every choice below is our own code, so an update of a
/// random-number crate cannot change a published number.
#[derive(Debug, Clone)]
pub struct Dice {
    generator: ChaCha8Rng,
}

impl Dice {
    /// Starts the stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { generator: ChaCha8Rng::from_seed(key) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A whole number from 0 to `count - 1`, each equally likely.
    ///
    /// - `count`  at least 1
    ///
    /// Source: Lemire 2019, Fast random integer generation in an interval (arXiv:1805.10941).
    pub fn below(&mut self, count: usize) -> usize {
        debug_assert!(count > 0, "a die needs at least one face");
        let count = count as u64;
        loop {
            let product = u128::from(self.bits()) * u128::from(count);
            let low_half = product as u64;
            // Only the first 2^64 mod count values of the low half are over-represented.
            if low_half >= count || low_half >= count.wrapping_neg() % count {
                return (product >> 64) as usize;
            }
        }
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with the given probability.
    ///
    /// - `probability`  from 0 (never) to 1 (always)
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponential waiting time of mean 1: `-ln(1 - u)`.
    pub fn waiting_time(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Half a waiting time: a Gamma variable of shape 1/2, mean 1/2, as half the square of a normal one.
    ///
    /// Source: Box, Muller 1958, squared.
    pub fn half_waiting_time(&mut self) -> f64 {
        self.waiting_time() * (2.0 * std::f64::consts::PI * self.unit()).cos().powi(2)
    }

    /// Puts a slice in random order, each order equally likely.
    ///
    /// Source: Durstenfeld 1964, Algorithm 235.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_a_seed_never_change() {
        // Written down from the first version; a change would change every published interval. The bits are checked against
        // the specification in `tests/stats/reference.rs`.
        let mut dice = Dice::new(7);
        let faces: Vec<usize> = (0..12).map(|_| dice.below(6)).collect();
        assert_eq!(faces, [4, 2, 0, 1, 2, 2, 2, 1, 3, 5, 3, 3]);
        assert_eq!((dice.unit() * 1e6) as u64, 401_205);
        let mut order = [0, 1, 2, 3, 4, 5, 6, 7];
        dice.shuffle(&mut order);
        assert_eq!(order, [2, 4, 5, 0, 7, 3, 6, 1]);
    }

    #[test]
    fn every_face_is_equally_likely() {
        let mut dice = Dice::new(1);
        let mut counts = [0.0; 7];
        let rolls = 70_000;
        for _ in 0..rolls {
            counts[dice.below(7)] += 1.0;
        }
        let expected = f64::from(rolls) / 7.0;
        let chi_squared: f64 = counts.iter().map(|count: &f64| (count - expected).powi(2) / expected).sum();
        // 99.9 % point of chi-squared with 6 degrees of freedom.
        assert!(chi_squared < 22.46, "chi-squared {chi_squared} over counts {counts:?}");
    }

    #[test]
    fn faces_stay_equally_likely_when_there_are_nearly_as_many_as_random_bits() {
        // Scaling 2^64 words onto 3/4 as many faces hits every third face twice; only rejection evens that out.
        let mut dice = Dice::new(3);
        let rolls = 3_000;
        let third = (0..rolls).filter(|_| dice.below(3 << 62).is_multiple_of(3)).count() as f64 / f64::from(rolls);
        // Standard error sqrt(2/9 / 3,000) = 0.0086; without rejection the share is 1/2.
        assert!((third - 1.0 / 3.0).abs() < 0.035, "share of every third face: {third}");
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut dice = Dice::new(2);
        let mut counts = std::collections::BTreeMap::new();
        let shuffles = 24_000;
        for _ in 0..shuffles {
            let mut order = [0, 1, 2, 3];
            dice.shuffle(&mut order);
            *counts.entry(order).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 24);
        let expected = f64::from(shuffles) / 24.0;
        let chi_squared: f64 = counts.values().map(|count: &f64| (count - expected).powi(2) / expected).sum();
        // 99.9 % point of chi-squared with 23 degrees of freedom.
        assert!(chi_squared < 49.73, "chi-squared {chi_squared}");
    }

    #[test]
    fn seeds_depend_on_where_one_part_ends_and_the_next_begins() {
        assert_ne!(seed_from(&["ab", "c"]), seed_from(&["a", "bc"]));
        assert_ne!(seed_from(&["run"]), seed_from(&["run", ""]));
        // FNV-1a of the single byte 0, by hand: (offset xor 0) * prime mod 2^64.
        assert_eq!(seed_from(&[""]), 0xaf63_bd4c_8601_b7df);
    }
}
