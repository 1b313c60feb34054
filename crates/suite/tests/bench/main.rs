//! The bench on subjects whose truth is known, and the files that people write wrongly.

mod faults;
mod files;
mod killed;
mod mutations;
mod recorded;
mod scripted;
