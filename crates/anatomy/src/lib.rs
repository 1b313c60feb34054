//! The closed table of watchable places of a forward pass, and how to watch them. No arithmetic.
//!
//! The model narrates: between two mechanisms it says "here is `blocks.3.attn.q`", once a [`Site`]. An [`Observer`] is asked
//! first what it wants ([`Interest`]) and then shown it. With [`Off`] the taps compile to nothing.
//!
//! Invariant: a site exists only in [`sites!`](site) and its order is the order of events.

mod at;
mod observer;
mod pattern;
mod site;
mod tap;

pub use at::At;
pub use observer::{Asks, Hides, Interest, Observer, Off};
pub use pattern::{PatternError, SitePattern};
pub use site::{Scope, Site};
pub use tap::Tap;
