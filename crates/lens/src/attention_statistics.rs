use std::ops::Range;

use glassbox_anatomy::{Asks, At, Interest, Observer, Site};
use glassbox_mechanisms::attention::{Layout, RowStatistics};
use glassbox_tensor::View;
use serde::Serialize;

/// What one head did with its attention, averaged over the rows watched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadStatistics {
    /// Layer, counted from 0.
    pub layer: usize,
    /// Query head, counted from 0.
    pub head: usize,
    /// Share of the attention that each span got, in the order of the spans; 0 to 1.
    pub span_mass: Vec<f64>,
    /// Shannon entropy of the weights in nats.
    pub entropy_nats: f64,
    /// Entropy as a share of `ln(visible keys)`: 0 is one key, 1 is uniform. Rows that see one key have no choice, and so no part in this
    /// mean; none where there is no other row.
    pub normalised_entropy: Option<f64>,
    /// Effective number of keys, `1 / Σ p²`.
    pub effective_support: f64,
    /// Mean distance from query to key in tokens, weighted by attention.
    pub mean_distance_tokens: f64,
    /// Share of the attention that the first token of the sequence got.
    pub sink_mass: f64,
}

/// Watches `attn.stats` for some rows and keeps, per layer and head, where their attention went; no weights are held at any length.
///
/// With weights `p_j` of one row over keys `j ≤ i`: mass of a span `S` is `Σ_{j∈S} p_j`, entropy `-Σ p_j ln p_j`
/// (`0 ln 0 = 0`), effective support `1/Σ p_j²`, mean distance `Σ p_j |i - j|`. All are averaged over the rows.
pub struct AttentionStatistics {
    rows: Range<usize>,
    spans: Vec<Range<usize>>,
    heads: Vec<Sums>,
}

/// What one head adds up to so far.
struct Sums {
    /// Sums where the statistics have means.
    sums: HeadStatistics,
    /// Rows added.
    rows: usize,
    /// Of those, the ones that see more than one key, and the sum of their normalised entropies.
    rows_with_choice: usize,
    normalised_entropy: f64,
}

impl AttentionStatistics {
    /// Watches the query rows `rows`; `spans` are token ranges, both in absolute positions.
    #[must_use]
    pub fn new(rows: Range<usize>, spans: Vec<Range<usize>>) -> Self {
        Self { rows, spans, heads: Vec::new() }
    }

    /// The means, by layer and head. Empty where no watched row was met.
    #[must_use]
    pub fn finish(self) -> Vec<HeadStatistics> {
        self.heads.into_iter().filter(|head| head.rows > 0).map(Sums::means).collect()
    }

    fn entry(&mut self, layer: usize, head: usize) -> &mut Sums {
        let found = self.heads.iter().position(|held| held.sums.layer == layer && held.sums.head == head);
        let index = found.unwrap_or_else(|| {
            self.heads.push(Sums::zero(layer, head, self.spans.len()));
            self.heads.len() - 1
        });
        &mut self.heads[index]
    }
}

/// The keys that query `row` can see: all up to itself, or the last `window` of them.
#[must_use]
pub fn visible_keys(row: usize, window: Option<usize>) -> Range<usize> {
    window.map_or(0, |window| (row + 1).saturating_sub(window))..row + 1
}

/// The mass that `span` gets when every key of `visible` gets the same: the baseline of span mass.
#[must_use]
pub fn uniform_mass(span: &Range<usize>, visible: &Range<usize>) -> f64 {
    let seen = span.end.min(visible.end).saturating_sub(span.start.max(visible.start));
    seen as f64 / visible.len().max(1) as f64
}

impl Sums {
    fn zero(layer: usize, head: usize, spans: usize) -> Self {
        let sums = HeadStatistics {
            layer,
            head,
            span_mass: vec![0.0; spans],
            entropy_nats: 0.0,
            normalised_entropy: None,
            effective_support: 0.0,
            mean_distance_tokens: 0.0,
            sink_mass: 0.0,
        };
        Self { sums, rows: 0, rows_with_choice: 0, normalised_entropy: 0.0 }
    }

    fn add_row(&mut self, row: &RowStatistics<'_>) {
        self.rows += 1;
        self.sums.span_mass.iter_mut().zip(row.spans).for_each(|(sum, mass)| *sum += f64::from(*mass));
        if let Some(normalised) = row.normalised_entropy() {
            self.rows_with_choice += 1;
            self.normalised_entropy += normalised;
        }
        self.sums.entropy_nats += f64::from(row.entropy_nats);
        self.sums.effective_support += f64::from(row.effective_support);
        self.sums.mean_distance_tokens += f64::from(row.mean_distance_tokens);
        self.sums.sink_mass += f64::from(row.sink_mass);
    }

    fn means(self) -> HeadStatistics {
        let (mut means, rows) = (self.sums, self.rows as f64);
        for mass in &mut means.span_mass {
            *mass /= rows;
        }
        for value in [&mut means.entropy_nats, &mut means.effective_support, &mut means.mean_distance_tokens, &mut means.sink_mass] {
            *value /= rows;
        }
        means.normalised_entropy = (self.rows_with_choice > 0).then(|| self.normalised_entropy / self.rows_with_choice as f64);
        means
    }
}

