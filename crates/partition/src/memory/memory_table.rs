//! The memory table: a range's recent writes in key order, several versions of a row side by side.
//!
//! A B-tree under a lock that readers share: there is one writer at a time anyway (the serial section), and a
//! thread that holds the lock looks one row up, adds one, or walks a chunk of them. What always holds: a
//! reader that looks at version v sees, for each row, its newest change not after v.

use crate::bloom::key_filter::KeyFilter;
use crate::checkpoint::{HashedKey, key_hash};
use crate::memory::memory_budget::{MemoryBudget, MemoryShare};
use crate::operation::RowVersion;
use bytes::Bytes;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys up to this size stand in the tree's nodes: a comparison is a miss of the processor's cache less than
/// with a key elsewhere. Leaves some 60 bytes to PartitionKey and RowKey.
const INLINE_KEY_SIZE: usize = 88;
/// Bytes of memory that a row costs besides its key and its changes, roughly: its place in a node, and what
/// nodes leave free, which is a third where keys come in any order and nearly half where they rise.
const ROW_OVERHEAD_BYTES: u64 = 152;
/// Bytes of memory that a change costs besides its value, roughly: its version, where its value is, and what
/// the value's allocation leaves free.
const CHANGE_OVERHEAD_BYTES: u64 = 48;

/// Bytes of the filter of a table's keys: 32 bits a row for a full table of 1 KiB rows.
const KEY_FILTER_SIZE_BYTES: usize = 128 << 10;

type TableKey = SmallVec<[u8; INLINE_KEY_SIZE]>;

/// One change of a row: its version and its value; `None` deletes the row.
type Change = (RowVersion, Option<Bytes>);

/// The changes of one row, oldest first; most rows have one.
type Changes = SmallVec<[Change; 1]>;

/// Recent writes.
pub(crate) struct MemoryTable {
    rows: RwLock<BTreeMap<TableKey, Changes>>,
    keys: KeyFilter,
    share: MemoryShare,
    /// Changes that delete a row.
    deleted_count: AtomicU64,
}

/// What the memory table knows of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) version: RowVersion,
    /// `None`: the row was deleted.
    pub(crate) value: Option<Bytes>,
}

impl MemoryTable {
    /// An empty table that counts against `budget`.
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Self {
        let keys = KeyFilter::new(KEY_FILTER_SIZE_BYTES);
        MemoryTable {
            rows: RwLock::default(),
            keys,
            share: MemoryShare::new(budget),
            deleted_count: AtomicU64::new(0),
        }
    }

    /// An empty table under the same budget.
    pub(crate) fn successor(&self) -> Self {
        Self::new(self.share.budget())
    }

    /// Counts no longer against the budget: it can't be flushed any more.
    pub(crate) fn release(&self) {
        self.share.release();
    }

    /// Adds a change. `version` is higher than any before it.
    pub(crate) fn insert(&self, key: &[u8], version: RowVersion, value: Option<Bytes>) {
        let mut cost = change_cost(value.as_ref());
        if value.is_none() {
            self.deleted_count.fetch_add(1, Ordering::Relaxed);
        }
        self.keys.add(key_hash(key));
        let mut rows = self.rows.write();
        let changes = rows.entry(TableKey::from_slice(key)).or_default();
        if changes.is_empty() {
            cost += row_cost(key.len());
        }
        changes.push((version, value));
        drop(rows);
        self.share.take(cost);
    }

    /// Takes back a change that did not become durable.
    pub(crate) fn remove(&self, key: &[u8], version: RowVersion) {
        let mut rows = self.rows.write();
        let Some(changes) = rows.get_mut(key) else { return };
        let Ok(index) = changes.binary_search_by_key(&version, |change| change.0) else { return };
        let (_, value) = changes.remove(index);
        let mut cost = change_cost(value.as_ref());
        if value.is_none() {
            self.deleted_count.fetch_sub(1, Ordering::Relaxed);
        }
        if changes.is_empty() {
            rows.remove(key);
            cost += row_cost(key.len());
        }
        drop(rows);
        self.share.give_back(cost);
    }

    /// The newest change of the row not after `at`; `None` if there is none here.
    pub(crate) fn get(&self, key: HashedKey<'_>, at: RowVersion) -> Option<Found> {
        if !self.keys.may_contain(key.hash) {
            return None;
        }
        let rows = self.rows.read();
        let (version, value) = newest_at(rows.get(key.bytes)?, at)?;
        Some(Found { version: *version, value: value.clone() })
    }

