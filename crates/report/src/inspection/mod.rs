//! Reports of one watched forward pass.

pub(crate) mod page;
pub(crate) mod terminal;

/// Whether no row of the prompt had a choice of keys, as with a prompt of one token.
fn nothing_to_measure(inspection: &glassbox_record::Inspection) -> bool {
    inspection.heads.iter().all(|head| head.normalised_entropy.is_none())
}
