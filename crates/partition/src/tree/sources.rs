//! The sorted sources that a merging iterator walks: memory tables, in chunks or copied whole, and parts of
//! checkpoints.
//!
//! What always holds: a source shows each key once, in order, with the newest change that its snapshot may
//! see, and nothing at or after its end.

use crate::blob_data::piece::overflow_start;
use crate::checkpoint::{CheckpointCursor, MergedRow, OVERFLOW_SIZE_BYTES_MIN, RowOverflow};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory::memory_table::MemoryTable;
use crate::operation::RowVersion;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Rows taken from a memory table at a time, at most.
const MEMORY_CHUNK_ROW_COUNT_MAX: usize = 64;
/// Rows taken from a memory table first by a walk that may jump, and wherever it goes on after that: it may
/// want no more than the first, and each lies somewhere else. Each time that all are wanted the next are
/// twice as many.
pub(super) const MEMORY_CHUNK_ROW_COUNT_MIN: usize = 1;
/// Bytes of rows copied from a memory table at a time: few enough to be in the processor's cache when they
/// are written. One row more may make it larger.
const COPIED_CHUNK_SIZE_BYTES: usize = 64 << 10;

/// Walks the rows of a range in a memory table, in chunks.
pub(super) struct MemoryCursor {
    table: Arc<MemoryTable>,
    at: RowVersion,
    chunk: Vec<MemoryRow>,
    /// Keys of the chunk.
    keys: Vec<u8>,
    /// The row of the chunk that it stands on.
    current: usize,
    /// Rows of the next chunk.
    next_row_count: usize,
    /// Where that starts, if it `has_next`.
    next_start: Vec<u8>,
    has_next: bool,
    end: Option<Bytes>,
}

struct MemoryRow {
    key: Range<usize>,
    version: RowVersion,
    value: Option<Bytes>,
}

impl MemoryCursor {
    /// It is likely to want `row_count` rows.
    pub(super) fn new(table: Arc<MemoryTable>, range: KeyRange, at: RowVersion, row_count: usize) -> Self {
        let mut cursor = MemoryCursor {
            table,
            at,
            chunk: Vec::new(),
            keys: Vec::new(),
            current: 0,
            next_row_count: row_count.clamp(MEMORY_CHUNK_ROW_COUNT_MIN, MEMORY_CHUNK_ROW_COUNT_MAX),
            next_start: range.start.to_vec(),
            has_next: true,
            end: range.end,
        };
        cursor.fill();
        cursor
    }

    /// Only when it has been through the chunk.
    fn fill(&mut self) {
        let MemoryCursor { chunk, keys, next_row_count, next_start, .. } = self;
        chunk.clear();
        keys.clear();
        self.current = 0;
        if !std::mem::take(&mut self.has_next) {
            return;
        }
        self.table.scan(next_start, self.end.as_deref(), self.at, |key, version, value| {
            let start = keys.len();
            keys.extend_from_slice(key);
            chunk.push(MemoryRow { key: start..keys.len(), version, value: value.cloned() });
            chunk.len() < *next_row_count
        });
        if chunk.len() == *next_row_count
            && let Some(last) = chunk.last()
        {
            next_start.clear();
            next_start.extend_from_slice(&keys[last.key.clone()]);
            next_start.push(0);
            self.has_next = true;
        }
        *next_row_count = MEMORY_CHUNK_ROW_COUNT_MAX.min(2 * *next_row_count);
    }

    /// The row it stands on: key, version and value; `None` at the end.
    pub(super) fn row(&self) -> Option<(&[u8], RowVersion, Option<&Bytes>)> {
        let MemoryRow { key, version, value } = self.chunk.get(self.current)?;
        Some((&self.keys[key.clone()], *version, value.as_ref()))
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.row().map(|(key, _, _)| key)
    }

    pub(super) fn step(&mut self) {
        self.current += 1;
        if self.current >= self.chunk.len() {
            self.fill();
        }
    }

    /// Goes on to the first row at or after `key`, which lies ahead.
    pub(super) fn seek(&mut self, key: &[u8]) {
        let is_before = |row: &MemoryRow| self.keys[row.key.clone()] < *key;
        self.current += self.chunk[self.current..].partition_point(is_before);
        if self.current < self.chunk.len() {
            return;
        }
        if *self.next_start < *key {
            self.next_start.clear();
            self.next_start.extend_from_slice(key);
            self.next_row_count = MEMORY_CHUNK_ROW_COUNT_MIN;
        }
        self.fill();
    }
}

/// Walks a memory table from start to end, every row at its newest. Rows lie all over the memory: in one go
/// the processor fetches several of them at a time, and none has to be held and let go. But long overflows
/// are not copied, if they are to be kept apart.
pub(super) struct CopyingCursor {
    table: Arc<MemoryTable>,
    /// Values begin with their start (see [`crate::RowStart`]).
    with_overflow: bool,
    rows: Vec<CopiedRow>,
    /// Keys and values of `rows`.
    bytes: Vec<u8>,
    /// The row it stands on.
    at: usize,
    /// Where the next chunk starts; `None`: there is none.
    rest: Option<Vec<u8>>,
}

