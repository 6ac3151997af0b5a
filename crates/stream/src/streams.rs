//! All streams of a stamp, as upper layers see them: those of a data folder, or those that somebody above
//! this crate keeps (see [`StreamLayer`]).

pub(crate) mod change;
pub(crate) mod replay;
pub(crate) mod stat;

pub use change::StreamChange;
pub use replay::Replay;
pub use stat::StreamStat;

use crate::error::StreamError;
use crate::folder;
use crate::ids::{ExtentId, Location, StreamName};
use crate::local_streams::LocalStreams;
use crate::owner::{Incarnation, Owner};
use crate::scrub::ScrubStatistics;
use crate::settings::StreamSettings;
use crate::space::Claim;
use crate::stream_layer::StreamLayer;
use base::{BoxFuture, Environment, Random};
use bytes::Bytes;
use replay::Blocks;
use std::future::{pending, ready};
use std::sync::Arc;

/// All streams of a stamp.
pub struct Streams {
    layer: Layer,
}

/// Who keeps the streams.
enum Layer {
    /// A data folder of this process.
    Local(LocalStreams),
    /// The stores of a stamp of several processes.
    Stamp(Arc<dyn StreamLayer>),
}

/// The same method of whichever layer there is.
macro_rules! either {
    ($self:ident . $method:ident ( $($argument:expr),* )) => {
        match &$self.layer {
            Layer::Local(streams) => streams.$method($($argument),*),
            Layer::Stamp(streams) => streams.$method($($argument),*),
        }
    };
}

