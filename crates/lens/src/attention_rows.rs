use std::collections::BTreeMap;
use std::ops::Range;

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_tensor::View;

use crate::HeadRef;

/// Watches `attn.pattern` and keeps the exact rows of chosen heads.
pub struct AttentionRows {
    rows: Range<usize>,
    held: BTreeMap<HeadRef, Vec<(usize, Vec<f32>)>>,
}

impl AttentionRows {
    /// Keeps the query rows `rows` (absolute positions) of `heads`.
    #[must_use]
    pub fn new(rows: Range<usize>, heads: &[HeadRef]) -> Self {
        Self { rows, held: heads.iter().map(|head| (*head, Vec::new())).collect() }
    }

    /// For each head its rows in order: the query's position, and its weights over the keys from 0 to itself.
    #[must_use]
    pub fn finish(self) -> BTreeMap<HeadRef, Vec<(usize, Vec<f32>)>> {
        self.held
    }
}

impl Observer for AttentionRows {
    fn interest(&self, at: At) -> Interest {
        let wanted = at.site == Site::Pattern && self.held.keys().any(|head| head.layer == at.layer);
        if wanted { Interest::Rows(self.rows.clone()) } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let Ok([_, queries, keys]) = value.sizes_of(["head", "query", "key"]) else { return };
        for (head, held) in self.held.iter_mut().filter(|(head, _)| head.layer == at.layer) {
            let Some(weights) = value.values().get(head.head * queries * keys..(head.head + 1) * queries * keys) else { continue };
            for (row, weights) in (at.first_row..).zip(weights.chunks_exact(keys.max(1))) {
                if self.rows.contains(&row) {
                    held.push((row, weights[..keys.min(row + 1)].to_vec()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rows_and_heads_asked_for_are_kept_without_the_future() {
        let head = HeadRef { layer: 0, head: 1 };
        let mut rows = AttentionRows::new(1..2, &[head]);
        let values = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.0, 0.0, 0.25, 0.75, 0.0];
        let at = At { layer: 0, site: Site::Pattern, first_row: 0 };
        rows.see(at, View::new(Site::Pattern.axes(), &[2, 2, 3], &values).expect("sizes match"));
        assert_eq!(rows.finish()[&head], [(1, vec![0.25, 0.75])]);
    }
}
