//! Decoders for AVX2: 32 stored numbers at a time become four registers of eight. They equal `Matrix::decode_row` bit for bit:
//! integer codes convert exactly, and the few floating-point operations are the definition's, in its order.

use std::arch::x86_64::*;

use super::simd::{load_8, load_16, load_32};

/// 32 numbers in order, eight a register.
pub(super) type Octets = [__m256; 4];

/// Calls `function::<generics.., block bytes, groups of 32 a block, shared>(arguments.., open, group)` for a storage type: `open`
/// unpacks what a whole block shares, `group` decodes 32 numbers of it. Both are closures, so that they inherit the caller's AVX2.
macro_rules! with_decoder {
    ($storage:expr, $function:ident [$($generic:ident),*] ($($argument:expr),*)) => {{
        use glassbox_tensor::StorageType;
        use $crate::matmul::octets;
        match $storage {
            StorageType::F32 => $function::<$($generic,)* 128, 1, ()>($($argument,)* |_| (), |(), block, _| octets::f32(block)),
            StorageType::F16 => $function::<$($generic,)* 64, 1, ()>($($argument,)* |_| (), |(), block, _| octets::f16(block)),
            StorageType::Bf16 => $function::<$($generic,)* 64, 1, ()>($($argument,)* |_| (), |(), block, _| octets::bf16(block)),
            StorageType::Q4_0 => $function::<$($generic,)* 18, 1, ()>($($argument,)* |_| (), |(), block, _| octets::q4_0(block)),
            StorageType::Q4_1 => $function::<$($generic,)* 20, 1, ()>($($argument,)* |_| (), |(), block, _| octets::q4_1(block)),
            StorageType::Q5_0 => $function::<$($generic,)* 22, 1, ()>($($argument,)* |_| (), |(), block, _| octets::q5_0(block)),
            StorageType::Q5_1 => $function::<$($generic,)* 24, 1, ()>($($argument,)* |_| (), |(), block, _| octets::q5_1(block)),
            StorageType::Q8_0 => $function::<$($generic,)* 34, 1, ()>($($argument,)* |_| (), |(), block, _| octets::q8_0(block)),
            StorageType::Q4K => $function::<$($generic,)* 144, 8, octets::Shared>(
                $($argument,)* |block| octets::scales_and_minima(block), |shared, block, group| octets::q4_k(shared, block, group)),
            StorageType::Q5K => $function::<$($generic,)* 176, 8, octets::Shared>(
                $($argument,)* |block| octets::scales_and_minima(block), |shared, block, group| octets::q5_k(shared, block, group)),
            StorageType::Q6K => $function::<$($generic,)* 210, 8, octets::Shared>(
                $($argument,)* |block| octets::q6_k_scales(block), |shared, block, group| octets::q6_k(shared, block, group)),
            StorageType::Q2K => $function::<$($generic,)* 84, 8, octets::SharedPairs>(
                $($argument,)* |block| octets::q2_k_scales_and_minima(block), |shared, block, group| octets::q2_k(shared, block, group)),
            StorageType::Q3K => $function::<$($generic,)* 110, 8, octets::Shared>(
                $($argument,)* |block| octets::q3_k_scales(block), |shared, block, group| octets::q3_k(shared, block, group)),
            StorageType::Iq4Nl => $function::<$($generic,)* 18, 1, ()>($($argument,)* |_| (), |(), block, _| octets::iq4_nl(block)),
            StorageType::Mxfp4 => $function::<$($generic,)* 17, 1, ()>($($argument,)* |_| (), |(), block, _| octets::mxfp4(block)),
            other => unreachable!("{other} has no decoder here; every type of `StorageType::ALL` is tested"),
        }
    }};
}
pub(super) use with_decoder;

/// What a block of 256 shares: the products of its scales, as `f32`. For Q4_K and Q5_K 8 scales, then 8 minima; for Q3_K and Q6_K 16
/// scales.
pub(super) type Shared = [f32; 16];

