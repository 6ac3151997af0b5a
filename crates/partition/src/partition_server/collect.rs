//! Rows of deleted containers go in the background: marks are set when a service has deleted a container,
//! flushes and compactions drop the rows, and once no range holds any the mark goes, too.
//!
//! A container without rows gets no mark: that it has none is a look at what lies beside its keys. A request
//! that found it before it was deleted may still write, and the one that deletes it may go away before it is
//! marked. So all are looked at once more when such requests are over.

use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, container_prefix, parse_container_prefix};
use crate::map::container_marks::{DeadContainer, MarkContainers, ReadMarks, marks_from};
use crate::map::dead_containers::{Age, Pass};
use crate::operation::{OBJECT_TABLES, ObjectTable, RowPart, RowRef, Scan, ScanEnd, Visit};
use crate::settings::PlantedFault;
use base::{Ticks, give_way};
use bytes::Bytes;
use std::sync::Arc;

/// Marks that are read, and removed, at a time.
const MARKS_AT_ONCE: usize = 512;
/// Marks of one table whose rows are looked for in one round: each look takes some microseconds. The next
/// round goes on behind them.
const MARKS_A_ROUND: usize = 16_384;

impl PartitionServer {
    /// The container is deleted: its rows may go.
    pub(crate) async fn retire_container(&self, dead: DeadContainer) -> Result<(), PartitionError> {
        if dead.table == ObjectTable::PartitionMap {
            return Err(PartitionError::Operation("the partition map has no containers"));
        }
        self.shared.dead.watch(dead.clone(), &*self.shared.clock);
        self.mark_if_it_has_rows(dead).await
    }

    async fn mark_if_it_has_rows(&self, dead: DeadContainer) -> Result<(), PartitionError> {
        // Where that can't be known it may have some.
        match self.holds_rows_of(&dead).await {
            Ok(false) => Ok(()),
            Ok(true) | Err(_) => self.mark(dead).await,
        }
    }

    async fn mark(&self, dead: DeadContainer) -> Result<(), PartitionError> {
        let (marks, table) = (&self.shared.dead, dead.table);
        // Walks look for it before it is there, or one that begins in between would not.
        let expected = marks.expect(table);
        let since = Some(marks.time(&*self.shared.clock));
        let changed = self.change_marks(MarkContainers { dead: vec![dead.clone()], since }).await;
        if changed.as_ref().map_or_else(PartitionError::changed_nothing, |changed| *changed == 0) {
            marks.note_gone(table, 1);
        }
        drop(expected);
        if changed? > 0 {
            self.forget_data_counts(&dead);
            self.shared.maintenance.wake_compaction();
        }
        Ok(())
    }

    /// Whether the container is marked.
    pub(crate) async fn is_marked(&self, dead: &DeadContainer) -> Result<bool, PartitionError> {
        Ok(self.get(ObjectTable::PartitionMap, &dead.key(), RowPart::Whole).await?.is_some())
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

    /// Removes the marks of containers of which no range holds rows any more. A mark whose container can't be
    /// looked for stays, and keeps no other one from going.
    pub(super) async fn remove_old_marks(&self) -> Result<(), PartitionError> {
        let mut outcome = self.mark_what_was_left().await;
        for table in OBJECT_TABLES {
            if self.shared.dead.count_of(table) > 0 {
                outcome = self.remove_old_marks_of(table).await.and(outcome);
            }
        }
        outcome
    }

    /// Marks containers that got rows after they were deleted, or could not be marked then.
    async fn mark_what_was_left(&self) -> Result<(), PartitionError> {
        let (known, clock) = (&self.shared.dead, &*self.shared.clock);
        while let Some(dead) = known.next_watched(clock) {
            if let Err(error) = self.mark_if_it_has_rows(dead.clone()).await {
                known.watch(dead, clock);
                return Err(error);
            }
            give_way().await;
        }
        Ok(())
    }

    /// A round over marks of one table: from where the last one ended.
    async fn remove_old_marks_of(&self, table: ObjectTable) -> Result<(), PartitionError> {
        let known = &self.shared.dead;
        let mut pass = known.pass_of(table);
        let mut looked_at = 0;
        while looked_at < MARKS_A_ROUND {
            let mut read = ReadMarks::new(MARKS_AT_ONCE.min(self.shared.settings.marks_at_hand_max));
            if let Some(marks) = known.marks() {
                marks.show(&marks_from(table, &pass.from), &mut read).await?;
            }
            read.check()?;
            looked_at += read.found.len();
            let gone = self.choose_gone(read.found, &mut pass).await;
            if !gone.is_empty() {
                let removed = MarkContainers { dead: gone.clone(), since: None };
                known.note_gone(table, self.change_marks(removed).await?);
                // What had found a container before it was deleted may have written into it since, which grew
                // the count.
                gone.iter().for_each(|dead| self.forget_data_counts(dead));
            }
            match read.next {
                None => {
                    known.set_pass(table, pass, true);
                    return Ok(());
                }
                Some(next) => pass.from = next.prefix,
            }
            give_way().await;
        }
        known.set_pass(table, pass, false);
        Ok(())
    }

    /// Those of these marks that go; of the others it takes note.
    async fn choose_gone(&self, marks: Vec<(DeadContainer, Ticks)>, pass: &mut Pass) -> Vec<DeadContainer> {
        let mut gone = Vec::new();
        for (dead, since) in marks {
            if self.shared.settings.planted_fault == Some(PlantedFault::HastyMarks) {
                gone.push(dead);
                continue;
            }
            let Age { flushes, may_go, has_stayed } = self.shared.dead.age_of(since, &*self.shared.clock);
            if flushes {
                let holds = match self.holds_rows_of(&dead).await {
                    Ok(holds) => holds,
                    Err(error) => {
                        tracing::debug!(%error, ?dead, "rows of a deleted container can't be looked for: its mark stays");
                        true
                    }
                };
                if may_go && !holds {
                    gone.push(dead);
                    continue;
                }
                if holds {
                    self.flush_rows_of(&dead);
                }
            }
            pass.left += 1;
            pass.stayed += u64::from(has_stayed);
        }
        gone
    }

    /// Rows of it that are only in memory are on their way to a checkpoint afterwards.
    fn flush_rows_of(&self, dead: &DeadContainer) {
        let rows = dead.range();
        self.ranges(dead.table).iter().for_each(|range| range.flush_soon(&rows));
    }

    async fn holds_rows_of(&self, dead: &DeadContainer) -> Result<bool, PartitionError> {
        let rows = dead.range();
        for owner in self.owners(dead.table) {
            if owner.range().intersect(&rows).is_empty() {
                continue;
            }
            // What a damaged range holds is known once it is repaired, and then its rows must go as well.
            let holds = match owner.serving() {
                Some(range) => {
                    let holds = range.holds_any(&rows).await?;
                    range.check_lease()?;
                    holds
                }
                None => true,
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
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
