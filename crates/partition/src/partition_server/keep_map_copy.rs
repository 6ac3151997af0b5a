//! Keeping the partition map twice: after each change of the map's range the change goes to a stream of its
//! own as well.
//!
//! The order is: the map's range makes a change durable; then the copy does; only then the change has any
//! effect elsewhere: heirs serve and streams of parents go after that. What follows from it:
//! - The copy lacks at most changes that have had no effect. After a split that was cut off between the two,
//!   the map names the heirs and the copy the parents, which took no write since; whichever of the two is
//!   read by the next start is right, and it makes the other one the same before it serves anything. So a
//!   copy that is older than the map is never taken for the newest state of rows.
//! - Marks of deleted containers don't wait for the copy, so that a full disk holds up no deletion. A mark in
//!   the copy alone is of a container whose rows have gone and whose id never comes back: it drops nothing.
//!   Of a mark in the map alone only garbage is lost, which the services' search finds again. So marks are
//!   left out of the copy while it has as many rows as fit in memory.
//! - What may be refused, for want of space say, is done before the map changes. Where the copy is refused
//!   all the same, it is made empty, which takes another file's space: the map alone counts then, and nothing
//!   older does. If that is refused too, the ranges wait until one of the two is done, and go on.
//! - A copy that could not be written for another reason is not known to be right: then the change of ranges
//!   counts as one whose outcome is unknown.
//!
//! What the copy's stream holds, and what bounds it, is for `map_copy_stream`.

use super::map_copy_stream::{MapCopy, Stored};
use super::server::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span};
use crate::map::container_marks::MarkContainers;
use crate::map::map_copy::{CollectMap, MapContent, RowsChanged, encode_changes, is_mark_too_many};
use crate::map::partition_map::ChangeMap;
use crate::operation::{ObjectTable, Operation, Read, RowPart, RowVersion};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A change that is refused for want of space or of files is tried again after this long, and so many times
/// before the copy is made empty instead.
const REFUSED_RETRY_AFTER: Duration = Duration::from_millis(200);
const TRY_COUNT_MAX: usize = 3;
/// Where that is refused as well, both are tried again after this long.
const BOTH_REFUSED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why the map was not changed, or is not known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// For certain it is as it was.
    Unchanged(PartitionError),
    /// It may have changed, or has and its copy could not follow: the change must not take effect before the
    /// next start, which knows what holds.
    Unknown(PartitionError),
}

impl MapError {
    /// What the map's operation came to that ended with `error`.
    pub(crate) fn of_operation(error: PartitionError) -> Self {
        if error.changed_nothing() { MapError::Unchanged(error) } else { MapError::Unknown(error) }
    }
}

impl From<MapError> for PartitionError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Unchanged(error) | MapError::Unknown(error) => error,
        }
    }
}

impl PartitionServer {
    /// Replaces ranges in the map and its copy. Whoever calls acts upon the change only after that. False:
    /// the map does not hold what was to be replaced.
    pub(super) async fn change_map(&self, change: ChangeMap) -> Result<bool, MapError> {
        let (streams, mut copy) = (&self.shared.streams, self.map_copy.lock().await);
        self.prepare_copy(&mut copy).await.map_err(MapError::Unchanged)?;
        let (replaced, block) = self.change_map_range(&mut copy, change).await?;
        let Some(block) = block else { return Ok(replaced) };
        for _ in 0..TRY_COUNT_MAX {
            match copy.append(streams, block.clone()).await {
                Ok(_) => {
                    copy.stored = Stored::Same;
                    return Ok(replaced);
                }
                Err(error) if error.is_refusal() => self.shared.clock.sleep(REFUSED_RETRY_AFTER).await,
                Err(_) => break,
            }
        }
        let mut emptied = copy.make_empty(streams).await;
        while let Err(error) = emptied {
            let is_closing = self.closing.load(Ordering::Acquire);
            if !error.is_refusal() || is_closing {
                tracing::error!(%error, "the partition map has changed and its copy could not be written");
                return Err(MapError::Unknown(error));
            }
            // Marks of deleted containers don't wait for it.
            drop(copy);
            self.shared.clock.sleep(BOTH_REFUSED_RETRY_AFTER).await;
            copy = self.map_copy.lock().await;
            emptied = match self.prepare_copy(&mut copy).await {
                Ok(()) => Ok(()),
                Err(_) => copy.make_empty(streams).await,
            };
        }
        Ok(replaced)
    }

    /// Makes the copy anew if it could not follow the map, as it does before the map's next change.
    pub(super) async fn bring_copy_up(&self) {
        let mut copy = self.map_copy.lock().await;
        if copy.stored != Stored::Same
            && let Err(error) = self.prepare_copy(&mut copy).await
        {
            tracing::debug!(%error, "the partition map still has no copy");
        }
    }

