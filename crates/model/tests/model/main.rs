//! The model as its users meet it, on the tiny models of `fixtures/tiny`.

mod alibi;
mod edited;
mod encoders;
mod explained;
mod faults;
mod golden;
mod mutations;
mod permuted;
mod planted;
mod prefix;
mod published;
mod read_out;
mod refusals;
mod same_bits;
mod sentences;
mod statistics;
mod stretched;
mod tiny;
mod twins;
mod written;
