//! `schema`: the JSON schema of a suite file, for editors.

use crate::exit::{Exit, Failure};
use crate::{Outcome, terminal};

pub(crate) fn run() -> Outcome {
    let schema = serde_json::to_string_pretty(&glassbox_suite::json_schema()).map_err(Failure::internal)?;
    terminal::print(&format!("{schema}\n"))?;
    Ok(Exit::Success)
}
