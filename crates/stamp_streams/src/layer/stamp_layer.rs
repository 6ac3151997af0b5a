//! The layer: names, owners and lists of a range's streams.
//!
//! What always holds: nothing is changed for another incarnation than the one that holds the range. Within
//! one the handle of the range decides: one that has stopped sends nothing more, whatever epoch is named.

use crate::error::{AppendError, StampError};
use crate::extents::log_handle::Log;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::part_starts::PartStarts;
use crate::layer::replay::StampReplay;
use crate::range::owned_range::OwnedRange;
use base::BoxFuture;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::{ExtentName, RangeDocument, StreamId};
use std::collections::HashMap;
use std::sync::Arc;
use stream::{
    ExtentId, Incarnation, Location, Owner, ReplayBlocks, StreamChange, StreamError, StreamLayer, StreamName,
    StreamStat,
};

/// Purposes of streams that are going begin so: nobody sees them any more.
pub(super) const GOING: &str = ".going/";

/// The streams of a range that this process holds.
pub struct StampLayer(pub(super) Arc<Held>);

/// What the layer knows of the range.
pub(super) struct Held {
    pub(super) range: Arc<OwnedRange>,
    pub(super) ids: ExtentIds,
    pub(super) starts: PartStarts,
    listing: Mutex<Arc<Listing>>,
}

/// The document by what is asked of it.
pub(super) struct Listing {
    document: Arc<RangeDocument>,
    streams: HashMap<StreamName, StreamId>,
    pub(super) extents: HashMap<ExtentName, Listed>,
}

/// An extent of the document.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    /// Its length, once it is recorded.
    pub(super) length: Option<u64>,
    /// How many streams list it.
    count: u64,
    /// One of them: the only one as long as it is open.
    stream: StreamId,
}

impl Listing {
    fn new(document: Arc<RangeDocument>) -> Self {
        let mut streams = HashMap::new();
        let mut extents: HashMap<ExtentName, Listed> = HashMap::new();
        for (id, stream) in &document.streams {
            if !stream.purpose.starts_with(GOING) {
                streams.insert(StreamName::new(&stream.purpose), *id);
            }
            for entry in &stream.extents {
                let new = Listed { length: entry.length, count: 0, stream: *id };
                extents.entry(entry.name).or_insert(new).count += 1;
            }
        }
        Listing { document, streams, extents }
    }
}

impl StampLayer {
    /// The streams of a range that was taken and not read yet. Streams whose removal was cut off go first.
    ///
    /// # Errors
    ///
    /// If the document is not one that a process makes, or the range is not held any more.
    pub async fn open(range: Arc<OwnedRange>) -> Result<Arc<Self>, StampError> {
        let document = range.document();
        let ids = ExtentIds::default();
        ids.learn(&document)?;
        let listing = Mutex::new(Arc::new(Listing::new(document)));
        let layer = StampLayer(Arc::new(Held { range, ids, starts: PartStarts::default(), listing }));
        layer.0.remove_going().await?;
        Ok(Arc::new(layer))
    }
}

impl Held {
    /// The document that is committed.
    pub(super) fn listing(&self) -> Arc<Listing> {
        let document = self.range.document();
        let mut listing = self.listing.lock();
        if !Arc::ptr_eq(&listing.document, &document) {
            *listing = Arc::new(Listing::new(document));
        }
        listing.clone()
    }

    /// The stream of this name.
    pub(super) fn stream(&self, name: &StreamName) -> Result<StreamId, StreamError> {
        self.listing().streams.get(name).copied().ok_or_else(|| StreamError::NoStream(name.clone()))
    }

    /// The log of the stream of this name.
    pub(super) fn log(&self, name: &StreamName) -> Result<Log, StreamError> {
        Ok(self.range.log(self.stream(name)?))
    }

    /// Whether `owner` may change the stream.
    pub(super) fn check_owner(&self, stream: &StreamName, owner: Owner) -> Result<(), StreamError> {
        let seen = self.range.owner();
        match owner.incarnation == seen.incarnation {
            true => Ok(()),
            false => Err(StreamError::not_owner(stream, seen, owner)),
        }
    }

    /// The extents of a stream, in order, with the lengths of those that take no more appends.
    pub(super) fn extents(&self, name: &StreamName) -> Result<Vec<(ExtentName, Option<u64>)>, StreamError> {
        let (id, document) = (self.stream(name)?, self.range.document());
        let stream = document.streams.get(&id).ok_or_else(|| StreamError::NoStream(name.clone()))?;
        Ok(stream.extents.iter().map(|entry| (entry.name, entry.length)).collect())
    }

