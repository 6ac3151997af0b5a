//! The marks of deleted containers as they are stored: rows of the partition map's table, so they are as
//! durable as the map.
//!
//! ```text
//! key   = row key of ("", 1, object table's name, account and id as in row keys, in hexadecimal)
//! value = u8 format (1), u64 ticks of the mark
//! ```
//!
//! What always holds: a mark is for exactly one container; marks of one table sort as the rows of their
//! containers do, so a walk over rows and a walk over marks go side by side.

use crate::error::PartitionError;
use crate::key::{
    KeyRange, RowKey, container_prefix, from_hexadecimal, parse_container_prefix, parse_row_key,
    to_hexadecimal,
};
use crate::operation::{
    Decision, OBJECT_TABLES, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use base::codec::{DecodeError, Decoder, Encode};
use base::{BoxFuture, Ticks};
use bytes::Bytes;

const FORMAT: u8 = 1;
/// Where the marks lie in the partition map's table.
const MARKS_ID: u64 = 1;

/// Where the marks are.
pub(crate) trait MarkRows: Send + Sync {
    /// Shows those of them that lie in `keys`.
    fn show<'a>(
        &'a self,
        keys: &'a KeyRange,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<(), PartitionError>>;
}

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

    /// The key of its mark.
    pub(crate) fn key(&self) -> RowKey {
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

/// All marks.
pub(crate) fn all_marks() -> KeyRange {
    KeyRange::container("", MARKS_ID)
}

/// The marks of a table whose containers have rows at `key` or behind it.
pub(crate) fn marks_from(table: ObjectTable, key: &[u8]) -> KeyRange {
    let first = container_prefix(key).unwrap_or(key);
    let start = RowKey::new("", MARKS_ID, table.name(), &to_hexadecimal(first));
    KeyRange { start: start.as_bytes().clone(), ..KeyRange::partition("", MARKS_ID, table.name()) }
}

/// Sets or removes marks of one table. Replies how many that changed.
pub(crate) struct MarkContainers {
    pub(crate) dead: Vec<DeadContainer>,
    /// When; `None`: the marks go.
    pub(crate) since: Option<Ticks>,
}

impl Operation for MarkContainers {
    type Reply = u64;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::PartitionMap
    }

    fn reads(&self) -> Vec<Read> {
        self.dead.iter().map(|dead| Read::Point(dead.key())).collect()
    }

    fn gives_back(&self) -> bool {
        // The containers' rows go.
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<u64> {
        let change = |(index, dead): (usize, &DeadContainer)| match (self.since, rows.point(index)) {
            (Some(_), Some(_)) | (None, None) => None,
            (None, Some(_)) => Some(RowChange::Delete { key: dead.key() }),
            (Some(since), None) => {
                let mut value = Vec::new();
                value.put_u8_field(FORMAT);
                value.put_u64_field(since.0);
                Some(RowChange::Put { key: dead.key(), value: value.into() })
            }
        };
        let changes: Vec<RowChange> = self.dead.iter().enumerate().filter_map(change).collect();
        let reply = changes.len() as u64;
        Decision { changes, reply }
    }
}

/// Takes marks, a bounded number.
pub(crate) struct ReadMarks {
    count_max: usize,
    /// In the order of their rows, with the time of each mark.
    pub(crate) found: Vec<(DeadContainer, Ticks)>,
    /// The first that there was no room for.
    pub(crate) next: Option<DeadContainer>,
    damage: Option<PartitionError>,
}

impl ReadMarks {
    /// Takes one at least.
    pub(crate) fn new(count_max: usize) -> Self {
        ReadMarks { count_max: count_max.max(1), found: Vec::new(), next: None, damage: None }
    }

    /// What was found; a mark that does not read is an error.
    pub(crate) fn check(&self) -> Result<(), PartitionError> {
        self.damage.clone().map_or(Ok(()), Err)
    }
}

impl Scan for ReadMarks {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match DeadContainer::parse(row.key, row.value) {
            Ok((dead, _)) if self.found.len() >= self.count_max => {
                self.next = Some(dead);
                Visit::StopBefore
            }
            Ok(found) => {
                self.found.push(found);
                Visit::Continue
            }
            Err(error) => {
                self.damage = Some(unreadable(&error));
                Visit::StopBefore
            }
        }
    }
}

/// Counts marks by table, in the order of [`OBJECT_TABLES`], and checks that they read.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountMarks {
    counts: [u64; OBJECT_TABLES.len()],
    damage: Option<PartitionError>,
}

