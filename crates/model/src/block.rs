//! One block. The residual stream runs through it; attention and feed-forward each read a normed copy and add to it.

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::MechanismError;
use glassbox_mechanisms::cache::Cache;

use crate::attention::Attention;
use crate::blueprint::{Blueprint, NormPlaces};
use crate::decoder::Run;
use crate::feed_forward::FeedForward;
use crate::norm::NormWeights;
use crate::slot::Slot;
use crate::weights::Weights;

#[derive(Debug)]
pub(crate) struct Block {
    layer: usize,
    d_model: usize,
    norm_1: NormWeights,
    attention: Attention,
    after_attention: Option<NormWeights>,
    norm_2: NormWeights,
    feed_forward: FeedForward,
    after_feed_forward: Option<NormWeights>,
}

impl Block {
    pub(crate) fn new(blueprint: &Blueprint, weights: &mut Weights, layer: usize, rotary: Option<usize>) -> Self {
        let norm = blueprint.norm;
        let after = blueprint.norm_places == NormPlaces::BeforeAndAfter;
        let after = |weights: &mut Weights, gain| after.then(|| NormWeights::without_bias(weights, layer, norm, gain));
        Self {
            layer,
            d_model: blueprint.d_model,
            norm_1: NormWeights::new(weights, layer, norm, Slot::Norm1Gain, Slot::Norm1Bias),
            attention: Attention::new(blueprint, weights, layer, rotary),
            after_attention: after(weights, Slot::AfterAttentionGain),
            norm_2: NormWeights::new(weights, layer, norm, Slot::Norm2Gain, Slot::Norm2Bias),
            feed_forward: FeedForward::new(blueprint, weights, layer),
            after_feed_forward: after(weights, Slot::AfterFeedForwardGain),
        }
    }

    /// - `x`  [token, d_model], the residual stream, changed in place
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        x: &mut [f32],
        cache: &mut Cache,
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<(), MechanismError> {
        let mut tap = tap.layer(self.layer);
        let stream = [run.tokens, self.d_model];
        tap.at(Site::BlockIn, &stream, x);

        let mut read = self.norm_1.apply(x, run);
        tap.at(Site::Norm1, &stream, &mut read);
        let mut added = self.attention.forward(&read, cache, run, &mut tap)?;
        if let Some(norm) = &self.after_attention {
            added = norm.apply(&added, run);
        }
        tap.at(Site::AttnAdded, &stream, &mut added);
        add(x, &added);
        tap.at(Site::Mid, &stream, x);

        let mut read = self.norm_2.apply(x, run);
        tap.at(Site::Norm2, &stream, &mut read);
        let mut added = self.feed_forward.forward(&read, run, &mut tap);
        if let Some(norm) = &self.after_feed_forward {
            added = norm.apply(&added, run);
        }
        tap.at(Site::FfnAdded, &stream, &mut added);
        add(x, &added);
        tap.at(Site::BlockOut, &stream, x);
        Ok(())
    }
}

fn add(x: &mut [f32], added: &[f32]) {
    for (x, added) in x.iter_mut().zip(added) {
        *x += added;
    }
}
