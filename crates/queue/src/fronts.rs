//! What this process knows of the front of each queue in use: its low water, and the newest version it was told.
//!
//! Rows that were taken or deleted leave traces until checkpoints are merged: behind the messages that are visible now
//! lie those of messages long gone, and ahead those of messages that were deleted while they were invisible. A get reads
//! from the low water up to now, and so walks over few of them. What always holds: a low water that is kept was told by
//! an operation that is durable, so no message lies before it; it never falls; losing it costs one longer walk. Now is
//! never before a version that somebody was told: a message that was put is there to be got, whatever the clock does.

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
    kept: RwLock<BTreeMap<MessageStore, KeptFront>>,
}

#[derive(Debug, Default)]
struct KeptFront {
    low_water: AtomicU64,
    newest: AtomicU64,
}

/// What is known of one front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownFront {
    /// No message is visible before it; 0 if that is not known.
    pub(crate) low_water: Ticks,
    /// The newest version that somebody was told.
    pub(crate) newest: Ticks,
}

impl Fronts {
    /// The queue's, if it is known.
    pub(crate) fn find(&self, store: &MessageStore) -> Option<KnownFront> {
        let kept = self.kept.read();
        let front = kept.get(store)?;
        Some(KnownFront {
            low_water: Ticks(front.low_water.load(Ordering::Relaxed)),
            newest: Ticks(front.newest.load(Ordering::Relaxed)),
        })
    }

    /// Notes a low water that is durable.
    pub(crate) fn raise_low_water(&self, store: &MessageStore, low_water: Ticks) {
        self.with(store, |front| front.low_water.fetch_max(low_water.0, Ordering::Relaxed));
    }

    /// Notes a version that somebody is told.
    pub(crate) fn raise_newest(&self, store: &MessageStore, version: Ticks) {
        self.with(store, |front| front.newest.fetch_max(version.0, Ordering::Relaxed));
    }

    fn with(&self, store: &MessageStore, change: impl Fn(&KeptFront) -> u64) {
        if let Some(front) = self.kept.read().get(store) {
            change(front);
            return;
        }
        let mut kept = self.kept.write();
        if kept.len() == QUEUES_KEPT_MAX {
            kept.clear();
        }
        change(kept.entry(store.clone()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_only_rise_and_few_are_kept() {
        let fronts = Fronts::default();
        let store = |messages_id| MessageStore { account: "acct".to_owned(), messages_id };
        assert_eq!(fronts.find(&store(1)), None);
        fronts.raise_low_water(&store(1), Ticks(5));
        fronts.raise_low_water(&store(1), Ticks(3));
        fronts.raise_newest(&store(1), Ticks(7));
        let known = KnownFront { low_water: Ticks(5), newest: Ticks(7) };
        assert_eq!((fronts.find(&store(1)), fronts.find(&store(2))), (Some(known), None));
        for id in 0..2 * QUEUES_KEPT_MAX as u64 {
            fronts.raise_low_water(&store(id), Ticks(1));
        }
        assert!(fronts.kept.read().len() <= QUEUES_KEPT_MAX);
    }
}