impl Observer for AttentionStatistics {
    fn interest(&self, at: At) -> Interest {
        if at.site == Site::Statistics { Interest::Rows(self.rows.clone()) } else { Interest::Nothing }
    }

    fn asks(&self) -> Asks<'_> {
        Asks { spans: &self.spans, ..Asks::default() }
    }

    fn see(&mut self, at: At, value: View<'_>) {
        let Ok([tokens, heads, width]) = value.sizes_of(["token", "head", "statistic"]) else { return };
        let (rows, layout) = (self.rows.clone(), Layout { spans: self.spans.len(), ..Layout::default() });
        for token in (0..tokens).filter(|token| rows.contains(&(at.first_row + token))) {
            for head in 0..heads {
                let row = &value.values()[(token * heads + head) * width..][..width];
                if let Some(row) = RowStatistics::of(row, layout) {
                    self.entry(at.layer, head).add_row(&row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use glassbox_mechanisms::attention::{Asked, textbook};

    use super::*;

    /// Rows of one head, each with the keys that it sees, as `attn.stats` shows them.
    fn watch(first_row: usize, rows: &[(&[f32], Range<usize>)], mut observer: AttentionStatistics) -> HeadStatistics {
        let mut values = Vec::new();
        for (row, (weights, seen)) in (first_row..).zip(rows) {
            let weights: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
            values.extend([0.0, seen.start as f32, seen.len() as f32]);
            let asked = Asked { spans: observer.asks().spans, ..Asked::default() };
            values.extend(textbook::statistics(&weights, 0, row, &asked).iter().map(|value| *value as f32));
        }
        let at = At { layer: 2, site: Site::Statistics, first_row };
        let sizes = [rows.len(), 1, values.len() / rows.len()];
        observer.see(at, View::new(Site::Statistics.axes(), &sizes, &values).expect("sizes match"));
        observer.finish().remove(0)
    }

    fn statistics_of(weights: &[f32], row: usize, spans: Vec<Range<usize>>) -> HeadStatistics {
        watch(row, &[(weights, 0..row + 1)], AttentionStatistics::new(row..row + 1, spans))
    }

    /// An entropy is rounded to `f32` once.
    fn is_uniform(head: &HeadStatistics) -> bool {
        head.normalised_entropy.is_some_and(|entropy| (entropy - 1.0).abs() < f64::from(f32::EPSILON))
    }

    #[test]
    fn a_row_on_one_key_has_no_entropy_and_support_one() {
        let head = statistics_of(&[0.0, 1.0, 0.0, 0.0], 3, vec![0..1, 1..3]);
        assert_eq!(head.span_mass, [0.0, 1.0]);
        assert_eq!((head.entropy_nats, head.normalised_entropy, head.effective_support), (0.0, Some(0.0), 1.0));
        assert_eq!(head.mean_distance_tokens, 2.0);
    }

    #[test]
    fn a_uniform_row_has_entropy_one_and_the_mass_of_the_baseline() {
        let head = statistics_of(&[0.25; 4], 3, vec![0..3, 3..4]);
        assert!(is_uniform(&head), "{head:?}");
        assert_eq!(head.span_mass, [uniform_mass(&(0..3), &(0..4)), uniform_mass(&(3..4), &(0..4))]);
        assert_eq!(head.effective_support, 4.0);
        assert_eq!(head.sink_mass, 0.25);
    }

    #[test]
    fn a_row_that_sees_one_key_has_no_part_in_the_normalised_entropy() {
        assert_eq!(statistics_of(&[1.0], 0, Vec::new()).normalised_entropy, None);
        let head = watch(0, &[(&[1.0, 0.0], 0..1), (&[0.5, 0.5], 0..2)], AttentionStatistics::new(0..2, Vec::new()));
        assert!(is_uniform(&head), "the second row is uniform, and the first says nothing: {head:?}");
        assert_eq!(head.sink_mass, 0.75, "every other mean is over both rows");
    }

    #[test]
    fn the_baseline_counts_only_keys_that_the_row_can_see() {
        assert_eq!(uniform_mass(&(2..6), &visible_keys(3, None)), 0.5);
        assert_eq!(uniform_mass(&(5..6), &visible_keys(3, None)), 0.0);
        assert_eq!(visible_keys(9, Some(4)), 6..10);
        assert_eq!(uniform_mass(&(0..7), &visible_keys(9, Some(4))), 0.25);
    }

    #[test]
    fn a_row_is_held_against_the_keys_that_it_can_see() {
        let of_window = watch(3, &[(&[0.0, 0.0, 0.5, 0.5], 2..4)], AttentionStatistics::new(3..4, Vec::new()));
        assert!(is_uniform(&of_window), "{of_window:?}");
        let of_encoder = watch(0, &[(&[0.25; 4], 0..4)], AttentionStatistics::new(0..1, Vec::new()));
        assert!(is_uniform(&of_encoder), "{of_encoder:?}");
        assert_eq!(of_encoder.mean_distance_tokens, 1.5, "tokens after the row are as far as tokens before it");
    }

    #[test]
    fn rows_that_nobody_asked_for_are_not_averaged() {
        let observer = AttentionStatistics::new(1..2, std::iter::once(0..1).collect());
        let head = watch(0, &[(&[1.0, 0.0], 0..1), (&[0.25, 0.75], 0..2)], observer);
        assert_eq!(head.span_mass, [0.25]);
    }
}
