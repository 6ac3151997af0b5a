//! The streams of a stamp of several processes, as the layers above see them: a trait, because who keeps them
//! (an object store for the bytes, a metadata store for the lists) is above this crate.
//!
//! It is cut where upper layers append, read and change lists, not between lists and bytes: that an extent is
//! listed before its first part is sent, and takes that part only when the one before it is sealed, holds
//! over both, and is best kept in one hand.
//!
//! What errors say of a request: [`StreamError::NotOwner`] and its like refuse it, nothing was done;
//! [`StreamError::OutcomeUnknown`] leaves it open, and nothing more is written; [`StreamError::NoStream`]
//! and [`StreamError::NoExtent`]: it is not there; [`StreamError::Unavailable`]: nothing was done, the store
//! does not answer.

use crate::error::StreamError;
use crate::ids::{ExtentId, Location, StreamName};
use crate::owner::{Incarnation, Owner};
use crate::streams::change::StreamChange;
use crate::streams::stat::StreamStat;
use base::BoxFuture;
use bytes::Bytes;

/// Blocks of a stream in order, of an implementation of [`StreamLayer`].
pub trait ReplayBlocks: Send {
    /// The next block, or `None` at the end. Any block that does not verify is an error, never a skip.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<(Location, Bytes)>, StreamError>>;
}

/// Streams, wherever they are kept. The methods promise what those of [`Streams`](crate::Streams) with the
/// same names do.
pub trait StreamLayer: Send + Sync + 'static {
    /// Streams whose names start with `prefix`, sorted.
    fn list(&self, prefix: &str) -> Vec<StreamName>;
    /// How many streams there are.
    fn count(&self) -> u64;
    /// Whether the stream is there.
    fn exists(&self, stream: &StreamName) -> bool;
    /// The stream's newest owner.
    fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError>;
    /// The stream's extents and lengths.
    fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError>;
    /// How many streams list an extent.
    fn listed_by(&self, extent: ExtentId) -> u64;
    /// An extent that has reached this many bytes takes no more appends.
    fn extent_size_bytes_max(&self) -> u64;
    /// The incarnation that this process has.
    fn incarnation(&self) -> Incarnation;
    /// Whether an incarnation may still act.
    fn has_joined(&self, incarnation: Incarnation) -> bool;
    /// Why writing has stopped, if it has.
    fn check_writes(&self) -> Result<(), StreamError>;
    /// Bytes of the streams' lists, which have a bound, that have to go before all writes are accepted again.
    /// 0: there is room. Cheap: it is asked for each write.
    fn missing_list_bytes(&self) -> u64 {
        0
    }
    /// Starts a task that appends again as soon as an append is durable.
    fn spawn_appending(&self, name: &'static str, task: BoxFuture<'static, ()>);

    /// Makes empty streams of `owner`, all or none.
    fn create<'a>(
        &'a self,
        streams: &'a [StreamName],
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>>;
    /// Appends all of `blocks` or none; durable when it returns.
    fn append<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>>;
    /// Makes `owner` the owner of the stream and of all others of its group.
    fn take_over<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>>;
    /// The payload of the block at `location`, its checksum verified.
    fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>>;
    /// The payloads of blocks of one extent that follow one another, their checksums verified.
    fn read_run<'a>(&'a self, run: &'a [Location]) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>>;
    /// Reads the stream's blocks in order, from `from` (a block's location) or the start, to its present end.
    fn replay(
        &self,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Box<dyn ReplayBlocks>, StreamError>;
    /// Drops the stream's extents before the one that holds `first_kept`.
    fn trim<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>>;
    /// Ends an extent that takes the stream's appends. Fine if it takes none any more.
    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>>;
    /// Changes several streams' extent lists in one durable step, or not at all.
    fn multi_modify<'a>(&'a self, changes: &'a [StreamChange]) -> BoxFuture<'a, Result<(), StreamError>>;
    /// Ends the layer's tasks.
    fn close<'a>(&'a self) -> BoxFuture<'a, ()>;
}
