//! What each row does with its attention, as numbers: what can be asked, and how the answer of a row is read.

use std::ops::Range;

use crate::MechanismError;

/// Classes of distance between query and key: 0, 1, 2 to 3, 4 to 7, and so on by powers of two; the last holds 16384 and more.
pub const DISTANCE_CLASSES: usize = 16;

/// The class of a distance in tokens.
#[must_use]
pub fn distance_class(distance: usize) -> usize {
    ((usize::BITS - distance.leading_zeros()) as usize).min(DISTANCE_CLASSES - 1)
}

/// What to learn of every row beside what is always learned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Spans of absolute key positions, whose shares are wanted; they may overlap.
    pub spans: &'a [Range<usize>],
    /// How many of the keys with the largest weights.
    pub top_keys: usize,
    /// Numbers of keys whose sums, weighted by the attention, are wanted: each `[head, key]`, with one key for each stored position. The norm of what a
    /// head makes of the value of a key gives value-weighted mass; its product with a direction gives the part in a logit.
    pub measures: &'a [&'a [f32]],
}

impl Asked<'_> {
    /// The numbers of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        ALWAYS + DISTANCE_CLASSES + self.spans.len() + 2 * self.top_keys + self.measures.len() * (1 + self.spans.len() + self.top_keys)
    }

    /// How the answer is laid out.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout { spans: self.spans.len(), top_keys: self.top_keys }
    }

    pub(super) fn check(&self, heads: usize, keys: usize) -> Result<(), MechanismError> {
        self.measures.iter().try_for_each(|measure| super::length("measure", "head x key", heads * keys, measure.len()))
    }
}

/// How a row of statistics is laid out after the numbers that are always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Spans that were asked for.
    pub spans: usize,
    /// Top keys that were asked for.
    pub top_keys: usize,
}

/// Statistics of all rows of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    heads: usize,
    width: usize,
    layout: Layout,
    /// `[token, head, width]`, as [`RowStatistics::of`] reads them.
    values: Vec<f32>,
}

/// Those of one row, with weights `p_j` over the keys `j` that its query at `i` sees. A row that sees nothing has the log-sum-exp minus infinity, no top
/// keys, and else zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowStatistics<'a> {
    /// `ln Σ exp(score)`.
    pub log_sum_exp: f32,
    /// Position of the first key that the query sees.
    pub first_key: f32,
    /// How many keys it sees, which lie side by side unless an edit hides some; exact below 2^24.
    pub visible_keys: f32,
    /// `-Σ p ln p`, nats: `ln l - Σ exp(s - m) (s - m) / l`, with `m` the largest score and `l = Σ exp(s - m)`.
    pub entropy_nats: f32,
    /// `1 / Σ p²`: as many keys with equal weights are as concentrated.
    pub effective_support: f32,
    /// `Σ p |i - j|`.
    pub mean_distance_tokens: f32,
    /// `p_0`: the share of the first token of all.
    pub sink_mass: f32,
    /// Share of each class of distance, [`DISTANCE_CLASSES`] of them.
    pub distances: &'a [f32],
    /// Share of each span that was asked for.
    pub spans: &'a [f32],
    /// Positions of the keys with the largest weights, largest first, of equal ones the earlier first; -1 where fewer are seen.
    pub top_keys: &'a [f32],
    /// Their weights.
    pub top_weights: &'a [f32],
    measures: &'a [f32],
}

/// Sums of `p_j g_j` for one measure `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured<'a> {
    /// Over all keys.
    pub total: f32,
    /// Over each span that was asked for.
    pub spans: &'a [f32],
    /// `p_j g_j` of each top key.
    pub top_keys: &'a [f32],
}

const ALWAYS: usize = 7;

impl Statistics {
    pub(super) fn new(heads: usize, tokens: usize, asked: &Asked<'_>) -> Self {
        let width = asked.width();
        Self { heads, width, layout: asked.layout(), values: vec![0.0; heads * tokens * width] }
    }

    /// Numbers of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// `[token, head, width]`: rows as [`RowStatistics::of`] reads them.
    #[must_use]
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Those of a head and a token, counted from the first of the call.
    #[must_use]
    pub fn row(&self, head: usize, token: usize) -> RowStatistics<'_> {
        let row = &self.values[(token * self.heads + head) * self.width..][..self.width];
        RowStatistics::of(row, self.layout).expect("a row is as wide as a row")
    }

    pub(super) fn row_mut(&mut self, head: usize, token: usize) -> &mut [f32] {
        &mut self.values[(token * self.heads + head) * self.width..][..self.width]
    }
}

impl<'a> RowStatistics<'a> {
    /// Reads a row as `attn.stats` shows it; `None` where it is too short to be one. With the default layout what was asked for is passed over.
    #[must_use]
    pub fn of(row: &'a [f32], layout: Layout) -> Option<Self> {
        let (always, rest) = row.split_first_chunk::<ALWAYS>()?;
        let &[log_sum_exp, first_key, visible_keys, entropy_nats, effective_support, mean_distance_tokens, sink_mass] = always;
        let (distances, rest) = rest.split_at_checked(DISTANCE_CLASSES)?;
        let (spans, rest) = rest.split_at_checked(layout.spans)?;
        let (top_keys, rest) = rest.split_at_checked(layout.top_keys)?;
        let (top_weights, measures) = rest.split_at_checked(layout.top_keys)?;
        Some(Self {
            log_sum_exp,
            first_key,
            visible_keys,
            entropy_nats,
            effective_support,
            mean_distance_tokens,
            sink_mass,
            distances,
            spans,
            top_keys,
            top_weights,
            measures,
        })
    }

    /// What was summed for measure `index`; `None` where fewer were asked for.
    #[must_use]
    pub fn measured(&self, index: usize) -> Option<Measured<'a>> {
        let width = 1 + self.spans.len() + self.top_keys.len();
        let (total, rest) = self.measures.get(index * width..(index + 1) * width)?.split_first()?;
        let (spans, top_keys) = rest.split_at(self.spans.len());
        Some(Measured { total: *total, spans, top_keys })
    }

    /// The keys that the query sees, absolute positions, in a pass in which no edit hides any.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are whole numbers from 0 to 2^24")]
    pub fn visible(&self) -> Range<usize> {
        let first = self.first_key as usize;
        first..first + self.visible_keys as usize
    }

    /// Entropy as a share of `ln(visible keys)`: 0 is one key, 1 is uniform. `None` where the query has no choice.
    #[must_use]
    pub fn normalised_entropy(&self) -> Option<f64> {
        (self.visible_keys > 1.0).then(|| f64::from(self.entropy_nats) / f64::from(self.visible_keys).ln())
    }

    /// `exp(entropy)`: as many keys with equal weights have the same entropy.
    #[must_use]
    pub fn keys_of_equal_entropy(&self) -> f64 {
        f64::from(self.entropy_nats).exp()
    }

    /// The share of span `index` over the share of the visible keys that lie in it, which is `span`; `None` where none does. Of a pass
    /// in which no edit hides keys.
    #[must_use]
    pub fn lift(&self, index: usize, span: &Range<usize>) -> Option<f64> {
        let visible = self.visible();
        let seen = span.end.min(visible.end).saturating_sub(span.start.max(visible.start));
        let mass = f64::from(*self.spans.get(index)?);
        (seen > 0).then(|| mass * visible.len() as f64 / seen as f64)
    }
}
