use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A read-only range of memory that clones by reference count: a whole mapped file, a tensor inside it, or owned bytes.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn Owner>,
    range: Range<usize>,
}

/// What lends bytes, and may be told that some are not needed for now.
pub trait Owner: Send + Sync {
    /// All of them.
    fn bytes(&self) -> &[u8];

    /// The bytes `range` are not needed for now: memory that holds a copy of them may be given back. They can be read as before.
    fn release(&self, range: Range<usize>);
}

/// An owner that keeps what it has.
struct Keeping<T>(T);

impl<T: AsRef<[u8]> + Send + Sync> Owner for Keeping<T> {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn release(&self, _: Range<usize>) {}
}

impl Bytes {
    /// Takes ownership of anything that lends bytes: a `Vec<u8>`, a memory map, a `&'static [u8]`.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self::lent_by(Keeping(owner))
    }

    /// As [`Bytes::new`], of an owner that can be told what is not needed for now.
    pub fn lent_by(owner: impl Owner + 'static) -> Self {
        let len = owner.bytes().len();
        Self { owner: Arc::new(owner), range: 0..len }
    }

    /// Says that these bytes are not needed for now, as [`Owner::release`] does.
    pub fn release(&self) {
        self.owner.release(self.range.clone());
    }

    /// The bytes `range` of these, sharing the same memory; `None` where `range` reaches past the end.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        let start = self.range.start + range.start;
        Some(Self { owner: Arc::clone(&self.owner), range: start..start + range.len() })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.owner.bytes()[self.range.clone()]
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}
