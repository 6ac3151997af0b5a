//! The format of the partition map's copy: what the map's range holds, once more, in the stream
//! `partition_map/copy`; but of the marks of deleted containers no more than fit in memory.
//!
//! ```text
//! block = u8 format (1), u8 kind, u64 version, varint count, row*
//!         kind 1 snapshot: all rows; what blocks before it say does not count any more
//!              2 changes:  rows that are other now
//! row   = varint n, n bytes row key, u8 0 gone, or u8 1, u64 row version, varint m, m bytes value
//! ```
//!
//! The version is the newest of any change that the block and those before it know; it never falls. The first
//! block is a snapshot. What always holds: blocks that read, in order, give the rows of the map's range as
//! they were after one of its changes; anything else is refused.

use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::map::container_marks::MarkRows;
use crate::map::container_marks::all_marks;
use crate::operation::{RowRef, RowVersion, Scan, Visit};
use base::BoxFuture;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use std::collections::BTreeMap;
use stream::StreamName;

const FORMAT: u8 = 1;
const KIND_SNAPSHOT: u8 = 1;
const KIND_CHANGES: u8 = 2;
const ROW_GONE: u8 = 0;
const ROW_THERE: u8 = 1;

/// The stream of the copy.
pub(crate) fn copy_name() -> StreamName {
    StreamName::new("partition_map/copy")
}

/// Whether this is it.
pub(crate) fn is_copy(stream: &StreamName) -> bool {
    *stream == copy_name()
}

/// A row as the map's range holds it.
pub(crate) type MapRow = (RowVersion, Bytes);

/// What the map's range holds: the map and marks of deleted containers, not all of them if they are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapContent {
    /// The newest version that is known.
    pub(crate) version: RowVersion,
    pub(crate) rows: BTreeMap<RowKey, MapRow>,
}

/// Rows that are other than before; `None`: gone.
pub(crate) type RowsChanged = Vec<(RowKey, Option<MapRow>)>;

impl MapContent {
    /// Takes over changes, the newest of which may have this version.
    pub(crate) fn apply(&mut self, version: RowVersion, changes: RowsChanged) {
        self.version = self.version.max(version);
        for (key, row) in changes {
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }

    /// Shows the rows of `range` to `scan`, as a range partition would.
    pub(crate) fn show(&self, range: &KeyRange, scan: &mut dyn Scan) {
        let behind = self.rows.range(RowKey::from_bytes(range.start.clone())..);
        for (key, (version, value)) in behind.take_while(|(key, _)| range.contains(key.as_bytes())) {
            let row = RowRef { key: key.as_bytes(), version: *version, value };
            if scan.visit(row) == Visit::StopBefore {
                return;
            }
        }
    }

    /// The content as one block.
    pub(crate) fn snapshot(&self) -> Bytes {
        let rows = self.rows.iter().map(|(key, row)| (key, Some(row)));
        encode(KIND_SNAPSHOT, self.version, self.rows.len(), rows)
    }

    /// What `blocks` come to, one after the other.
    pub(crate) fn add_block(content: Option<Self>, block: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(block);
        if decoder.u8("format of the map's copy")? != FORMAT {
            return Err(DecodeError("format of the map's copy"));
        }
        let kind = decoder.u8("kind of block")?;
        let version = RowVersion(decoder.u64("version of the map's copy")?);
        let mut changes = RowsChanged::new();
        for _ in 0..decoder.varint("row count")? {
            let key = RowKey::from_bytes(Bytes::copy_from_slice(decoder.bytes("row key")?));
            let row = match decoder.u8("whether there is a row")? {
                ROW_GONE if kind == KIND_CHANGES => None,
                ROW_THERE => {
                    let version = RowVersion(decoder.u64("row version")?);
                    Some((version, Bytes::copy_from_slice(decoder.bytes("row value")?)))
                }
                _ => return Err(DecodeError("whether there is a row")),
            };
            changes.push((key, row));
        }
        decoder.finish("block of the map's copy")?;
        if content.as_ref().is_some_and(|content| content.version > version) {
            return Err(DecodeError("a version of the map's copy that is older than the one before"));
        }
        let mut next = match (kind, content) {
            (KIND_SNAPSHOT, _) => MapContent::default(),
            (KIND_CHANGES, Some(content)) => content,
            _ => return Err(DecodeError("kind of block")),
        };
        next.apply(version, changes);
        Ok(next)
    }
}

/// The changes as one block.
pub(crate) fn encode_changes(version: RowVersion, changes: &RowsChanged) -> Bytes {
    let rows = changes.iter().map(|(key, row)| (key, row.as_ref()));
    encode(KIND_CHANGES, version, changes.len(), rows)
}

fn encode<'a>(
    kind: u8,
    version: RowVersion,
    count: usize,
    rows: impl Iterator<Item = (&'a RowKey, Option<&'a MapRow>)>,
) -> Bytes {
    let mut out = Vec::new();
    out.put_u8_field(FORMAT);
    out.put_u8_field(kind);
    out.put_u64_field(version.0);
    out.put_varint(count as u64);
    for (key, row) in rows {
        out.put_bytes_field(key.as_bytes());
        match row {
            None => out.put_u8_field(ROW_GONE),
            Some((version, value)) => {
                out.put_u8_field(ROW_THERE);
                out.put_u64_field(version.0);
                out.put_bytes_field(value);
            }
        }
    }
    out.into()
}

