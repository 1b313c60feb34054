//! What the crate promises, checked from outside: against SciPy and statsmodels, and by simulation against known truth.

mod coverage;
mod decay;
mod facts;
mod reference;
mod simulation;
mod size;
