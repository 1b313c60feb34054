//! `completions`: a completion script for a shell.

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::Exit;
use crate::{Outcome, terminal};

pub(crate) fn run(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "glassbox", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
