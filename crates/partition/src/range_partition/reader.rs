//! Reads: gets and scans over a snapshot, beside the writers and without waiting for them. What is found
//! counts only if the lease holds when it is returned.

use super::pinned_view::PinnedView;
use super::range_tree::RangeTree;
use super::slow_scans::SlowScans;
use crate::checkpoint::{Aside, Caching, HashedKey};
use crate::compaction::choose_tombstone_compaction::PASSED_TOMBSTONE_COUNT_MAX;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span};
use crate::memory::memory_table::Found;
use crate::operation::{Row, RowPart, RowRef, RowVersion, Scan, Visit};
use crate::tree::merging_iterator::MergingIterator;
use crate::tree::{Tree, TreeCheckpoint};
use bytes::Bytes;
use std::sync::Arc;

/// A walk lets other work of its thread go on each time it has gone over this many rows: a page over a whole
/// table must not hold up the group commit. It also tells its scan then how many of them were deletions,
/// which are not shown.
pub(super) const WALK_YIELD_ROW_COUNT: u64 = 128;

/// Rows of a memory table, and their bytes, that a walk backward turns round at a time, at most.
const BACKWARD_ROW_COUNT_MAX: usize = 64;
const BACKWARD_SIZE_BYTES_MAX: usize = 256 << 10;

/// Reads rows of a range.
pub(super) struct Reader {
    core: Arc<RangeTree>,
    slow_scans: Arc<SlowScans>,
}

impl Reader {
    pub(super) fn new(core: Arc<RangeTree>, slow_scans: Arc<SlowScans>) -> Self {
        Reader { core, slow_scans }
    }

    /// The row at `key`, or that part of it, if it is there.
    pub(super) async fn get(&self, key: &RowKey, part: RowPart) -> Result<Option<Row>, PartitionError> {
        self.core.check_lease()?;
        let (tree, visible) = self.core.snapshot();
        let found = get_from(&tree, visible, key, part).await?;
        self.core.check_lease()?;
        Ok(found)
    }

    /// Shows the rows of `spans`, as far as they lie here, all from one snapshot: an operation that changes
    /// rows in several spans is seen whole or not at all.
    pub(super) async fn scan(&self, spans: &[Span], scan: &mut dyn Scan) -> Result<WalkEnd, PartitionError> {
        self.core.check_lease()?;
        let (tree, visible) = self.core.snapshot();
        let walked = scan_snapshot(&self.core.range, (&tree, visible), spans, scan).await?;
        self.core.check_lease()?;
        if walked.passed_mostly_tombstones() {
            self.slow_scans.note(&self.core);
        }
        Ok(walked.end)
    }

    /// The same of rows as they were.
    pub(super) async fn scan_view(
        &self,
        view: &PinnedView,
        spans: &[Span],
        scan: &mut dyn Scan,
    ) -> Result<WalkEnd, PartitionError> {
        self.core.check_lease()?;
        let walked = scan_snapshot(&self.core.range, (&view.tree, view.visible), spans, scan).await?;
        self.core.check_lease()?;
        Ok(walked.end)
    }

    /// Shows the rows of `spans`, as far as they lie here, from the last one to the first, as they were or as
    /// they are. Where the scan ends, is wanted or not, is the last key that a later one starts at.
    pub(super) async fn scan_backward(
        &self,
        view: Option<&PinnedView>,
        spans: &[Span],
        scan: &mut dyn Scan,
    ) -> Result<WalkEnd, PartitionError> {
        self.core.check_lease()?;
        let walked = match view {
            Some(view) => scan_backward(&self.core.range, (&view.tree, view.visible), spans, scan).await?,
            None => {
                let (tree, visible) = self.core.snapshot();
                scan_backward(&self.core.range, (&tree, visible), spans, scan).await?
            }
        };
        self.core.check_lease()?;
        if walked.passed_mostly_tombstones() && view.is_none() {
            self.slow_scans.note(&self.core);
        }
        Ok(walked.end)
    }
}

