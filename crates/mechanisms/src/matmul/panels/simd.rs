//! Stored blocks of eight rows to registers, and what a run of 32 codes adds to eight sums.
//!
//! Functions here are always inlined into callers that are compiled for AVX2; each is unsafe because it wants those instructions, and
//! where it takes a pointer, as many readable bytes there as a block of a panel (a run of a token) has.
#![expect(unsafe_code, reason = "vector instructions and vector loads by pointer")]
#![expect(clippy::needless_range_loop, reason = "a register number stands for its codes and for where they are loaded")]

use std::arch::x86_64::*;

use super::layout::ROWS;
use super::rounding::Run;

/// A storage type whose rows lie in panels.
pub(super) trait Format {
    /// Of a block of eight rows.
    const BYTES: usize;
    /// Runs of 32 codes in a block.
    const STEPS: usize;
    /// What the runs of a block share.
    type Open;
    type Step: Step;
    unsafe fn open(block: *const u8) -> Self::Open;
    unsafe fn step(open: &Self::Open, block: *const u8, step: usize) -> Self::Step;
}

/// A run of 32 codes of eight rows, in registers; register `j` holds codes `4j..4j + 4` of every row.
pub(super) trait Step: Copy {
    /// Adds to each sum the products with its token.
    unsafe fn add<const C: usize>(&self, tokens: [*const Run; C], sums: &mut [__m256; C]);
}

/// Codes without sign, of which each stands for itself less `1 << SHIFT`. `CHAIN` sums of two products each fit 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Offset<const CHAIN: usize, const SHIFT: i32> {
    codes: [__m256i; 8],
    scale: __m256,
}

impl<const CHAIN: usize, const SHIFT: i32> Step for Offset<CHAIN, SHIFT> {
    #[inline(always)]
    unsafe fn add<const C: usize>(&self, tokens: [*const Run; C], sums: &mut [__m256; C]) {
        unsafe {
            let products = products::<CHAIN, C>(&self.codes, tokens);
            for c in 0..C {
                let offset = _mm256_slli_epi32::<SHIFT>(_mm256_set1_epi32((*tokens[c]).sum));
                sums[c] = scaled(_mm256_sub_epi32(products[c], offset), self.scale, tokens[c], sums[c]);
            }
        }
    }
}

/// Codes without sign, and a number that is added to each when it is scaled.
#[derive(Clone, Copy)]
pub(super) struct Added<const CHAIN: usize> {
    codes: [__m256i; 8],
    scale: __m256,
    added: __m256,
}

impl<const CHAIN: usize> Step for Added<CHAIN> {
    #[inline(always)]
    unsafe fn add<const C: usize>(&self, tokens: [*const Run; C], sums: &mut [__m256; C]) {
        unsafe {
            let products = products::<CHAIN, C>(&self.codes, tokens);
            for c in 0..C {
                let sum = scaled(products[c], self.scale, tokens[c], sums[c]);
                sums[c] = _mm256_fmadd_ps(self.added, _mm256_set1_ps((*tokens[c]).scaled_sum), sum);
            }
        }
    }
}

/// Codes with sign, of eight bits.
#[derive(Clone, Copy)]
pub(super) struct Signed {
    codes: [__m256i; 8],
    scale: __m256,
}

impl Step for Signed {
    #[inline(always)]
    unsafe fn add<const C: usize>(&self, tokens: [*const Run; C], sums: &mut [__m256; C]) {
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut products = [_mm256_setzero_si256(); C];
            for j in 0..8 {
                // Two products of 128 and 127 fit 16 bits when the sign of the weight moves to the token.
                let magnitude = _mm256_sign_epi8(self.codes[j], self.codes[j]);
                for c in 0..C {
                    let signed = _mm256_sign_epi8(four(tokens[c], j), self.codes[j]);
                    let pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, signed), ones);
                    products[c] = _mm256_add_epi32(products[c], pairs);
                }
            }
            for c in 0..C {
                sums[c] = scaled(products[c], self.scale, tokens[c], sums[c]);
            }
        }
    }
}

/// Six-bit codes, of which each stands for itself less 32, with a whole factor for the first sixteen and one for the others.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    codes: [__m256i; 8],
    scale: __m256,
    /// The first factor in both 16-bit halves of a lane; the second in both; the first in the low half and the second in the high.
    factors: [__m256i; 3],
}

