//! The client against a hub on this machine.

mod damage;
mod desk;
mod layout;
mod refusals;
mod resuming;
