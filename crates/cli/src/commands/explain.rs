//! `explain`: the flat forward pass of one model.

use crate::args::ModelChoice;
use crate::exit::Exit;
use crate::opened::Opened;
use crate::{Outcome, terminal};

pub(crate) fn run(choice: &ModelChoice) -> Outcome {
    let opened = Opened::open(choice)?;
    terminal::print(&glassbox_model::explain(opened.model.blueprint()))?;
    Ok(Exit::Success)
}
