//! The low waters of the queues in use, in memory.
//!
//! Rows that were taken or deleted leave tombstones until a compaction drops them: those of former messages
//! lie before the visible ones, those of messages that were deleted while invisible lie after them. A get
//! reads from the low water up to now, and so reads over few of them. What always holds: a cached low water
//! comes from a durable operation, so no message lies before it; it never falls; losing it costs one longer
//! read.

use crate::rows::message_store::MessageStore;
use base::Ticks;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Queues in the cache; when one more comes, all are evicted.
const QUEUES_KEPT_MAX: usize = 16 * 1024;

/// A cache of low waters.
#[derive(Debug, Default)]
pub(crate) struct LowWaters {
    low_waters: RwLock<BTreeMap<MessageStore, AtomicU64>>,
}

impl LowWaters {
    /// The queue's low water: no message is visible before it. 0 if it is not known.
    pub(crate) fn get(&self, store: &MessageStore) -> Ticks {
        let known = self.low_waters.read();
        Ticks(known.get(store).map_or(0, |low_water| low_water.load(Ordering::Relaxed)))
    }

    /// Caches a low water that is durable.
    pub(crate) fn raise(&self, store: &MessageStore, to: Ticks) {
        if let Some(low_water) = self.low_waters.read().get(store) {
            low_water.fetch_max(to.0, Ordering::Relaxed);
            return;
        }
        let mut known = self.low_waters.write();
        if known.len() == QUEUES_KEPT_MAX {
            known.clear();
        }
        known.entry(store.clone()).or_default().fetch_max(to.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_waters_only_rise_and_few_are_kept() {
        let low_waters = LowWaters::default();
        let store = |messages_id| MessageStore { account: "acct".to_owned(), messages_id };
        assert_eq!(low_waters.get(&store(1)), Ticks(0));
        low_waters.raise(&store(1), Ticks(5));
        low_waters.raise(&store(1), Ticks(3));
        assert_eq!((low_waters.get(&store(1)), low_waters.get(&store(2))), (Ticks(5), Ticks(0)));
        for id in 0..2 * QUEUES_KEPT_MAX as u64 {
            low_waters.raise(&store(id), Ticks(1));
        }
        assert!(low_waters.low_waters.read().len() <= QUEUES_KEPT_MAX);
    }
}
