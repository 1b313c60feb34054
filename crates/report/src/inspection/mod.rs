//! Reports of one watched forward pass.

pub(crate) mod page;
pub(crate) mod terminal;