impl CountMarks {
    /// How many each table has; a mark that does not read is an error.
    pub(crate) fn counts(&self) -> Result<[u64; OBJECT_TABLES.len()], PartitionError> {
        self.damage.clone().map_or(Ok(self.counts), Err)
    }
}

impl Scan for CountMarks {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match DeadContainer::parse(row.key, row.value) {
            Ok((dead, _)) => {
                self.counts[index_of(dead.table).unwrap_or_default()] += 1;
                Visit::Continue
            }
            Err(error) => {
                self.damage = Some(unreadable(&error));
                Visit::StopBefore
            }
        }
    }
}

/// The place of a table that may have marks among [`OBJECT_TABLES`].
pub(crate) fn index_of(table: ObjectTable) -> Option<usize> {
    OBJECT_TABLES.iter().position(|one| *one == table)
}

fn unreadable(error: &DecodeError) -> PartitionError {
    PartitionError::Storage(format!("marks of deleted containers: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dead(account: &str, id: u64) -> DeadContainer {
        DeadContainer::new(ObjectTable::Entity, account, id)
    }

    #[test]
    fn a_mark_comes_and_goes_once() {
        let mark = |since| MarkContainers { dead: vec![dead("a", 7)], since };
        let absent = Rows::new(vec![vec![]]);
        let set = mark(Some(Ticks(5))).decide(&absent, RowVersion(1)).changes;
        let [RowChange::Put { key, value }] = set.as_slice() else { panic!("{set:?}") };
        assert_eq!(DeadContainer::parse(key.as_bytes(), value), Ok((dead("a", 7), Ticks(5))));
        let row = crate::operation::Row { key: key.clone(), version: RowVersion(1), value: value.clone() };
        let present = Rows::new(vec![vec![row]]);
        assert!(mark(Some(Ticks(6))).decide(&present, RowVersion(2)).changes.is_empty());
        let gone = mark(None).decide(&present, RowVersion(2));
        assert_eq!((gone.changes, gone.reply), (vec![RowChange::Delete { key: key.clone() }], 1));
        assert!(mark(None).decide(&absent, RowVersion(2)).changes.is_empty());
    }

    #[test]
    fn of_several_marks_those_go_that_are_there() {
        let all = [dead("a", 1), dead("a", 2), dead("b", 1)];
        let row = crate::operation::Row { key: all[1].key(), version: RowVersion(1), value: Bytes::new() };
        let rows = Rows::new(vec![vec![], vec![row], vec![]]);
        let gone = MarkContainers { dead: all.to_vec(), since: None }.decide(&rows, RowVersion(2));
        assert_eq!((gone.changes, gone.reply), (vec![RowChange::Delete { key: all[1].key() }], 1));
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

        /// A walk over rows would miss marks that don't sort as the rows do, or begin behind one that counts.
        #[test]
        fn marks_sort_as_the_rows_of_their_containers(
            one in ("[a-c\u{0}\u{ff}\u{ffff}]{0,3}", 0u64..3), other in ("[a-c\u{0}\u{ff}\u{ffff}]{0,3}", 0u64..3),
            name in "[a-b]{0,2}", cut: prop::sample::Index,
        ) {
            let (mark, row) = (dead(&one.0, one.1), RowKey::new(&other.0, other.1, &name, ""));
            let of_row = dead(&other.0, other.1);
            let order = mark.key().as_bytes().cmp(of_row.key().as_bytes());
            prop_assert_eq!(order, mark.prefix.cmp(&of_row.prefix));
            for key in [row.as_bytes().clone(), row.as_bytes().slice(..cut.index(row.as_bytes().len()))] {
                let has_rows_behind = mark.range().end.is_none_or(|end| end[..] > key[..]);
                let range = marks_from(ObjectTable::Entity, &key);
                prop_assert!(!has_rows_behind || range.contains(mark.key().as_bytes()), "{:?} {:?}", mark, key);
                prop_assert!(!marks_from(ObjectTable::Blob, &key).contains(mark.key().as_bytes()));
            }
        }
    }
}
