//! Walks several sorted sources as one: for each key the newest change that a snapshot may see.
//!
//! What always holds: sources are ordered newest first, so of equal keys the first source's is the newest. A
//! tombstone is shown; the caller decides whether it matters.

use super::sources::{BoundedCheckpoint, CopyingCursor, MEMORY_CHUNK_ROW_COUNT_MIN, MemoryCursor, Source};
use crate::checkpoint::{
    Caching, CheckpointCursor, MergedRow, OverflowReads, RowOverflow, WalkReads, choose_read_ahead,
};
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey};
use crate::memory::memory_table::{Found, MemoryTable};
use crate::operation::{Row, RowVersion};
use crate::tree::{Tree, TreeCheckpoint};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The walk. It stands on a row, or at the end.
pub(crate) struct MergingIterator {
    sources: Vec<Source>,
    /// The source whose row it stands on.
    current: Option<usize>,
    /// Other sources that stand on the same key, with older changes.
    older: Vec<usize>,
    /// Only rows of the last source are shown, and of those only the ones that no other has.
    only_last: bool,
}

/// Steps over rows that are not shown, after which requests come first.
const HIDDEN_STEP_COUNT: u64 = 256;

impl MergingIterator {
    /// Over a whole tree, as seen at version `at`.
    pub(crate) async fn over_tree(
        tree: &Tree,
        range: &KeyRange,
        at: RowVersion,
        caching: Caching,
    ) -> Result<Self, PartitionError> {
        let cursor = |table: &Arc<MemoryTable>| {
            MemoryCursor::new(table.clone(), range.clone(), at, MEMORY_CHUNK_ROW_COUNT_MIN)
        };
        let memory = tree.memory_tables().map(cursor);
        let mut sources: Vec<Source> =
            memory.filter(|cursor| cursor.row().is_some()).map(Source::Memory).collect();
        add_checkpoints(&mut sources, &tree.checkpoints, range, caching, &OverflowReads::All).await?;
        Ok(Self::new(sources))
    }

    /// Over one memory table, every row at its newest. `with_overflow`: values begin with their start, and
    /// long overflows are kept apart from them.
    pub(crate) fn over_memory(table: Arc<MemoryTable>, with_overflow: bool) -> Self {
        Self::new(vec![Source::Copied(CopyingCursor::new(table, with_overflow))])
    }

    /// Over some checkpoints.
    pub(crate) async fn over_checkpoints(
        checkpoints: &[Arc<TreeCheckpoint>],
        range: &KeyRange,
        caching: Caching,
        overflow_reads: &OverflowReads,
    ) -> Result<Self, PartitionError> {
        let mut sources = Vec::with_capacity(checkpoints.len());
        add_checkpoints(&mut sources, checkpoints, range, caching, overflow_reads).await?;
        Ok(Self::new(sources))
    }

    /// Over the rows of a checkpoint that none of the `newer` ones hides, deletions included.
    pub(crate) async fn over_unhidden(
        newer: &[Arc<TreeCheckpoint>],
        of: &Arc<TreeCheckpoint>,
        range: &KeyRange,
        overflow_reads: &OverflowReads,
    ) -> Result<Self, PartitionError> {
        let mut sources = Vec::with_capacity(newer.len() + 1);
        let (part, caching) = (of.visible_part(range), Caching::Bypass);
        add_checkpoints(&mut sources, newer, &part, caching, &OverflowReads::None).await?;
        add_checkpoints(&mut sources, std::slice::from_ref(of), &part, caching, overflow_reads).await?;
        let mut cursor = Self::new(sources);
        cursor.only_last = true;
        cursor.pass_hidden().await?;
        Ok(cursor)
    }

    fn new(sources: Vec<Source>) -> Self {
        let mut cursor = MergingIterator { sources, current: None, older: Vec::new(), only_last: false };
        cursor.choose();
        cursor
    }

    async fn pass_hidden(&mut self) -> Result<(), PartitionError> {
        let mut passed: u64 = 0;
        while self.current.is_some_and(|current| current + 1 < self.sources.len()) {
            self.step_once().await?;
            passed += 1;
            if passed.is_multiple_of(HIDDEN_STEP_COUNT) {
                base::give_way().await;
            }
        }
        Ok(())
    }

