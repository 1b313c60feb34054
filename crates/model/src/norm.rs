use glassbox_mechanisms::norm::{layer_norm, rms_norm};

use crate::blueprint::Norm;
use crate::decoder::Run;
use crate::slot::Slot;
use crate::weights::Weights;

/// A norm with its gain, and its bias where the kind has one.
#[derive(Debug)]
pub(crate) struct NormWeights {
    norm: Norm,
    gain: Vec<f32>,
    bias: Option<Vec<f32>>,
}

impl NormWeights {
    pub(crate) fn new(weights: &mut Weights, layer: usize, norm: Norm, gain: Slot, bias: Slot) -> Self {
        let bias = matches!(norm, Norm::Layer { .. }).then(|| weights.take_vector(bias, layer));
        Self { norm, gain: weights.take_vector(gain, layer), bias }
    }

    /// One without bias, whatever the kind of the others.
    pub(crate) fn without_bias(weights: &mut Weights, layer: usize, norm: Norm, gain: Slot) -> Self {
        Self { norm, gain: weights.take_vector(gain, layer), bias: None }
    }

    /// - `x`  [row, d], rows as wide as the gain; the result has the same sizes
    pub(crate) fn apply(&self, x: &[f32], run: &Run<'_>) -> Vec<f32> {
        let mut out = vec![0.0; x.len()];
        let d = self.gain.len();
        run.each_row(&mut out, d, |first, out| {
            let x = &x[first * d..][..out.len()];
            match self.norm {
                Norm::Layer { eps } | Norm::LayerWithoutBias { eps } => {
                    layer_norm(run.kernels, x, &self.gain, self.bias.as_deref(), eps, out);
                }
                Norm::Rms { eps } => rms_norm(run.kernels, x, &self.gain, eps, out),
            }
        });
        out
    }
}
