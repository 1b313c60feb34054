//! Linear maps: every output is one dot product of a stored weight row with one token. The room's page is `README.md`.

#[cfg(test)]
mod checks;
pub(crate) mod fast;
#[cfg(target_arch = "x86_64")]
mod octets;
mod panels;
#[cfg(target_arch = "x86_64")]
mod simd;
pub mod textbook;
mod weight;

pub use self::panels::Panels;
pub use self::weight::Weight;
use crate::elementary::simd::vector_twin;
use crate::{Kernels, Workers};

vector_twin! {
    /// The dot product of contract 1, the one sum that all kernels share.
    ///
    /// Lane `l` of eight sums the products whose index `k` has `k mod 8 = l`, in rising `k`, each by one fused multiply-add starting
    /// from +0; the result is `((l0+l4)+(l2+l6)) + ((l1+l5)+(l3+l7))`.
    ///
    /// - `a`, `b`  of one length
    #[must_use]
    pub fn dot(a: &[f32], b: &[f32]) -> f32 = fast::dot
}

/// Maps every token through a linear layer: `out = x̂ Wᵀ + b`, where `x̂` is `x` for a weight in rows, and `x` rounded for one in panels.
///
/// - `weight`  `[out, in]`, in any storage type; decoded exactly as `Matrix::decode_row` defines
/// - `x`       `[token, in]`
/// - `bias`    `[out]`, added after the dot product is complete
/// - `out`     `[token, out]`, overwritten
///
/// With [`Kernels::Fast`], an output depends only on its weight row and its token: the same bits for one token as for many,
/// for one thread as for sixteen, on AVX2 as in portable code.
///
/// # Panics
///
/// Where the lengths do not fit the weight; the model checks shapes once, when weights meet slots.
pub fn project(kernels: Kernels, weight: &Weight, x: &[f32], bias: Option<&[f32]>, out: &mut [f32], workers: &Workers) {
    check_lengths(weight, x, bias, out.len());
    let instructions = match kernels {
        Kernels::Textbook => {
            let mut exact = vec![0.0_f64; out.len()];
            match weight {
                Weight::Rows(rows) => textbook::project(rows, x, bias, &mut exact),
                Weight::Panels(panels) => textbook::project_rounded(panels, x, bias, &mut exact),
            }
            out.iter_mut().zip(exact).for_each(|(out, exact)| *out = exact as f32);
            return;
        }
        Kernels::Fast => fast::Instructions::best(),
        Kernels::Portable => fast::Instructions::Portable,
    };
    match weight {
        Weight::Rows(rows) => fast::project(instructions, rows, x, bias, out, workers),
        Weight::Panels(panels) => panels.project(instructions, x, bias, out, workers),
    }
}

fn check_lengths(weight: &Weight, x: &[f32], bias: Option<&[f32]>, out: usize) {
    let (outputs, inputs) = (weight.rows(), weight.columns());
    assert!(inputs > 0 && x.len().is_multiple_of(inputs), "x holds whole tokens of {inputs} inputs, found {} numbers", x.len());
    let tokens = x.len() / inputs;
    assert_eq!(out, tokens * outputs, "out holds {tokens} tokens of {outputs} outputs");
    assert!(bias.is_none_or(|bias| bias.len() == outputs), "a bias has one number for each of {outputs} outputs");
}
