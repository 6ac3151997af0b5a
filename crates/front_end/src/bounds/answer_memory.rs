//! How many bytes of answers wait in memory for their clients: a bound without a queue.
//!
//! What always holds: answers to reads never hold more than the bound, but for one that is larger than all of
//! it; those of one client hold no more than its share; an answer that is sent or dropped frees its memory.

use crate::bounds::peer_shares::{PeerShare, PeerShares};
use crate::fairness::account_bounds::AccountShare;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bound and what is taken of it.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    taken_bytes: AtomicUsize,
    size_bytes_max: usize,
    peers: Arc<PeerShares>,
}

/// The memory of one answer, until dropped.
#[derive(Debug)]
pub(crate) struct TakenMemory {
    memory: Arc<AnswerMemory>,
    size_bytes: usize,
    _of_peer: Option<PeerShare>,
    _of_account: Option<AccountShare>,
}

impl TakenMemory {
    /// The same, within its account's share.
    pub(crate) fn of_account(mut self, share: Option<AccountShare>) -> Self {
        self._of_account = share;
        self
    }
}

impl AnswerMemory {
    /// Nothing taken.
    pub(crate) fn new(size_bytes_max: usize) -> Arc<Self> {
        let peers = PeerShares::of(size_bytes_max);
        Arc::new(AnswerMemory { taken_bytes: AtomicUsize::new(0), size_bytes_max, peers })
    }

    /// Memory for an answer of so many bytes, if there is some left, and some for this client.
    pub(crate) fn take(self: &Arc<Self>, peer: Option<IpAddr>, size_bytes: usize) -> Option<TakenMemory> {
        let of_peer = self.peers.take(peer, size_bytes)?;
        let (before, memory) = self.add(size_bytes, Some(of_peer));
        // Dropping it at once frees the excess.
        (before == 0 || before.saturating_add(size_bytes) <= self.size_bytes_max).then_some(memory)
    }

    /// The same, if there is none left, too: for answers to writes.
    pub(crate) fn take_anyway(self: &Arc<Self>, size_bytes: usize) -> TakenMemory {
        self.add(size_bytes, None).1
    }

    /// What was taken before.
    fn add(self: &Arc<Self>, size_bytes: usize, of_peer: Option<PeerShare>) -> (usize, TakenMemory) {
        let before = self.taken_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        (before, TakenMemory { memory: self.clone(), size_bytes, _of_peer: of_peer, _of_account: None })
    }
}

impl Drop for TakenMemory {
    fn drop(&mut self) {
        self.memory.taken_bytes.fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_memory_is_freed() {
        let memory = AnswerMemory::new(100);
        let first = memory.take(None, 60);
        assert!(first.is_some());
        assert!(memory.take(None, 50).is_none());
        assert!(memory.take(None, 40).is_some(), "a refusal takes nothing");
        let write = memory.take_anyway(50);
        assert!(memory.take(None, 1).is_none());
        drop((first, write));
        assert!(memory.take(None, 200).is_some(), "alone, any is let through");
        assert!(memory.take(None, 100).is_some());
    }

    #[test]
    fn one_client_does_not_hold_all_memory() {
        let memory = AnswerMemory::new(100);
        let peer = |host| Some(IpAddr::from([10, 0, 0, host]));
        let first = memory.take(peer(1), 60);
        assert!(first.is_some() && memory.take(peer(1), 20).is_none());
        assert!(memory.take(peer(2), 20).is_some(), "a refusal takes nothing");
    }
}
