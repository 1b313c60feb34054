//! A small client of the Hugging Face hub: fetches what a model needs into the cache that all Hugging Face tools share.
//!
//! - [`HubSettings`]: where the hub is and who asks, as the environment variables of the hub say it
//! - [`Hub::pull`]: lists a repository, chooses the needed files, fetches them resumably, checks them, and links them into a snapshot
//! - [`Watch`]: who is told of the progress, and may interrupt
//! - [`HubError`]: what went wrong, with a remedy
//!
//! Invariants: nothing a server says is believed. A file appears in the cache whole and checked or not at all; a name from a server
//! never leads out of the cache; the token goes to the endpoint's own host and nowhere else. Nothing is fetched unless [`Hub::pull`]
//! is called.

mod digest;
mod error;
mod fetch;
mod listing;
mod pull;
mod selection;
mod settings;
mod store;
mod watch;
mod web;

pub use error::HubError;
pub use pull::{Hub, Pulled, PulledFile};
pub use settings::{HubSettings, Patience, Token};
pub use watch::Watch;
