//! Claims of free space by work that reclaims more in the end: two such works are never promised the same bytes.

use super::{MARGIN_DIVISOR, Space};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Space that its holder may fill, until it is dropped.
pub struct Claim {
    size_bytes: u64,
    claimed_bytes: Arc<AtomicU64>,
}

impl Claim {
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

impl Space {
    /// Claims space for work that reclaims more in the end: `wanted_bytes` or, with less free, as many as there are
    /// but not fewer than `least_bytes`. A flush always has space besides.
    pub(crate) async fn claim(&self, wanted_bytes: u64, least_bytes: u64) -> Option<Claim> {
        let claim = self.claim_of(wanted_bytes, least_bytes, 0).await;
        if claim.is_some() || self.is_given_up() || !self.condition.is_low.load(Ordering::Relaxed) {
            return claim;
        }
        // The reserve is kept for this, if it is enough.
        let given_bytes = self.sizes.whole_bytes.saturating_sub(self.sizes.start_bytes);
        drop(self.claim_of(wanted_bytes, least_bytes, given_bytes).await?);
        self.give_up(self.given_up()).await;
        self.claim_of(wanted_bytes, least_bytes, 0).await
    }

    /// Claims a part of what is free and of `given_bytes` besides.
    async fn claim_of(&self, wanted_bytes: u64, least_bytes: u64, given_bytes: u64) -> Option<Claim> {
        let free_bytes = match self.sizes.whole_bytes {
            0 => u64::MAX,
            _ => self.disk.free_bytes().await.unwrap_or(0).saturating_add(given_bytes),
        };
        // While space isn't scarce the claimed work must not have the reserve given up.
        let kept_bytes = match self.is_scarce() || !self.is_named() {
            true => self.sizes.flush_bytes,
            false => self.sizes.whole_bytes / MARGIN_DIVISOR,
        };
        let claimed = |claimed_bytes| {
            let left_bytes = free_bytes.saturating_sub(claimed_bytes).saturating_sub(kept_bytes);
            let size_bytes = wanted_bytes.min(left_bytes);
            (size_bytes >= least_bytes).then_some(size_bytes)
        };
        let add = |claimed_bytes: u64| Some(claimed_bytes.saturating_add(claimed(claimed_bytes)?));
        let before = self.claimed_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(Claim { size_bytes: claimed(before)?, claimed_bytes: self.claimed_bytes.clone() })
    }
}