    /// Calls `visit` for each row from `start` on, and before `end`, that has a change not after `at`, with
    /// the newest such change, in key order, until it says stop. No write runs meanwhile: a caller that needs
    /// many rows takes them in chunks.
    pub(crate) fn scan(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        at: RowVersion,
        mut visit: impl FnMut(&[u8], RowVersion, Option<&Bytes>) -> bool,
    ) {
        let rows = self.rows.read();
        // The end is looked for row by row: most walks stop long before it, and the tree would search for it
        // first.
        for (key, changes) in rows.range::<[u8], _>((Bound::Included(start), Bound::Unbounded)) {
            if end.is_some_and(|end| *end <= key[..]) {
                return;
            }
            if let Some((version, value)) = newest_at(changes, at)
                && !visit(key, *version, value.as_ref())
            {
                return;
            }
        }
    }

    /// Where the last rows from `start` on and before `end` begin: so many of them, or fewer that have so
    /// many bytes together; `None`: there are no more than these.
    pub(crate) fn start_of_last(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        row_count_max: usize,
        size_bytes_max: usize,
    ) -> Option<Bytes> {
        if end.is_some_and(|end| end <= start) {
            return None;
        }
        let rows = self.rows.read();
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut row_count, mut size_bytes) = (0, 0);
        for (key, changes) in rows.range::<[u8], _>((Bound::Included(start), end)).rev() {
            let values = changes.iter().filter_map(|(_, value)| value.as_ref());
            row_count += 1;
            size_bytes += key.len() + values.map(Bytes::len).max().unwrap_or_default();
            if row_count >= row_count_max || size_bytes >= size_bytes_max {
                return Some(Bytes::copy_from_slice(key));
            }
        }
        None
    }

    /// Changes that delete a row.
    pub(crate) fn deleted_count(&self) -> u64 {
        self.deleted_count.load(Ordering::Relaxed)
    }

    /// Bytes of memory in use, roughly.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.share.size_bytes()
    }
}

fn newest_at(changes: &Changes, at: RowVersion) -> Option<&Change> {
    let seen = changes.partition_point(|(version, _)| *version <= at);
    changes[..seen].last()
}

fn row_cost(key_len: usize) -> u64 {
    let elsewhere_len = if key_len > INLINE_KEY_SIZE { key_len } else { 0 };
    (INLINE_KEY_SIZE + elsewhere_len) as u64 + ROW_OVERHEAD_BYTES
}

fn change_cost(value: Option<&Bytes>) -> u64 {
    value.map_or(0, Bytes::len) as u64 + CHANGE_OVERHEAD_BYTES
}

