/// Numbers that look random and are the same on every machine, from a seed (`SplitMix64`, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Values {
    state: u64,
}

impl Values {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `[0, 1)`, 24 bits of it.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Uniform in `[low, high)`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// A whole number in `0..end`; `end` is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// Mean 0, variance 1, near enough to normal: twelve uniform numbers minus 6 (no library function, so the same bits everywhere).
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// `len` normal numbers times `scale`.
    pub fn normals(&mut self, len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|_| self.normal() * scale).collect()
    }

    /// `len` bytes, each value equally likely.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.bits() >> 56) as u8).collect()
    }
}

/// The sizes at which a kernel with tiles of `tile` goes wrong if it does: 1, around one tile, past two, and eight.
///
/// Sorted, no size twice, none zero.
#[must_use]
pub fn sizes_across(tile: usize) -> Vec<usize> {
    let mut sizes = vec![1, tile.saturating_sub(1), tile, tile + 1, 2 * tile + 1, 8 * tile];
    sizes.retain(|size| *size > 0);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::{Values, sizes_across};

    #[test]
    fn a_seed_gives_the_same_numbers_on_every_machine() {
        let mut values = Values::seeded(0);
        assert_eq!(values.bits(), 0xE220_A839_7B1D_CDAF); // published first output of SplitMix64 for seed 0
        let (mut a, mut b) = (Values::seeded(7), Values::seeded(7));
        assert_eq!(a.normals(100, 1.0), b.normals(100, 1.0));
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let numbers = Values::seeded(1).normals(20_000, 1.0);
        let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / 20_000.0;
        let variance = numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03, "mean {mean}"); // standard error 0.007
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}"); // standard error 0.01
    }

    #[test]
    fn sizes_cross_every_border_of_a_tile() {
        assert_eq!(sizes_across(64), [1, 63, 64, 65, 129, 512]);
        assert_eq!(sizes_across(1), [1, 2, 3, 8]);
    }
}
