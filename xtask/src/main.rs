//! Automation of the project: `cargo run -p xtask -- tidy` checks the architecture rules.

fn main() {}
