//! The binary `glassbox`: commands, no decisions.

mod args;
mod clock;
mod commands;
mod document;
mod exit;
mod help;
mod not_finite;
mod opened;
mod output;
mod remote;
mod signals;
mod specimen;
mod terminal;

use clap::FromArgMatches;

use crate::args::{Args, Command};
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let lang = std::env::var("GLASSBOX_LANG").ok();
    let matches = help::command(lang.as_deref()).get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match args.command {
        Command::Generate(command) => commands::generate::run(&command),
        Command::Score(command) => commands::score::run(&command),
        Command::Embed(command) => commands::embed::run(&command),
        Command::Inspect(command) => commands::inspect::run(&command),
        Command::Test(command) => commands::test::run(&command),
        Command::Serve(command) => commands::serve::run(&command),
        Command::Demo(command) => commands::demo::run(&command),
        Command::Report(command) => commands::report::run(&command),
        Command::Models(command) => commands::models::run(&command),
        Command::Quantize(command) => commands::quantize::run(&command),
        Command::Bench(command) => commands::bench::run(&command),
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
