//! What is watched while the clock runs.

use std::ops::Range;

use glassbox_anatomy::{Asks, At, Interest, Observer, Site};
use glassbox_mechanisms::attention::Asked;
use glassbox_model::Blueprint;
use glassbox_tensor::View;

/// Spans into which a text is cut.
const SPANS: usize = 8;

/// Keys with the largest weights of each row.
const TOP_KEYS: usize = 8;

/// How much is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// Nothing: the pass without taps.
    #[default]
    None,
    /// Of every row of attention: log-sum-exp, entropy, support, distances, and the shares of eight spans.
    Spans,
    /// The same; the eight keys with the largest weights; value-weighted mass and parts of a logit, over all keys, each span and each of these keys.
    All,
}

impl Capture {
    /// Numbers of a row of one head.
    #[must_use]
    pub fn row_numbers(self) -> usize {
        let (spans, measure): (_, &[f32]) = ([const { 0..0 }; SPANS], &[]);
        match self {
            Self::None => 0,
            Self::Spans => Asked { spans: &spans, ..Asked::default() }.width(),
            Self::All => Asked { spans: &spans, top_keys: TOP_KEYS, measures: &[measure; 2] }.width(),
        }
    }

    /// Bytes that go past the observer in a text of so many tokens, in single precision. A piece of a pass is held at a time.
    #[must_use]
    pub fn bytes(self, blueprint: &Blueprint, tokens: usize) -> u64 {
        let rows = tokens.saturating_mul(blueprint.layers.len()).saturating_mul(blueprint.attention.heads.heads());
        4 * (rows as u64).saturating_mul(self.row_numbers() as u64)
    }
}

/// Rows of statistics, reduced as they come to one sum a layer, head and number.
#[derive(Debug)]
pub(crate) struct Reduced {
    capture: Capture,
    spans: Vec<Range<usize>>,
    /// `[layer]`, each `[head, number]`.
    sums: Vec<Vec<f64>>,
    bytes: u64,
}

impl Reduced {
    /// For a text of `tokens` tokens.
    pub(crate) fn new(capture: Capture, tokens: usize) -> Self {
        let spans = (0..SPANS).map(|span| span * tokens / SPANS..(span + 1) * tokens / SPANS).collect();
        Self { capture, spans, sums: Vec::new(), bytes: 0 }
    }

    /// Bytes of all that was seen.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Observer for Reduced {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Statistics && self.capture != Capture::None { Interest::See } else { Interest::Nothing }
    }

    fn asks(&self) -> Asks<'_> {
        match self.capture {
            Capture::None => Asks::default(),
            Capture::Spans => Asks { spans: &self.spans, ..Asks::default() },
            Capture::All => Asks { spans: &self.spans, top_keys: TOP_KEYS, value_weighted: true, logit: Some(0) },
        }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let values = value.values();
        let row = values.len() / value.sizes().first().copied().unwrap_or(1).max(1);
        if self.sums.len() <= at.layer {
            self.sums.resize(at.layer + 1, Vec::new());
        }
        let sums = &mut self.sums[at.layer];
        sums.resize(row, 0.0);
        for values in values.chunks_exact(row.max(1)) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        self.bytes += 4 * values.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_summed_layer_by_layer_and_their_bytes_counted() {
        let mut reduced = Reduced::new(Capture::Spans, 16);
        assert_eq!((reduced.asks().spans.len(), reduced.asks().spans[7].clone()), (8, 14..16));
        for (layer, values) in [(1, [1.0, 2.0, 3.0, 4.0]), (1, [0.5; 4]), (0, [8.0; 4])] {
            let at = At { layer, site: Site::Statistics, first_row: 0 };
            assert_eq!(reduced.interest(at), Interest::See);
            reduced.see(at, View::new(Site::Statistics.axes(), &[2, 1, 2], &values).expect("sizes match"));
        }
        assert_eq!(reduced.sums, [vec![16.0, 16.0], vec![5.0, 7.0]]);
        assert_eq!(reduced.bytes(), 48);
        assert_eq!(Reduced::new(Capture::None, 16).interest(At { layer: 0, site: Site::Statistics, first_row: 0 }), Interest::Nothing);
    }

    #[test]
    fn a_row_has_as_many_numbers_as_is_told() {
        // 7 that are always there, 16 classes of distance, 8 spans; 8 keys with their weights; twice a sum, 8 spans and 8 keys.
        assert_eq!([Capture::None, Capture::Spans, Capture::All].map(Capture::row_numbers), [0, 31, 31 + 16 + 2 * 17]);
    }
}