    /// Sets or removes marks in the map's range and, if there is room, in the copy. A copy that lacks them,
    /// or has them still, is right enough for marks; it is brought up to date before the map changes again.
    /// Returns how many marks that changed.
    pub(super) async fn change_marks(&self, marks: MarkContainers) -> Result<u64, PartitionError> {
        let (streams, mut copy) = (&self.shared.streams, self.map_copy.lock().await);
        let prepared = self.prepare_copy(&mut copy).await;
        let (changed, block) = self.change_map_range(&mut copy, marks).await?;
        let copied = match (prepared, block) {
            (Ok(()), Some(block)) => copy.append(streams, block).await.map(|_| ()),
            (prepared, _) => prepared,
        };
        match copied {
            Ok(()) => copy.stored = Stored::Same,
            Err(error) => tracing::debug!(%error, "the partition map's copy lacks a mark for now"),
        }
        Ok(changed)
    }

    async fn prepare_copy(&self, copy: &mut MapCopy) -> Result<(), PartitionError> {
        if copy.stored != Stored::Same {
            // Of the last change it is not known whether the content has it.
            copy.content = self.map_content().await?;
        }
        let prepared = copy.prepare(&self.shared.streams).await;
        if matches!(prepared, Err(PartitionError::Storage(_))) {
            // Its stream takes nothing any more: the next change begins another.
            copy.stored = Stored::Nothing;
        }
        prepared
    }

    /// Runs an operation on the map's range. Returns what the copy needs for it, if anything; until it has
    /// that, or if the requester goes away, it counts as less than the map.
    async fn change_map_range<O: Operation>(
        &self,
        copy: &mut MapCopy,
        operation: O,
    ) -> Result<(O::Reply, Option<Bytes>), MapError> {
        let before = copy.stored;
        if before == Stored::Same {
            copy.stored = Stored::Less;
        }
        let keys: Vec<RowKey> = operation.reads().into_iter().filter_map(point_of).collect();
        let executed = self.execute(operation).await;
        if executed.as_ref().is_err_and(PartitionError::changed_nothing) {
            copy.stored = before;
        }
        let reply = executed.map_err(MapError::of_operation)?;
        let row_count_max = self.shared.settings.marks_at_hand_max;
        let mut changes = RowsChanged::new();
        for key in keys {
            let row = self.get(ObjectTable::PartitionMap, &key, RowPart::Whole).await;
            let row = row.map_err(MapError::Unknown)?.map(|row| (row.version, row.value));
            let known = copy.content.rows.get(&key);
            let is_too_many = || is_mark_too_many(key.as_bytes(), copy.content.rows.len(), row_count_max);
            if row.as_ref() != known && (known.is_some() || !is_too_many()) {
                changes.push((key, row));
            }
        }
        if changes.is_empty() {
            copy.stored = before;
            return Ok((reply, None));
        }
        copy.content.apply(self.map_version().map_err(MapError::Unknown)?, changes.clone());
        let block = encode_changes(copy.content.version, &changes);
        copy.changes_size_bytes += block.len() as u64;
        Ok((reply, Some(block)))
    }

    /// What the map's range holds now, as far as the copy has it.
    async fn map_content(&self) -> Result<MapContent, PartitionError> {
        let mut rows = CollectMap::new(self.shared.settings.marks_at_hand_max);
        self.scan(ObjectTable::PartitionMap, vec![Span::Range(KeyRange::all())], &mut rows).await?;
        Ok(MapContent { version: self.map_version()?, rows: rows.rows })
    }

    fn map_version(&self) -> Result<RowVersion, PartitionError> {
        Ok(self.owner(ObjectTable::PartitionMap, &[])?.visible())
    }
}

fn point_of(read: Read) -> Option<RowKey> {
    match read {
        Read::Point(key) | Read::Head(key) => Some(key),
        Read::Range { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map that was too busy to decide closed healthy ranges until the next start.
    #[test]
    fn the_map_is_as_it_was_unless_the_error_leaves_that_open() {
        let text = || "why".to_owned();
        for (error, is_unchanged) in [
            (PartitionError::Busy, true),
            (PartitionError::DiskFull, true),
            (PartitionError::OutOfFiles(text()), true),
            (PartitionError::Settings(text()), true),
            (PartitionError::Operation("why"), true),
            (PartitionError::TooMuchToRead { size_bytes_max: 1 }, true),
            (PartitionError::Storage(text()), false),
            (PartitionError::Unavailable(text()), false),
        ] {
            let ended = MapError::of_operation(error.clone());
            assert_eq!(matches!(ended, MapError::Unchanged(_)), is_unchanged, "{error}");
            assert_eq!(PartitionError::from(ended), error);
        }
    }
}
