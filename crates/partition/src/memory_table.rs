//! The memory table: a range's recent writes in key order, several versions of a row side by side.
//!
//! A concurrent skip list: one writer at a time (the serial section), any number of readers, none waits for another.
//! What always holds: a reader that looks at version v sees, for each row, its newest change not after v.

use crate::checkpoint::{HashedKey, key_hash};
use crate::key::KeyRange;
use crate::key_filter::KeyFilter;
use crate::memory_budget::{MemoryBudget, MemoryShare};
use crate::operation::RowVersion;
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use smallvec::SmallVec;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes that a version adds to a row's key in the skip list.
const VERSION_SIZE: usize = 8;
/// Bytes of memory a row costs besides its key and value, roughly: a node with a tower of links, and an allocation.
const ROW_OVERHEAD_BYTES: u64 = 96;
/// Versioned keys up to this size stand in the skip list's nodes: a step down the list is a miss of the processor's cache
/// less than with a key elsewhere. Leaves some 60 bytes to PartitionKey and RowKey.
const INLINE_KEY_SIZE: usize = 96;

/// Row key + inverted version, so that newer versions come first.
type VersionedKey = SmallVec<[u8; INLINE_KEY_SIZE]>;

/// Recent writes.
pub(crate) struct MemoryTable {
    /// `None` is a deleted row.
    rows: SkipMap<VersionedKey, Option<Bytes>>,
    keys: KeyFilter,
    share: MemoryShare,
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
        MemoryTable { rows: SkipMap::new(), keys: KeyFilter::default(), share: MemoryShare::new(budget) }
    }

    /// An empty table under the same budget.
    pub(crate) fn successor(&self) -> Self {
        Self::new(self.share.budget())
    }

    /// Counts no longer against the budget: nobody can flush it.
    pub(crate) fn release(&self) {
        self.share.release();
    }

    /// Adds a change. `version` is higher than any before it.
    pub(crate) fn insert(&self, key: &[u8], version: RowVersion, value: Option<Bytes>) {
        let value_len = value.as_ref().map_or(0, Bytes::len);
        self.share.take(row_cost(key.len(), value_len));
        self.keys.add(key_hash(key));
        self.rows.insert(versioned(key, version), value);
    }

    /// Takes back a change that did not become durable.
    pub(crate) fn remove(&self, key: &[u8], version: RowVersion) {
        if let Some(entry) = self.rows.remove(versioned(key, version).as_slice()) {
            let value_len = entry.value().as_ref().map_or(0, Bytes::len);
            self.share.give_back(row_cost(key.len(), value_len));
        }
    }

    /// The newest change of the row not after `at`; `None` if there is none here.
    pub(crate) fn get(&self, key: HashedKey<'_>, at: RowVersion) -> Option<Found> {
        if !self.keys.may_contain(key.hash) {
            return None;
        }
        let probe = versioned(key.bytes, at);
        let entry = self.rows.lower_bound(Bound::Included(probe.as_slice()))?;
        let (row_key, version) = split(entry.key());
        (row_key == key.bytes).then(|| Found { version, value: entry.value().clone() })
    }

    /// Calls `visit` for each row of the range that has a change not after `at`, with the newest such change, in key
    /// order, until it says stop.
    pub(crate) fn scan(
        &self,
        range: &KeyRange,
        at: RowVersion,
        mut visit: impl FnMut(&[u8], RowVersion, Option<&Bytes>) -> bool,
    ) {
        // Keys are prefix-free, so a start without version comes before every version of the rows from there on.
        let mut entry = self.rows.lower_bound(Bound::Included(range.start.as_ref()));
        let mut shown: Option<crossbeam_skiplist::map::Entry<'_, VersionedKey, Option<Bytes>>> = None;
        while let Some(current) = entry {
            let (key, version) = split(current.key());
            if range.end.as_ref().is_some_and(|end| key >= end.as_ref()) {
                return;
            }
            // A start may lie between a row's key and its versioned keys.
            let before = key < range.start.as_ref();
            let seen = before || shown.as_ref().is_some_and(|shown| split(shown.key()).0 == key);
            if !seen && version <= at {
                if !visit(key, version, current.value().as_ref()) {
                    return;
                }
                shown = Some(current.clone());
            }
            entry = current.next();
        }
    }

    /// Bytes of memory in use, roughly.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.share.size_bytes()
    }
}

fn row_cost(key_len: usize, value_len: usize) -> u64 {
    let versioned_len = key_len + VERSION_SIZE;
    let elsewhere_len = if versioned_len > INLINE_KEY_SIZE { versioned_len } else { 0 };
    (INLINE_KEY_SIZE + elsewhere_len + value_len) as u64 + ROW_OVERHEAD_BYTES
}

fn versioned(key: &[u8], version: RowVersion) -> VersionedKey {
    let mut out = VersionedKey::with_capacity(key.len() + VERSION_SIZE);
    out.extend_from_slice(key);
    out.extend_from_slice(&(!version.0).to_be_bytes());
    out
}

fn split(versioned: &[u8]) -> (&[u8], RowVersion) {
    let (key, version) = versioned.split_at(versioned.len() - VERSION_SIZE);
    let mut bytes = [0; VERSION_SIZE];
    bytes.copy_from_slice(version);
    (key, RowVersion(!u64::from_be_bytes(bytes)))
}

#[cfg(test)]
impl Default for MemoryTable {
    fn default() -> Self {
        Self::new(&MemoryBudget::new(u64::MAX))
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
                table.scan(&KeyRange::all(), at, |row, _, value| {
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
        let range = KeyRange { start: key(1).successor(), end: None };
        table.scan(&range, RowVersion(9), |row, _, _| {
            seen.push(row.to_vec());
            true
        });
        assert_eq!(seen, [key(2).as_bytes().to_vec()]);
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
        table.scan(&KeyRange::all(), RowVersion(1), |row, _, _| {
            seen.push(Bytes::copy_from_slice(row));
            true
        });
        assert!(seen.iter().eq(keys.keys()));
        keys.keys().for_each(|key| table.remove(key, RowVersion(1)));
        assert_eq!(table.size_bytes(), 0);
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
        assert_eq!(
            table.get(HashedKey::new(key(0).as_bytes()), RowVersion(9)).map(|found| found.version),
            Some(RowVersion(2))
        );
    }
}