/// The same for Q2_K: 16 scales, then 16 minima.
pub(super) type SharedPairs = [f32; 32];

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn f32(block: &[u8; 128]) -> Octets {
    [
        _mm256_castsi256_ps(load_32(part(block, 0))),
        _mm256_castsi256_ps(load_32(part(block, 32))),
        _mm256_castsi256_ps(load_32(part(block, 64))),
        _mm256_castsi256_ps(load_32(part(block, 96))),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn f16(block: &[u8; 64]) -> Octets {
    [
        _mm256_cvtph_ps(load_16(part(block, 0))),
        _mm256_cvtph_ps(load_16(part(block, 16))),
        _mm256_cvtph_ps(load_16(part(block, 32))),
        _mm256_cvtph_ps(load_16(part(block, 48))),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn bf16(block: &[u8; 64]) -> Octets {
    [
        upper_half(load_16(part(block, 0))),
        upper_half(load_16(part(block, 16))),
        upper_half(load_16(part(block, 32))),
        upper_half(load_16(part(block, 48))),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_0(block: &[u8; 18]) -> Octets {
    let codes = _mm256_sub_epi8(nibbles(load_16(part(block, 2))), _mm256_set1_epi8(8));
    times(half_at(block, 0), signed(codes))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_1(block: &[u8; 20]) -> Octets {
    plus(times(half_at(block, 0), signed(nibbles(load_16(part(block, 4))))), half_at(block, 2))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5_0(block: &[u8; 22]) -> Octets {
    // code - 16 as a signed byte: the nibble where the fifth bit is set, the nibble with ones above it where it is not.
    let above = _mm256_andnot_si256(spread_bits(part(block, 2)), _mm256_set1_epi8(-16));
    let codes = _mm256_or_si256(nibbles(load_16(part(block, 6))), above);
    times(half_at(block, 0), signed(codes))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5_1(block: &[u8; 24]) -> Octets {
    let fifth = _mm256_and_si256(spread_bits(part(block, 4)), _mm256_set1_epi8(16));
    let codes = _mm256_or_si256(nibbles(load_16(part(block, 8))), fifth);
    plus(times(half_at(block, 0), signed(codes)), half_at(block, 2))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q8_0(block: &[u8; 34]) -> Octets {
    let codes = [
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 2)))),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 10)))),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 18)))),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 26)))),
    ];
    times(half_at(block, 0), codes)
}

/// `d s` of the eight sub-blocks, then `dmin m`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn scales_and_minima<const BYTES: usize>(block: &[u8; BYTES]) -> Shared {
    let word = |at| u32::from_le_bytes(*part(block, at));
    let (a, b, c) = (word(4), word(8), word(12));
    let scales = [a & 0x3F3F_3F3F, c & 0x0F0F_0F0F | (a >> 2) & 0x3030_3030];
    let minima = [b & 0x3F3F_3F3F, (c >> 4) & 0x0F0F_0F0F | (b >> 2) & 0x3030_3030];
    let numbers = |words: [u32; 2]| {
        let bytes = _mm_cvtsi64_si128(i64::from(words[0]) | i64::from(words[1]) << 32);
        _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
    };
    let scales = _mm256_mul_ps(half_at(block, 0), numbers(scales));
    let minima = _mm256_mul_ps(half_at(block, 2), numbers(minima));
    shared(scales, minima)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4_k(shared: &Shared, block: &[u8; 144], group: usize) -> Octets {
    let codes = nibbles_of_row(&block.as_chunks::<16>().0[1..], group / 2, group % 2);
    minus(times(_mm256_set1_ps(shared[group]), signed(codes)), _mm256_set1_ps(shared[8 + group]))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5_k(shared: &Shared, block: &[u8; 176], group: usize) -> Octets {
    let low = nibbles_of_row(&block.as_chunks::<16>().0[3..], group / 2, group % 2);
    let fifth = _mm256_srl_epi16(load_32(part(block, 16)), _mm_cvtsi32_si128(group as i32));
    let fifth = _mm256_slli_epi16::<4>(_mm256_and_si256(fifth, _mm256_set1_epi8(1)));
    let codes = _mm256_or_si256(low, fifth);
    minus(times(_mm256_set1_ps(shared[group]), signed(codes)), _mm256_set1_ps(shared[8 + group]))
}

/// `d s` of the sixteen sub-blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q6_k_scales(block: &[u8; 210]) -> Shared {
    let d = half_at(block, 208);
    let first = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 192))));
    let second = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8(part(block, 200))));
    shared(_mm256_mul_ps(d, first), _mm256_mul_ps(d, second))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q6_k(shared: &Shared, block: &[u8; 210], group: usize) -> Octets {
    let (half, row) = (group / 4, group % 4);
    let low = nibbles_of_row(block.as_chunks::<16>().0, half * 2 + row % 2, row / 2);
    let codes = _mm256_or_si256(low, _mm256_slli_epi16::<4>(pairs(&block[128..192], group)));
    times_of_two(shared[2 * group], shared[2 * group + 1], signed(_mm256_sub_epi8(codes, _mm256_set1_epi8(32))))
}

