use std::ops::Range;

use glassbox_anatomy::{Asks, At, Interest, Observer, Site};
use glassbox_mechanisms::attention::{Layout, RowStatistics};
use glassbox_tensor::View;

/// Watches `attn.stats` of one row and keeps, for each head, the share of each span in `Σ p_j ‖W_O v_j‖`: how much of what attention carried came
/// from there, where weights alone count keys whose values are small as much as others (Kobayashi et al. 2020, arXiv:2004.10102).
#[derive(Debug)]
pub struct ValueWeightedMass {
    row: usize,
    spans: Vec<Range<usize>>,
    /// One a head, in the order of the pass.
    shares: Vec<Vec<f64>>,
}

impl ValueWeightedMass {
    /// Watches the query at the absolute position `row`; `spans` are absolute positions of keys.
    #[must_use]
    pub fn new(row: usize, spans: Vec<Range<usize>>) -> Self {
        Self { row, spans, shares: Vec::new() }
    }

    /// The mean over all heads of all layers, span by span; heads that carried nothing have no part in it.
    #[must_use]
    pub fn finish(self) -> Vec<f64> {
        let heads = self.shares.len().max(1) as f64;
        (0..self.spans.len()).map(|span| self.shares.iter().map(|shares| shares[span]).sum::<f64>() / heads).collect()
    }
}

impl Observer for ValueWeightedMass {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Statistics { Interest::Rows(self.row..self.row + 1) } else { Interest::Nothing }
    }

    fn asks(&self) -> Asks<'_> {
        Asks { spans: &self.spans, value_weighted: true, ..Asks::default() }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let Ok([tokens, heads, width]) = value.sizes_of(["token", "head", "statistic"]) else { return };
        let Some(token) = self.row.checked_sub(at.first_row).filter(|token| *token < tokens) else { return };
        let layout = Layout { spans: self.spans.len(), ..Layout::default() };
        for row in value.values()[token * heads * width..][..heads * width].chunks_exact(width.max(1)) {
            let measured = RowStatistics::of(row, layout).and_then(|row| row.measured(0));
            if let Some(measured) = measured.filter(|measured| measured.total > 0.0) {
                let total = f64::from(measured.total);
                self.shares.push(measured.spans.iter().map(|of_span| f64::from(*of_span) / total).collect());
            }
        }
    }
}
