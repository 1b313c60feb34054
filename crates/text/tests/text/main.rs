//! The crate from outside, on small tokenizers and templates with known answers.

mod continuations;
mod golden;
mod mutations;
mod prompts;
mod refusals;
mod showing;
mod specimen;
mod support;
mod templates;
mod words;
mod written;
