//! The streams of one process in its data folder: joins the stream manager (which extents?) and the extent
//! node (which bytes?). What its methods promise is said at those of [`Streams`](crate::Streams).

mod listed;
mod modify;
mod open;

pub(crate) use listed::listed_extents;

use crate::error::StreamError;
use crate::extent_node::ExtentNode;
use crate::extent_rolls::Rolls;
use crate::ids::{ExtentId, Location, StreamName};
use crate::owner::{Incarnation, Owner};
use crate::scrub::{Scrub, ScrubStatistics};
use crate::settings::StreamSettings;
use crate::space::{Claim, Space};
use crate::stream_manager::{Command, StreamManager};
use crate::streams::replay::LocalReplay;
use crate::streams::stat::StreamStat;
use base::{BoxFuture, Random};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The streams of a data folder.
pub(crate) struct LocalStreams {
    node: Arc<ExtentNode>,
    manager: Arc<StreamManager>,
    settings: StreamSettings,
    scrub: Arc<Scrub>,
    space: Arc<Space>,
    /// Held while a stream gets a new extent, so that two appenders don't both add one.
    rolling: Arc<tokio::sync::Mutex<()>>,
    rolls: Rolls,
    /// Held while deleted extents are removed, so that no two remove the same one.
    collecting: tokio::sync::Mutex<()>,
    /// Incarnations that may act: one a process, a few in tests.
    joined: Mutex<BTreeSet<Incarnation>>,
}

impl LocalStreams {
    pub(crate) fn node(&self) -> &ExtentNode {
        &self.node
    }

    /// The stream's extents, with the length of those that are sealed.
    pub(crate) fn listed(&self, stream: &StreamName) -> Result<Vec<(ExtentId, Option<u64>)>, StreamError> {
        self.manager.extents(stream)
    }

