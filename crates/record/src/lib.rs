//! Events and the run record: append-only, versioned, resumable.
