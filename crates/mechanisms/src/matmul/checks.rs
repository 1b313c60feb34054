use glassbox_tensor::Matrix;
use glassbox_testkit::{Values, agree};

use super::*;

#[test]
fn the_fast_projection_agrees_with_the_textbook() {
    let mut values = Values::seeded(1);
    let weight = Matrix::from_f32(5, 37, &values.normals(5 * 37, 1.0)).expect("sizes fit");
    let x = values.normals(3 * 37, 1.0);
    let (mut fast, mut single, mut truth) = ([0.0; 15], [0.0_f32; 15], [0.0_f64; 15]);
    project(Kernels::Fast, &weight, &x, None, &mut fast, &Workers::new(1));
    textbook::project(&weight, &x, None, &mut single);
    textbook::project(&weight, &x, None, &mut truth);
    agree(&fast, &single, &truth).expect("within the derived tolerance");
}