/// As [`scan_snapshot`], from the last row to the first.
async fn scan_backward(
    keys: &KeyRange,
    (tree, visible): (&Tree, RowVersion),
    spans: &[Span],
    scan: &mut dyn Scan,
) -> Result<Walked, PartitionError> {
    let mut walk = Walk::new(scan);
    for span in spans.iter().rev() {
        let stopped_at = match span {
            Span::Point(key) => walk.point(tree, visible, key).await?,
            Span::Range(range) => walk.range_backward(tree, visible, &range.intersect(keys)).await?,
        };
        // Jumps are for walks in the order of keys.
        walk.wanted_from = Bytes::new();
        if let Some(key) = stopped_at {
            return Ok(walk.ended(WalkEnd::Stopped(key)));
        }
        walk.tell();
    }
    Ok(walk.ended(WalkEnd::Through { wanted_from: Bytes::new() }))
}

/// Where the last part of `range` begins that a walk backward turns round in memory: of each memory table it
/// has a bounded number of rows, of each checkpoint those of one block. It is not empty, unless `range` is.
async fn start_of_last_part(tree: &Tree, range: &KeyRange) -> Result<Bytes, PartitionError> {
    let mut start = range.start.clone();
    let end = range.end.as_deref();
    for memory in tree.memory_tables() {
        let (row_count, size_bytes) = (BACKWARD_ROW_COUNT_MAX, BACKWARD_SIZE_BYTES_MAX);
        if let Some(found) = memory.start_of_last(&start, end, row_count, size_bytes) {
            start = found;
        }
    }
    for checkpoint in tree.checkpoints.iter() {
        let part = checkpoint.visible_part(&KeyRange { start: start.clone(), end: range.end.clone() });
        if part.is_empty() {
            continue;
        }
        if let Some(found) = checkpoint.checkpoint.start_of_last_block(&part).await? {
            start = start.max(found);
        }
    }
    Ok(start)
}

/// Shows the rows of `spans` that lie in `keys`, from a snapshot that was taken before.
pub(super) async fn scan_snapshot(
    keys: &KeyRange,
    (tree, visible): (&Tree, RowVersion),
    spans: &[Span],
    scan: &mut dyn Scan,
) -> Result<Walked, PartitionError> {
    let mut walk = Walk::new(scan);
    for span in spans {
        let stopped_at = match span {
            Span::Point(key) => walk.point(tree, visible, key).await?,
            Span::Range(range) => walk.range(tree, visible, &range.intersect(keys)).await?,
        };
        if let Some(key) = stopped_at {
            return Ok(walk.ended(WalkEnd::Stopped(key)));
        }
        walk.tell();
    }
    let wanted_from = std::mem::take(&mut walk.wanted_from);
    Ok(walk.ended(WalkEnd::Through { wanted_from }))
}

/// What a walk did.
pub(super) struct Walked {
    end: WalkEnd,
    /// Rows and points, deleted rows included.
    row_count: u64,
    deleted_count: u64,
}

impl Walked {
    /// Whether it was slow because of deleted rows.
    fn passed_mostly_tombstones(&self) -> bool {
        self.deleted_count >= PASSED_TOMBSTONE_COUNT_MAX && self.deleted_count >= self.row_count / 2
    }
}

/// How a walk over what one range partition has of some spans ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// Every row was shown. Of those elsewhere the scan wants none before this key.
    Through { wanted_from: Bytes },
    /// The scan asked to stop, at this key.
    Stopped(Bytes),
}

/// A scan on its way over a snapshot.
struct Walk<'a> {
    scan: &'a mut dyn Scan,
    /// Rows and points that it has gone over, and the deleted rows among them.
    walked: u64,
    deleted_count: u64,
    /// Deleted rows that the scan was not told of yet.
    unseen: u64,
    /// Rows before this key are not wanted.
    wanted_from: Bytes,
    /// The scan ends at whatever comes next.
    has_had_enough: bool,
}

/// A row that a walk backward has at hand.
struct RowAtHand {
    key: Bytes,
    version: RowVersion,
    /// `None`: it was deleted.
    value: Option<Bytes>,
}

