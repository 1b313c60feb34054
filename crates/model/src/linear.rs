use glassbox_mechanisms::matmul::Weight;

use crate::blueprint::{Blueprint, Pooler};
use crate::decoder::Run;
use crate::project;
use crate::slot::Slot;
use crate::weights::Weights;

/// A linear map: a weight [out, in], and perhaps a bias [out].
#[derive(Debug)]
pub(crate) struct Linear {
    weight: Weight,
    bias: Option<Vec<f32>>,
}

impl Linear {
    pub(crate) fn new(weights: &mut Weights, layer: usize, weight: Slot, bias: Option<Slot>) -> Self {
        Self { weight: weights.take(weight, layer), bias: bias.map(|bias| weights.take_vector(bias, layer)) }
    }

    /// That of an encoder's first token.
    pub(crate) fn pooler(blueprint: &Blueprint, weights: &mut Weights) -> Option<Self> {
        (blueprint.pooler == Pooler::FirstToken).then(|| Self::new(weights, 0, Slot::WPooler, Some(Slot::BPooler)))
    }

    /// Every output's weights, [in], decoded, with its number.
    pub(crate) fn each_row(&self, mut row: impl FnMut(usize, &[f32])) {
        let mut weights = vec![0.0; self.weight.columns()];
        for out in 0..self.weight.rows() {
            self.weight.decode_row(out, &mut weights);
            row(out, &weights);
        }
    }

    /// What is added to every output whatever goes in, [out].
    pub(crate) fn bias(&self) -> Option<&[f32]> {
        self.bias.as_deref()
    }

    /// - `x`  [token, in]; the result is [token, out]
    pub(crate) fn apply(&self, x: &[f32], run: &Run<'_>) -> Vec<f32> {
        let mut out = vec![0.0; x.len() / self.weight.columns() * self.weight.rows()];
        project(run.kernels, &self.weight, x, self.bias.as_deref(), &mut out, run.workers);
        out
    }
}
