//! `schema`: the JSON schema of a suite file, for editors.

use crate::exit::Exit;
use crate::{Outcome, terminal};

pub(crate) fn run() -> Outcome {
    terminal::print_json(&glassbox_suite::json_schema())?;
    Ok(Exit::Success)
}