impl Step for Halves {
    #[inline(always)]
    unsafe fn add<const C: usize>(&self, tokens: [*const Run; C], sums: &mut [__m256; C]) {
        unsafe {
            let mut products = [_mm256_setzero_si256(); C];
            for j in [0, 2, 4, 6] {
                for c in 0..C {
                    // 63 x 127 x 4 fits 16 bits.
                    let first = _mm256_maddubs_epi16(self.codes[j], four(tokens[c], j));
                    let second = _mm256_maddubs_epi16(self.codes[j + 1], four(tokens[c], j + 1));
                    let pairs = _mm256_madd_epi16(_mm256_add_epi16(first, second), self.factors[j / 4]);
                    products[c] = _mm256_add_epi32(products[c], pairs);
                }
            }
            for c in 0..C {
                let halves = _mm256_set1_epi32((*tokens[c]).sums.as_ptr().cast::<i32>().read_unaligned());
                let offset = _mm256_slli_epi32::<5>(_mm256_madd_epi16(self.factors[2], halves));
                sums[c] = scaled(_mm256_sub_epi32(products[c], offset), self.scale, tokens[c], sums[c]);
            }
        }
    }
}

/// Sums of 32 products of codes without sign.
#[inline(always)]
unsafe fn products<const CHAIN: usize, const C: usize>(codes: &[__m256i; 8], tokens: [*const Run; C]) -> [__m256i; C] {
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let mut wide = [_mm256_setzero_si256(); C];
        for chain in 0..8 / CHAIN {
            let mut narrow = [_mm256_setzero_si256(); C];
            for j in chain * CHAIN..(chain + 1) * CHAIN {
                for c in 0..C {
                    let pairs = _mm256_maddubs_epi16(codes[j], four(tokens[c], j));
                    narrow[c] = if j == chain * CHAIN { pairs } else { _mm256_add_epi16(narrow[c], pairs) };
                }
            }
            for c in 0..C {
                let fours = _mm256_madd_epi16(narrow[c], ones);
                wide[c] = if chain == 0 { fours } else { _mm256_add_epi32(wide[c], fours) };
            }
        }
        wide
    }
}

/// Codes `4j..4j + 4` of a token in every lane.
#[inline(always)]
unsafe fn four(token: *const Run, j: usize) -> __m256i {
    unsafe { _mm256_set1_epi32((&raw const (*token).codes).cast::<i32>().add(j).read_unaligned()) }
}

/// `sum` and the integer products times both scales.
#[inline(always)]
unsafe fn scaled(products: __m256i, scale: __m256, token: *const Run, sum: __m256) -> __m256 {
    unsafe { _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), _mm256_mul_ps(scale, _mm256_set1_ps((*token).scale)), sum) }
}

/// `vectors` registers of bytes from `at`.
#[inline(always)]
unsafe fn load(block: *const u8, at: usize) -> __m256i {
    unsafe { _mm256_loadu_si256(block.add(at).cast()) }
}

/// Eight halves from `at`, as numbers.
#[inline(always)]
unsafe fn halves(block: *const u8, at: usize) -> __m256 {
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(block.add(at).cast())) }
}

/// The low nibbles of four registers from `at`, then the high ones.
#[inline(always)]
unsafe fn nibbles(block: *const u8, at: usize) -> [__m256i; 8] {
    unsafe {
        let mask = _mm256_set1_epi8(15);
        let mut codes = [_mm256_setzero_si256(); 8];
        for j in 0..4 {
            let both = load(block, at + 32 * j);
            codes[j] = _mm256_and_si256(both, mask);
            codes[j + 4] = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
        }
        codes
    }
}

/// The same with a fifth bit: bit `j` of the bytes of the register at `bits` belongs to register `j`.
#[inline(always)]
unsafe fn nibbles_and_fifth_bits(block: *const u8, at: usize, bits: usize) -> [__m256i; 8] {
    unsafe {
        let (mut codes, sixteen) = (nibbles(block, at), _mm256_set1_epi8(16));
        let bits = load(block, bits);
        let places = [
            _mm256_slli_epi16::<4>(bits),
            _mm256_slli_epi16::<3>(bits),
            _mm256_slli_epi16::<2>(bits),
            _mm256_slli_epi16::<1>(bits),
            bits,
            _mm256_srli_epi16::<1>(bits),
            _mm256_srli_epi16::<2>(bits),
            _mm256_srli_epi16::<3>(bits),
        ];
        for j in 0..8 {
            codes[j] = _mm256_or_si256(codes[j], _mm256_and_si256(places[j], sixteen));
        }
        codes
    }
}

