//! Blob data that does not read: the names whose rows name it are removed whole, and what else lies beside it is copied away,
//! so that no damaged extent is left.

use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span, parse_row_key, partition_prefix};
use crate::operation::{
    Decision, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use crate::piece::{Piece, take_pieces};
use crate::range_partition::RangePartition;
use base::codec::Decoder;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
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
}

impl DamagedData {
    /// Looks at all of a stream.
    pub(super) async fn find(streams: &Streams, stream: &StreamName) -> Result<Self, PartitionError> {
        let mut found = DamagedData::default();
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

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Extents that are to be left.
    pub(super) fn extents(&self) -> &BTreeSet<ExtentId> {
        &self.damaged
    }

    /// Why a piece does not read, if it does not.
    fn problem_of(&self, piece: &Piece) -> Option<&str> {
        let (from, to) = (piece.offset, piece.offset + piece.stored_bytes());
        let places = self.places.get(&piece.extent)?;
        let hit = places.iter().find(|(start, end, _)| *start < to && from < *end)?;
        Some(&hit.2)
    }
}

/// A name of which something does not read.
pub(super) struct LostName {
    /// The key of one of its rows.
    pub(super) key: Bytes,
    pub(super) reason: String,
}

/// The names whose rows name damaged data.
pub(super) struct FindLost {
    damaged: DamagedData,
    pub(super) names: Vec<LostName>,
    pub(super) error: Option<PartitionError>,
}

impl FindLost {
    pub(super) fn new(damaged: DamagedData) -> Self {
        FindLost { damaged, names: Vec::new(), error: None }
    }
}

impl Scan for FindLost {
    fn needs_tails(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        let prefix = partition_prefix(row.key);
        if self.names.last().is_some_and(|last| partition_prefix(&last.key) == prefix) {
            return Visit::Continue;
        }
        match take_pieces(&mut Decoder::new(row.value)) {
            Ok(pieces) => {
                if let Some(problem) = pieces.iter().find_map(|piece| self.damaged.problem_of(piece)) {
                    let key = Bytes::copy_from_slice(row.key);
                    self.names.push(LostName { key, reason: problem.to_owned() });
                }
                Visit::Continue
            }
            Err(error) => {
                self.error = Some(PartitionError::Storage(format!("stored row: {error}")));
                Visit::StopBefore
            }
        }
    }
}

/// Takes keys of rows.
#[derive(Default)]
struct TakeKeys(Vec<RowKey>);

impl Scan for TakeKeys {
    fn needs_tails(&self) -> bool {
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

/// Removes all rows of a name.
pub(super) async fn remove_name(
    partitions: &crate::Partitions,
    range: &RangePartition,
    table: ObjectTable,
    key: &[u8],
) -> Result<(), PartitionError> {
    let parts = parse_row_key(key).ok_or(PartitionError::Operation("not a row key"))?;
    let keys = KeyRange::partition(&parts.account, parts.container_id, &parts.partition_name);
    loop {
        let mut taken = TakeKeys::default();
        range.scan(&[Span::Range(keys.clone())], &mut taken).await?;
        if taken.0.is_empty() {
            return Ok(());
        }
        partitions.execute(RemoveRows { table, keys: taken.0 }).await?;
    }
}
