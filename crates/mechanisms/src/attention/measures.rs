//! Numbers of keys by which attention may be weighted: what a head makes of each value, as a norm or along a direction.

use super::length;
use crate::cache::{LANES, LayerView, TILE};
use crate::elementary::simd::vector_twin;
use crate::heads::Heads;
use crate::softmax::fold;
use crate::{MechanismError, Workers};

/// Rows of a factor that are kept in registers together.
const RUN: usize = 32;

/// For each head a triangle `U` with `‖U v‖ = ‖W v‖` for every value `v`, where `W` [d_model, d_head] is the head's part of the output projection:
/// as small as `d_head²` however wide the model is.
#[derive(Clone, Debug)]
pub struct Triangles {
    heads: usize,
    d_head: usize,
    /// `[head, column, row]`; rows padded with 0 to whole runs.
    values: Vec<f32>,
}

impl Triangles {
    /// - `grams`  `[head, d_head, d_head]`: `Wᵀ W` of each head
    ///
    /// # Panics
    ///
    /// Where `grams` is not as long as that.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
    pub fn new(heads: &Heads, grams: &[f64]) -> Self {
        let (d_head, padded) = (heads.d_head(), heads.d_head().next_multiple_of(RUN));
        assert_eq!(grams.len(), heads.heads() * d_head * d_head, "one square for each head");
        let mut values = vec![0.0; heads.heads() * d_head * padded];
        for (gram, values) in grams.chunks_exact(d_head * d_head).zip(values.chunks_exact_mut(d_head * padded)) {
            let triangle = cholesky(gram, d_head);
            for (row, column) in (0..d_head).flat_map(|row| (row..d_head).map(move |column| (row, column))) {
                values[column * padded + row] = triangle[row * d_head + column] as f32;
            }
        }
        Self { heads: heads.heads(), d_head, values }
    }
}

/// The upper triangle `U` with `UᵀU = gram`. Where a direction is lost (a pivot that is rounding), its row is 0.
fn cholesky(gram: &[f64], d: usize) -> Vec<f64> {
    let mut upper = vec![0.0; d * d];
    for row in 0..d {
        let rest = |upper: &[f64], column: usize| {
            gram[row * d + column] - (0..row).map(|before| upper[before * d + row] * upper[before * d + column]).sum::<f64>()
        };
        let pivot = rest(&upper, row);
        if pivot > gram[row * d + row] * d as f64 * f64::EPSILON {
            let root = pivot.sqrt();
            for column in row..d {
                upper[row * d + column] = rest(&upper, column) / root;
            }
        }
    }
    upper
}

/// `‖W v_j‖` of every head and stored key, `[head, key]`: the length of what a head adds for a key of weight 1. Keys that a ring no longer holds have 0.
///
/// Source: Kobayashi et al. 2020, eq. 4 (arXiv:2004.10102).
///
/// # Errors
///
/// Where the layer has other heads than the triangles.
pub fn value_norms(layer: &LayerView<'_>, heads: &Heads, of: &Triangles, workers: &Workers) -> Result<Vec<f32>, MechanismError> {
    length("triangles", "head x d_head x d_head", heads.heads() * heads.d_head(), of.heads * of.d_head)?;
    let square = of.values.len() / of.heads;
    of_values(layer, heads, workers, |head, value| norm_after(&of.values[head * square..][..square], value))
}

/// `d · v_j` of every head and stored key, `[head, key]`: what a head adds along a direction for a key of weight 1. Keys that a ring no longer holds
/// have 0.
///
/// - `directions`  `[head, d_head]`, in the space of values
///
/// # Errors
///
/// Where the layer has other heads, or `directions` is not as long as that.
pub fn value_products(layer: &LayerView<'_>, heads: &Heads, directions: &[f32], workers: &Workers) -> Result<Vec<f32>, MechanismError> {
    length("directions", "head x d_head", heads.query_width(), directions.len())?;
    of_values(layer, heads, workers, |head, value| product(&directions[head * heads.d_head()..][..heads.d_head()], value))
}

fn of_values(
    layer: &LayerView<'_>,
    heads: &Heads,
    workers: &Workers,
    number: impl Fn(usize, &[f32]) -> f32 + Sync,
) -> Result<Vec<f32>, MechanismError> {
    length("layer", "kv_head x d_head", heads.kv_width(), layer.shape().kv_heads * layer.shape().d_head)?;
    let (keys, d_head) = (layer.len(), heads.d_head());
    let mut numbers = vec![0.0; heads.heads() * keys];
    if keys == 0 {
        return Ok(numbers);
    }
    workers.split_rows(&mut numbers, keys, 1, |head, rows| {
        let (mut widened, mut value) = (Vec::new(), vec![0.0; d_head.next_multiple_of(LANES)]);
        for (head, row) in (head..).zip(rows.chunks_exact_mut(keys)) {
            for tile in layer.first() / TILE..keys.div_ceil(TILE) {
                let lines = layer.value_tile(heads.kv_head_of(head), tile, &mut widened);
                for position in (tile * TILE).max(layer.first())..((tile + 1) * TILE).min(keys) {
                    let line = lines[position % TILE..].iter().step_by(TILE);
                    value.chunks_exact_mut(LANES).zip(line).for_each(|(to, line)| to.copy_from_slice(&line.0));
                    row[position] = number(head, &value[..d_head]);
                }
            }
        }
    });
    Ok(numbers)
}

