//! Observers: capture, attention maps, entropy, mass per span, next-token tables.
