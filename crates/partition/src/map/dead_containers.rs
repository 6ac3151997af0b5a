//! Containers that their services have deleted: no name leads to their rows any more, and their ids never
//! come back. What is left to do is to forget the rows when checkpoints are written anyway.
//!
//! ```text
//! key   = row key of ("", 1, object table's name, account and id as in row keys, in hexadecimal)
//! value = u8 format (1), u64 ticks of the mark
//! ```
//!
//! The marks are rows of the partition map's table, so they are as durable as the map. What always holds: a
//! mark is durable before rows are dropped for it, and stays until no range holds rows of its container. Rows
//! may be dropped here and there in any order: they are never read.

use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, from_hexadecimal, parse_container_prefix, parse_row_key, to_hexadecimal};
use crate::operation::{
    Decision, OBJECT_TABLES, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use arc_swap::ArcSwap;
use base::clock::TICKS_PER_SECOND;
use base::codec::{DecodeError, Decoder, Encode};
use base::{Clock, Ticks};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const FORMAT: u8 = 1;
/// Where the marks lie in the partition map's table.
const MARKS_ID: u64 = 1;
/// A mark stays so long at least: requests that found the container before it was deleted may still write.
const MARK_AGE_MIN: Duration = Duration::from_secs(120);
/// Marks at a time. Beyond it containers stay unmarked until the next start, when their service looks for
/// them again.
pub(crate) const DEAD_CONTAINER_COUNT_MAX: usize = 10_000;

/// The start of all keys of a dead container, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeadContainer {
    pub(crate) table: ObjectTable,
    pub(crate) prefix: Bytes,
}

impl DeadContainer {
    pub(crate) fn new(table: ObjectTable, account: &str, container_id: u64) -> Self {
        DeadContainer { table, prefix: KeyRange::container(account, container_id).start }
    }

    /// All its keys.
    pub(crate) fn range(&self) -> KeyRange {
        KeyRange::prefix(self.prefix.to_vec())
    }

    fn key(&self) -> RowKey {
        RowKey::new("", MARKS_ID, self.table.name(), &to_hexadecimal(&self.prefix))
    }

    fn parse(key: &[u8], value: &[u8]) -> Result<(Self, Ticks), DecodeError> {
        let parts = parse_row_key(key).ok_or(DecodeError("mark key"))?;
        let table = OBJECT_TABLES.into_iter().find(|table| table.name() == parts.partition_name);
        let table = table.ok_or(DecodeError("mark object table"))?;
        let prefix = from_hexadecimal(&parts.object_name).ok_or(DecodeError("mark container"))?;
        // A mark for anything else than one container would drop rows that are alive.
        parse_container_prefix(&prefix).ok_or(DecodeError("mark container"))?;
        let mut decoder = Decoder::new(value);
        if decoder.u8("mark format")? != FORMAT {
            return Err(DecodeError("mark format"));
        }
        let since = Ticks(decoder.u64("mark time")?);
        decoder.finish("mark")?;
        Ok((DeadContainer { table, prefix }, since))
    }
}

/// How much longer a mark of `since` stays at least that is read at `now`. One that was made under a clock
/// that was ahead counts as new, or it would stay until the clock is there again.
fn stays_for(since: Ticks, now: Ticks) -> Duration {
    let age_ticks = now.0.saturating_sub(since.0);
    MARK_AGE_MIN.saturating_sub(Duration::from_secs(age_ticks / TICKS_PER_SECOND))
}

/// All of them, as they are known to flushes and merges.
#[derive(Default)]
pub(crate) struct DeadContainers {
    /// With the monotonic time from which on the mark may go.
    known: ArcSwap<BTreeMap<DeadContainer, Duration>>,
}

impl DeadContainers {
    /// Everything that is marked, with the monotonic time from which on the mark may go.
    pub(crate) fn all(&self) -> Arc<BTreeMap<DeadContainer, Duration>> {
        self.known.load_full()
    }

    /// Those of one table.
    pub(crate) fn of_table(&self, table: ObjectTable) -> Vec<DeadContainer> {
        self.known.load().keys().filter(|dead| dead.table == table).cloned().collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.load().len()
    }

    /// The mark is durable; `now` is monotonic time.
    pub(crate) fn add(&self, dead: &DeadContainer, now: Duration) {
        self.known.rcu(|known| {
            let mut next = BTreeMap::clone(known);
            next.insert(dead.clone(), now + MARK_AGE_MIN);
            next
        });
    }

    /// Its rows are gone, and so is its mark.
    pub(crate) fn remove(&self, dead: &DeadContainer) {
        self.known.rcu(|known| {
            let mut next = BTreeMap::clone(known);
            next.remove(dead);
            next
        });
    }

    /// What recognizes the dead rows of one table, for one walk over them.
    pub(crate) fn filter(&self, table: ObjectTable) -> DeadFilter {
        let prefixes: Vec<Bytes> = self.of_table(table).into_iter().map(|dead| dead.prefix).collect();
        DeadFilter { prefixes, at: 0 }
    }
}

/// Tells dead rows along a walk whose keys rise.
pub(crate) struct DeadFilter {
    /// Sorted; none starts another.
    prefixes: Vec<Bytes>,
    /// Those before it lie behind.
    at: usize,
}

impl DeadFilter {
    /// Whether the row belongs to a dead container. Keys rise from call to call.
    pub(crate) fn drops(&mut self, key: &[u8]) -> bool {
        while let Some(prefix) = self.prefixes.get(self.at) {
            if key.starts_with(prefix) {
                return true;
            }
            if key < prefix.as_ref() {
                return false;
            }
            self.at += 1;
        }
        false
    }
}

/// Sets or removes a mark.
pub(crate) struct MarkContainer {
    pub(crate) dead: DeadContainer,
    /// When; `None`: the mark goes.
    pub(crate) since: Option<Ticks>,
}

