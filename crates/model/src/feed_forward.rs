//! The feed-forward: up, activation or gate, down.

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::feed_forward::{Activation, activate_in_place, gate_in_place};

use crate::decoder::Run;
use crate::linear::Linear;

#[derive(Debug)]
pub(crate) struct FeedForward {
    pub(crate) d_model: usize,
    pub(crate) hidden: usize,
    pub(crate) activation: Activation,
    /// Where there is none, the activation is on the hidden layer itself.
    pub(crate) gate: Option<Linear>,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

impl FeedForward {
    /// - `x`  [token, d_model], normed; the result has the same sizes
    pub(crate) fn forward<O: Observer + ?Sized>(&self, x: &[f32], run: &Run<'_>, tap: &mut Tap<'_, O>) -> Vec<f32> {
        let mut hidden = self.up.apply(x, run);
        let gate = self.gate.as_ref().map(|gate| gate.apply(x, run));
        run.each_row(&mut hidden, self.hidden, |first, hidden| match &gate {
            Some(gate) => gate_in_place(run.kernels, self.activation, &gate[first * self.hidden..][..hidden.len()], hidden),
            None => activate_in_place(run.kernels, self.activation, hidden),
        });
        tap.at(Site::FfnHidden, &[run.tokens, self.hidden], &mut hidden);
        let mut out = self.down.apply(&hidden, run);
        tap.at(Site::FfnOut, &[run.tokens, self.d_model], &mut out);
        out
    }
}