impl<'a> Walk<'a> {
    fn new(scan: &'a mut dyn Scan) -> Self {
        let wanted_from = Bytes::new();
        Walk { scan, walked: 0, deleted_count: 0, unseen: 0, wanted_from, has_had_enough: false }
    }

    /// Shows the rows of `range` from the last one to the first: parts of it, from its end on, are read in
    /// order and turned round. Returns where the scan ended.
    async fn range_backward(
        &mut self,
        tree: &Tree,
        visible: RowVersion,
        range: &KeyRange,
    ) -> Result<Option<Bytes>, PartitionError> {
        let needs_overflow = self.scan.needs_overflow();
        let mut rest = range.clone();
        while !rest.is_empty() {
            let part = KeyRange { start: start_of_last_part(tree, &rest).await?, end: rest.end.take() };
            let rows = rows_at_hand(tree, visible, &part, needs_overflow).await?;
            if rows.is_empty() {
                self.count_unseen_part().await;
            }
            for row in rows.into_iter().rev() {
                let visit = match &row.value {
                    _ if self.has_had_enough => Visit::StopBefore,
                    Some(value) => self.scan.visit(RowRef { key: &row.key, version: row.version, value }),
                    None => {
                        self.unseen += 1;
                        self.deleted_count += 1;
                        Visit::Continue
                    }
                };
                if visit == Visit::StopBefore {
                    return Ok(Some(row.key));
                }
                self.count().await;
            }
            if part.start <= range.start {
                break;
            }
            rest.end = Some(part.start);
        }
        Ok(None)
    }

    fn ended(&self, end: WalkEnd) -> Walked {
        Walked { end, row_count: self.walked, deleted_count: self.deleted_count }
    }

    /// Shows the row at `key`, if it is there. Returns where the scan ended.
    async fn point(
        &mut self,
        tree: &Tree,
        visible: RowVersion,
        key: &RowKey,
    ) -> Result<Option<Bytes>, PartitionError> {
        if *key.as_bytes() < self.wanted_from {
            return Ok(None);
        }
        if self.has_had_enough {
            return Ok(Some(key.as_bytes().clone()));
        }
        let part = if self.scan.needs_overflow() { RowPart::Whole } else { RowPart::Head };
        if let Some(row) = get_from(tree, visible, key, part).await? {
            let row = RowRef { key: key.as_bytes(), version: row.version, value: &row.value };
            match self.scan.visit(row) {
                Visit::Continue => {}
                Visit::SkipTo(key) => self.wanted_from = key,
                Visit::StopBefore => return Ok(Some(key.as_bytes().clone())),
            }
        }
        self.count().await;
        Ok(None)
    }

