//! Numbers with a storage type and named axes; knows no neural-network word.
//!
//! - [`StorageType`]: how numbers lie in a file (floats and GGUF block types), its block length and bytes
//! - [`Bytes`]: a cheaply cloned, read-only range of memory, owned or mapped from a file
//! - [`Matrix`]: rows of a weight as stored, decoded on demand
//! - [`encode`]: numbers to stored bytes
//! - [`View`], [`ViewMut`]: `f32` values with the names and sizes of their axes
//!
//! Invariant: nothing here allocates more than the bytes it is given justify, and every size is checked once,
//! when a [`Matrix`] is made.

mod blocks;
mod bytes;
mod encode;
mod error;
mod matrix;
mod storage;
mod view;

pub use bytes::{Bytes, Owner};
pub use encode::encode;
pub use error::TensorError;
pub use matrix::Matrix;
pub use storage::StorageType;
pub use view::{View, ViewMut};
