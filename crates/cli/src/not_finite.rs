//! A model whose numbers are no numbers: the place where that begins, and what to suspect.

use glassbox_lens::{FirstNotFinite, HeadStatistics};
use glassbox_model::Rows;

use crate::exit::Failure;
use crate::opened::Opened;

/// Refuses logits [row × vocab], or vectors, of which some are no finite numbers.
pub(crate) fn check(opened: &Opened, ids: &[u32], numbers: &[f32]) -> Result<(), Failure> {
    if numbers.iter().all(|number| number.is_finite()) { Ok(()) } else { Err(failure(opened, ids)) }
}

/// Refuses heads whose attention is no finite number, as where a window hides a broken token from the last row.
pub(crate) fn check_heads(opened: &Opened, ids: &[u32], heads: &[HeadStatistics]) -> Result<(), Failure> {
    let finite = |head: &HeadStatistics| head.entropy_nats.is_finite() && head.sink_mass.is_finite();
    if heads.iter().all(finite) { Ok(()) } else { Err(failure(opened, ids)) }
}

/// Reads `ids` again and names the first site and row that hold a number that is none.
pub(crate) fn failure(opened: &Opened, ids: &[u32]) -> Failure {
    let mut first = FirstNotFinite::default();
    if let Err(failure) = opened.watch(ids, Rows::Last, &mut first) {
        return failure;
    }
    let Some(found) = first.found() else {
        return Failure::usage(anyhow::anyhow!("`{}` computes numbers that are not finite", opened.name));
    };
    let token = ids.get(found.row).map_or_else(String::new, |id| format!(" (`{}`)", opened.token_text(*id).escape_debug()));
    Failure::usage(anyhow::anyhow!(
        "`{}` computes {} at `{}`, row {}{token}; wanted finite numbers at every site",
        opened.name,
        found.value,
        found.at,
        found.row
    ))
    .hint(format!(
        "suspect the weights before `{at}`: a broken download, or a conversion that overflowed; `glassbox inspect … --site '{at}' --out FILE` saves what is there",
        at = found.at
    ))
}
