//! The bench: a YAML file becomes a plan, the plan a run, the run verdicts.
//!
//! Follow one suite: [`SuiteFile`] (the file) → [`Suite`] (held against its data) → [`Suite::plan`] (every trial, before a model is loaded) →
//! [`Suite::run`] (asks, records, resumes) → `checks/` (metrics, one file a check) → [`judge_run`] (gates and verdicts).
//!
//! Invariants: a [`Subject`](glassbox_subject::Subject) is all that is known of the thing under test; the statistics are those of
//! `glassbox-stats`; the verdicts are a pure function of suite, plan and attempts.

mod attention;
mod built_in;
mod cases;
mod checks;
mod compare;
mod data;
mod design;
mod error;
mod measure;
mod orders;
mod plan;
mod run;
mod schema;
mod suite;
mod verdict;

pub use built_in::{BUILT_IN_SUITES, built_in};
pub use data::{Data, Item};
pub use design::{Design, Distance, DocumentDesign};
pub use error::{Place, SuiteError};
pub use run::{Destination, Ending, Finished, Surroundings};
pub use schema::{
    Accept, Arm, CheckSpec, CiteSpec, DataSource, Defaults, DesignSpec, DistractorSource, DocumentsSpec, FloorSpec, GateSpec, LookSpec,
    MessageSpec, PartSpec, Positions, PromptSet, SUITE_VERSION, SamplingSpec, StatsSpec, SuiteFile, TestKind, TestSpec, TurnSpec,
    json_schema,
};
pub use suite::{Gate, ReadData, Suite, Test};
pub use verdict::judge_run;
