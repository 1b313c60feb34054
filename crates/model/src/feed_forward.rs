//! The feed-forward: up, activation or gate, down.

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::feed_forward::{Activation, activate_in_place, gate_in_place};

use crate::blueprint::{self, Bias, Blueprint};
use crate::decoder::Run;
use crate::linear::Linear;
use crate::slot::Slot;
use crate::weights::Weights;

#[derive(Debug)]
pub(crate) struct FeedForward {
    d_model: usize,
    hidden: usize,
    activation: Activation,
    /// Where there is none, the activation is on the hidden layer itself.
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
}

impl FeedForward {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights, layer: usize) -> Self {
        let (gated, activation, bias) = match blueprint.feed_forward {
            blueprint::FeedForward::Plain { activation, bias, .. } => (false, activation, bias),
            blueprint::FeedForward::Gated { activation, bias, .. } => (true, activation, bias),
        };
        let mut linear = |weight, slot| Linear::new(weights, layer, weight, (bias == Bias::Added).then_some(slot));
        Self {
            d_model: blueprint.d_model,
            hidden: blueprint.feed_forward.hidden(),
            activation,
            gate: gated.then(|| linear(Slot::WGate, Slot::BGate)),
            up: linear(Slot::WUp, Slot::BUp),
            down: linear(Slot::WDown, Slot::BDown),
        }
    }

    /// - `x`  [token, d_model], normed; the result has the same sizes
    pub(crate) fn forward<O: Observer + ?Sized>(&self, x: &[f32], run: &Run<'_>, tap: &mut Tap<'_, O>) -> Vec<f32> {
        let mut hidden = self.up.apply(x, run);
        match &self.gate {
            Some(gate) => gate_in_place(run.kernels, self.activation, &gate.apply(x, run), &mut hidden),
            None => activate_in_place(run.kernels, self.activation, &mut hidden),
        }
        tap.at(Site::FfnHidden, &[run.tokens, self.hidden], &mut hidden);
        let mut out = self.down.apply(&hidden, run);
        tap.at(Site::FfnOut, &[run.tokens, self.d_model], &mut out);
        out
    }
}
