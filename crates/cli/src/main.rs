//! The binary `glassbox`: commands, no decisions.

fn main() {}
