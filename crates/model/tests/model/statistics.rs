//! `attn.stats`, which the kernel sums inside its tiles, against `attn.pattern`.

use std::ops::Range;

use glassbox_anatomy::{At, Interest, Observer, Site};
use glassbox_mechanisms::attention::{Asked, RowStatistics, textbook};
use glassbox_mechanisms::{Kernels, Workers};
use glassbox_model::Rows;
use glassbox_tensor::View;

use crate::tiny::{LIMIT, all, open};

/// Keeps weights and statistics.
struct Both {
    spans: Vec<Range<usize>>,
    patterns: Vec<(At, Vec<usize>, Vec<f32>)>,
    statistics: Vec<(At, Vec<usize>, Vec<f32>)>,
}

impl Observer for Both {
    fn interest(&self, at: At) -> Interest {
        if matches!(at.site, Site::Pattern | Site::Statistics) { Interest::See } else { Interest::Nothing }
    }

    fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let kept = if at.site == Site::Pattern { &mut self.patterns } else { &mut self.statistics };
        kept.push((at, value.sizes().to_vec(), value.values().to_vec()));
    }
}

#[test]
fn statistics_of_every_family_are_those_of_its_weights() {
    let ids: Vec<u32> = (0..70).map(|position| position * 7 % 30).collect();
    for (index, name) in all().into_iter().enumerate() {
        let model = open(&name, Kernels::Fast);
        let tokens = ids.len().min(model.blueprint().context);
        let mut cache = model.new_cache(tokens, LIMIT).expect("tiny");
        let mut both = Both { spans: vec![0..5, 20..66], patterns: Vec::new(), statistics: Vec::new() };
        let workers = Workers::new(1);
        // Every other family begins with a prefix, whose rows see keys after themselves.
        let (first, rest) = ids[..tokens].split_at(tokens.min(50));
        let prefix = if index % 2 == 0 { 0 } else { 9 };
        model.forward_with_prefix(first, prefix, &mut cache, Rows::None, &workers, &mut both).expect("sound ids");
        if !rest.is_empty() {
            model.forward_observed(rest, &mut cache, Rows::None, &workers, &mut both).expect("sound ids");
        }
        assert_eq!(both.patterns.len(), both.statistics.len());
        for ((at, sizes, weights), (beside, of, told)) in both.patterns.iter().zip(&both.statistics) {
            let (heads, queries, keys, width) = (sizes[0], sizes[1], sizes[2], of[2]);
            assert_eq!((at.layer, at.first_row, heads, queries), (beside.layer, beside.first_row, of[1], of[0]), "{name}");
            for (head, query) in (0..heads).flat_map(|head| (0..queries).map(move |query| (head, query))) {
                let row = &weights[(head * queries + query) * keys..][..keys];
                let row: Vec<f64> = row.iter().map(|weight| f64::from(*weight)).collect();
                let wanted = textbook::statistics(&row, at.first_row + query, &Asked { spans: &both.spans });
                let found = &told[(query * heads + head) * width..][..width];
                assert!(RowStatistics::of(found).is_some_and(|row| row.log_sum_exp.is_finite()
                    && row.spans.len() == 2
                    && row.visible().contains(&(at.first_row + query))));
                // Weights are rounded to f32 once they are divided; a sum of them moves by some ε, a distance by as many tokens as there are.
                for (found, wanted) in found[3..].iter().zip(&wanted) {
                    let bound = 64.0 * f64::from(f32::EPSILON) * (1.0 + wanted.abs().max(1.0) * (keys as f64).sqrt());
                    assert!(
                        (f64::from(*found) - wanted).abs() <= bound,
                        "{name}, {at}, head {head}, query {query}: {found}, wanted {wanted}"
                    );
                }
            }
        }
    }
}
