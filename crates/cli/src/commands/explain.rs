//! `explain`: the flat forward pass of one model.

use crate::args::Explain;
use crate::exit::Exit;
use crate::opened::Opened;
use crate::{Outcome, terminal};

pub(crate) fn run(command: &Explain) -> Outcome {
    let opened = Opened::open(&command.model.or_named(command.named.as_deref()))?;
    terminal::print(&glassbox_model::explain(opened.blueprint()))?;
    Ok(Exit::Success)
}
