//! Blob data that does not read, or is not there: the rows that name it go, with what of their name is
//! nothing without them, and what else lies beside it is copied away, so that no damaged extent is left.

use crate::blob_data::data_ends::DataEnds;
use crate::blob_data::piece::{Piece, take_pieces};
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span, partition_prefix};
use crate::map::dead_filter::AliveRows;
use crate::operation::{
    Decision, ObjectTable, Operation, Read, Row, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use crate::range_partition::RangePartition;
use base::codec::Decoder;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::{ExtentId, Salvaged, StreamName, Streams};

/// Rows that one operation removes at most.
const REMOVED_ROW_COUNT_MAX: usize = 1000;

/// Where a data stream does not read.
#[derive(Clone, Debug, Default)]
pub(super) struct DamagedData {
    /// Bytes from, up to, and why, by extent.
    places: BTreeMap<ExtentId, Vec<(u64, u64, String)>>,
    /// Extents of which more than the end is in doubt.
    damaged: BTreeSet<ExtentId>,
    ends: DataEnds,
}

impl DamagedData {
    /// Looks at all of a stream.
    pub(super) async fn find(streams: &Streams, stream: &StreamName) -> Result<Self, PartitionError> {
        let mut found = DamagedData { ends: DataEnds::of(streams, stream)?, ..DamagedData::default() };
        let mut visit = |salvaged| {
            if let Salvaged::Missing { extent, from, to, is_end, problem } = salvaged {
                if !is_end {
                    found.damaged.insert(extent);
                }
                found.places.entry(extent).or_default().push((from, to, problem));
            }
        };
        streams.salvage(stream, &mut visit).await?;
        Ok(found)
    }

    /// Extents that are to be left.
    pub(super) fn extents(&self) -> &BTreeSet<ExtentId> {
        &self.damaged
    }

    /// Why a piece does not read, if it does not.
    fn problem_of(&self, piece: &Piece) -> Option<String> {
        let (from, to) = (piece.offset, piece.offset.saturating_add(piece.stored_bytes()));
        let mut places = self.places.get(&piece.extent).into_iter().flatten();
        let hit = places.find(|(start, end, _)| *start < to && from < *end);
        hit.map(|(.., problem)| problem.clone()).or_else(|| self.ends.problem_of(piece))
    }
}

/// A name of which something does not read.
pub(super) struct LostName {
    /// The keys of its rows that name what does not.
    pub(super) rows: Vec<RowKey>,
    /// Why the first of them does.
    pub(super) reason: String,
}

/// The names whose rows name damaged data.
pub(super) struct FindLost {
    damaged: Arc<DamagedData>,
    pub(super) names: Vec<LostName>,
    pub(super) error: Option<PartitionError>,
}

impl FindLost {
    /// Those among `keys`.
    pub(super) async fn among(
        range: &RangePartition,
        keys: &KeyRange,
        damaged: &Arc<DamagedData>,
    ) -> Result<Vec<LostName>, PartitionError> {
        let find = FindLost { damaged: damaged.clone(), names: Vec::new(), error: None };
        // Rows of deleted containers are no loss: they are never read.
        let mut alive = AliveRows::new(range.dead_filter(), keys.clone(), find);
        while let Some(part) = alive.next_part().await? {
            range.scan(&[Span::Range(part)], &mut alive).await?;
        }
        let find = alive.into_scan();
        find.error.map_or(Ok(find.names), Err)
    }
}

impl Scan for FindLost {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        let pieces = match take_pieces(&mut Decoder::new(row.value)) {
            Ok(pieces) => pieces,
            Err(error) => {
                self.error = Some(PartitionError::Storage(format!("stored row: {error}")));
                return Visit::StopBefore;
            }
        };
        if let Some(reason) = pieces.iter().find_map(|piece| self.damaged.problem_of(piece)) {
            let key = RowKey::from_bytes(Bytes::copy_from_slice(row.key));
            let prefix = partition_prefix(row.key);
            match self.names.last_mut().filter(|last| {
                last.rows.first().is_some_and(|first| partition_prefix(first.as_bytes()) == prefix)
            }) {
                Some(last) => last.rows.push(key),
                None => self.names.push(LostName { rows: vec![key], reason }),
            }
        }
        Visit::Continue
    }
}

/// Takes rows as they are.
#[derive(Default)]
struct TakeRows(BTreeMap<RowKey, Row>);

impl Scan for TakeRows {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        let key = RowKey::from_bytes(Bytes::copy_from_slice(row.key));
        let value = Bytes::copy_from_slice(row.value);
        self.0.insert(key.clone(), Row { key, version: row.version, value });
        Visit::Continue
    }
}

/// All rows with these keys.
pub(super) async fn rows_of(
    range: &RangePartition,
    keys: &KeyRange,
) -> Result<BTreeMap<RowKey, Row>, PartitionError> {
    let mut taken = TakeRows::default();
    range.scan(&[Span::Range(keys.clone())], &mut taken).await?;
    Ok(taken.0)
}

/// Takes keys of rows.
#[derive(Default)]
struct TakeKeys(Vec<RowKey>);

impl Scan for TakeKeys {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.0.len() == REMOVED_ROW_COUNT_MAX {
            return Visit::StopBefore;
        }
        self.0.push(RowKey::from_bytes(Bytes::copy_from_slice(row.key)));
        Visit::Continue
    }
}

/// Removes rows of one name.
struct RemoveRows {
    table: ObjectTable,
    keys: Vec<RowKey>,
}

impl Operation for RemoveRows {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        self.table
    }

    fn reads(&self) -> Vec<Read> {
        self.keys.first().map(|key| Read::Head(key.clone())).into_iter().collect()
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let changes = self.keys.iter().map(|key| RowChange::Delete { key: key.clone() }).collect();
        Decision { changes, reply: () }
    }
}

/// The keys of all rows of a row's name.
pub(super) fn keys_of_name(key: &RowKey) -> Result<KeyRange, PartitionError> {
    let parts = key.parts().ok_or(PartitionError::Operation("not a row key"))?;
    Ok(KeyRange::partition(&parts.account, parts.container_id, &parts.partition_name))
}

/// Removes all rows of a name.
pub(super) async fn remove_name(
    partitions: &crate::Partitions,
    range: &RangePartition,
    table: ObjectTable,
    keys: &KeyRange,
) -> Result<(), PartitionError> {
    loop {
        let mut taken = TakeKeys::default();
        range.scan(&[Span::Range(keys.clone())], &mut taken).await?;
        if taken.0.is_empty() {
            return Ok(());
        }
        partitions.execute(RemoveRows { table, keys: taken.0 }).await?;
    }
}