impl Streams {
    /// Opens the data folder of `env`, laying it out first if it is new.
    pub fn open<'a>(
        env: &'a Environment,
        settings: StreamSettings,
    ) -> BoxFuture<'a, Result<Arc<Self>, StreamError>> {
        Box::pin(async move {
            let layer = Layer::Local(LocalStreams::open(env, settings).await?);
            Ok(Arc::new(Streams { layer }))
        })
    }

    /// The streams that `layer` keeps.
    pub fn of_stamp(layer: Arc<dyn StreamLayer>) -> Arc<Self> {
        Arc::new(Streams { layer: Layer::Stamp(layer) })
    }

    /// Whether `env`'s data folder can be served, without changing it: a foreign, newer or unreadable one is
    /// an error that says what to do.
    pub fn check_folder<'a>(env: &'a Environment) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move { folder::inspect(env).await.map(|_| ()) })
    }

    /// Whether they lie in a store far away, where each request takes milliseconds and many go side by side.
    pub fn are_far(&self) -> bool {
        matches!(self.layer, Layer::Stamp(_))
    }

    /// Those of a data folder.
    pub(crate) fn local(&self) -> Result<&LocalStreams, StreamError> {
        match &self.layer {
            Layer::Local(streams) => Ok(streams),
            Layer::Stamp(_) => Err(StreamError::Folder(
                "these streams are a stamp's: what is damaged there can't be repaired, as a data folder's can"
                    .to_owned(),
            )),
        }
    }

    /// Makes empty streams of `owner`, all or none.
    pub fn create<'a>(
        &'a self,
        streams: &'a [StreamName],
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        either!(self.create(streams, owner))
    }

    /// An incarnation for a process, or for what stands for one in a test, that uses these streams. What it
    /// owns is nobody's orphan until it leaves. A process of a stamp has one already.
    pub fn join(&self, random: &dyn Random) -> Incarnation {
        match &self.layer {
            Layer::Local(streams) => streams.join(random),
            Layer::Stamp(streams) => streams.incarnation(),
        }
    }

    /// The incarnation owns nothing any more, or nobody will ever act for it again.
    pub fn leave(&self, incarnation: Incarnation) {
        if let Layer::Local(streams) = &self.layer {
            streams.leave(incarnation);
        }
    }

    /// Whether it has joined and not left. All that joined before the folder was opened are gone, because one
    /// process at a time has the folder.
    pub fn has_joined(&self, incarnation: Incarnation) -> bool {
        either!(self.has_joined(incarnation))
    }

    /// The stream's newest owner.
    pub fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        either!(self.owner(stream))
    }

    /// Streams whose names start with `prefix`, sorted.
    pub fn list(&self, prefix: &str) -> Vec<StreamName> {
        either!(self.list(prefix))
    }

    /// How many streams there are.
    pub fn count(&self) -> u64 {
        either!(self.count())
    }

    /// Whether the stream is there.
    pub fn exists(&self, stream: &StreamName) -> bool {
        either!(self.exists(stream))
    }

    /// Appends all of `blocks` or none; durable when it returns. A failed append may still be there: a reader
    /// of the stream must recognize duplicates.
    pub fn append<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>> {
        either!(self.append(stream, owner, blocks))
    }

    /// Starts a task on the thread that writes and syncs the journal, which blocks it half of the time: for
    /// tasks that append again as soon as an append is durable, and do little between the two. No other
    /// thread has to be woken for that, and all appends that are ready by then share the next record.
    pub fn spawn_beside_journal(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        match &self.layer {
            Layer::Local(streams) => streams.spawn_beside_journal(name, task),
            Layer::Stamp(streams) => streams.spawn_appending(name, task),
        }
    }

    /// Makes sure that the stream's next append finds an extent that takes it, so that it does not wait for
    /// one. In a stamp the first append makes it.
    pub fn reserve<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        match &self.layer {
            Layer::Local(streams) => streams.reserve(stream, owner),
            Layer::Stamp(_) => Box::pin(ready(Ok(()))),
        }
    }

    /// Makes `owner` the owner of the stream and of all others of its group: whatever former owners ask for
    /// is refused from now on, and what they appended to this stream can be replayed to its end. Refused if
    /// the stream has a newer owner, or another one of the same epoch.
    pub fn take_over<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        either!(self.take_over(stream, owner))
    }

    /// The payload of the block at `location`, its checksum verified.
    pub fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>> {
        either!(self.read(location))
    }

    /// The payloads of blocks of one extent that follow one another, their checksums verified. They are read
    /// in one piece and past the page cache: for scans that read much, and each block once.
    pub fn read_run<'a>(&'a self, run: &'a [Location]) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>> {
        either!(self.read_run(run))
    }

    /// Reads the stream's blocks in order, from `from` (a block's location) or the start, to its present end.
    pub fn replay(&self, stream: &StreamName, from: Option<Location>) -> Result<Replay, StreamError> {
        Ok(Replay(match &self.layer {
            Layer::Local(streams) => Blocks::Local(streams.replay(stream, from)?),
            Layer::Stamp(streams) => Blocks::Stamp(streams.replay(stream, from)?),
        }))
    }

    /// Drops the stream's extents before the one that holds `first_kept`.
    pub fn trim<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        either!(self.trim(stream, owner, first_kept))
    }

    /// Removes the stream.
    pub fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move { self.multi_modify(&[StreamChange::Delete(stream.owned_by(owner))]).await })
    }

    /// Changes several streams' extent lists in one durable step, or not at all.
    pub fn multi_modify<'a>(&'a self, changes: &'a [StreamChange]) -> BoxFuture<'a, Result<(), StreamError>> {
        either!(self.multi_modify(changes))
    }

    /// Removes extents that no stream lists and that stayed because their removal was refused, by a full disk
    /// perhaps. To be called from time to time. A stamp's are removed by its sweeps.
    pub fn collect_left<'a>(&'a self) -> BoxFuture<'a, Result<(), StreamError>> {
        match &self.layer {
            Layer::Local(streams) => streams.collect_left(),
            Layer::Stamp(_) => Box::pin(ready(Ok(()))),
        }
    }

    /// Ends an extent that takes the stream's appends; the next append gets another. Fine if it takes none
    /// any more.
    pub fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        either!(self.seal(stream, owner, extent))
    }

    /// How many streams list an extent.
    pub fn listed_by(&self, extent: ExtentId) -> u64 {
        either!(self.listed_by(extent))
    }

    /// An extent that has reached this many bytes takes no more appends.
    pub fn extent_size_bytes_max(&self) -> u64 {
        either!(self.extent_size_bytes_max())
    }

    /// The stream's extents and lengths.
    pub fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        either!(self.stat(stream))
    }

    /// Why writing has stopped, if it has.
    pub fn check_writes(&self) -> Result<(), StreamError> {
        either!(self.check_writes())
    }

    /// Ends the layer's tasks; a data folder's extents get what only the journal has.
    pub fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        either!(self.close())
    }

    /// What the background scrub has read and found. A stamp's store scrubs by itself.
    pub fn scrub_statistics(&self) -> ScrubStatistics {
        match &self.layer {
            Layer::Local(streams) => streams.scrub_statistics(),
            Layer::Stamp(_) => ScrubStatistics::default(),
        }
    }
}

