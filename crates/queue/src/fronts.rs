//! What this process knows of the front of each queue in use: its low water.
//!
//! Rows that were taken or deleted leave traces until checkpoints are merged: behind the messages that are visible now
//! lie those of messages long gone, and ahead those of messages that were deleted while they were invisible. A get reads
//! from the low water up to now, and so walks over few of them. What always holds: a low water that is kept was told by
//! an operation that is durable, so no message lies before it; it never falls; losing it costs one longer walk.

use crate::message_store::MessageStore;
use base::Ticks;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Queues whose fronts are kept at once; then all are forgotten.
const QUEUES_KEPT_MAX: usize = 16 * 1024;

/// The fronts.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    low_waters: RwLock<BTreeMap<MessageStore, AtomicU64>>,
}

impl Fronts {
    /// The queue's low water: no message is visible before it. 0 if it is not known.
    pub(crate) fn low_water(&self, store: &MessageStore) -> Ticks {
        let known = self.low_waters.read();
        Ticks(known.get(store).map_or(0, |low_water| low_water.load(Ordering::Relaxed)))
    }

    /// Notes a low water that is durable.
    pub(crate) fn raise_low_water(&self, store: &MessageStore, to: Ticks) {
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
        let fronts = Fronts::default();
        let store = |messages_id| MessageStore { account: "acct".to_owned(), messages_id };
        assert_eq!(fronts.low_water(&store(1)), Ticks(0));
        fronts.raise_low_water(&store(1), Ticks(5));
        fronts.raise_low_water(&store(1), Ticks(3));
        assert_eq!((fronts.low_water(&store(1)), fronts.low_water(&store(2))), (Ticks(5), Ticks(0)));
        for id in 0..2 * QUEUES_KEPT_MAX as u64 {
            fronts.raise_low_water(&store(id), Ticks(1));
        }
        assert!(fronts.low_waters.read().len() <= QUEUES_KEPT_MAX);
    }
}
