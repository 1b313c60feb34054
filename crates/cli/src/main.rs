//! The binary `glassbox`: commands, no decisions.

mod args;
mod clock;
mod commands;
mod exit;
mod opened;
mod signals;
mod specimen;
mod terminal;

use clap::Parser;

use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let outcome = match args.command {
        Command::Generate(command) => commands::generate::run(&command),
        Command::Inspect(command) => commands::inspect::run(&command),
        Command::Test(command) => commands::test::run(&command),
        Command::Demo(command) => commands::demo::run(&command),
        Command::Report(command) => commands::report::run(&command),
        Command::Models(command) => commands::models::run(&command),
        Command::Explain(command) => commands::explain::run(&command),
        Command::Sites => commands::sites::run(),
        Command::Schema => commands::schema::run(),
        Command::Completions { shell } => commands::completions::run(shell),
    };
    match outcome {
        Ok(exit) => exit.code(),
        Err(failure) => failure.report(),
    }
}

/// What every command gives back.
pub(crate) type Outcome = Result<Exit, exit::Failure>;
