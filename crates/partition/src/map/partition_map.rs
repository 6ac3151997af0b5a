//! The partition map's rows: which ranges every object table has.
//!
//! ```text
//! key   = row key of ("", 0, object table's name, first key of the range in hexadecimal)
//! value = u8 format, u64 range id, u8 has end, [varint n, n bytes end key], owner
//!   format  2; 1: no owner (up to format 6 of the folder, or nobody has taken the range since)
//!   owner   16 bytes incarnation, u64 epoch
//! ```
//!
//! All rows of an object table share one partition name, so that a split or a merge of its ranges is one
//! operation: that operation is the moment at which it happens. What always holds: the ranges of a table
//! cover every key once; an owner is in the map before it takes the range, and a range that is replaced is
//! replaced for the owner that the map names.

use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, from_hexadecimal, parse_row_key, to_hexadecimal};
use crate::operation::{
    Decision, OBJECT_TABLES, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::Owner;

const FORMAT_1: u8 = 1;
const FORMAT: u8 = 2;
/// Where the map's rows lie; marks of deleted containers lie behind them (`dead_containers`).
const MAP_ID: u64 = 0;

/// One row of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapEntry {
    pub(crate) table: ObjectTable,
    pub(crate) id: u64,
    pub(crate) range: KeyRange,
    /// Who took it last.
    pub(crate) owner: Option<Owner>,
}

impl MapEntry {
    fn key(&self) -> RowKey {
        RowKey::new("", MAP_ID, self.table.name(), &to_hexadecimal(&self.range.start))
    }

    fn value(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8_field(if self.owner.is_some() { FORMAT } else { FORMAT_1 });
        out.put_u64_field(self.id);
        out.put_u8_field(u8::from(self.range.end.is_some()));
        if let Some(end) = &self.range.end {
            out.put_bytes_field(end);
        }
        if let Some(owner) = &self.owner {
            owner.encode(&mut out);
        }
        out.into()
    }

    /// It as a row.
    pub(crate) fn row(&self) -> (RowKey, Bytes) {
        (self.key(), self.value())
    }

    fn parse(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let parts = parse_row_key(key).ok_or(DecodeError("map key"))?;
        let table = OBJECT_TABLES.into_iter().find(|table| table.name() == parts.partition_name);
        let table = table.ok_or(DecodeError("map object table"))?;
        let start = from_hexadecimal(&parts.object_name).ok_or(DecodeError("map first key"))?;
        let mut decoder = Decoder::new(value);
        let has_owner = match decoder.u8("map format")? {
            FORMAT_1 => false,
            FORMAT => true,
            _ => return Err(DecodeError("map format")),
        };
        let id = decoder.u64("range id")?;
        let end = match decoder.u8("has end")? {
            0 => None,
            _ => Some(Bytes::copy_from_slice(decoder.bytes("end key")?)),
        };
        let owner = if has_owner { Some(Owner::decode(&mut decoder, "map owner")?) } else { None };
        decoder.finish("map row")?;
        Ok(MapEntry { table, id, range: KeyRange { start, end }, owner })
    }
}

/// Replaces ranges of one object table by others that cover the same keys.
#[derive(Clone, Debug)]
pub(crate) struct ChangeMap {
    /// What must be in the map.
    pub(crate) old: Vec<MapEntry>,
    /// What is there instead.
    pub(crate) new: Vec<MapEntry>,
}

impl Operation for ChangeMap {
    /// Whether the map held exactly what was to be replaced.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::PartitionMap
    }

    fn reads(&self) -> Vec<Read> {
        self.old.iter().chain(&self.new).map(|entry| Read::Point(entry.key())).collect()
    }

    fn gives_back(&self) -> bool {
        // Who made ready for a hand-over has used the space already; what it replaces goes.
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<bool> {
        let there =
            |index: usize, entry: &MapEntry| rows.point(index).is_some_and(|row| row.value == entry.value());
        if !self.old.iter().enumerate().all(|(index, entry)| there(index, entry)) {
            return Decision::unchanged(false);
        }
        let keys: Vec<RowKey> = self.new.iter().map(MapEntry::key).collect();
        let gone = self.old.iter().map(MapEntry::key).filter(|key| !keys.contains(key));
        let mut changes: Vec<RowChange> = gone.map(|key| RowChange::Delete { key }).collect();
        let put = |entry: &MapEntry| RowChange::Put { key: entry.key(), value: entry.value() };
        changes.extend(self.new.iter().map(put));
        Decision { changes, reply: true }
    }
}

