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
//!   Of a mark in the map alone only garbage is lost, which the services' search finds again.
//! - What may be refused, for want of space say, is done before the map changes. Where the copy is refused
//!   all the same, it is made empty, which takes another file's space: the map alone counts then, and nothing
//!   older does. If that is refused too, the ranges wait until one of the two is done, and go on.
//! - A copy that could not be written for another reason is not known to be right: then the change of ranges
//!   counts as one whose outcome is unknown.
//!
//! The copy is a snapshot and the changes behind it. It is bounded: with [`CHANGES_SIZE_BYTES_MAX`] of
//! changes, or after [`EXTENT_COUNT_MAX`] extents, a new snapshot replaces all.

use super::PartitionServer;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span};
use crate::map::dead_containers::MarkContainer;
use crate::map::map_copy::{CollectMap, MapContent, RowsChanged, encode_changes, unreadable};
use crate::map::partition_map::ChangeMap;
use crate::operation::{ObjectTable, Operation, Read, RowPart, RowVersion};
use crate::range_partition::{LoadError, is_empty};
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::{ExtentId, OwnerEpoch, StreamChange, StreamError, StreamName, Streams};

/// Bytes of changes behind a snapshot after which the next one is due.
const CHANGES_SIZE_BYTES_MAX: u64 = 256 << 10;
/// Extents of the copy after which a snapshot is due: each start may begin one.
const EXTENT_COUNT_MAX: usize = 4;
/// A change that is refused for want of space or of files is tried again after this long, and so many times
/// before the copy is made empty instead.
const REFUSED_RETRY_AFTER: Duration = Duration::from_millis(200);
const TRY_COUNT_MAX: usize = 3;
/// Where that is refused as well, both are tried again after this long.
const BOTH_REFUSED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The stream of the copy.
pub(crate) fn copy_name() -> StreamName {
    StreamName::new("partition_map/copy")
}

/// Whether this is it.
pub(crate) fn is_copy(stream: &StreamName) -> bool {
    *stream == copy_name()
}

/// What the stream of the copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundCopy {
    /// Nothing was ever written.
    Absent,
    Whole(MapContent),
    Damaged(PartitionError),
}

/// Reads the copy. Changes nothing.
pub(crate) async fn read_copy(streams: &Streams) -> Result<FoundCopy, PartitionError> {
    let name = copy_name();
    if !streams.exists(&name) {
        return Ok(FoundCopy::Absent);
    }
    match read_blocks(streams, &name).await {
        Ok(None) => Ok(FoundCopy::Absent),
        Ok(Some(content)) => Ok(FoundCopy::Whole(content)),
        Err(LoadError::Damaged(error)) => Ok(FoundCopy::Damaged(error)),
        Err(LoadError::Failed(error)) => Err(error),
    }
}

async fn read_blocks(streams: &Streams, name: &StreamName) -> Result<Option<MapContent>, LoadError> {
    let mut replay = streams.replay(name, None)?;
    let mut content = None;
    while let Some((_, block)) = replay.next().await? {
        content = Some(MapContent::add_block(content, &block).map_err(|error| unreadable(&error))?);
    }
    Ok(content)
}

/// The copy of a server that is running.
pub(crate) struct MapCopy {
    epoch: OwnerEpoch,
    content: MapContent,
    stored: Stored,
    changes_size_bytes: u64,
}

/// What the stream holds beside the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// The same.
    Same,
    /// Perhaps less: the next block is a snapshot.
    Less,
    /// Nothing that reads: the next block is a snapshot in a new stream.
    Nothing,
}

impl MapCopy {
    /// Takes over a copy that is the same as `content`.
    pub(crate) async fn open(streams: &Streams, content: MapContent) -> Result<Self, LoadError> {
        let name = copy_name();
        let taken = match streams.is_spent().await {
            true => Err(StreamError::DiskFull),
            false => streams.take_over(&name, OwnerEpoch(streams.epoch(&name)?.0 + 1)).await,
        };
        match taken {
            // As ranges do, it goes on under its former epoch.
            Err(StreamError::DiskFull) => {}
            taken => taken?,
        }
        Self::as_it_is(streams, content, Stored::Same)
    }

    fn as_it_is(streams: &Streams, content: MapContent, stored: Stored) -> Result<Self, LoadError> {
        let name = copy_name();
        let epoch = streams.epoch(&name)?.max(OwnerEpoch(1));
        let changes_size_bytes = streams.stat(&name)?.extents.iter().map(|(_, size_bytes)| size_bytes).sum();
        Ok(MapCopy { epoch, content, stored, changes_size_bytes })
    }

    /// Makes the copy anew from `content`. What there is of it does not read.
    pub(crate) async fn replace(streams: &Streams, content: MapContent) -> Result<Self, PartitionError> {
        let (epoch, stored) = (OwnerEpoch(1), Stored::Nothing);
        let mut copy = MapCopy { epoch, content, stored, changes_size_bytes: 0 };
        match copy.prepare(streams).await {
            Err(error) if error.is_refusal() => {
                tracing::warn!(%error, "the partition map has no copy yet: the next change of it makes one");
            }
            done => done?,
        }
        Ok(copy)
    }

