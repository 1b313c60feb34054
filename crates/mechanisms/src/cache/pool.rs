use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::MechanismError;

/// The memory that caches share: a page is counted once, however many sequences read it, and given back when the last of them lets it go.
///
/// Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: u64,
    taken: AtomicU64,
}

impl Pool {
    /// A pool from which at most `limit_bytes` can be taken. Nothing is allocated.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self(Arc::new(Account { limit: limit_bytes, taken: AtomicU64::new(0) }))
    }

    /// Most bytes that can be taken.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes taken now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Whether both are the same pool.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether `wanted` bytes more could be taken.
    pub(super) fn room_for(&self, wanted: u64) -> Result<(), MechanismError> {
        let (taken, limit) = (self.bytes(), self.limit());
        match taken.checked_add(wanted) {
            Some(total) if total <= limit => Ok(()),
            _ => Err(MechanismError::PoolFull { wanted, taken, limit }),
        }
    }

    /// Takes `bytes`; they are given back when what is returned is dropped.
    pub(super) fn take(&self, bytes: u64) -> Result<Taken, MechanismError> {
        let limit = self.limit();
        let more = |taken: u64| taken.checked_add(bytes).filter(|total| *total <= limit);
        match self.0.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Taken { pool: self.clone(), bytes }),
            Err(taken) => Err(MechanismError::PoolFull { wanted: bytes, taken, limit }),
        }
    }
}

/// Bytes taken from a pool.
#[derive(Debug)]
pub(super) struct Taken {
    pool: Pool,
    bytes: u64,
}

impl Taken {
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.pool.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
