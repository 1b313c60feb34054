//! One block. The residual stream runs through it; attention and feed-forward each read a copy, normed or not, and add to it.

use glassbox_anatomy::{Observer, Site, Tap};
use glassbox_mechanisms::MechanismError;
use glassbox_mechanisms::cache::Cache;

use crate::attention::Attention;
use crate::blueprint::Residual;
use crate::decoder::Run;
use crate::feed_forward::FeedForward;
use crate::norm::NormWeights;

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) layer: usize,
    pub(crate) d_model: usize,
    pub(crate) residual: Residual,
    pub(crate) norm_1: Option<NormWeights>,
    pub(crate) attention: Attention,
    /// On what attention adds.
    pub(crate) after_attention: Option<NormWeights>,
    /// On the stream that it was added to.
    pub(crate) stream_1: Option<NormWeights>,
    pub(crate) norm_2: Option<NormWeights>,
    pub(crate) feed_forward: FeedForward,
    pub(crate) after_feed_forward: Option<NormWeights>,
    pub(crate) stream_2: Option<NormWeights>,
}

impl Block {
    /// - `x`  [token, d_model], the residual stream, changed in place
    pub(crate) fn forward<O: Observer + ?Sized>(
        &self,
        x: &mut [f32],
        caches: &mut [&mut Cache],
        run: &Run<'_>,
        tap: &mut Tap<'_, O>,
    ) -> Result<(), MechanismError> {
        let mut tap = tap.layer(self.layer);
        let stream = [run.tokens, self.d_model];
        tap.at(Site::BlockIn, &stream, x);

        let mut read = read_by(self.norm_1.as_ref(), x, run);
        let beside = match self.residual {
            Residual::OneAfterAnother => None,
            Residual::SideBySide => Some(read_by(self.norm_2.as_ref(), x, run)),
        };
        tap.at(Site::Norm1, &stream, &mut read);
        let mut added = self.attention.forward(&read, self.after_attention.as_ref(), caches, run, &mut tap)?;
        if let Some(norm) = &self.after_attention {
            added = norm.apply(&added, run);
        }
        tap.at(Site::AttnAdded, &stream, &mut added);
        add(x, &added, self.stream_1.as_ref(), run);
        tap.at(Site::Mid, &stream, x);

        let mut read = beside.unwrap_or_else(|| read_by(self.norm_2.as_ref(), x, run));
        tap.at(Site::Norm2, &stream, &mut read);
        let mut added = self.feed_forward.forward(&read, run, &mut tap);
        if let Some(norm) = &self.after_feed_forward {
            added = norm.apply(&added, run);
        }
        tap.at(Site::FfnAdded, &stream, &mut added);
        add(x, &added, self.stream_2.as_ref(), run);
        tap.at(Site::BlockOut, &stream, x);
        Ok(())
    }
}

impl Block {
    /// Whether what goes in comes out as more than a sum.
    pub(crate) fn norms_the_stream(&self) -> bool {
        self.stream_1.is_some() || self.stream_2.is_some()
    }
}

/// What a part reads of the residual stream.
fn read_by(norm: Option<&NormWeights>, x: &[f32], run: &Run<'_>) -> Vec<f32> {
    norm.map_or_else(|| x.to_vec(), |norm| norm.apply(x, run))
}

/// Adds to the residual stream, and norms the stream itself where a family does so.
fn add(x: &mut [f32], added: &[f32], norm: Option<&NormWeights>, run: &Run<'_>) {
    run.each_row(x, added.len() / run.tokens, |first, x| {
        let from = first * (added.len() / run.tokens);
        x.iter_mut().zip(&added[from..]).for_each(|(x, added)| *x += added);
    });
    if let Some(norm) = norm {
        x.copy_from_slice(&norm.apply(x, run));
    }
}
