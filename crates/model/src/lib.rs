//! Blueprint, weights and the one forward pass; families as tables.
