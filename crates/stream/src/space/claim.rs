//! Claims of free space by work that reclaims more in the end. What always holds: no two claims have the same
//! bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Space that its holder may fill, until it is dropped.
pub struct Claim {
    pub(super) size_bytes: u64,
    pub(super) claimed_bytes: Arc<AtomicU64>,
}

impl Claim {
    /// A claim where space has no bound.
    pub(crate) fn unbounded(size_bytes: u64) -> Self {
        Claim { size_bytes, claimed_bytes: Arc::new(AtomicU64::new(size_bytes)) }
    }

    /// Bytes that may be written.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claimed_bytes.fetch_sub(self.size_bytes, Ordering::AcqRel);
    }
}