vector_twin! {
    /// `‖U v‖`, with `triangle` `[column, row]`.
    fn norm_after(triangle: &[f32], value: &[f32]) -> f32 = norm_after_here
}

#[inline(always)]
fn norm_after_here(triangle: &[f32], value: &[f32]) -> f32 {
    let padded = value.len().next_multiple_of(RUN);
    let mut squares = [0.0; 8];
    for first in (0..value.len()).step_by(RUN) {
        let mut rows = [[0.0_f32; 8]; RUN / 8];
        // Above the diagonal alone there is something.
        for (column, x) in value.iter().enumerate().skip(first) {
            let (eights, _) = triangle[column * padded + first..][..RUN].as_chunks::<8>();
            for (rows, eight) in rows.iter_mut().zip(eights) {
                for l in 0..8 {
                    rows[l] = x.mul_add(eight[l], rows[l]);
                }
            }
        }
        for row in rows {
            for l in 0..8 {
                squares[l] = row[l].mul_add(row[l], squares[l]);
            }
        }
    }
    fold(squares).sqrt()
}

vector_twin! {
    /// The dot product in eight lanes.
    fn product(a: &[f32], b: &[f32]) -> f32 = product_here
}

#[inline(always)]
fn product_here(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            lanes[l] = a[l].mul_add(b[l], lanes[l]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = a.mul_add(*b, *lane);
    }
    fold(lanes)
}

#[cfg(test)]
mod tests {
    use glassbox_testkit::Values;

    use super::*;
    use crate::cache::{Cache, LayerShape};

    #[test]
    fn norms_and_products_of_values_are_those_of_what_the_head_makes_of_them() {
        for (heads, d_model) in [((4, 2, 20), 80), ((3, 1, 64), 40), ((2, 2, 33), 66)] {
            let heads = Heads::new(heads.0, heads.1, heads.2).expect("heads that divide");
            let (d_head, keys) = (heads.d_head(), 70);
            let mut values = Values::seeded(d_head as u64);
            let mut numbers = |count: usize| -> Vec<f32> { std::iter::repeat_with(|| values.between(-1.0, 1.0)).take(count).collect() };
            let shape = LayerShape { kv_heads: heads.kv_heads(), d_head };
            let mut cache = Cache::new(&[shape], keys, u64::MAX).expect("small");
            cache.append(0, &numbers(keys * heads.kv_width()), &numbers(keys * heads.kv_width())).expect("they fit");
            let layer = cache.layer(0).expect("one layer");
            // [d_model, head, d_head]; with fewer rows than columns of a head, its triangle loses directions.
            let out = numbers(d_model * heads.query_width());
            let row = |row: usize, head: usize| &out[row * heads.query_width() + head * d_head..][..d_head];
            let mut grams = vec![0.0; heads.heads() * d_head * d_head];
            for (index, gram) in grams.iter_mut().enumerate() {
                let (head, a, b) = (index / (d_head * d_head), index / d_head % d_head, index % d_head);
                *gram = (0..d_model).map(|of| f64::from(row(of, head)[a]) * f64::from(row(of, head)[b])).sum();
            }
            let directions = numbers(heads.query_width());
            let workers = Workers::new(2);
            let norms = value_norms(&layer, &heads, &Triangles::new(&heads, &grams), &workers).expect("shapes that fit");
            let products = value_products(&layer, &heads, &directions, &workers).expect("shapes that fit");
            for (head, key) in (0..heads.heads()).flat_map(|head| (0..keys).map(move |key| (head, key))) {
                let value = layer.value(heads.kv_head_of(head), key);
                let dot = |a: &[f32]| a.iter().zip(&value).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
                let norm = (0..d_model).map(|of| dot(row(of, head)).powi(2)).sum::<f64>().sqrt();
                // Each of the sums is d_head products of numbers up to 1 of which all are rounded; a triangle is as large as its gram's trace.
                let trace: f64 = (0..d_head).map(|of| grams[(head * d_head + of) * d_head + of]).sum();
                let of_product = (d_head as f64 + 2.0) * f64::from(f32::EPSILON) * (d_head as f64).sqrt();
                let (norm_found, product_found) = (f64::from(norms[head * keys + key]), f64::from(products[head * keys + key]));
                assert!((norm_found - norm).abs() <= of_product * trace.sqrt(), "{norm_found}, wanted {norm}");
                let wanted = dot(&directions[head * d_head..][..d_head]);
                assert!((product_found - wanted).abs() <= of_product * (d_head as f64).sqrt(), "{product_found}, wanted {wanted}");
            }
        }
    }
}
