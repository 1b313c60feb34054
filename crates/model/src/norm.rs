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
        let direction: Vec<f64> = direction.iter().copied().map(f64::from).collect();
        self.gained(&direction).into_iter().map(|x| x as f32).collect()
    }

    /// A linear function of the normed `x` [d], `Σ reader · norm(x)`, as one of the parts that `x` is the sum of: `(direction, constant)` with
    /// `Σ direction · x + constant`. The number that the norm divides by is held at that of `x`.
    pub(crate) fn before(&self, x: &[f32], reader: &[f64]) -> (Vec<f64>, f64) {
        assert_eq!((x.len(), reader.len()), (self.gain.len(), self.gain.len()), "one row, as wide as the gain");
        let d = x.len() as f64;
        let wide = || x.iter().copied().map(f64::from);
        let (mean, eps) = match self.norm {
            Norm::Rms { eps } => (0.0, eps),
            Norm::Layer { eps } | Norm::LayerWithoutBias { eps } => (wide().sum::<f64>() / d, eps),
        };
        let scale = (wide().map(|x| (x - mean).powi(2)).sum::<f64>() / d + f64::from(eps)).sqrt();
        let constant = self.bias.iter().flat_map(|bias| bias.iter().zip(reader)).map(|(bias, reader)| f64::from(*bias) * reader).sum();
        (self.gained(reader).into_iter().map(|direction| direction / scale).collect(), constant)
    }

    /// A direction of the output times the gain, and centred where the norm centres: what is taken away as the mean of a row is taken
    /// away as the mean of the direction.
    fn gained(&self, direction: &[f64]) -> Vec<f64> {
        let mut gained: Vec<f64> = direction.iter().zip(&self.gain).map(|(direction, gain)| direction * f64::from(*gain)).collect();
        if !matches!(self.norm, Norm::Rms { .. }) {
            let mean = gained.iter().sum::<f64>() / gained.len() as f64;
            gained.iter_mut().for_each(|x| *x -= mean);
        }
        gained
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
