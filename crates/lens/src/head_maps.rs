use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_tensor::View;
use serde::Serialize;

/// One attention head of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct HeadRef {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Query head, counted from 0.
    pub head: usize,
}

/// The attention matrix of one head, pooled to cells of `cell × cell` tokens by their maximum.
///
/// The maximum and not the mean, so that a single bright key stays visible in a large map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadMap {
    /// The head.
    pub of: HeadRef,
    /// Tokens along each edge of a cell; 1 where nothing was pooled.
    pub cell: usize,
    /// Cells along each edge.
    pub edge: usize,
    /// Weights in row order, query cell by query cell; 0 to 1.
    pub weights: Vec<f32>,
    /// [key] the exact weights of the last row, not pooled.
    pub last_row: Vec<f32>,
}

/// Watches `attn.pattern` and keeps the maps of chosen heads over the first `tokens` positions.
pub struct HeadMaps {
    tokens: usize,
    maps: Vec<HeadMap>,
}

impl HeadMaps {
    /// Maps of `heads` over `tokens` positions, with at most `max_edge` cells along an edge.
    #[must_use]
    pub fn new(heads: &[HeadRef], tokens: usize, max_edge: usize) -> Self {
        let cell = tokens.div_ceil(max_edge.max(1)).max(1);
        let edge = tokens.div_ceil(cell);
        let empty = |of: &HeadRef| HeadMap { of: *of, cell, edge, weights: vec![0.0; edge * edge], last_row: Vec::new() };
        Self { tokens, maps: heads.iter().map(empty).collect() }
    }

    /// The maps, in the order of the heads asked for.
    #[must_use]
    pub fn finish(self) -> Vec<HeadMap> {
        self.maps
    }
}

impl Observer for HeadMaps {
    fn interest(&self, at: At) -> Interest {
        let wanted = at.site == Site::Pattern && self.maps.iter().any(|map| map.of.layer == at.layer);
        if wanted { Interest::Rows(0..self.tokens) } else { Interest::Nothing }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let Ok([_, queries, keys]) = value.sizes_of(["head", "query", "key"]) else { return };
        for map in self.maps.iter_mut().filter(|map| map.of.layer == at.layer) {
            for query in 0..queries {
                let row = at.first_row + query;
                if row >= self.tokens {
                    break;
                }
                let start = (map.of.head * queries + query) * keys;
                let Some(weights) = value.values().get(start..start + keys.min(self.tokens)) else { break };
                if row + 1 == self.tokens {
                    map.last_row = weights.to_vec();
                }
                let cells = &mut map.weights[row / map.cell * map.edge..][..map.edge];
                for (key, weight) in weights.iter().enumerate() {
                    let cell = &mut cells[key / map.cell];
                    *cell = cell.max(*weight);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_of(max_edge: usize) -> HeadMap {
        let head = HeadRef { layer: 1, head: 1 };
        let mut maps = HeadMaps::new(&[head], 3, max_edge);
        let other = [0.9; 9];
        let mine = [1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 0.125, 0.125, 0.75];
        let values: Vec<f32> = other.iter().chain(&mine).copied().collect();
        let at = At { layer: 1, site: Site::Pattern, first_row: 0 };
        maps.see(at, View::new(Site::Pattern.axes(), &[2, 3, 3], &values).expect("sizes match"));
        maps.finish().remove(0)
    }

    #[test]
    fn a_small_map_holds_the_weights_of_its_own_head() {
        let map = map_of(8);
        assert_eq!((map.cell, map.edge), (1, 3));
        assert_eq!(map.weights, [1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 0.125, 0.125, 0.75]);
    }

    #[test]
    fn pooling_keeps_the_brightest_weight_of_a_cell() {
        let map = map_of(2);
        assert_eq!((map.cell, map.edge), (2, 2));
        assert_eq!(map.weights, [1.0, 0.0, 0.125, 0.75]);
        assert_eq!(map.last_row, [0.125, 0.125, 0.75]);
    }
}
