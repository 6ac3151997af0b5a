//! Counts and latencies of operations: of one worker since the last look, or of a whole run.
//!
//! What always holds: its size does not grow with the number of operations.

use super::errors::ErrorCounts;
use super::heat::Heat;
use super::key_pattern::KeyWatch;
use super::latency::Latencies;
use crate::workload::operation::{OPERATION_KINDS, OperationKind};
use std::time::Duration;

/// Operations of one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindTally {
    /// Operations that ended well.
    pub(crate) done: u64,
    /// Of these, receives and looks that found no message.
    pub(crate) empty: u64,
    /// Operations that ended with an error.
    pub(crate) failed: u64,
    /// Operations that were given up at the end, without an answer so far.
    pub(crate) unfinished: u64,
    /// Entities, messages or blobs of those that ended well.
    pub(crate) items: u64,
    /// Their bytes, where they are known: of messages and blobs.
    pub(crate) bytes: u64,
    /// Of all that ended, and so far of those that did not.
    pub(crate) latencies: Latencies,
}

impl KindTally {
    pub(crate) fn new() -> Self {
        let latencies = Latencies::new();
        KindTally { done: 0, empty: 0, failed: 0, unfinished: 0, items: 0, bytes: 0, latencies }
    }

    pub(crate) fn add(&mut self, other: &KindTally) {
        self.done += other.done;
        self.empty += other.empty;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        self.items += other.items;
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
    }

    /// To nothing, in the memory that is there.
    fn clear(&mut self) {
        (self.done, self.empty, self.failed) = (0, 0, 0);
        (self.unfinished, self.items, self.bytes) = (0, 0, 0);
        self.latencies.clear();
    }
}

/// All that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// By kind; none was never seen.
    kinds: [Option<Box<KindTally>>; OPERATION_KINDS],
    pub(crate) errors: ErrorCounts,
    pub(crate) keys: KeyWatch,
    pub(crate) heat: Heat,
}

impl Tally {
    /// With so many places whose load is counted apart.
    pub(crate) fn new(places: u64) -> Self {
        Tally {
            kinds: [const { None }; OPERATION_KINDS],
            errors: ErrorCounts::default(),
            keys: KeyWatch::default(),
            heat: Heat::new(places),
        }
    }

    pub(crate) fn of(&mut self, kind: OperationKind) -> &mut KindTally {
        self.kinds[kind.index()].get_or_insert_with(|| Box::new(KindTally::new()))
    }

    /// Kinds that were seen.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (OperationKind, &KindTally)> {
        let kinds = self.kinds.iter().enumerate();
        kinds.filter_map(|(index, kind)| Some((OperationKind::at(index), kind.as_deref()?)))
    }

    /// All kinds together.
    pub(crate) fn all(&self) -> KindTally {
        let mut all = KindTally::new();
        self.kinds().for_each(|(_, kind)| all.add(kind));
        all
    }

    /// Operations that were due and not even begun: they have waited so long at least.
    pub(crate) fn waited(&mut self, kind: OperationKind, latency: Duration, count: u64) {
        let kind = self.of(kind);
        kind.unfinished += count;
        kind.latencies.record_many(latency, count);
    }

    /// Adds what is here to `others`, and is empty then.
    pub(crate) fn move_to(&mut self, others: &mut Tally) {
        for (index, kind) in self.kinds.iter_mut().enumerate() {
            if let Some(kind) = kind {
                others.of(OperationKind::at(index)).add(kind);
                kind.clear();
            }
        }
        others.errors.add(&std::mem::take(&mut self.errors));
        self.keys.move_to(&mut others.keys);
        others.heat.add(&self.heat);
        self.heat.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_is_counted_once() {
        let (mut window, mut all) = (Tally::new(1), Tally::new(1));
        for round in 1..=3 {
            let get = window.of(OperationKind::Get);
            get.done += 1;
            get.items += 10;
            get.latencies.record(Duration::from_millis(round));
            window.heat.count(Some(0), 1);
            window.waited(OperationKind::Query, Duration::from_secs(1), 2);
            window.move_to(&mut all);
        }
        let sum = all.all();
        assert_eq!((sum.done, sum.items, sum.unfinished, sum.latencies.count()), (3, 30, 6, 9));
        assert_eq!(all.kinds().map(|(kind, _)| kind.name()).collect::<Vec<_>>(), ["get", "query"]);
        assert_eq!(window.all().latencies.count(), 0);
        assert_eq!(all.heat.hottest_share(), Some(1.0));
    }
}
