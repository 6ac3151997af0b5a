//! Rows of deleted containers go in the background: marks are set when a service has deleted a container,
//! flushes and merges drop the rows, and once no range holds any the mark goes, too.

use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, container_prefix, parse_container_prefix};
use crate::map::dead_containers::{DEAD_CONTAINER_COUNT_MAX, DeadContainer, MarkContainer};
use crate::operation::{ObjectTable, RowRef, Scan, ScanEnd, Visit};
use bytes::Bytes;
use std::sync::Arc;

impl PartitionServer {
    /// The container is deleted: its rows may go.
    pub(crate) async fn retire_container(&self, dead: DeadContainer) -> Result<(), PartitionError> {
        if dead.table == ObjectTable::PartitionMap {
            return Err(PartitionError::Operation("the partition map has no containers"));
        }
        let marks = &self.shared.dead;
        if marks.all().contains_key(&dead) {
            return Ok(());
        }
        if marks.count() >= DEAD_CONTAINER_COUNT_MAX {
            return Err(PartitionError::Busy);
        }
        let since = self.shared.clock.now();
        self.change_mark(MarkContainer { dead: dead.clone(), since: Some(since) }).await?;
        marks.add(&dead, self.shared.clock.monotonic());
        self.forget_data_counts(&dead);
        self.shared.maintenance.wake_compaction();
        Ok(())
    }

    /// Its rows count no more, or have gone: how much is named is to be counted anew where they are.
    fn forget_data_counts(&self, dead: &DeadContainer) {
        let rows = dead.range();
        for range in self.ranges(dead.table) {
            if !range.range().intersect(&rows).is_empty() {
                range.forget_data_count();
            }
        }
    }

    /// Removes the marks of containers of which no range holds rows any more. Returns how many. A mark whose
    /// container can't be looked for stays, and keeps no other one from going.
    pub(super) async fn remove_old_marks(&self) -> Result<u64, PartitionError> {
        let mut removed = 0;
        let now = self.shared.clock.monotonic();
        for (dead, goes_at) in &*self.shared.dead.all() {
            if now < *goes_at {
                continue;
            }
            match self.holds_rows_of(dead).await {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => {
                    tracing::debug!(%error, ?dead, "rows of a deleted container can't be looked for: its mark stays");
                    continue;
                }
            }
            self.change_mark(MarkContainer { dead: dead.clone(), since: None }).await?;
            self.shared.dead.remove(dead);
            // Who had found the container before it was deleted may have written into it since, which grew
            // the count.
            self.forget_data_counts(dead);
            removed += 1;
        }
        Ok(removed)
    }

    async fn holds_rows_of(&self, dead: &DeadContainer) -> Result<bool, PartitionError> {
        let rows = dead.range();
        let mut holds = false;
        for owner in self.owners(dead.table) {
            if owner.range().intersect(&rows).is_empty() {
                continue;
            }
            // What a damaged range holds is known once it is repaired, and then its rows must go as well.
            holds |= match owner.serving() {
                Some(range) => range.holds_any(&rows).await?,
                None => true,
            };
        }
        Ok(holds)
    }

    /// The first container after `after` (all keys of one) that has rows, by its account and id, as far as
    /// ranges read. Only if there is none behind one that does not, its error is the answer.
    pub(crate) async fn next_container(
        self: &Arc<Self>,
        table: ObjectTable,
        after: Option<KeyRange>,
    ) -> Result<Option<(String, u64)>, PartitionError> {
        let range = match after {
            None => KeyRange::all(),
            Some(KeyRange { end: Some(start), .. }) => KeyRange { start, end: None },
            Some(KeyRange { end: None, .. }) => return Ok(None),
        };
        let mut first = FirstContainer::default();
        let mut passed_over = None;
        let mut note = |error| passed_over = Some(error);
        match self.scan_past_damage(table, range, &mut first, &mut note).await? {
            ScanEnd::Complete if first.prefix.is_none() => passed_over.map_or(Ok(None), Err),
            _ => {
                let found = first.prefix.as_deref().and_then(parse_container_prefix);
                found.map(Some).ok_or_else(|| PartitionError::Storage("a row key does not read".to_owned()))
            }
        }
    }
}

/// Takes the container of the first row.
#[derive(Default)]
struct FirstContainer {
    prefix: Option<Bytes>,
}

impl Scan for FirstContainer {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.prefix = container_prefix(row.key).map(Bytes::copy_from_slice);
        Visit::StopBefore
    }
}