    /// Makes empty streams of `owner`, all or none.
    pub(crate) fn create<'a>(
        &'a self,
        streams: &'a [StreamName],
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let create = |stream: &StreamName| Command::Create(stream.owned_by(owner));
            self.manager.multi_modify(streams.iter().map(create).collect()).await
        })
    }

    /// An incarnation for a process, or for what stands for one in a test, that uses these streams. What it
    /// owns is nobody's orphan until it leaves.
    pub(crate) fn join(&self, random: &dyn Random) -> Incarnation {
        let incarnation = Incarnation::draw(random);
        self.joined.lock().insert(incarnation);
        incarnation
    }

    /// The incarnation owns nothing any more, or nobody will ever act for it again.
    pub(crate) fn leave(&self, incarnation: Incarnation) {
        self.joined.lock().remove(&incarnation);
    }

    /// Whether it has joined and not left. All that joined before the folder was opened are gone, because one
    /// process at a time has the folder.
    pub(crate) fn has_joined(&self, incarnation: Incarnation) -> bool {
        self.joined.lock().contains(&incarnation)
    }

    /// The stream's newest owner.
    pub(crate) fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        let (owner, tail) = self
            .manager
            .with(|state| Ok::<_, StreamError>((state.owner(stream)?, state.open_tail(stream)?)))?;
        // The manager may not have had the space to note the owner that its extent knows.
        let of_tail = tail.and_then(|tail| self.node.stat(tail).ok()).map(|stat| stat.owner);
        Ok(of_tail.map_or(owner, |of_tail| owner.max_epoch(of_tail)))
    }

    /// Streams whose names start with `prefix`, sorted.
    pub(crate) fn list(&self, prefix: &str) -> Vec<StreamName> {
        self.manager.with(|state| {
            let names = state.streams.keys().filter(|name| name.as_str().starts_with(prefix));
            names.cloned().collect()
        })
    }

    /// How many streams there are.
    pub(crate) fn count(&self) -> u64 {
        self.manager.with(|state| state.streams.len() as u64)
    }

    /// Whether the stream is there.
    pub(crate) fn exists(&self, stream: &StreamName) -> bool {
        self.manager.with(|state| state.streams.contains_key(stream))
    }

    /// Appends all of `blocks` or none; durable when it returns. A failed append may still be there: a reader
    /// of the stream must recognize duplicates.
    pub(crate) fn append<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>> {
        Box::pin(async move {
            loop {
                let tail = self.manager.with(|state| state.tail_for(stream, owner))?;
                let tail = match tail {
                    Some(extent) if self.has_room(extent) => extent,
                    full => {
                        self.roll(stream, owner, full).await?;
                        continue;
                    }
                };
                match self.node.append(tail, owner, blocks.clone()).await {
                    // It was sealed in the meantime, or is about to be, and may even have left the stream.
                    Err(StreamError::Sealed(_) | StreamError::NoExtent(_)) => {
                        self.roll(stream, owner, Some(tail)).await?
                    }
                    other => return other,
                }
            }
        })
    }

    /// Starts a task on the thread that writes and syncs the journal, which blocks it half of the time: for
    /// tasks that append again as soon as an append is durable, and do little between the two. No other
    /// thread has to be woken for that, and all appends that are ready by then share the next record.
    pub(crate) fn spawn_beside_journal(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.node.spawn_beside_journal(name, task);
    }

    /// Makes sure that the stream's next append finds an extent that takes it, so that it does not wait for
    /// one.
    pub(crate) fn reserve<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            match self.manager.with(|state| state.tail_for(stream, owner))? {
                Some(_) => Ok(()),
                None => self.roll(stream, owner, None).await,
            }
        })
    }

    /// Whether the extent takes appends. One that is not there is no tail any more, which the task that adds
    /// extents finds out.
    fn has_room(&self, extent: ExtentId) -> bool {
        self.node.stat(extent).is_ok_and(|stat| stat.length < self.settings.extent_size_bytes_max)
    }

    /// Adds a new last extent to the stream, unless one was added since `seen` was its open tail.
    async fn roll(
        &self,
        stream: &StreamName,
        owner: Owner,
        seen: Option<ExtentId>,
    ) -> Result<(), StreamError> {
        self.rolls.ask(stream.clone(), owner, seen).await
    }

    /// Makes `owner` the owner of the stream and of all others of its group: whatever former owners ask for
    /// is refused from now on, and what they appended to this stream can be replayed to its end. Refused if
    /// the stream has a newer owner, or another one of the same epoch.
    pub(crate) fn take_over<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let _rolling = self.rolling.lock().await;
            // First no former owner can add an extent, then none can append to the last one.
            self.manager.multi_modify(vec![Command::Own(stream.owned_by(owner))]).await?;
            let Some(extent) = self.manager.with(|state| state.open_tail(stream))? else {
                return Ok(());
            };
            // An empty extent is kept open: a restart leaves no trace of streams that are not written to.
            let stat = self.node.fence(extent, owner, false).await?;
            if stat.length > 0 {
                let sealed = self.node.fence(extent, owner, true).await?.sealed();
                let stream = Some(stream.owned_by(owner));
                self.manager.multi_modify(vec![Command::Seal { stream, extent, sealed }]).await?;
            }
            Ok(())
        })
    }

    /// The payload of the block at `location`, its checksum verified.
    pub(crate) fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>> {
        Box::pin(async move { self.node.read(location).await })
    }

    /// The payloads of blocks of one extent that follow one another, their checksums verified. They are read
    /// in one piece and past the page cache: for scans that read much, and each block once.
    pub(crate) fn read_run<'a>(
        &'a self,
        run: &'a [Location],
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>> {
        Box::pin(async move { self.node.read_run(run).await })
    }

    /// Reads the stream's blocks in order, from `from` (a block's location) or the start, to its present end.
    pub(crate) fn replay(
        &self,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<LocalReplay, StreamError> {
        let mut readers = VecDeque::new();
        let mut skipping = from.is_some();
        for (extent, _) in self.manager.extents(stream)? {
            let start = from.filter(|from| from.extent == extent);
            skipping &= start.is_none();
            if !skipping {
                readers.push_back(self.node.reader(extent, start.map_or(0, |from| from.offset))?);
            }
        }
        match from {
            Some(from) if skipping => Err(StreamError::NoExtent(from.extent)),
            _ => Ok(LocalReplay { readers }),
        }
    }

    /// Drops the stream's extents before the one that holds `first_kept`.
    pub(crate) fn trim<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            self.manager.with(|state| state.check_owner(stream, owner))?;
            if self.manager.extents(stream)?.first().is_some_and(|(first, _)| *first == first_kept) {
                return Ok(());
            }
            self.manager
                .multi_modify(vec![Command::Trim { stream: stream.owned_by(owner), first_kept }])
                .await?;
            self.collect().await
        })
    }

    /// Ends an extent that takes the stream's appends; the next append gets another. Fine if it takes none
    /// any more.
    pub(crate) fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let _rolling = self.rolling.lock().await;
            if self.manager.with(|state| state.tail_for(stream, owner))? != Some(extent) {
                return Ok(());
            }
            match self.seal_tail(&stream.owned_by(owner)).await? {
                Some(seal) => self.manager.multi_modify(vec![seal]).await,
                None => Ok(()),
            }
        })
    }

    /// How many streams list an extent.
    pub(crate) fn listed_by(&self, extent: ExtentId) -> u64 {
        self.manager.with(|state| state.extents.get(&extent).map_or(0, |info| u64::from(info.references)))
    }

    /// An extent that has reached this many bytes takes no more appends.
    pub(crate) fn extent_size_bytes_max(&self) -> u64 {
        self.settings.extent_size_bytes_max
    }

    /// The stream's extents and lengths.
    pub(crate) fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        let mut extents = Vec::new();
        for (extent, sealed) in self.manager.extents(stream)? {
            let length = match sealed {
                Some(length) => length,
                None => self.node.stat(extent)?.length,
            };
            extents.push((extent, length));
        }
        Ok(StreamStat { extents })
    }

    /// Why writing has stopped, if it has.
    pub(crate) fn check_writes(&self) -> Result<(), StreamError> {
        self.node.check_writes()
    }

    /// Whether the disk is full, or nearly so: until there is space again, the caller should request only
    /// what reclaims space.
    pub(crate) fn is_scarce(&self) -> bool {
        self.space.is_scarce()
    }

    /// Whether far more is free than is kept back for a full disk, as measured last; always, if nothing is
    /// kept back. No, if nothing was measured yet.
    pub(crate) fn is_ample(&self) -> bool {
        self.space.is_ample()
    }

    /// Whether the disk was full and its reserve was given up and is not whole again.
    pub(crate) fn has_given_up_reserve(&self) -> bool {
        self.space.is_given_up()
    }

    /// Returns when space is scarce, or was since the last time. One task can wait.
    pub(crate) fn became_scarce<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.space.became_scarce().await })
    }

    /// Whether the disk is so full that even work that reclaims space must wait for such work under way: it
    /// takes some first.
    pub(crate) fn is_below_floor(&self) -> bool {
        self.space.is_below_floor()
    }

    /// Whether space is scarce, or will soon be.
    pub(crate) fn is_tight<'a>(&'a self) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.space.is_tight().await })
    }

    /// Whether so little space is left that a start should write nothing that can wait.
    pub(crate) fn is_spent<'a>(&'a self) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.space.is_spent().await })
    }

    /// Bytes that have to become free before all writes are accepted again, while space is scarce.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.space.missing_bytes()
    }

    /// Claims space for work that takes some before it reclaims more: `wanted_bytes`, or fewer, but not fewer
    /// than `least_bytes`. No other claim gets them as long as this one is held.
    pub(crate) fn claim<'a>(&'a self, wanted_bytes: u64, least_bytes: u64) -> BoxFuture<'a, Option<Claim>> {
        Box::pin(async move { self.space.claim(wanted_bytes, least_bytes).await })
    }

    /// Bytes that are kept back for a full disk; 0 while they are given up.
    pub(crate) fn kept_back_bytes(&self) -> u64 {
        self.space.kept_back_bytes()
    }

    /// Whether there is space for work that reclaims some but takes so many bytes first, and something stays
    /// for other work; always, if there is no reserve.
    pub(crate) fn has_room_for<'a>(&'a self, size_bytes: u64) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.space.has_room_for(size_bytes).await })
    }

    /// Whether so many bytes are a small part of what is free, so that optional work may take them for a
    /// while. No, if what is free is unknown.
    pub(crate) fn has_plenty_of_room_for<'a>(&'a self, size_bytes: u64) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.space.has_plenty_of_room_for(size_bytes).await })
    }

    /// What the background scrub has read and found.
    pub(crate) fn scrub_statistics(&self) -> ScrubStatistics {
        self.scrub.statistics()
    }

    /// Brings everything to its extents and stops the layer's tasks.
    pub(crate) fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.scrub.close().await;
            self.space.close().await;
            self.manager.close().await;
            self.node.close().await;
        })
    }
}
