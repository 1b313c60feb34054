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

    /// What a direction of the output is in the input, but for the division by the row's root mean square or standard deviation: times the gain, and
    /// centred where the norm centres.
    pub(crate) fn toward(&self, direction: &[f32]) -> Vec<f32> {
        let mut toward: Vec<f32> = direction.iter().zip(&self.gain).map(|(direction, gain)| direction * gain).collect();
        if !matches!(self.norm, Norm::Rms { .. }) {
            let mean = toward.iter().map(|x| f64::from(*x)).sum::<f64>() / toward.len() as f64;
            toward.iter_mut().for_each(|x| *x = (f64::from(*x) - mean) as f32);
        }
        toward
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
