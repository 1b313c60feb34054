//! The definitions in `f64`, for tables that are computed once: a few ulp are enough, the same bits everywhere are not negotiable.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LOG2_E};

const LN_2_HIGH: f64 = 0.693_147_180_558_298_7; // 36 bits, so that n * LN_2_HIGH is exact
const LN_2_LOW: f64 = 1.646_594_958_289_708_2e-12;

/// `(sin x, cos x)` for an angle in radians, within 2e-16 absolute for `|x| < 2^30`.
///
/// The nearest multiple of π/2 is taken off with π/2 in three parts; what is left, at most π/4, goes through the Taylor series.
/// An infinite or NaN angle gives NaN.
#[must_use]
pub fn sin_cos(x: f64) -> (f64, f64) {
    const PI_2_MIDDLE: f64 = 6.123_233_995_736_766e-17;
    const PI_2_LOW: f64 = -1.497_384_905_065_873e-33;

    let quarters = (x * FRAC_2_PI).round_ties_even();
    let r = quarters.mul_add(-FRAC_PI_2, x);
    let r = quarters.mul_add(-PI_2_MIDDLE, r);
    let r = quarters.mul_add(-PI_2_LOW, r);
    let z = r * r;

    // sin r = r - r³/3! + r⁵/5! - …, cos r = 1 - r²/2! + r⁴/4! - …: sums from the smallest term.
    let mut sin = 0.0;
    let mut cos = 0.0;
    for k in (1..=9_u32).rev() {
        let even = f64::from(2 * k) * f64::from(2 * k - 1);
        let odd = f64::from(2 * k) * f64::from(2 * k + 1);
        sin = -(z / odd) * (1.0 + sin);
        cos = -(z / even) * (1.0 + cos);
    }
    let (sin, cos) = (sin.mul_add(r, r), 1.0 + cos);
    match quarters.rem_euclid(4.0) {
        0.0 => (sin, cos),
        1.0 => (cos, -sin),
        2.0 => (-sin, -cos),
        3.0 => (-cos, sin),
        _ => (f64::NAN, f64::NAN),
    }
}

/// `exp(x)` in `f64`, within 2 ulp while the result is a normal number.
#[must_use]
pub fn exp_f64(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let x = x.clamp(-746.0, 710.0);
    let n = (x * LOG2_E).round_ties_even();
    let r = n.mul_add(-LN_2_HIGH, x);
    let r = n.mul_add(-LN_2_LOW, r);
    let mut tail = 0.0; // r²/2! + r³/3! + …, divided by r
    for k in (2..=14_u32).rev() {
        tail = r / f64::from(k) * (1.0 + tail);
    }
    let y = 1.0 + tail.mul_add(r, r);
    #[expect(clippy::cast_possible_truncation, reason = "a whole number between -1077 and 1025")]
    let n = n as i32;
    y * power_of_two(n >> 1) * power_of_two(n - (n >> 1))
}

/// The natural logarithm in `f64`, within 2 ulp; `ln(0) = -inf`, a negative number gives NaN.
///
/// With `x = 2^n m`, `m` between √½ and √2, `ln x = n ln 2 + 2 artanh((m - 1) / (m + 1))`.
#[must_use]
pub fn ln_f64(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let (x, mut n) = if x < f64::MIN_POSITIVE { (x * power_of_two(54), -54.0) } else { (x, 0.0) };
    let bits = x.to_bits();
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | (1023 << 52));
    #[expect(clippy::cast_precision_loss, reason = "an exponent of 11 bits")]
    let exponent = (bits >> 52) as f64 - 1023.0;
    n += exponent;
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        n += 1.0;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut tail = 0.0; // z/3 + z²/5 + z³/7 + …
    for k in (1..=12_u32).rev() {
        tail = z * (1.0 / f64::from(2 * k + 1) + tail);
    }
    // 2 artanh(s) = 2s + 2s tail, and 2s = f - s f, whose first part is exact.
    let f = m - 1.0;
    let series = f - s * (f - 2.0 * tail);
    n.mul_add(LN_2_HIGH, n.mul_add(LN_2_LOW, series))
}

/// `base^exponent` for a positive base, as `exp(exponent * ln(base))`: within 1e-14 relative for results between 1e-30 and 1e30.
#[must_use]
pub fn pow_f64(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 {
        return 1.0;
    }
    exp_f64(exponent * ln_f64(base))
}

/// `2^n` for `-1022 <= n <= 1023`, made from its bits.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(u64::from((n + 1023).cast_unsigned()) << 52)
}