    /// Bytes of an extent without a recorded length that are acknowledged.
    pub(super) fn open_length(&self, extent: ExtentName) -> u64 {
        let listing = self.listing();
        let Some(listed) = listing.extents.get(&extent) else { return 0 };
        self.range.log(listed.stream).length_of(extent).or(listed.length).unwrap_or(0)
    }

    /// Whether more may be sent for the range.
    pub(super) fn may_go_on(&self) -> bool {
        self.range.is_held()
    }

    fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        let length = |extent, length: Option<u64>| length.unwrap_or_else(|| self.open_length(extent));
        let listed = self.extents(stream)?.into_iter();
        let extents = listed.map(|(extent, known)| (extent.short(), length(extent, known)));
        let extents: Vec<_> = extents.collect();
        Ok(StreamStat { extents })
    }
}

/// What a failure of the stamp says to the layers above: see [`stream::StreamLayer`].
pub(super) fn of_stamp(error: StampError) -> StreamError {
    match error {
        StampError::Stored(error) => StreamError::Corrupt(error.to_string()),
        other => StreamError::Unavailable(other.to_string()),
    }
}

/// The same of an append.
pub(super) fn of_append(error: AppendError) -> StreamError {
    match error.may_be_there {
        true => StreamError::OutcomeUnknown(error.to_string()),
        false => StreamError::Unavailable(error.to_string()),
    }
}

impl StreamLayer for StampLayer {
    fn list(&self, prefix: &str) -> Vec<StreamName> {
        let listing = self.0.listing();
        let names = listing.streams.keys().filter(|name| name.as_str().starts_with(prefix));
        let mut names: Vec<StreamName> = names.cloned().collect();
        names.sort();
        names
    }

    fn count(&self) -> u64 {
        self.0.listing().streams.len() as u64
    }

    fn exists(&self, stream: &StreamName) -> bool {
        self.0.stream(stream).is_ok()
    }

    fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        self.0.stream(stream).map(|_| self.0.range.owner())
    }

    fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        self.0.stat(stream)
    }

    fn listed_by(&self, extent: ExtentId) -> u64 {
        let Ok(name) = self.0.ids.name(extent) else { return 0 };
        self.0.listing().extents.get(&name).map_or(0, |listed| listed.count)
    }

    fn extent_size_bytes_max(&self) -> u64 {
        self.0.range.extent_size_bytes()
    }

    fn incarnation(&self) -> Incarnation {
        self.0.range.owner().incarnation
    }

    fn has_joined(&self, incarnation: Incarnation) -> bool {
        // Whoever had the range before can do nothing any more.
        incarnation == self.0.range.owner().incarnation
    }

    fn check_writes(&self) -> Result<(), StreamError> {
        match self.0.range.stopped() {
            None => Ok(()),
            Some(stop) => Err(StreamError::WritesStopped(stop.to_string())),
        }
    }

    fn spawn_appending(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.range.spawn(name, task);
    }

    fn create<'a>(
        &'a self,
        streams: &'a [StreamName],
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let changes: Vec<_> =
                streams.iter().map(|stream| StreamChange::Create(stream.owned_by(owner))).collect();
            self.0.modify(&changes).await
        })
    }

    fn append<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>> {
        Box::pin(self.0.append(stream, owner, blocks))
    }

    fn take_over<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        // The range was taken with all of its streams.
        let taken = self.0.stream(stream).and_then(|_| self.0.check_owner(stream, owner));
        Box::pin(std::future::ready(taken))
    }

    fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>> {
        Box::pin(self.0.read(location))
    }

    fn read_run<'a>(&'a self, run: &'a [Location]) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>> {
        Box::pin(self.0.read_run(run))
    }

    fn replay(
        &self,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Box<dyn ReplayBlocks>, StreamError> {
        Ok(Box::new(StampReplay::new(self.0.clone(), stream, from)?))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.trim(stream, owner, first_kept))
    }

    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.seal(stream, owner, extent))
    }

    fn multi_modify<'a>(&'a self, changes: &'a [StreamChange]) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.modify(changes))
    }

    fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        // Whoever took the range gives it up.
        Box::pin(std::future::ready(()))
    }
}
