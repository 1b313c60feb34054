//! The definitions in `f32`. No branch and no table, so that the compiler can run eight of them side by side.

/// `exp(x)`, at most 1 ulp from the exact value.
///
/// With `n = round(x / ln 2)` and `r = x - n ln 2`, `exp(x) = 2^n exp(r)` where `|r| < 0.35`, and `exp(r)` is a polynomial of
/// degree 7 (Chebyshev interpolation). Multiplying by `2^n` in two steps rounds results below the normal range once, correctly.
///
/// Exact cases: `exp(-inf) = 0`, `exp(±0) = 1`; over 88.73 it gives infinity, under -103.98 zero. A NaN stays a NaN.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
    const HIGHEST: f32 = 89.0; // exp(89) overflows
    const LOWEST: f32 = -104.0; // exp(-104) is under half of the smallest subnormal
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to a whole number, which then lies in the low bits
    const LN_2_HIGH: f32 = 0.693_145_75; // 15 bits, so that n * LN_2_HIGH is exact
    const LN_2_LOW: f32 = 1.428_606_8e-6;

    let x = if LOWEST > x { LOWEST } else { x };
    let x = if HIGHEST < x { HIGHEST } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-LN_2_HIGH, x);
    let r = n.mul_add(-LN_2_LOW, r);

    let q = 1.989_108e-4_f32;
    let q = q.mul_add(r, 1.393_373_1e-3);
    let q = q.mul_add(r, 8.333_31e-3);
    let q = q.mul_add(r, 4.166_646_3e-2);
    let q = q.mul_add(r, 1.666_666_7e-1);
    let q = q.mul_add(r, 0.5);
    let y = (r * r).mul_add(q, r) + 1.0;

    let n = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed();
    let half = n >> 1;
    let rest = n.wrapping_sub(half);
    y * power_of_two(half) * power_of_two(rest)
}

/// `tanh(x)`, at most 2 ulp from the exact value.
///
/// Below 0.625 an odd polynomial in `x`; above, `1 - 2 / (exp(2|x|) + 1)` with the sign of `x`.
///
/// `tanh(±inf) = ±1`, `tanh(±0) = ±0`; a NaN stays a NaN.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let z = x * x;
    let p = 2.292_744_8e-3_f32;
    let p = p.mul_add(z, -8.343_945e-3);
    let p = p.mul_add(z, 2.176_891_8e-2);
    let p = p.mul_add(z, -5.395_925_8e-2);
    let p = p.mul_add(z, 1.333_330_4e-1);
    let p = p.mul_add(z, -3.333_333_4e-1);
    let near = (p * z).mul_add(magnitude, magnitude);
    let far = 1.0 - 2.0 / (exp(magnitude + magnitude) + 1.0);
    (if magnitude < 0.625 { near } else { far }).copysign(x)
}

/// `erf(x) = 2/√π ∫₀ˣ exp(-t²) dt`, at most 2 ulp from the exact value.
///
/// Below 0.92 an odd polynomial in `x`; above, `1 - exp(-g(|x|))` with a polynomial `g` that interpolates `-ln(1 - erf)`.
///
/// `erf(±inf) = ±1`, `erf(±0) = ±0`; a NaN stays a NaN.
#[inline(always)]
#[must_use]
pub fn erf(x: f32) -> f32 {
    let magnitude = x.abs();
    let z = x * x;
    let p = 8.399_778e-5_f32;
    let p = p.mul_add(z, -8.150_050_4e-4);
    let p = p.mul_add(z, 5.201_714_6e-3);
    let p = p.mul_add(z, -2.685_969_1e-2);
    let p = p.mul_add(z, 1.128_370_1e-1);
    let p = p.mul_add(z, -3.761_263_5e-1);
    let p = p.mul_add(z, 1.283_791_7e-1);
    let near = p.mul_add(magnitude, magnitude);

    let t = if 4.0 < magnitude { 4.0 } else { magnitude }; // erf(4) rounds to 1
    let g = -1.643_569_7e-6_f32;
    let g = g.mul_add(t, 4.617_791_3e-5);
    let g = g.mul_add(t, -5.977_435e-4);
    let g = g.mul_add(t, 4.763_575_3e-3);
    let g = g.mul_add(t, -2.643_101_8e-2);
    let g = g.mul_add(t, 1.100_944_8e-1);
    let g = g.mul_add(t, 6.318_145_4e-1);
    let g = g.mul_add(t, 1.130_237_6);
    let g = g.mul_add(t, -3.204_415_3e-4);
    let far = 1.0 - exp(-g);
    (if magnitude < 0.92 { near } else { far }).copysign(x)
}

/// `2^n` for `-126 <= n <= 127`, made from its bits.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(n.wrapping_add(127).cast_unsigned() << 23)
}