struct CopiedRow {
    key: Range<usize>,
    version: RowVersion,
    value: Option<Range<usize>>,
    /// What follows the value, if that was not copied.
    overflow: Option<Bytes>,
}

impl CopyingCursor {
    pub(super) fn new(table: Arc<MemoryTable>, with_overflow: bool) -> Self {
        let rest = Some(Vec::new());
        let mut cursor =
            CopyingCursor { table, with_overflow, rows: Vec::new(), bytes: Vec::new(), at: 0, rest };
        cursor.fill();
        cursor
    }

    fn fill(&mut self) {
        let CopyingCursor { table, with_overflow, rows, bytes, at, rest } = self;
        let Some(start) = rest.take() else { return };
        rows.clear();
        bytes.clear();
        *at = 0;
        let mut copy = |part: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(part);
            start..bytes.len()
        };
        let mut is_full = false;
        table.scan(&start, None, RowVersion(u64::MAX), |key, version, value| {
            let overflow = value.filter(|_| *with_overflow).and_then(long_overflow);
            let head_len = |value: &Bytes| value.len() - overflow.as_ref().map_or(0, Bytes::len);
            let (key, value) = (copy(key), value.map(|value| copy(&value[..head_len(value)])));
            is_full = value.as_ref().unwrap_or(&key).end >= COPIED_CHUNK_SIZE_BYTES;
            rows.push(CopiedRow { key, version, value, overflow });
            !is_full
        });
        if let Some(last) = rows.last().filter(|_| is_full) {
            *rest = Some([&bytes[last.key.clone()], &[0]].concat());
        }
    }

    pub(super) fn row(&self) -> Option<MergedRow<'_>> {
        let CopiedRow { key, version, value, overflow } = self.rows.get(self.at)?;
        let value = value.clone().map(|value| &self.bytes[value]);
        let overflow = overflow.as_ref().map_or(RowOverflow::InValue, RowOverflow::InMemory);
        Some(MergedRow { key: &self.bytes[key.clone()], version: *version, value, overflow })
    }

    pub(super) fn step(&mut self) {
        self.at += 1;
        if self.at >= self.rows.len() {
            self.fill();
        }
    }
}

/// The overflow of a value, if it is long. A value that can't be read stays whole: the reader gets the error.
fn long_overflow(value: &Bytes) -> Option<Bytes> {
    let start = overflow_start(value).ok()?;
    (value.len() - start >= OVERFLOW_SIZE_BYTES_MIN).then(|| value.slice(start..))
}

/// A walk over a checkpoint that ends at the first row at or after `end`.
pub(super) struct BoundedCheckpoint {
    pub(super) cursor: CheckpointCursor,
    end: Option<Bytes>,
}

impl BoundedCheckpoint {
    pub(super) fn new(cursor: CheckpointCursor, end: Option<Bytes>) -> Self {
        let mut bounded = BoundedCheckpoint { cursor, end };
        bounded.stop_at_end();
        bounded
    }

    /// After each move, so that no other code checks the end.
    fn stop_at_end(&mut self) {
        if let (Some(end), Some(key)) = (&self.end, self.cursor.key())
            && **end <= *key
        {
            self.cursor.end();
        }
    }

    pub(super) async fn step(&mut self) -> Result<(), PartitionError> {
        if !self.cursor.step_in_block()? {
            self.cursor.step().await?;
        }
        self.stop_at_end();
        Ok(())
    }

    pub(super) async fn seek(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        if self.end.as_ref().is_some_and(|end| **end <= *key) {
            self.cursor.end();
            return Ok(());
        }
        self.cursor.seek(key).await?;
        self.stop_at_end();
        Ok(())
    }
}

/// A sorted source of rows: each key once.
pub(super) enum Source {
    Memory(MemoryCursor),
    Copied(CopyingCursor),
    Checkpoint(Box<BoundedCheckpoint>),
}

