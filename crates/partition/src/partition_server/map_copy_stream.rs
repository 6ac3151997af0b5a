//! The stream that holds the partition map's copy: how it is read, taken over, added to, made anew or empty.
//! `keep_map_copy` says when that is done.
//!
//! The copy is a snapshot and the changes behind it. It is bounded: with [`CHANGES_SIZE_BYTES_MAX`] of
//! changes, or after [`EXTENT_COUNT_MAX`] extents, a new snapshot replaces all. What always holds: a block is
//! appended only behind blocks that read and give, with it, the content of the copy.

use crate::error::PartitionError;
use crate::map::choose_owner::{choose_owner, owner_without_space};
use crate::map::map_copy::{MapContent, copy_name, unreadable};
use crate::range_partition::{LoadError, is_empty};
use bytes::Bytes;
use stream::{ExtentId, Incarnation, Owner, StreamChange, StreamError, StreamName, Streams};

/// Bytes of changes behind a snapshot after which the next one is due.
const CHANGES_SIZE_BYTES_MAX: u64 = 256 << 10;
/// Extents of the copy after which a snapshot is due: each start may begin one.
const EXTENT_COUNT_MAX: usize = 4;

/// What the stream of the copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundCopy {
    /// Nothing was ever written.
    Absent,
    Whole(MapContent),
    Damaged(PartitionError),
}

/// Reads the copy. Changes nothing.
pub(super) async fn read_copy(streams: &Streams) -> Result<FoundCopy, PartitionError> {
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
pub(super) struct MapCopy {
    /// Chosen once, at the start: it is refused as soon as a newer one has taken the copy over.
    owner: Owner,
    pub(super) content: MapContent,
    pub(super) stored: Stored,
    pub(super) changes_size_bytes: u64,
}

/// What the stream holds beside the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The same.
    Same,
    /// Perhaps less: the next block is a snapshot.
    Less,
    /// Nothing that reads: the next block is a snapshot in a new stream.
    Nothing,
}

impl MapCopy {
    /// Takes over a copy that is the same as `content`.
    pub(super) async fn open(
        streams: &Streams,
        incarnation: Incarnation,
        content: MapContent,
    ) -> Result<Self, LoadError> {
        let name = copy_name();
        let former = streams.owner(&name)?;
        let wanted = choose_owner(former, incarnation);
        let taken = match streams.is_spent().await {
            true => Err(StreamError::DiskFull),
            false => streams.take_over(&name, wanted).await,
        };
        let owner = match taken {
            // As ranges do, it goes on under its former epoch.
            Err(StreamError::DiskFull) => owner_without_space(former, Some(wanted), streams.owner(&name)?),
            taken => taken.map(|()| wanted)?,
        };
        Ok(Self::as_it_is(streams, owner, content, Stored::Same)?)
    }

    fn as_it_is(
        streams: &Streams,
        owner: Owner,
        content: MapContent,
        stored: Stored,
    ) -> Result<Self, StreamError> {
        let stat = streams.stat(&copy_name())?;
        let changes_size_bytes = stat.extents.iter().map(|(_, size_bytes)| size_bytes).sum();
        Ok(MapCopy { owner, content, stored, changes_size_bytes })
    }

    /// Makes the copy anew from `content`. What there is of it does not read.
    pub(super) async fn replace(
        streams: &Streams,
        incarnation: Incarnation,
        content: MapContent,
    ) -> Result<Self, PartitionError> {
        Self::replace_as(streams, next_owner(streams, incarnation)?, content).await
    }

    async fn replace_as(
        streams: &Streams,
        owner: Owner,
        content: MapContent,
    ) -> Result<Self, PartitionError> {
        let mut copy = MapCopy { owner, content, stored: Stored::Nothing, changes_size_bytes: 0 };
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
    pub(super) async fn bring_up(
        streams: &Streams,
        incarnation: Incarnation,
        content: MapContent,
        differs_in_marks_only: bool,
    ) -> Result<Self, PartitionError> {
        let former = streams.owner(&copy_name())?;
        let wanted = choose_owner(former, incarnation);
        match begin_stream(streams, wanted).await {
            Err(PartitionError::DiskFull) if differs_in_marks_only => {
                let owner = owner_without_space(former, Some(wanted), streams.owner(&copy_name())?);
                Ok(Self::as_it_is(streams, owner, content, Stored::Less)?)
            }
            begun => {
                begun?;
                Self::replace_as(streams, wanted, content).await
            }
        }
    }

    /// Makes the stream the same as the content, and sees to it that the next change finds an extent that
    /// takes it: what may be refused is refused before the map has changed.
    pub(super) async fn prepare(&mut self, streams: &Streams) -> Result<(), PartitionError> {
        let name = copy_name();
        if self.stored == Stored::Nothing {
            begin_stream(streams, self.owner).await?;
            self.stored = Stored::Less;
        }
        let extents = streams.stat(&name)?.extents;
        let is_due = self.changes_size_bytes > CHANGES_SIZE_BYTES_MAX || extents.len() > EXTENT_COUNT_MAX;
        if self.stored == Stored::Less || is_due {
            if let Some((last, 1..)) = extents.last() {
                // Else the trim behind the snapshot would leave all that is in its extent.
                streams.seal(&name, self.owner, *last).await?;
            }
            let extent = self.append(streams, self.content.snapshot()).await?;
            self.stored = Stored::Same;
            self.changes_size_bytes = 0;
            if let Err(error) = streams.trim(&name, self.owner, extent).await {
                tracing::debug!(%error, "the former copy of the partition map stays for now");
            }
        }
        Ok(streams.reserve(&name, self.owner).await?)
    }

    /// Makes the stream empty: the map alone counts, until there is space for a snapshot.
    pub(super) async fn make_empty(&mut self, streams: &Streams) -> Result<(), PartitionError> {
        begin_stream(streams, self.owner).await?;
        (self.stored, self.changes_size_bytes) = (Stored::Less, 0);
        tracing::warn!("the partition map has no copy for now: there was no room for its last change");
        Ok(())
    }

    pub(super) async fn append(&self, streams: &Streams, block: Bytes) -> Result<ExtentId, PartitionError> {
        let places = streams.append(&copy_name(), self.owner, vec![block]).await?;
        let place = places.first().ok_or(StreamError::Closing)?;
        Ok(place.extent)
    }
}

/// The owner that takes for `incarnation` what there is of the copy.
fn next_owner(streams: &Streams, incarnation: Incarnation) -> Result<Owner, StreamError> {
    let name = copy_name();
    let seen = if streams.exists(&name) { streams.owner(&name)? } else { Owner::default() };
    Ok(choose_owner(seen, incarnation))
}

/// An empty stream of `owner` for the copy, in the place of what there is; refused if that has a newer owner.
async fn begin_stream(streams: &Streams, owner: Owner) -> Result<(), PartitionError> {
    let name = copy_name();
    let is_there = streams.exists(&name);
    let mut changes = vec![StreamChange::Create(name.owned_by(owner))];
    if is_there {
        changes.insert(0, StreamChange::Delete(name.owned_by(owner)));
    }
    let outcome = streams.multi_modify(&changes).await;
    // It may have failed only after that, when extents of the former one could not be removed.
    match streams.stat(&name).is_ok_and(|stat| is_empty(&stat)) {
        true => Ok(()),
        false => Ok(outcome?),
    }
}
