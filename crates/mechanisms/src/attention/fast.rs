use std::ops::Range;

use super::{Queries, Rule, textbook};
use crate::Workers;
use crate::cache::LayerView;

pub(super) fn attend(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, out: &mut [f32], sums: Option<&mut [f32]>, _: &Workers) {
    textbook::attend_rounded(queries, layer, rule, out, sums);
}

pub(super) fn scores(queries: &Queries<'_>, layer: &LayerView<'_>, rule: &Rule, tokens: Range<usize>) -> Vec<f32> {
    textbook::scores_rounded(queries, layer, rule, tokens)
}