    /// Makes the copy anew from `content`. What there is of it reads and is older, so it must be gone before
    /// the map's changes take effect: if that is refused, so is the start. Unless it differs in marks only:
    /// then it is right enough, and is brought up before the map changes again.
    pub(crate) async fn bring_up(
        streams: &Streams,
        content: MapContent,
        differs_in_marks_only: bool,
    ) -> Result<Self, PartitionError> {
        match begin_stream(streams).await {
            Err(PartitionError::DiskFull) if differs_in_marks_only => {
                Ok(Self::as_it_is(streams, content, Stored::Less)?)
            }
            begun => {
                begun?;
                Self::replace(streams, content).await
            }
        }
    }

    /// Makes the stream the same as the content, and sees to it that the next change finds an extent that
    /// takes it: what may be refused is refused before the map has changed.
    async fn prepare(&mut self, streams: &Streams) -> Result<(), PartitionError> {
        let name = copy_name();
        if self.stored == Stored::Nothing {
            begin_stream(streams).await?;
            self.epoch = OwnerEpoch(1);
            self.stored = Stored::Less;
        }
        let extents = streams.stat(&name)?.extents;
        let is_due = self.changes_size_bytes > CHANGES_SIZE_BYTES_MAX || extents.len() > EXTENT_COUNT_MAX;
        if self.stored == Stored::Less || is_due {
            if let Some((last, 1..)) = extents.last() {
                // Else the trim behind the snapshot would leave all that is in its extent.
                streams.seal(&name, *last).await?;
            }
            let extent = self.append(streams, self.content.snapshot()).await?;
            self.stored = Stored::Same;
            self.changes_size_bytes = 0;
            if let Err(error) = streams.trim(&name, extent).await {
                tracing::debug!(%error, "the former copy of the partition map stays for now");
            }
        }
        Ok(streams.reserve(&name, self.epoch).await?)
    }

    /// Makes the stream empty: the map alone counts, until there is space for a snapshot.
    async fn make_empty(&mut self, streams: &Streams) -> Result<(), PartitionError> {
        begin_stream(streams).await?;
        (self.epoch, self.stored, self.changes_size_bytes) = (OwnerEpoch(1), Stored::Less, 0);
        tracing::warn!("the partition map has no copy for now: there was no room for its last change");
        Ok(())
    }

    async fn append(&self, streams: &Streams, block: Bytes) -> Result<ExtentId, PartitionError> {
        let places = streams.append(&copy_name(), self.epoch, vec![block]).await?;
        let place = places.first().ok_or(StreamError::Closing)?;
        Ok(place.extent)
    }
}

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

/// An empty stream for the copy, in the place of what there is.
async fn begin_stream(streams: &Streams) -> Result<(), PartitionError> {
    let name = copy_name();
    let mut changes = vec![StreamChange::Create(name.clone())];
    if streams.exists(&name) {
        changes.insert(0, StreamChange::Delete(name.clone()));
    }
    let outcome = streams.multi_modify(&changes).await;
    // It may have failed only after that, when extents of the former one could not be removed.
    match streams.stat(&name).is_ok_and(|stat| is_empty(&stat)) {
        true => Ok(()),
        false => Ok(outcome?),
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

    /// Sets or removes a mark in the map's range and, if there is room, in the copy. A copy that lacks it, or
    /// has it still, is right enough for marks; it is brought up to date before the map changes again.
    pub(super) async fn change_mark(&self, mark: MarkContainer) -> Result<(), PartitionError> {
        let (streams, mut copy) = (&self.shared.streams, self.map_copy.lock().await);
        let prepared = self.prepare_copy(&mut copy).await;
        let ((), block) = self.change_map_range(&mut copy, mark).await?;
        let copied = match (prepared, block) {
            (Ok(()), Some(block)) => copy.append(streams, block).await.map(|_| ()),
            (prepared, _) => prepared,
        };
        match copied {
            Ok(()) => copy.stored = Stored::Same,
            Err(error) => tracing::debug!(%error, "the partition map's copy lacks a mark for now"),
        }
        Ok(())
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
        let mut changes = RowsChanged::new();
        for key in keys {
            let row = self.get(ObjectTable::PartitionMap, &key, RowPart::Whole).await;
            let row = row.map_err(MapError::Unknown)?.map(|row| (row.version, row.value));
            if row.as_ref() != copy.content.rows.get(&key) {
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

    /// What the map's range holds now.
    async fn map_content(&self) -> Result<MapContent, PartitionError> {
        let mut rows = CollectMap::default();
        self.scan(ObjectTable::PartitionMap, vec![Span::Range(KeyRange::all())], &mut rows).await?;
        Ok(MapContent { version: self.map_version()?, rows: rows.0 })
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
