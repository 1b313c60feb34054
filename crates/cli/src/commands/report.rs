//! `report`: the reports of a finished run, made again from its record.

use glassbox_record::RunReader;
use glassbox_report::{Lang, Run};

use crate::args::Report;
use crate::exit::{Exit, Failure};
use crate::{Outcome, terminal};

pub(crate) fn run(command: &Report) -> Outcome {
    let lang: Lang = command.lang.parse().map_err(Failure::usage)?;
    let reader = RunReader::open(&command.run).map_err(Failure::usage)?;
    let run = Run::load(&reader).map_err(Failure::usage)?;
    for path in run.write_reports(&command.run, lang).map_err(Failure::internal)? {
        terminal::remark(&format!("wrote {}", path.display()));
    }
    terminal::print(&run.terminal_summary(lang, terminal::width()))?;
    Ok(Exit::Success)
}