    /// The row it stands on; `None` at the end.
    pub(crate) fn row(&self) -> Option<MergedRow<'_>> {
        self.sources[self.current?].row()
    }

    /// The value of the row it stands on, without an overflow that is kept apart; shared with where it lies
    /// if that is memory.
    pub(crate) fn value(&self) -> Option<Bytes> {
        match &self.sources[self.current?] {
            Source::Memory(memory) => memory.row().and_then(|(_, _, value)| value.cloned()),
            source => source.row()?.value.map(Bytes::copy_from_slice),
        }
    }

    /// The row it stands on with all of its value, which is put together in `scratch` if its overflow is kept
    /// apart.
    pub(crate) async fn whole_row<'a>(
        &'a self,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<MergedRow<'a>>, PartitionError> {
        let Some(row) = self.row() else { return Ok(None) };
        let overflow = match (row.overflow, self.current.map(|at| &self.sources[at])) {
            (RowOverflow::Stored(_) | RowOverflow::Read(_), Some(Source::Checkpoint(checkpoint))) => {
                checkpoint.cursor.unpacked_overflow().await?
            }
            (RowOverflow::InMemory(overflow), _) => Some(overflow.clone()),
            _ => None,
        };
        let (Some(head), Some(overflow)) = (row.value, overflow) else { return Ok(Some(row)) };
        scratch.clear();
        scratch.extend_from_slice(head);
        scratch.extend_from_slice(&overflow);
        Ok(Some(MergedRow { value: Some(scratch), overflow: RowOverflow::InValue, ..row }))
    }

    /// Steps to the next key.
    pub(crate) async fn step(&mut self) -> Result<(), PartitionError> {
        self.step_once().await?;
        if self.only_last { self.pass_hidden().await } else { Ok(()) }
    }

    async fn step_once(&mut self) -> Result<(), PartitionError> {
        let Some(current) = self.current else { return Ok(()) };
        self.sources[current].step().await?;
        for older in std::mem::take(&mut self.older) {
            self.sources[older].step().await?;
        }
        self.choose();
        Ok(())
    }

    /// Goes on to the first row at or after `key`. Where that lies behind, it stays where it is.
    pub(crate) async fn seek(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        for source in &mut self.sources {
            if source.key().is_some_and(|at| at < key) {
                source.seek(key).await?;
            }
        }
        self.choose();
        Ok(())
    }

    /// Finds the smallest key, its newest source and the others that have it.
    fn choose(&mut self) {
        self.current = None;
        self.older.clear();
        let mut smallest: Option<&[u8]> = None;
        for (index, source) in self.sources.iter().enumerate() {
            let Some(key) = source.key() else { continue };
            match smallest.map(|smallest| key.cmp(smallest)) {
                None | Some(std::cmp::Ordering::Less) => {
                    smallest = Some(key);
                    self.current = Some(index);
                    self.older.clear();
                }
                Some(std::cmp::Ordering::Equal) => self.older.push(index),
                Some(std::cmp::Ordering::Greater) => {}
            }
        }
    }
}

/// The first `limit` rows of `range` that are there: memory tables, newest first, over `changes` that are
/// older than all of them and complete for the range.
pub(crate) fn merge_over<'a>(
    tables: impl Iterator<Item = &'a Arc<MemoryTable>>,
    range: &KeyRange,
    changes: BTreeMap<Bytes, Found>,
    limit: usize,
) -> Vec<Row> {
    let newest = RowVersion(u64::MAX);
    let mut cursors: Vec<MemoryCursor> =
        tables.map(|table| MemoryCursor::new(table.clone(), range.clone(), newest, limit)).collect();
    let mut changes = changes.into_iter().peekable();
    let mut rows = Vec::new();
    while rows.len() < limit {
        let in_memory = cursors.iter().filter_map(MemoryCursor::key);
        let smallest = in_memory.chain(changes.peek().map(|(key, _)| key.as_ref())).min();
        let Some(key) = smallest.map(Bytes::copy_from_slice) else { break };
        let mut found = None;
        for cursor in &mut cursors {
            if let Some((_, version, value)) = cursor.row().filter(|(at, _, _)| *at == key) {
                found = found.or_else(|| Some((version, value.cloned())));
                cursor.step();
            }
        }
        if let Some((_, change)) = changes.next_if(|(at, _)| *at == key) {
            found = found.or(Some((change.version, change.value)));
        }
        if let Some((version, Some(value))) = found {
            rows.push(Row { key: RowKey::from_bytes(key), version, value });
        }
    }
    rows
}

async fn add_checkpoints(
    sources: &mut Vec<Source>,
    checkpoints: &[Arc<TreeCheckpoint>],
    range: &KeyRange,
    caching: Caching,
    overflow_reads: &OverflowReads,
) -> Result<(), PartitionError> {
    let ahead_size_bytes = choose_read_ahead(checkpoints.len());
    for checkpoint in checkpoints {
        let part = checkpoint.visible_part(range);
        if !part.is_empty() {
            let walked = checkpoint.checkpoint.clone();
            let reads = WalkReads { caching, overflows: overflow_reads.clone(), ahead_size_bytes };
            let cursor = CheckpointCursor::new(walked, &part.start, reads).await?;
            sources.push(Source::Checkpoint(Box::new(BoundedCheckpoint::new(cursor, part.end))));
        }
    }
    Ok(())
}
