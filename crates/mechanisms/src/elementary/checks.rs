use super::*;

/// Distance in units of the last place of the `f32` nearest to `exact`.
fn ulps(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if found == nearest {
        return ((f64::from(found) - exact) / spacing(nearest)).abs();
    }
    (f64::from(found) - exact).abs() / spacing(nearest)
}

fn spacing(x: f32) -> f64 {
    let x = x.abs().max(f32::MIN_POSITIVE);
    f64::from(f32::from_bits(x.to_bits() + 1)) - f64::from(x)
}

/// Every 1,571st `f32`, about 2.7 million values of every sign, exponent and kind.
fn sample() -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(1_571).map(f32::from_bits)
}

const CORNERS: [f32; 14] = [
    0.0,
    -0.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    f32::MAX,
    f32::MIN,
    88.722_83,
    -103.972_08,
    -87.336_55,
];

#[track_caller]
fn worst_ulps(name: &str, limit: f64, function: fn(f32) -> f32, exact: impl Fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in sample().filter(|x| x.is_finite()) {
        let truth = exact(f64::from(x));
        if truth.abs() > f64::from(f32::MAX) {
            continue;
        }
        let error = ulps(function(x), truth);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    assert!(worst.0 <= limit, "{name}({:e}) is {} ulp away; allowed {limit}", worst.1, worst.0);
}

#[test]
fn exp_is_within_one_ulp_from_subnormal_to_overflow() {
    worst_ulps("exp", 1.0, exp, f64::exp);
}

#[test]
fn tanh_is_within_two_ulp() {
    worst_ulps("tanh", 2.0, tanh, f64::tanh);
}

#[test]
fn erf_is_within_two_ulp() {
    worst_ulps("erf", 2.0, erf, exact_erf);
}

/// `erf` in `f64`: its Maclaurin series below 3, the continued fraction of `erfc` above.
fn exact_erf(x: f64) -> f64 {
    let t = x.abs();
    let value = if t < 3.0 {
        let (mut term, mut sum, mut n) = (t, t, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -t * t / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        let mut fraction = t;
        for k in (1..=60).rev() {
            fraction = t + f64::from(k) / 2.0 / fraction;
        }
        1.0 - (-t * t).exp() / (fraction * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

#[test]
fn special_values_are_exact_and_nan_stays_nan() {
    assert_eq!(exp(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(exp(f32::INFINITY), f32::INFINITY);
    assert_eq!((exp(0.0), exp(-0.0)), (1.0, 1.0));
    assert_eq!(exp(88.8), f32::INFINITY);
    assert_eq!(exp(-104.0), 0.0);
    assert!(exp(-103.9) > 0.0);
    assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!((erf(f32::INFINITY), erf(f32::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!(tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert_eq!(erf(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
}

#[test]
fn eight_at_a_time_give_the_bits_of_one_at_a_time() {
    type Twin = (fn(f32) -> f32, fn(&mut [f32]));
    let twins: [Twin; 3] = [(exp, exp_in_place), (tanh, tanh_in_place), (erf, erf_in_place)];
    let mut values: Vec<f32> = sample().step_by(3).chain(CORNERS).collect();
    values.push(0.5); // a length that is no multiple of eight
    for (one, many) in twins {
        let mut found = values.clone();
        many(&mut found);
        for (&x, &y) in values.iter().zip(&found) {
            let wanted = one(x);
            assert!(wanted.to_bits() == y.to_bits() || (wanted.is_nan() && y.is_nan()), "at {x:e}: {wanted:e} alone, {y:e} among eight");
        }
    }
}

#[test]
fn sin_and_cos_agree_with_the_library_within_rounding() {
    for k in 0..200_000 {
        let x = f64::from(k) * 7.853_1 - 400_000.0;
        let (sin, cos) = sin_cos(x);
        assert!((sin - x.sin()).abs() < 4e-16 && (cos - x.cos()).abs() < 4e-16, "at {x}: {sin} {cos}");
    }
    assert_eq!(sin_cos(0.0), (0.0, 1.0));
    let (_, cos) = sin_cos(15_962.0);
    assert!((cos - -0.908_016).abs() < 5e-7);
    assert!(sin_cos(f64::INFINITY).0.is_nan());
}

#[test]
fn exp_ln_and_powers_in_f64_agree_with_the_library_within_rounding() {
    for k in -7000..7000 {
        let x = f64::from(k) * 0.101;
        let error = (exp_f64(x) / x.exp() - 1.0).abs();
        assert!(error < 5e-16, "exp({x}): {error:e}");
        let y = x.exp();
        assert!((ln_f64(y) - y.ln()).abs() <= 5e-16 * y.ln().abs(), "ln({y:e})");
    }
    assert!((ln_f64(1.000_001) - 1.000_001_f64.ln()).abs() < 1e-21);
    for theta in [1e4, 5e5, 1e6] {
        for i in 0..128 {
            let exponent = -f64::from(i) / 128.0;
            assert!((pow_f64(theta, exponent) / theta.powf(exponent) - 1.0).abs() < 1e-14);
        }
    }
    assert_eq!(pow_f64(1e4, 0.0), 1.0);
    assert_eq!((ln_f64(0.0), ln_f64(1.0)), (f64::NEG_INFINITY, 0.0));
    assert!(ln_f64(-1.0).is_nan());
    assert_eq!((exp_f64(f64::NEG_INFINITY), exp_f64(0.0)), (0.0, 1.0));
}
