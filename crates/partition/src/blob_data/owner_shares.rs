//! How much of a bound on bytes each owner may hold: three quarters, so that the rest is there for others.
//!
//! What always holds: what waits for its owner's share is not among those that wait for the bound; an owner
//! that holds nothing and waits for nothing is not remembered.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// A bound and its owners' shares.
pub(super) struct OwnerShares {
    all: Semaphore,
    share: u32,
    owners: Mutex<BTreeMap<Bytes, Arc<Semaphore>>>,
}

/// A part of the bound, until dropped.
pub(crate) struct Admitted<'a> {
    shares: &'a OwnerShares,
    owner: Bytes,
    of_owner: Option<OwnedSemaphorePermit>,
    _of_all: Option<SemaphorePermit<'a>>,
}

impl OwnerShares {
    pub(super) fn new(permits_max: u32) -> Self {
        let share = permits_max - permits_max / 4;
        OwnerShares { all: Semaphore::new(permits_max as usize), share, owners: Mutex::default() }
    }

    /// Waits for a part; of more than a share there is a share. `None`: the bound is closed.
    pub(super) async fn admit(&self, owner: Bytes, permits: u32) -> Option<Admitted<'_>> {
        let permits = permits.min(self.share);
        let of_owner = {
            let mut owners = self.owners.lock();
            let new = || Arc::new(Semaphore::new(self.share as usize));
            owners.entry(owner.clone()).or_insert_with(new).clone()
        };
        // From here on its drop forgets the owner.
        let mut admitted = Admitted { shares: self, owner, of_owner: None, _of_all: None };
        admitted.of_owner = Some(of_owner.acquire_many_owned(permits).await.ok()?);
        admitted._of_all = Some(self.all.acquire_many(permits).await.ok()?);
        Some(admitted)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.of_owner = None;
        let mut owners = self.shares.owners.lock();
        // Others that hold or wait for a part have a count of it.
        if owners.get(&self.owner).is_some_and(|of_owner| Arc::strong_count(of_owner) == 1) {
            owners.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn owner(name: &'static str) -> Bytes {
        Bytes::from_static(name.as_bytes())
    }

    #[test]
    fn an_owner_has_its_share_and_others_have_theirs() {
        let shares = OwnerShares::new(8);
        let first = shares.admit(owner("a"), 100).now_or_never().flatten();
        assert!(first.is_some(), "a share at most");
        {
            let mut second = std::pin::pin!(shares.admit(owner("a"), 1));
            assert!(second.as_mut().now_or_never().is_none(), "it waits for its own");
            assert!(shares.admit(owner("b"), 2).now_or_never().is_some());
            drop(first);
            assert!(second.now_or_never().flatten().is_some());
        }
        assert!(shares.owners.lock().is_empty(), "owners that hold nothing are forgotten");
        let mut held = Vec::new();
        for name in ["a", "b"] {
            let take = |permits| shares.admit(owner(name), permits).now_or_never().flatten();
            held.push(take(4));
            assert!(held.iter().all(Option::is_some));
        }
        // Given up while it waits for what all share.
        assert!(shares.admit(owner("c"), 1).now_or_never().is_none());
        drop(held);
        assert!(shares.owners.lock().is_empty());
        assert!(shares.admit(owner("c"), 6).now_or_never().is_some());
    }
}