/// `d s` of the sixteen sub-blocks, then `dmin m`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q2_k_scales_and_minima(block: &[u8; 84]) -> SharedPairs {
    let both = nibbles(load_16(part(block, 0)));
    let [s0, s1, m0, m1] = signed(both);
    let (d, d_min) = (half_at(block, 80), half_at(block, 82));
    let scales = shared(_mm256_mul_ps(d, s0), _mm256_mul_ps(d, s1));
    let minima = shared(_mm256_mul_ps(d_min, m0), _mm256_mul_ps(d_min, m1));
    let mut all = [0.0; 32];
    all[..16].copy_from_slice(&scales);
    all[16..].copy_from_slice(&minima);
    all
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q2_k(shared: &SharedPairs, block: &[u8; 84], group: usize) -> Octets {
    let x = times_of_two(shared[2 * group], shared[2 * group + 1], signed(pairs(&block[16..80], group)));
    let (first, second) = (_mm256_set1_ps(shared[16 + 2 * group]), _mm256_set1_ps(shared[16 + 2 * group + 1]));
    [_mm256_sub_ps(x[0], first), _mm256_sub_ps(x[1], first), _mm256_sub_ps(x[2], second), _mm256_sub_ps(x[3], second)]
}

/// `d (s - 32)` of the sixteen sub-blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q3_k_scales(block: &[u8; 110]) -> Shared {
    let word = |at| u32::from_le_bytes(*part(block, at));
    let (low, middle, high) = (word(96), word(100), word(104));
    let upper = |shift: u32| (high >> shift & 0x0303_0303) << 4;
    let words = [
        low & 0x0F0F_0F0F | upper(0),
        middle & 0x0F0F_0F0F | upper(2),
        low >> 4 & 0x0F0F_0F0F | upper(4),
        middle >> 4 & 0x0F0F_0F0F | upper(6),
    ];
    let bytes = _mm_setr_epi32(words[0] as i32, words[1] as i32, words[2] as i32, words[3] as i32);
    let bytes = _mm_sub_epi8(bytes, _mm_set1_epi8(32));
    let d = half_at(block, 108);
    let numbers = |bytes: __m128i| _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
    shared(numbers(bytes), numbers(_mm_unpackhi_epi64(bytes, bytes)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q3_k(shared: &Shared, block: &[u8; 110], group: usize) -> Octets {
    let third = _mm256_srl_epi16(load_32(part(block, 0)), _mm_cvtsi32_si128(group as i32));
    let third = _mm256_slli_epi16::<2>(_mm256_and_si256(third, _mm256_set1_epi8(1)));
    let codes = _mm256_sub_epi8(_mm256_or_si256(pairs(&block[32..96], group), third), _mm256_set1_epi8(4));
    times_of_two(shared[2 * group], shared[2 * group + 1], signed(codes))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn iq4_nl(block: &[u8; 18]) -> Octets {
    let steps = _mm256_broadcastsi128_si256(_mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
    times(half_at(block, 0), signed(_mm256_shuffle_epi8(steps, nibbles(load_16(part(block, 2))))))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn mxfp4(block: &[u8; 17]) -> Octets {
    let steps = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    let e = u32::from(block[0]);
    let d = f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 });
    times(_mm256_set1_ps(d), signed(_mm256_shuffle_epi8(steps, nibbles(load_16(part(block, 1))))))
}

/// The bit pairs of group `group` of 32: row `group mod 4` of the half of 32 bytes that holds it.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn pairs(bytes: &[u8], group: usize) -> __m256i {
    let half = load_32(&bytes.as_chunks::<32>().0[group / 4]);
    _mm256_and_si256(_mm256_srl_epi16(half, _mm_cvtsi32_si128(2 * (group % 4) as i32)), _mm256_set1_epi8(3))
}

/// The first sixteen numbers times `first`, the others times `second`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn times_of_two(first: f32, second: f32, x: Octets) -> Octets {
    let (first, second) = (_mm256_set1_ps(first), _mm256_set1_ps(second));
    [_mm256_mul_ps(first, x[0]), _mm256_mul_ps(first, x[1]), _mm256_mul_ps(second, x[2]), _mm256_mul_ps(second, x[3])]
}

/// `LEN` bytes of `block` from `at`.
#[inline(always)]
fn part<const LEN: usize>(block: &[u8], at: usize) -> &[u8; LEN] {
    block[at..].first_chunk().expect("the offsets of a layout lie inside its block")
}

/// The f16 number at byte `at`, in all eight lanes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn half_at(block: &[u8], at: usize) -> __m256 {
    let bits = u16::from_le_bytes(*part(block, at));
    _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits))))
}

