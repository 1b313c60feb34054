//! The bench: YAML to plan to run to verdicts; one file per check.
