//! Reports from records that are built by hand: what a reader must find, and what must never get in.

mod build;
mod hostile;
mod inspection;
mod page;
mod run;
