//! The everyday kernel: the dot product of contract 1, for one token as for many.

use glassbox_tensor::Matrix;

use crate::Workers;

/// The dot product of contract 1: eight lanes along the index, fused multiply-add, a fixed final tree.
///
/// Lane `l` sums the products whose index `k` has `k mod 8 = l`, in rising `k`, starting from +0; the result is
/// `((l0+l4)+(l2+l6)) + ((l1+l5)+(l3+l7))`.
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0_f32; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            lanes[l] = a[l].mul_add(b[l], lanes[l]);
        }
    }
    for (l, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[l] = a.mul_add(*b, lanes[l]);
    }
    sum_lanes(lanes)
}

/// The fixed final tree over the eight lanes of a sum.
#[inline(always)]
#[must_use]
pub(crate) fn sum_lanes(l: [f32; 8]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// `out = x Wᵀ + b`; see [`super::project`].
pub(crate) fn project(weight: &Matrix, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], workers: &Workers) {
    let (outputs, inputs) = (weight.rows(), weight.columns());
    if out.is_empty() {
        return;
    }
    workers.split_columns(out, outputs, 64, |first, strip| {
        let mut row = vec![0.0; inputs];
        let width = strip[0].len();
        for o in 0..width {
            weight.decode_row(first + o, &mut row);
            for (token, out) in x.chunks_exact(inputs).zip(strip.iter_mut()) {
                let sum = dot(&row, token);
                out[o] = bias.map_or(sum, |bias| sum + bias[first + o]);
            }
        }
    });
}