impl Operation for MarkContainer {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        ObjectTable::PartitionMap
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.dead.key())]
    }

    fn gives_back(&self) -> bool {
        // The container's rows go.
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        let key = self.dead.key();
        let change = match (self.since, rows.point(0)) {
            (Some(_), Some(_)) | (None, None) => return Decision::unchanged(()),
            (None, Some(_)) => RowChange::Delete { key },
            (Some(since), None) => {
                let mut value = Vec::new();
                value.put_u8_field(FORMAT);
                value.put_u64_field(since.0);
                RowChange::Put { key, value: value.into() }
            }
        };
        Decision { changes: vec![change], reply: () }
    }
}

/// Collects all marks.
pub(crate) struct ReadMarks {
    known: BTreeMap<DeadContainer, Ticks>,
    damage: Option<PartitionError>,
}

impl ReadMarks {
    pub(crate) fn new() -> Self {
        ReadMarks { known: BTreeMap::new(), damage: None }
    }

    /// Where to look.
    pub(crate) fn range() -> KeyRange {
        KeyRange::container("", MARKS_ID)
    }

    /// Whether all of them read.
    pub(crate) fn check(&self) -> Result<(), PartitionError> {
        self.damage.clone().map_or(Ok(()), Err)
    }

    /// What was found; a mark that does not read is an error.
    pub(crate) fn into_known(self, clock: &dyn Clock) -> Result<DeadContainers, PartitionError> {
        self.check()?;
        let (now, monotonic) = (clock.now(), clock.monotonic());
        let goes_at = |since| monotonic + stays_for(since, now);
        let known = self.known.into_iter().map(|(dead, since)| (dead, goes_at(since))).collect();
        Ok(DeadContainers { known: ArcSwap::from_pointee(known) })
    }
}

impl Scan for ReadMarks {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match DeadContainer::parse(row.key, row.value) {
            Ok((dead, since)) => {
                self.known.insert(dead, since);
                Visit::Continue
            }
            Err(error) => {
                self.damage = Some(PartitionError::Storage(format!("marks of deleted containers: {error}")));
                Visit::StopBefore
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dead(account: &str, id: u64) -> DeadContainer {
        DeadContainer::new(ObjectTable::Entity, account, id)
    }

    #[test]
    fn a_walk_drops_the_rows_of_dead_containers_and_no_others() {
        let known = DeadContainers::default();
        known.add(&dead("a", 2), Duration::ZERO);
        known.add(&dead("b", 1), Duration::ZERO);
        known.add(&DeadContainer::new(ObjectTable::Container, "a", 3), Duration::ZERO);
        let mut filter = known.filter(ObjectTable::Entity);
        let rows = [
            ("a", 1, false),
            ("a", 2, true),
            ("a", 2, true),
            ("a", 3, false),
            ("b", 1, true),
            ("b", 2, false),
        ];
        for (index, (account, id, gone)) in rows.into_iter().enumerate() {
            let key = RowKey::new(account, id, "p", &index.to_string());
            assert_eq!(filter.drops(key.as_bytes()), gone, "{account} {id}");
        }
        known.remove(&dead("a", 2));
        assert!(!known.filter(ObjectTable::Entity).drops(RowKey::new("a", 2, "p", "").as_bytes()));
    }

    #[test]
    fn a_mark_that_is_read_stays_for_what_is_left_of_its_time() {
        let seconds = |seconds: u64| Ticks(seconds * TICKS_PER_SECOND);
        for (since, now, expected) in [
            (1000, 1000, 120),
            (1000, 1030, 90),
            (1000, 1120, 0),
            (1000, 9999, 0),
            (1000, 999, 120),
            (u64::MAX / TICKS_PER_SECOND, 1000, 120),
        ] {
            let left = stays_for(seconds(since), seconds(now));
            assert_eq!(left, Duration::from_secs(expected), "{since} {now}");
        }
    }

    #[test]
    fn a_mark_comes_and_goes_once() {
        let mark = |since| MarkContainer { dead: dead("a", 7), since };
        let absent = Rows::new(vec![vec![]]);
        let set = mark(Some(Ticks(5))).decide(&absent, RowVersion(1)).changes;
        let [RowChange::Put { key, value }] = set.as_slice() else { panic!("{set:?}") };
        assert_eq!(DeadContainer::parse(key.as_bytes(), value), Ok((dead("a", 7), Ticks(5))));
        let row = crate::operation::Row { key: key.clone(), version: RowVersion(1), value: value.clone() };
        let present = Rows::new(vec![vec![row]]);
        assert!(mark(Some(Ticks(6))).decide(&present, RowVersion(2)).changes.is_empty());
        assert_eq!(
            mark(None).decide(&present, RowVersion(2)).changes,
            [RowChange::Delete { key: key.clone() }]
        );
        assert!(mark(None).decide(&absent, RowVersion(2)).changes.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(name: String, value: Vec<u8>) {
            let key = RowKey::new("", MARKS_ID, ObjectTable::Entity.name(), &name);
            let _ = DeadContainer::parse(key.as_bytes(), &value);
            let _ = DeadContainer::parse(&value, &value);
        }

        /// Anything shorter than one container would drop rows that are alive.
        #[test]
        fn a_mark_is_for_exactly_one_container(account in "[a-c]{0,3}", id: u64, cut in 1usize..12) {
            let whole = dead(&account, id);
            let short = DeadContainer { prefix: whole.prefix.slice(..whole.prefix.len().saturating_sub(cut)), ..whole };
            let value = [&[FORMAT][..], &[0; 8]].concat();
            prop_assert!(DeadContainer::parse(short.key().as_bytes(), &value).is_err());
        }
    }
}