impl Source {
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Memory(memory) => memory.key(),
            Source::Copied(copied) => copied.row().map(|row| row.key),
            Source::Checkpoint(checkpoint) => checkpoint.cursor.key(),
        }
    }

    pub(super) fn row(&self) -> Option<MergedRow<'_>> {
        match self {
            Source::Memory(memory) => memory.row().map(|(key, version, value)| MergedRow {
                key,
                version,
                value: value.map(Bytes::as_ref),
                overflow: RowOverflow::InValue,
            }),
            Source::Copied(copied) => copied.row(),
            Source::Checkpoint(checkpoint) => checkpoint.cursor.key().map(|key| MergedRow {
                key,
                version: checkpoint.cursor.version(),
                value: checkpoint.cursor.value_ref(),
                overflow: checkpoint.cursor.overflow(),
            }),
        }
    }

    pub(super) async fn step(&mut self) -> Result<(), PartitionError> {
        match self {
            Source::Memory(memory) => {
                memory.step();
                Ok(())
            }
            Source::Copied(copied) => {
                copied.step();
                Ok(())
            }
            Source::Checkpoint(checkpoint) => checkpoint.step().await,
        }
    }

    /// Goes on to the first row at or after `key`, which lies ahead.
    pub(super) async fn seek(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        match self {
            Source::Memory(memory) => memory.seek(key),
            Source::Copied(copied) => {
                while copied.row().is_some_and(|row| row.key < key) {
                    copied.step();
                }
            }
            Source::Checkpoint(checkpoint) => checkpoint.seek(key).await?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use std::collections::BTreeMap;

    /// A walk over more rows than one chunk once showed the last row of each chunk twice.
    #[test]
    fn a_walk_over_many_rows_in_memory_shows_each_once() {
        let table = Arc::new(MemoryTable::default());
        let key = |row: usize| RowKey::new("a", 1, "p", &format!("{row:04}"));
        let count = 5 * MEMORY_CHUNK_ROW_COUNT_MAX + 1;
        for version in 1..=2 {
            for row in 0..count {
                table.insert(key(row).as_bytes(), RowVersion((version * count + row) as u64), None);
            }
        }
        let mut cursor = MemoryCursor::new(table, KeyRange::all(), RowVersion(u64::MAX), 1);
        let mut shown = Vec::new();
        while let Some(key) = cursor.key() {
            shown.push(RowKey::from_bytes(Bytes::copy_from_slice(key)));
            cursor.step();
        }
        assert_eq!(shown, (0..count).map(key).collect::<Vec<_>>());
    }

    /// Jumps of all lengths, from all rows, in any phase of the chunks.
    #[test]
    fn a_seek_in_memory_goes_to_the_first_row_at_or_after_the_key() {
        let table = Arc::new(MemoryTable::default());
        let key = |row: usize| RowKey::new("a", 1, "p", &format!("{row:04}"));
        let count = 3 * MEMORY_CHUNK_ROW_COUNT_MAX;
        for row in (0..count).step_by(2) {
            table.insert(key(row).as_bytes(), RowVersion(1 + row as u64), None);
        }
        for steps in 0..count / 2 {
            for length in [1, 2, 3, 4, 9, 40, MEMORY_CHUNK_ROW_COUNT_MAX, count] {
                let mut cursor = MemoryCursor::new(table.clone(), KeyRange::all(), RowVersion(u64::MAX), 1);
                (0..steps).for_each(|_| cursor.step());
                let mut expected = (2 * steps + length).next_multiple_of(2);
                cursor.seek(key(2 * steps + length).as_bytes());
                while let Some(at) = cursor.key() {
                    assert_eq!(at, key(expected).as_bytes().as_ref(), "{steps} steps, then {length} on");
                    cursor.step();
                    expected += 2;
                }
                assert!(expected >= count, "{steps} steps, then {length} on: it ends before {expected}");
            }
        }
    }

    /// All rows that a walk over one memory table shows.
    fn walked(table: &Arc<MemoryTable>) -> Vec<(Bytes, RowVersion, Option<Bytes>)> {
        let mut cursor = CopyingCursor::new(table.clone(), false);
        let mut shown = Vec::new();
        while let Some(row) = cursor.row() {
            let value = row.value.map(Bytes::copy_from_slice);
            shown.push((Bytes::copy_from_slice(row.key), row.version, value));
            cursor.step();
        }
        shown
    }

    /// Rows that fill chunks exactly, nearly and many times, deleted ones, and one of several versions.
    #[test]
    fn a_walk_over_a_whole_table_shows_each_row_once_at_its_newest() {
        for value_size in [0, 1, 1000, COPIED_CHUNK_SIZE_BYTES / 4, COPIED_CHUNK_SIZE_BYTES, 1 << 20] {
            for count in [0, 1, 2, 9, 300].into_iter().filter(|count| count * value_size <= 16 << 20) {
                let table = Arc::new(MemoryTable::default());
                let mut expected = BTreeMap::new();
                for row in 0..count {
                    let key = RowKey::new("a", 1, "p", &format!("{row:04}"));
                    let value = (row % 3 > 0).then(|| Bytes::from(vec![row as u8; value_size]));
                    table.insert(key.as_bytes(), RowVersion(1), Some(Bytes::from_static(b"older")));
                    table.insert(key.as_bytes(), RowVersion(2 + row as u64), value.clone());
                    expected.insert(key.as_bytes().clone(), (RowVersion(2 + row as u64), value));
                }
                let expected: Vec<_> =
                    expected.into_iter().map(|(key, (version, value))| (key, version, value)).collect();
                assert!(walked(&table) == expected, "{count} rows of {value_size} bytes");
            }
        }
    }
}
