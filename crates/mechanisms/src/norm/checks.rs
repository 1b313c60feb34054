use super::*;

#[test]
fn the_norms_of_the_seed_example_are_these() {
    let x = [1.0, -2.0, 3.0, 0.5];
    let mut y = [0.0; 4];
    for kernels in [Kernels::Textbook, Kernels::Fast] {
        layer_norm(kernels, &x, &[1.0; 4], None, 1e-5, &mut y);
        assert_eq!(y.map(|y| (y * 1e4).round()), [2106.0, -14739.0, 13335.0, -702.0]);
        rms_norm(kernels, &x, &[1.0; 4], 1e-6, &mut y);
        assert_eq!(y.map(|y| (y * 1e4).round()), [5298.0, -10596.0, 15894.0, 2649.0]);
    }
}
