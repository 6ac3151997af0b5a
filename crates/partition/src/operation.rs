//! What a service hands to the partition layer: operations as data with a pure decision, and scans.
//!
//! A write names the rows it must see and decides over them without I/O, clock or chance; the range partition
//! fetches the rows, calls the decision in its serial section and makes the changes durable before the reply
//! leaves. A scan walks a snapshot and is pushed down to where the rows are.

use crate::key::{KeyRange, RowKey};
use bytes::Bytes;

/// The fixed set of tables that all data lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectTable {
    /// The layer's own: which ranges there are. One range, never split.
    PartitionMap,
    /// Tables, queues and blob containers by name; service settings.
    Container,
    /// The Table service's entities.
    Entity,
    /// The Queue service's messages.
    Message,
    /// The Blob service's blobs. Its rows name pieces of blob data.
    Blob,
}

/// Each object table that is cut into ranges: all but the map of these ranges.
pub const OBJECT_TABLES: [ObjectTable; 4] =
    [ObjectTable::Container, ObjectTable::Entity, ObjectTable::Message, ObjectTable::Blob];

impl ObjectTable {
    /// The name in stream names and logs.
    pub fn name(self) -> &'static str {
        match self {
            ObjectTable::PartitionMap => "partition_map",
            ObjectTable::Container => "container",
            ObjectTable::Entity => "entity",
            ObjectTable::Message => "message",
            ObjectTable::Blob => "blob",
        }
    }

    /// Whether its ranges have blob data, and its rows start with the pieces that they name.
    pub fn has_data(self) -> bool {
        self == ObjectTable::Blob
    }
}

/// The version of a row: server time in [`base::Ticks`], strictly increasing in each range, bumped when the
/// clock stands still or runs backwards. All changes of one operation share one version. It is the Timestamp
/// and the ETag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowVersion(pub u64);

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it is.
    pub key: RowKey,
    /// When it was last written.
    pub version: RowVersion,
    /// What the service stored.
    pub value: Bytes,
}

/// Which rows a decision must see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The row at a key, or its absence.
    Point(RowKey),
    /// The same, but the row may come without its overflow (see [`RowStart`](crate::RowStart)): that costs
    /// less. Whether it does differs from time to time.
    Head(RowKey),
    /// The first `limit` rows of a small range. All of them or none: an operation that would read more than
    /// [`OPERATION_READ_SIZE_BYTES_MAX`](crate::OPERATION_READ_SIZE_BYTES_MAX) is refused.
    Range {
        /// Where to look.
        range: KeyRange,
        /// Rows at most.
        limit: usize,
    },
}

/// How much of a row is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowPart {
    /// All of it.
    Whole,
    /// Its overflow need not be there.
    Head,
}

/// What the reads found, in the order of [`Operation::reads`].
#[derive(Debug, Default)]
pub struct Rows {
    found: Vec<Vec<Row>>,
}

impl Rows {
    /// Rows found for each read, in order; table tests build their own.
    pub fn new(found: Vec<Vec<Row>>) -> Self {
        Rows { found }
    }

    /// The row of the `index`th read, if it is there.
    pub fn point(&self, index: usize) -> Option<&Row> {
        self.found.get(index).and_then(|rows| rows.first())
    }

    /// The rows of all reads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Row> {
        self.found.iter().flatten()
    }

    /// The rows of the `index`th read, in key order.
    pub fn range(&self, index: usize) -> &[Row] {
        self.found.get(index).map_or(&[], Vec::as_slice)
    }
}

/// One change to one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// The row now holds `value`.
    Put {
        /// Which row.
        key: RowKey,
        /// Its new value. Copy it out of network buffers: a slice would pin them in the memory table.
        value: Bytes,
    },
    /// The row is gone.
    Delete {
        /// Which row.
        key: RowKey,
    },
}

impl RowChange {
    /// Which row it changes.
    pub fn key(&self) -> &RowKey {
        match self {
            RowChange::Put { key, .. } | RowChange::Delete { key } => key,
        }
    }
}

/// What an operation does: all changes atomically, then the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<R> {
    /// Applied all or not at all, under one row version. All in one partition name. Empty for a refusal.
    pub changes: Vec<RowChange>,
    /// Sent once the changes, and all that the decision saw, are durable.
    pub reply: R,
}

impl<R> Decision<R> {
    /// A reply that changes nothing.
    pub fn unchanged(reply: R) -> Self {
        Decision { changes: Vec::new(), reply }
    }
}

/// A service's request as plain data. All its reads and changes lie in one partition name of one object
/// table.
pub trait Operation: Send + Sync + 'static {
    /// What is returned to the requester.
    type Reply: Send + 'static;

    /// Which object table it reads and changes.
    fn object_table(&self) -> ObjectTable;

    /// Which rows the decision must see. Never empty: the first read also says which range owns the
    /// operation.
    fn reads(&self) -> Vec<Read>;

    /// Whether it is there to give space back, now or later, and so is taken while space is scarce although
    /// it puts rows. What only deletes rows is taken anyway, and so is what changes nothing.
    fn gives_back(&self) -> bool {
        false
    }

    /// Whether it is a part of a collection of blob data, whose space is claimed: it doesn't wait for
    /// others'.
    fn is_collection(&self) -> bool {
        false
    }

    /// Decides. Pure: the same rows and version give the same decision. `version` is what the changes will
    /// carry, and serves as the time of the decision.
    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply>;
}

/// A row as a scan sees it, borrowed from where it lies.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Encoded key; see [`crate::key::parse_row_key`].
    pub key: &'a [u8],
    /// When it was last written.
    pub version: RowVersion,
    /// What the service stored.
    pub value: &'a [u8],
}

/// What a scan wants after a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    /// This row is done, show the next.
    Continue,
    /// This row is done, and no row before this key is wanted: show the first one at or after it. To pass
    /// over many rows so costs little more than one row does. A key that is not after this row's changes
    /// nothing.
    SkipTo(Bytes),
    /// Stop; this row was not taken: a later scan starts at it.
    StopBefore,
}

/// Code that is pushed down to the rows: it filters, projects and collects.
pub trait Scan: Send + 'static {
    /// Called for each row of the spans, in key order. All rows of one partition name are of one snapshot,
    /// however many spans they lie in.
    fn visit(&mut self, row: RowRef<'_>) -> Visit;

    /// Whether it must see the overflows of rows (see [`RowStart`](crate::RowStart)). Else it is shown some
    /// rows without theirs, which costs less.
    fn needs_overflow(&self) -> bool {
        true
    }

    /// Called between spans, and every now and then between rows: so many deleted rows, which are not shown,
    /// were passed over since the last call. A scan that bounds its work can say here that it has had enough:
    /// then it ends before the next row, there or deleted, or the next point.
    fn pass_over(&mut self, _unseen: u64) -> Visit {
        Visit::Continue
    }
}

/// Where a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Every row was shown.
    Complete,
    /// The scan asked to stop: more may be there, go on at this key (inclusive).
    More(Bytes),
}
