//! The binary as a user meets it: what is typed, what comes back, with which exit code, and what lies on the disk afterwards.

mod asking;
mod benching;
mod desk;
mod embedding;
mod generating;
mod helping;
mod inspecting;
mod layering;
mod listing;
mod pulling;
mod quantizing;
mod refusing;
mod scoring;
mod serving;
mod testing;
mod translating;
mod weighing;
mod writing;