/// Sixteen bytes to 32: their low nibbles, then their high ones.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn nibbles(bytes: __m128i) -> __m256i {
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(0x0F))
}

/// The low (`which` = 0) or high (1) nibbles of row `row` of 32 bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn nibbles_of_row(bytes: &[[u8; 16]], row: usize, which: usize) -> __m256i {
    let bytes = load_32(&bytes.as_chunks::<2>().0[row].as_flattened().as_chunks::<32>().0[0]);
    let shifted = _mm256_srl_epi16(bytes, _mm_cvtsi32_si128(4 * which as i32));
    _mm256_and_si256(shifted, _mm256_set1_epi8(0x0F))
}

/// 32 bits to 32 bytes: all ones where bit `j` is set, zero elsewhere.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn spread_bits(bits: &[u8; 4]) -> __m256i {
    let all = _mm256_set1_epi32(i32::from_le_bytes(*bits));
    let byte_of = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let bit_of = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(all, byte_of), bit_of), bit_of)
}

/// 32 signed bytes as numbers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn signed(codes: __m256i) -> Octets {
    let (low, high) = (_mm256_castsi256_si128(codes), _mm256_extracti128_si256::<1>(codes));
    [
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(low, low))),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high)),
        _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(high, high))),
    ]
}

/// Sixteen bits each, as the upper half of a number.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn upper_half(bits: __m128i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn times(d: __m256, x: Octets) -> Octets {
    [_mm256_mul_ps(d, x[0]), _mm256_mul_ps(d, x[1]), _mm256_mul_ps(d, x[2]), _mm256_mul_ps(d, x[3])]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn plus(x: Octets, m: __m256) -> Octets {
    [_mm256_add_ps(x[0], m), _mm256_add_ps(x[1], m), _mm256_add_ps(x[2], m), _mm256_add_ps(x[3], m)]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn minus(x: Octets, m: __m256) -> Octets {
    [_mm256_sub_ps(x[0], m), _mm256_sub_ps(x[1], m), _mm256_sub_ps(x[2], m), _mm256_sub_ps(x[3], m)]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn shared(first: __m256, second: __m256) -> Shared {
    let mut both = [0.0; 16];
    let (a, b) = both.split_at_mut(8);
    super::simd::store(first, a);
    super::simd::store(second, b);
    both
}
