//! Sessions with a cache, sampling, stopping, streaming.