/// The disk's space, which only a data folder has: a stamp's store always has room, and says by each append
/// that it has not. Room for the lists of streams, which a stamp has bounded, counts as space.
impl Streams {
    /// Whether the disk, or what has a stamp's lists, is full or nearly so: until there is space again, the
    /// caller should request only what reclaims space.
    pub fn is_scarce(&self) -> bool {
        match &self.layer {
            Layer::Local(streams) => streams.is_scarce(),
            Layer::Stamp(streams) => streams.missing_list_bytes() > 0,
        }
    }

    /// Whether far more is free than is kept back for a full disk, as measured last; always, if nothing is
    /// kept back. No, if nothing was measured yet.
    pub fn is_ample(&self) -> bool {
        self.local().map_or(true, LocalStreams::is_ample)
    }

    /// Whether the disk was full and its reserve was given up and is not whole again.
    pub fn has_given_up_reserve(&self) -> bool {
        self.local().is_ok_and(LocalStreams::has_given_up_reserve)
    }

    /// Returns when space is scarce, or was since the last time. One task can wait.
    pub fn became_scarce<'a>(&'a self) -> BoxFuture<'a, ()> {
        self.local().map_or_else(|_| Box::pin(pending()) as BoxFuture<'a, ()>, LocalStreams::became_scarce)
    }

    /// Whether the disk is so full that even work that reclaims space must wait for such work under way: it
    /// takes some first.
    pub fn is_below_floor(&self) -> bool {
        self.local().is_ok_and(LocalStreams::is_below_floor)
    }

    /// Whether space is scarce, or will soon be.
    pub fn is_tight<'a>(&'a self) -> BoxFuture<'a, bool> {
        self.local().map_or_else(|_| always(false), LocalStreams::is_tight)
    }

    /// Whether so little space is left that a start should write nothing that can wait.
    pub fn is_spent<'a>(&'a self) -> BoxFuture<'a, bool> {
        self.local().map_or_else(|_| always(false), LocalStreams::is_spent)
    }

    /// Bytes that have to become free before all writes are accepted again, while space is scarce.
    pub fn missing_bytes(&self) -> u64 {
        match &self.layer {
            Layer::Local(streams) => streams.missing_bytes(),
            Layer::Stamp(streams) => streams.missing_list_bytes(),
        }
    }

    /// Claims space for work that takes some before it reclaims more: `wanted_bytes`, or fewer, but not fewer
    /// than `least_bytes`. No other claim gets them as long as this one is held.
    pub fn claim<'a>(&'a self, wanted_bytes: u64, least_bytes: u64) -> BoxFuture<'a, Option<Claim>> {
        match self.local() {
            Ok(streams) => streams.claim(wanted_bytes, least_bytes),
            Err(_) => Box::pin(ready(Some(Claim::unbounded(wanted_bytes)))),
        }
    }

    /// Bytes that are kept back for a full disk; 0 while they are given up.
    pub fn kept_back_bytes(&self) -> u64 {
        self.local().map_or(0, LocalStreams::kept_back_bytes)
    }

    /// Whether there is space for work that reclaims some but takes so many bytes first, and something stays
    /// for other work; always, if there is no reserve.
    pub fn has_room_for<'a>(&'a self, size_bytes: u64) -> BoxFuture<'a, bool> {
        self.local().map_or_else(|_| always(true), |streams| streams.has_room_for(size_bytes))
    }

    /// Whether so many bytes are a small part of what is free, so that optional work may take them for a
    /// while. No, if what is free is unknown.
    pub fn has_plenty_of_room_for<'a>(&'a self, size_bytes: u64) -> BoxFuture<'a, bool> {
        self.local().map_or_else(|_| always(true), |streams| streams.has_plenty_of_room_for(size_bytes))
    }
}

fn always<'a>(answer: bool) -> BoxFuture<'a, bool> {
    Box::pin(ready(answer))
}
