//! `report`: the reports of a finished run, made again from its record.

use glassbox_record::RunReader;
use glassbox_report::Run;

use crate::args::Report;
use crate::commands::test::find_run;
use crate::exit::{Exit, Failure};
use crate::{Outcome, terminal};

pub(crate) fn run(command: &Report) -> Outcome {
    let folder = find_run(&command.runs, &command.run)?;
    let lang = command.language.lang;
    let reader = RunReader::open(&folder).map_err(Failure::usage)?;
    let run = Run::load(&reader).map_err(Failure::usage)?;
    for path in run.write_reports(&folder, lang).map_err(Failure::output)? {
        terminal::remark(&format!("wrote {}", path.display()));
    }
    terminal::print_lines(&run.terminal_summary(lang, terminal::width()))?;
    Ok(Exit::Success)
}
