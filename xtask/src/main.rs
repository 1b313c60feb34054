//! Automation of the project: `cargo run -p xtask -- tidy` checks the rules of ARCHITECTURE.md and STYLE.md that a compiler does not.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for developers that reports to the terminal")]

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let faults = tidy::check(root);
            for fault in &faults {
                eprintln!("tidy: {fault}");
            }
            println!("tidy: {} rules broken", faults.len());
            if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}