pub(super) struct Q4_0;

impl Format for Q4_0 {
    const BYTES: usize = ROWS * 18;
    const STEPS: usize = 1;
    type Open = ();
    type Step = Offset<8, 3>;

    #[inline(always)]
    unsafe fn open(_: *const u8) {}

    #[inline(always)]
    unsafe fn step((): &(), block: *const u8, _: usize) -> Self::Step {
        unsafe { Offset { codes: nibbles(block, 16), scale: halves(block, 0) } }
    }
}

pub(super) struct Q4_1;

impl Format for Q4_1 {
    const BYTES: usize = ROWS * 20;
    const STEPS: usize = 1;
    type Open = ();
    type Step = Added<8>;

    #[inline(always)]
    unsafe fn open(_: *const u8) {}

    #[inline(always)]
    unsafe fn step((): &(), block: *const u8, _: usize) -> Self::Step {
        unsafe { Added { codes: nibbles(block, 32), scale: halves(block, 0), added: halves(block, 16) } }
    }
}

pub(super) struct Q5_0;

impl Format for Q5_0 {
    const BYTES: usize = ROWS * 22;
    const STEPS: usize = 1;
    type Open = ();
    type Step = Offset<4, 4>;

    #[inline(always)]
    unsafe fn open(_: *const u8) {}

    #[inline(always)]
    unsafe fn step((): &(), block: *const u8, _: usize) -> Self::Step {
        unsafe { Offset { codes: nibbles_and_fifth_bits(block, 48, 16), scale: halves(block, 0) } }
    }
}

pub(super) struct Q5_1;

impl Format for Q5_1 {
    const BYTES: usize = ROWS * 24;
    const STEPS: usize = 1;
    type Open = ();
    type Step = Added<4>;

    #[inline(always)]
    unsafe fn open(_: *const u8) {}

    #[inline(always)]
    unsafe fn step((): &(), block: *const u8, _: usize) -> Self::Step {
        unsafe { Added { codes: nibbles_and_fifth_bits(block, 64, 32), scale: halves(block, 0), added: halves(block, 16) } }
    }
}

pub(super) struct Q8_0;

impl Format for Q8_0 {
    const BYTES: usize = ROWS * 34;
    const STEPS: usize = 1;
    type Open = ();
    type Step = Signed;

    #[inline(always)]
    unsafe fn open(_: *const u8) {}

    #[inline(always)]
    unsafe fn step((): &(), block: *const u8, _: usize) -> Self::Step {
        unsafe {
            let mut codes = [_mm256_setzero_si256(); 8];
            for j in 0..8 {
                codes[j] = load(block, 16 + 32 * j);
            }
            Signed { codes, scale: halves(block, 0) }
        }
    }
}

/// Scales and minima of Q4_K and Q5_K: `d`, `-dmin`, and the three words in which eight of each are packed, six bits a number.
pub(super) struct Packed {
    scale: __m256,
    minimum: __m256,
    words: [__m256i; 3],
}

impl Packed {
    #[inline(always)]
    unsafe fn open(block: *const u8) -> Self {
        unsafe {
            Self {
                scale: halves(block, 0),
                minimum: _mm256_xor_ps(halves(block, 16), _mm256_set1_ps(-0.0)),
                words: [load(block, 32), load(block, 64), load(block, 96)],
            }
        }
    }

    /// The scale and the (negative) minimum of a run.
    #[inline(always)]
    unsafe fn of(&self, step: usize) -> [__m256; 2] {
        unsafe {
            let [a, b, c] = self.words;
            let by = _mm_cvtsi32_si128(8 * (step % 4) as i32);
            let (low, high) = (_mm256_set1_epi32(15), _mm256_set1_epi32(0x30));
            let [scale, minimum] = if step < 4 {
                let six = _mm256_set1_epi32(63);
                [_mm256_and_si256(_mm256_srl_epi32(a, by), six), _mm256_and_si256(_mm256_srl_epi32(b, by), six)]
            } else {
                let upper = |word| _mm256_and_si256(_mm256_srli_epi32::<2>(_mm256_srl_epi32(word, by)), high);
                let lower = _mm256_srl_epi32(c, by);
                [
                    _mm256_or_si256(_mm256_and_si256(lower, low), upper(a)),
                    _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32::<4>(lower), low), upper(b)),
                ]
            };
            [_mm256_mul_ps(self.scale, _mm256_cvtepi32_ps(scale)), _mm256_mul_ps(self.minimum, _mm256_cvtepi32_ps(minimum))]
        }
    }
}