/// Collects the whole map.
#[derive(Default)]
pub(crate) struct ReadMap {
    entries: Vec<MapEntry>,
    damage: Option<PartitionError>,
}

impl Scan for ReadMap {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match MapEntry::parse(row.key, row.value) {
            Ok(entry) => {
                self.entries.push(entry);
                Visit::Continue
            }
            Err(error) => {
                self.damage = Some(PartitionError::Storage(format!("the partition map: {error}")));
                Visit::StopBefore
            }
        }
    }
}

impl ReadMap {
    /// Where to look.
    pub(crate) fn range() -> KeyRange {
        KeyRange::container("", MAP_ID)
    }

    /// The map's rows in key order; a row that does not read is an error.
    pub(crate) fn entries(self) -> Result<Vec<MapEntry>, PartitionError> {
        self.damage.map_or(Ok(self.entries), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Row;
    use proptest::prelude::*;
    use stream::{Incarnation, OwnerEpoch};

    fn entry(id: u64, start: &'static str, end: Option<&'static str>) -> MapEntry {
        let range = KeyRange { start: Bytes::from(start), end: end.map(Bytes::from) };
        MapEntry { table: ObjectTable::Entity, id, range, owner: None }
    }

    #[test]
    fn a_change_is_refused_unless_the_map_holds_what_it_replaces() {
        let split = ChangeMap {
            old: vec![entry(1, "", None)],
            new: vec![entry(2, "", Some("m")), entry(3, "m", None)],
        };
        let row = |entry: &MapEntry| Row { key: entry.key(), version: RowVersion(1), value: entry.value() };
        let now = |found: Option<MapEntry>| {
            Rows::new(vec![found.iter().map(row).collect(), Vec::new(), Vec::new()])
        };
        let decided = split.decide(&now(Some(entry(1, "", None))), RowVersion(2));
        assert!(decided.reply);
        assert_eq!(decided.changes.len(), 2, "the first child takes the parent's row");
        let taken = MapEntry { owner: Some(Owner::first(Incarnation(1))), ..entry(1, "", None) };
        for other in [None, Some(entry(4, "", None)), Some(entry(1, "", Some("x"))), Some(taken)] {
            let refused = split.decide(&now(other), RowVersion(2));
            assert!(!refused.reply && refused.changes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn rows_come_back_and_sort_by_first_key(
            id: u64,
            start: Vec<u8>,
            other: Vec<u8>,
            end: Option<Vec<u8>>,
            owner: Option<(u128, u64)>,
        ) {
            let of = |start: &[u8]| MapEntry {
                table: ObjectTable::Entity,
                id,
                range: KeyRange { start: Bytes::copy_from_slice(start), end: end.clone().map(Bytes::from) },
                owner: owner.map(|(incarnation, epoch)| Owner {
                    incarnation: Incarnation(incarnation),
                    epoch: OwnerEpoch(epoch),
                }),
            };
            let (first, second) = (of(&start), of(&other));
            prop_assert_eq!(MapEntry::parse(first.key().as_bytes(), &first.value()), Ok(first.clone()));
            prop_assert_eq!(first.key().cmp(&second.key()), start.cmp(&other));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(name: String, value: Vec<u8>) {
            let key = RowKey::new("", 0, ObjectTable::Entity.name(), &name);
            let _ = MapEntry::parse(key.as_bytes(), &value);
            let _ = MapEntry::parse(&value, &value);
        }
    }
}