impl MarkRows for MapContent {
    fn show<'a>(
        &'a self,
        keys: &'a KeyRange,
        scan: &'a mut dyn Scan,
    ) -> BoxFuture<'a, Result<(), PartitionError>> {
        Box::pin(async move {
            MapContent::show(self, keys, scan);
            Ok(())
        })
    }
}

/// Whether a mark of a deleted container has no place any more beside so many rows.
pub(crate) fn is_mark_too_many(key: &[u8], row_count: usize, row_count_max: usize) -> bool {
    row_count >= row_count_max && all_marks().contains(key)
}

/// Collects the rows of the map's range, without the marks behind the first so many rows.
pub(crate) struct CollectMap {
    pub(crate) rows: BTreeMap<RowKey, MapRow>,
    row_count_max: usize,
}

impl CollectMap {
    pub(crate) fn new(row_count_max: usize) -> Self {
        CollectMap { rows: BTreeMap::new(), row_count_max }
    }
}

impl Scan for CollectMap {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        // Marks lie behind all rows of the map.
        if is_mark_too_many(row.key, self.rows.len(), self.row_count_max) {
            return Visit::StopBefore;
        }
        let key = RowKey::from_bytes(Bytes::copy_from_slice(row.key));
        self.rows.insert(key, (row.version, Bytes::copy_from_slice(row.value)));
        Visit::Continue
    }
}

/// A block that does not read.
pub(crate) fn unreadable(error: &DecodeError) -> PartitionError {
    PartitionError::Storage(format!("the partition map's copy: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(name: u8) -> RowKey {
        RowKey::new("", 0, "entity", &name.to_string())
    }

    type Drawn = Vec<(u8, Option<(u64, Vec<u8>)>)>;

    fn changes() -> impl Strategy<Value = Drawn> {
        prop::collection::vec((0u8..5, any::<Option<(u64, Vec<u8>)>>()), 0..5)
    }

    fn to_rows(changes: Drawn) -> RowsChanged {
        let row = |(version, value): (u64, Vec<u8>)| (RowVersion(version), Bytes::from(value));
        changes.into_iter().map(|(name, change)| (key(name), change.map(row))).collect()
    }

    #[test]
    fn blocks_that_can_t_follow_each_other_are_refused() {
        let content = MapContent { version: RowVersion(5), ..MapContent::default() };
        let changes = |version| encode_changes(RowVersion(version), &Vec::new());
        assert!(MapContent::add_block(None, &changes(9)).is_err(), "changes of nothing");
        assert!(MapContent::add_block(Some(content.clone()), &changes(4)).is_err(), "an older one");
        assert_eq!(MapContent::add_block(Some(content.clone()), &changes(5)), Ok(content.clone()));
        let older = MapContent { version: RowVersion(4), ..MapContent::default() }.snapshot();
        assert!(MapContent::add_block(Some(content), &older).is_err(), "an older snapshot");
        let gone = encode(KIND_SNAPSHOT, RowVersion(1), 1, std::iter::once((&key(1), None)));
        assert!(MapContent::add_block(None, &gone).is_err(), "a row that is gone from a snapshot");
    }

    proptest! {
        #[test]
        fn blocks_give_the_content_back(groups in prop::collection::vec((0u64..9, changes()), 0..6), cut in 0usize..6) {
            let (mut content, mut read) = (MapContent::default(), None);
            read = Some(MapContent::add_block(read, &content.snapshot()).unwrap());
            for (at, (version, changes)) in groups.into_iter().enumerate() {
                let changes = to_rows(changes);
                content.apply(RowVersion(version), changes.clone());
                let block = if at == cut { content.snapshot() } else { encode_changes(content.version, &changes) };
                read = Some(MapContent::add_block(read, &block).unwrap());
            }
            prop_assert_eq!(read, Some(content));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes: Vec<u8>) {
            for kind in [KIND_SNAPSHOT, KIND_CHANGES] {
                let block = [&[FORMAT, kind], bytes.as_slice()].concat();
                let _ = MapContent::add_block(Some(MapContent::default()), &block);
            }
            let _ = MapContent::add_block(None, &bytes);
        }
    }
}