/// Low or high nibbles of the eight registers of a pair of runs.
#[inline(always)]
unsafe fn nibbles_of_run(block: *const u8, at: usize, step: usize) -> [__m256i; 8] {
    unsafe {
        let (mask, by) = (_mm256_set1_epi8(15), _mm_cvtsi32_si128(4 * (step % 2) as i32));
        let mut codes = [_mm256_setzero_si256(); 8];
        for j in 0..8 {
            codes[j] = _mm256_and_si256(_mm256_srl_epi16(load(block, at + 32 * (8 * (step / 2) + j)), by), mask);
        }
        codes
    }
}

pub(super) struct Q4K;

impl Format for Q4K {
    const BYTES: usize = ROWS * 144;
    const STEPS: usize = 8;
    type Open = Packed;
    type Step = Added<8>;

    #[inline(always)]
    unsafe fn open(block: *const u8) -> Packed {
        unsafe { Packed::open(block) }
    }

    #[inline(always)]
    unsafe fn step(open: &Packed, block: *const u8, step: usize) -> Self::Step {
        unsafe {
            let [scale, added] = open.of(step);
            Added { codes: nibbles_of_run(block, ROWS * 16, step), scale, added }
        }
    }
}

pub(super) struct Q5K;

impl Format for Q5K {
    const BYTES: usize = ROWS * 176;
    const STEPS: usize = 8;
    type Open = Packed;
    type Step = Added<4>;

    #[inline(always)]
    unsafe fn open(block: *const u8) -> Packed {
        unsafe { Packed::open(block) }
    }

    #[inline(always)]
    unsafe fn step(open: &Packed, block: *const u8, step: usize) -> Self::Step {
        unsafe {
            let [scale, added] = open.of(step);
            let (mut codes, one) = (nibbles_of_run(block, ROWS * 48, step), _mm256_set1_epi8(1));
            let by = _mm_cvtsi32_si128(step as i32);
            for j in 0..8 {
                let fifth = _mm256_and_si256(_mm256_srl_epi16(load(block, ROWS * 16 + 32 * j), by), one);
                codes[j] = _mm256_or_si256(codes[j], _mm256_slli_epi16::<4>(fifth));
            }
            Added { codes, scale, added }
        }
    }
}

pub(super) struct Q6K;

impl Format for Q6K {
    const BYTES: usize = ROWS * 210;
    const STEPS: usize = 8;
    type Open = __m256;
    type Step = Halves;

    #[inline(always)]
    unsafe fn open(block: *const u8) -> __m256 {
        unsafe { halves(block, ROWS * 208) }
    }

    #[inline(always)]
    unsafe fn step(scale: &__m256, block: *const u8, step: usize) -> Halves {
        unsafe {
            let (half, row) = (step / 4, step % 4);
            let (low_by, high_by) = (_mm_cvtsi32_si128(4 * (row / 2) as i32), _mm_cvtsi32_si128(2 * row as i32));
            let (low_mask, high_mask) = (_mm256_set1_epi8(15), _mm256_set1_epi8(3));
            let mut codes = [_mm256_setzero_si256(); 8];
            for j in 0..8 {
                let low = load(block, 32 * (16 * half + 8 * (row % 2) + j));
                let high = load(block, ROWS * 128 + 32 * (8 * half + j));
                let low = _mm256_and_si256(_mm256_srl_epi16(low, low_by), low_mask);
                let high = _mm256_and_si256(_mm256_srl_epi16(high, high_by), high_mask);
                codes[j] = _mm256_or_si256(low, _mm256_slli_epi16::<4>(high));
            }
            // Factors are signed bytes 2 s and 2 s + 1 of four words a row: each goes to the upper byte of a 16-bit number, then down with its sign.
            let word = load(block, ROWS * 192 + 32 * (step / 2));
            let word = _mm256_srl_epi32(word, _mm_cvtsi32_si128(16 * (step % 2) as i32));
            let pairs = |first: i32, second: i32| {
                let order = 0x0080_0080 | first << 8 | second << 24;
                let lanes = _mm_setr_epi32(order, order + 0x0400_0400, order + 0x0800_0800, order + 0x0C00_0C00);
                _mm256_srai_epi16::<8>(_mm256_shuffle_epi8(word, _mm256_broadcastsi128_si256(lanes)))
            };
            Halves { codes, scale: *scale, factors: [pairs(0, 0), pairs(1, 1), pairs(0, 1)] }
        }
    }
}
