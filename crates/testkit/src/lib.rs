//! For tests only: golden walker, derived tolerances, generators, planted bugs.