#[cfg(test)]
impl Default for MemoryTable {
    fn default() -> Self {
        Self::new(&MemoryBudget::new(u64::MAX, u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(name: u8) -> RowKey {
        RowKey::new("a", 1, "p", &char::from(b'a' + name).to_string())
    }

    proptest! {
        /// A plain model: for each row the list of its changes.
        #[test]
        fn reads_at_any_version_agree_with_a_model(changes in prop::collection::vec((0u8..6, prop::option::of(0u8..9)), 0..40)) {
            let table = MemoryTable::default();
            let mut history: Vec<BTreeMap<u8, Option<u8>>> = vec![BTreeMap::new()];
            for (index, (name, value)) in changes.iter().enumerate() {
                let version = RowVersion(index as u64 + 1);
                table.insert(key(*name).as_bytes(), version, value.map(|value| Bytes::from(vec![value])));
                let mut next = history[index].clone();
                next.insert(*name, *value);
                history.push(next);
            }
            for (at, expected) in history.iter().enumerate() {
                let at = RowVersion(at as u64);
                for name in 0..6 {
                    let found = table.get(HashedKey::new(key(name).as_bytes()), at).map(|found| found.value.map(|value| value[0]));
                    prop_assert_eq!(found, expected.get(&name).copied());
                }
                let mut scanned = Vec::new();
                table.scan(&[], None, at, |row, _, value| {
                    scanned.push((row.to_vec(), value.map(|value| value[0])));
                    true
                });
                let rows: Vec<_> = expected.iter().map(|(name, value)| (key(*name).as_bytes().to_vec(), *value)).collect();
                prop_assert_eq!(scanned, rows);
            }
        }
    }

    /// A scan that started right behind a row used to show that row again.
    #[test]
    fn a_scan_from_a_successor_does_not_show_the_row_before_it() {
        let table = MemoryTable::default();
        for name in 0..3 {
            table.insert(key(name).as_bytes(), RowVersion(1), Some(Bytes::from_static(b"v")));
        }
        let mut seen = Vec::new();
        table.scan(&key(1).successor(), None, RowVersion(9), |row, _, _| {
            seen.push(row.to_vec());
            true
        });
        assert_eq!(seen, [key(2).as_bytes().to_vec()]);
    }

    /// From each end the last rows are as many as wanted, or as large.
    #[test]
    fn the_last_rows_begin_where_there_are_enough() {
        let table = MemoryTable::default();
        for name in 0..8 {
            table.insert(key(name).as_bytes(), RowVersion(1), Some(Bytes::from(vec![0; 100])));
        }
        let key_len = key(0).as_bytes().len();
        let begin = |start: u8, end: Option<u8>, rows, bytes| {
            let end = end.map(|end| key(end).as_bytes().clone());
            let found = table.start_of_last(key(start).as_bytes(), end.as_deref(), rows, bytes);
            found.map(|found| (0..8).find(|name| *key(*name).as_bytes() == found).unwrap())
        };
        for (start, end, rows, bytes, expected) in [
            (0, None, 1, 10_000, Some(7)),
            (0, None, 3, 10_000, Some(5)),
            (0, Some(7), 3, 10_000, Some(4)),
            (0, Some(3), 3, 10_000, Some(0)),
            (0, Some(3), 4, 10_000, None),
            (2, Some(5), 4, 10_000, None),
            (0, None, 8, 2 * (key_len + 100), Some(6)),
            (0, None, 8, 2 * (key_len + 100) + 1, Some(5)),
            (5, Some(5), 1, 1, None),
            (6, Some(5), 1, 1, None),
        ] {
            assert_eq!(begin(start, end, rows, bytes), expected, "{start} {end:?} {rows} {bytes}");
        }
    }

    /// Cut at both ends, the part of a range that is somebody's may end before it starts.
    #[test]
    fn a_range_that_ends_before_it_starts_is_empty() {
        let table = MemoryTable::default();
        table.insert(key(1).as_bytes(), RowVersion(1), None);
        for (start, end) in [(2, 1), (1, 1), (1, 0)] {
            let (start, end) = (key(start).as_bytes().clone(), Some(key(end).as_bytes().clone()));
            table.scan(&start, end.as_deref(), RowVersion(9), |_, _, _| panic!("nothing is in it"));
        }
    }

    /// Short keys stand in their nodes and long ones elsewhere: order and look-ups know no difference.
    #[test]
    fn keys_of_all_lengths_are_in_one_order() {
        let table = MemoryTable::default();
        let keys: BTreeMap<_, _> = (0..200)
            .flat_map(|len| ["a", "b"].map(|letter| RowKey::new("a", 1, "p", &letter.repeat(len))))
            .map(|key| (key.as_bytes().clone(), key))
            .collect();
        for key in keys.values().rev() {
            table.insert(key.as_bytes(), RowVersion(1), Some(key.as_bytes().clone()));
        }
        for key in keys.keys() {
            let found = table.get(HashedKey::new(key), RowVersion(1)).and_then(|found| found.value);
            assert_eq!(found.as_ref(), Some(key));
        }
        let mut seen = Vec::new();
        table.scan(&[], None, RowVersion(1), |row, _, _| {
            seen.push(Bytes::copy_from_slice(row));
            true
        });
        assert!(seen.iter().eq(keys.keys()));
        keys.keys().for_each(|key| table.insert(key, RowVersion(2), None));
        assert_eq!(table.deleted_count(), keys.len() as u64);
        for version in 1..=2 {
            keys.keys().for_each(|key| table.remove(key, RowVersion(version)));
        }
        assert_eq!((table.size_bytes(), table.deleted_count()), (0, 0));
    }

    #[test]
    fn a_change_taken_back_is_gone() {
        let table = MemoryTable::default();
        table.insert(key(0).as_bytes(), RowVersion(1), Some(Bytes::from_static(b"old")));
        table.insert(key(0).as_bytes(), RowVersion(2), None);
        let before = table.size_bytes();
        table.insert(key(0).as_bytes(), RowVersion(3), Some(Bytes::from_static(b"new")));
        table.remove(key(0).as_bytes(), RowVersion(3));
        assert_eq!(table.size_bytes(), before);
        assert_eq!(table.deleted_count(), 1);
        assert_eq!(
            table.get(HashedKey::new(key(0).as_bytes()), RowVersion(9)).map(|found| found.version),
            Some(RowVersion(2))
        );
    }
}