    /// Shows the rows of `range`. Returns where the scan ended.
    async fn range(
        &mut self,
        tree: &Tree,
        visible: RowVersion,
        range: &KeyRange,
    ) -> Result<Option<Bytes>, PartitionError> {
        let mut wanted = range.clone();
        if wanted.start < self.wanted_from {
            wanted.start.clone_from(&self.wanted_from);
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut cursor = MergingIterator::over_tree(tree, &wanted, visible, Caching::Keep).await?;
        let needs_overflow = self.scan.needs_overflow();
        let mut scratch = Vec::new();
        loop {
            let row = if needs_overflow { cursor.whole_row(&mut scratch).await? } else { cursor.row() };
            let Some(row) = row else { return Ok(None) };
            let visit = match row.value {
                _ if self.has_had_enough => Visit::StopBefore,
                Some(value) => self.scan.visit(RowRef { key: row.key, version: row.version, value }),
                None => {
                    self.unseen += 1;
                    self.deleted_count += 1;
                    Visit::Continue
                }
            };
            match visit {
                Visit::StopBefore => return Ok(Some(Bytes::copy_from_slice(row.key))),
                Visit::SkipTo(key) if *key > *row.key => {
                    let is_behind = wanted.end.as_ref().is_some_and(|end| *end <= key);
                    self.wanted_from = key;
                    if is_behind {
                        return Ok(None);
                    }
                    cursor.seek(&self.wanted_from).await?;
                }
                Visit::Continue | Visit::SkipTo(_) => cursor.step().await?,
            }
            self.count().await;
        }
    }

    /// Counts a row or point. Every so many, lets other work go on, and tells the scan of deleted ones.
    async fn count(&mut self) {
        self.walked += 1;
        if self.walked.is_multiple_of(WALK_YIELD_ROW_COUNT) {
            if self.unseen > 0 {
                self.tell();
            }
            tokio::task::yield_now().await;
        }
    }

    /// Counts a part of a walk backward that has rows which are newer than the snapshot, and no others.
    async fn count_unseen_part(&mut self) {
        self.unseen += 1;
        self.tell();
        tokio::task::yield_now().await;
    }

    /// Tells the scan how many deleted rows it was not shown, and lets it say that it has had enough.
    fn tell(&mut self) {
        let unseen = std::mem::take(&mut self.unseen);
        self.has_had_enough |= self.scan.pass_over(unseen) == Visit::StopBefore;
    }
}

/// The rows of a small range, deleted ones included.
async fn rows_at_hand(
    tree: &Tree,
    visible: RowVersion,
    part: &KeyRange,
    needs_overflow: bool,
) -> Result<Vec<RowAtHand>, PartitionError> {
    let mut cursor = MergingIterator::over_tree(tree, part, visible, Caching::Keep).await?;
    let (mut rows, mut scratch) = (Vec::new(), Vec::new());
    loop {
        // What lies in memory is shared, not copied.
        let mut value = cursor.value();
        let row = if needs_overflow { cursor.whole_row(&mut scratch).await? } else { cursor.row() };
        let Some(row) = row else { return Ok(rows) };
        let is_whole = value.as_ref().map(Bytes::len) == row.value.map(<[u8]>::len);
        if !is_whole {
            value = row.value.map(Bytes::copy_from_slice);
        }
        rows.push(RowAtHand { key: Bytes::copy_from_slice(row.key), version: row.version, value });
        cursor.step().await?;
    }
}

/// The row at `key` in a snapshot, if it is there.
async fn get_from(
    tree: &Tree,
    visible: RowVersion,
    key: &RowKey,
    part: RowPart,
) -> Result<Option<Row>, PartitionError> {
    let hashed = HashedKey::new(key.as_bytes());
    let found = match find_in_memory(tree, hashed, visible) {
        Some(found) => Some(found),
        None => find_in_checkpoints(tree, hashed, part, None).await?,
    };
    Ok(found.and_then(|found| to_row(key, found)))
}

/// A found change as a row; `None` if it is a deletion.
pub(super) fn to_row(key: &RowKey, found: Found) -> Option<Row> {
    found.value.map(|value| Row { key: key.clone(), version: found.version, value })
}

/// The newest change not after `at` that a memory table knows.
pub(super) fn find_in_memory(tree: &Tree, key: HashedKey<'_>, at: RowVersion) -> Option<Found> {
    tree.memory_tables().find_map(|memory| memory.get(key, at))
}

/// The newest change that a checkpoint knows. With `aside` for an operation.
pub(super) async fn find_in_checkpoints(
    tree: &Tree,
    key: HashedKey<'_>,
    part: RowPart,
    mut aside: Option<&mut Aside>,
) -> Result<Option<Found>, PartitionError> {
    let mut from = 0;
    while let Some(at) = tree.checkpoints.next_that_may_have(key, from) {
        let checkpoint = &tree.checkpoints[at];
        if let Some(found) = find_in_checkpoint(checkpoint, key, part, aside.as_deref_mut()).await? {
            return Ok(Some(found));
        }
        from = at + 1;
    }
    Ok(None)
}

/// What this checkpoint knows of the key.
pub(super) async fn find_in_checkpoint(
    checkpoint: &TreeCheckpoint,
    key: HashedKey<'_>,
    part: RowPart,
    aside: Option<&mut Aside>,
) -> Result<Option<Found>, PartitionError> {
    let row = checkpoint.checkpoint.get(key, part, aside).await?;
    Ok(row.map(|row| Found { version: row.version, value: row.value }))
}
