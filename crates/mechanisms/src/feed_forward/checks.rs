use glassbox_tensor::Matrix;
use glassbox_testkit::{Values, agree, sizes_across};

use super::*;
use crate::Workers;
use crate::matmul::project;

fn activated(activation: Activation, x: &[f32]) -> Vec<f32> {
    let mut out = x.to_vec();
    activate_in_place(Kernels::Fast, activation, &mut out);
    out
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// -20 to 20 in uneven steps, and both zeros.
fn line() -> Vec<f32> {
    (-4000..=4000).map(|i| i as f32 * 0.005_003).chain([-0.0]).collect()
}

/// What a kernel of `activation` gave for `x`, against its textbook.
fn judged(activation: Activation, x: &[f32], found: &[f32]) -> Result<glassbox_testkit::Agreement, glassbox_testkit::Disagreement> {
    let single: Vec<f32> = x.iter().map(|x| textbook::activate(activation, *x)).collect();
    let truth: Vec<f64> = x.iter().map(|x| textbook::activate(activation, f64::from(*x))).collect();
    agree(found, &single, &truth)
}

#[test]
fn feed_forward_layers_of_the_seed_have_these_many_parameters() {
    assert_eq!(textbook::plain_parameters(512, 2048), 2_097_152);
    assert_eq!(textbook::gated_parameters(512, 1365), 2_096_640);
}

#[test]
fn the_two_gelus_differ_as_published() {
    for (x, erf, tanh) in [(1.0, 0.841_344_7, 0.841_192), (3.0, 2.995_950_3, 2.996_362_6)] {
        for kernels in [Kernels::Textbook, Kernels::Fast] {
            let mut both = [x, x];
            activate_in_place(kernels, Activation::GeluErf, &mut both[..1]);
            activate_in_place(kernels, Activation::GeluTanh, &mut both[1..]);
            assert!((both[0] - erf).abs() < 3e-7 && (both[1] - tanh).abs() < 3e-7, "{kernels:?} at {x}: {both:?}");
        }
    }
    let gap =
        |x: f32| (textbook::activate(Activation::GeluErf, f64::from(x)) - textbook::activate(Activation::GeluTanh, f64::from(x))).abs();
    let widest = line().into_iter().max_by(|a, b| gap(*a).total_cmp(&gap(*b))).expect("the line has points");
    assert!((widest.abs() - 2.699).abs() < 0.01 && (gap(widest) - 4.73e-4).abs() < 1e-6, "{:e} at {widest}", gap(widest));
}

#[test]
fn every_activation_agrees_with_its_textbook() {
    for activation in Activation::ALL {
        let x = line();
        judged(activation, &x, &activated(activation, &x)).unwrap_or_else(|error| panic!("{activation:?}: {error}"));
    }
}

#[test]
fn a_number_has_the_same_activation_alone_and_in_a_row() {
    let x = Values::seeded(1).normals(67, 3.0);
    for activation in Activation::ALL {
        let alone: Vec<f32> = x.iter().flat_map(|x| activated(activation, &[*x])).collect();
        assert_eq!(bits(&activated(activation, &x)), bits(&alone), "{activation:?}");
    }
}

#[test]
fn smooth_activations_of_x_and_minus_x_differ_by_x() {
    for activation in [Activation::GeluErf, Activation::GeluTanh, Activation::Silu] {
        for x in line() {
            let [plus, minus] = [x, -x].map(|x| textbook::activate(activation, f64::from(x)));
            assert!((plus - minus - f64::from(x)).abs() < 1e-12, "{activation:?} at {x}");
        }
    }
}

#[test]
fn far_from_zero_an_activation_is_the_identity_or_zero() {
    for activation in [Activation::Relu, Activation::GeluErf, Activation::GeluTanh, Activation::Silu] {
        let far = activated(activation, &[-3e38, -1e4, 0.0, 1e4, 3e38]);
        assert_eq!(far, [0.0, 0.0, 0.0, 1e4, 3e38], "{activation:?}");
    }
    assert_eq!(activated(Activation::ReluSquared, &[-3e38, -1e4, 0.0, 3.0, 1e4]), [0.0, 0.0, 0.0, 9.0, 1e8]);
    assert_eq!(activated(Activation::Sigmoid, &[-3e38, -1e4, 0.0, 1e4, 3e38]), [0.0, 0.0, 0.5, 1.0, 1.0]);
}

#[test]
fn a_nan_is_not_swallowed_by_any_activation() {
    for activation in Activation::ALL {
        assert!(activated(activation, &[f32::NAN])[0].is_nan(), "{activation:?}");
    }
}

#[test]
fn an_open_gate_lets_everything_through_and_a_closed_one_nothing() {
    let up = Values::seeded(2).normals(19, 1.0);
    let mut through = up.clone();
    gate_in_place(Kernels::Fast, Activation::Relu, &[1.0; 19], &mut through);
    assert_eq!(bits(&through), bits(&up));
    for activation in Activation::ALL.into_iter().filter(|activation| *activation != Activation::Sigmoid) {
        let mut closed = up.clone();
        gate_in_place(Kernels::Fast, activation, &[0.0; 19], &mut closed);
        assert!(closed.iter().all(|y| *y == 0.0), "{activation:?}");
    }
    let (mut half, mut shut) = (up.clone(), up.clone());
    gate_in_place(Kernels::Fast, Activation::Sigmoid, &[0.0; 19], &mut half);
    gate_in_place(Kernels::Fast, Activation::Sigmoid, &[-200.0; 19], &mut shut);
    assert!(half.iter().zip(&up).all(|(half, up)| *half == up / 2.0) && shut.iter().all(|y| *y == 0.0));
}

#[test]
fn gating_is_activating_and_multiplying() {
    let mut values = Values::seeded(3);
    for len in sizes_across(8) {
        let (gate, up) = (values.normals(len, 3.0), values.normals(len, 1.0));
        for activation in Activation::ALL {
            let mut found = up.clone();
            gate_in_place(Kernels::Fast, activation, &gate, &mut found);
            let wanted: Vec<f32> = activated(activation, &gate).iter().zip(&up).map(|(a, u)| a * u).collect();
            assert_eq!(bits(&found), bits(&wanted), "{activation:?}, {len} numbers");
        }
    }
}

#[test]
fn whole_layers_agree_with_their_textbooks() {
    let mut values = Values::seeded(4);
    let workers = Workers::new(1);
    for (d_model, hidden, tokens) in [(5, 9, 1), (16, 43, 4), (33, 64, 7)] {
        let mut matrix = |rows, columns| Matrix::from_f32(rows, columns, &values.normals(rows * columns, 0.3)).expect("sizes fit");
        let (gate, up, down) = (matrix(hidden, d_model), matrix(hidden, d_model), matrix(d_model, hidden));
        let (x, bias) = (values.normals(tokens * d_model, 1.0), values.normals(hidden, 0.3));
        for activation in Activation::ALL {
            let map = |weight: &Matrix, x: &[f32], bias| {
                let mut out = vec![0.0; tokens * weight.rows()];
                project(Kernels::Fast, &weight.clone().into(), x, bias, &mut out, &workers);
                out
            };
            let mut gated = map(&up, &x, None);
            gate_in_place(Kernels::Fast, activation, &map(&gate, &x, None), &mut gated);
            let single = textbook::gated::<f32>(activation, &x, &gate, &up, &down);
            let truth = textbook::gated::<f64>(activation, &x, &gate, &up, &down);
            agree(&map(&down, &gated, None), &single, &truth).unwrap_or_else(|error| panic!("gated {activation:?}, {d_model}: {error}"));

            let plain = activated(activation, &map(&up, &x, Some(&bias)));
            let single = textbook::plain::<f32>(activation, &x, (&up, Some(&bias)), (&down, None));
            let truth = textbook::plain::<f64>(activation, &x, (&up, Some(&bias)), (&down, None));
            agree(&map(&down, &plain, None), &single, &truth).unwrap_or_else(|error| panic!("plain {activation:?}, {d_model}: {error}"));
        }
    }
}

#[test]
fn planted_bugs_are_caught() {
    let x = line();
    let quick: Vec<f32> = x.iter().map(|x| x / (1.0 + (-1.702 * x).exp())).collect();
    let planted = [
        ("the tanh form where erf is meant", Activation::GeluErf, activated(Activation::GeluTanh, &x)),
        ("the erf form where tanh is meant", Activation::GeluTanh, activated(Activation::GeluErf, &x)),
        ("the sigmoid approximation of gelu", Activation::GeluErf, quick),
        ("silu where gelu is meant", Activation::GeluTanh, activated(Activation::Silu, &x)),
        ("relu that is not squared", Activation::ReluSquared, activated(Activation::Relu, &x)),
        ("a square without the relu", Activation::ReluSquared, x.iter().map(|x| x * x).collect()),
        ("silu where the sigmoid alone is meant", Activation::Sigmoid, activated(Activation::Silu, &x)),
    ];
    for (wrong, meant, found) in planted {
        assert!(judged(meant, &x, &found).is_err(), "{wrong}");
    }
}

#[test]
fn a_gate_that_is_swapped_with_its_up_projection_is_caught() {
    let mut values = Values::seeded(5);
    let (gate, up) = (values.normals(32, 1.0), values.normals(32, 1.0));
    let single: Vec<f32> = gate.iter().zip(&up).map(|(g, u)| textbook::activate(Activation::Silu, *g) * u).collect();
    let truth: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| textbook::activate(Activation::Silu, f64::from(*g)) * f64::from(*u)).collect();
    let (mut right, mut swapped) = (up.clone(), gate.clone());
    gate_in_place(Kernels::Fast, Activation::Silu, &gate, &mut right);
    gate_in_place(Kernels::Fast, Activation::Silu, &up, &mut swapped);
    assert!(agree(&right, &single, &truth).is_ok());
    assert!(agree(&swapped, &single, &truth).is_err());
}
