//! What the layer knows of the range that it stands for: names, owners, lists.
//!
//! What always holds: nothing is changed for another incarnation than the one that holds the range. Within
//! one the handle of the range decides: one that has stopped sends nothing more, whatever epoch is named.

use crate::error::{AppendError, StampError};
use crate::extents::log_handle::Log;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::part_starts::PartStarts;
use crate::layer::replay_progress::ReplayProgress;
use crate::range::owned_range::OwnedRange;
use parking_lot::Mutex;
use stamp::{ExtentName, RangeDocument, StreamId};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::{Owner, StreamError, StreamName, StreamStat};

/// Purposes of streams that are going begin so: nobody sees them any more.
pub(crate) const GOING: &str = ".going/";

/// What the layer knows of the range.
pub(super) struct Held {
    pub(super) range: Arc<OwnedRange>,
    pub(super) ids: ExtentIds,
    pub(super) starts: PartStarts,
    pub(super) replay_progress: Arc<ReplayProgress>,
    listing: Mutex<Arc<Listing>>,
}

/// The document by what is asked of it.
pub(super) struct Listing {
    document: Arc<RangeDocument>,
    pub(super) streams: BTreeMap<StreamName, StreamId>,
    pub(super) extents: BTreeMap<ExtentName, Listed>,
}

/// An extent of the document.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    /// Its length, once it is recorded.
    pub(super) length: Option<u64>,
    /// How many streams list it.
    pub(super) count: u64,
    /// One of them: the only one as long as it is open.
    stream: StreamId,
}

impl Listing {
    fn new(document: Arc<RangeDocument>) -> Self {
        let mut streams = BTreeMap::new();
        let mut extents: BTreeMap<ExtentName, Listed> = BTreeMap::new();
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

impl Held {
    /// Of a range whose document was learnt.
    pub(super) fn new(range: Arc<OwnedRange>, ids: ExtentIds) -> Self {
        let listing = Mutex::new(Arc::new(Listing::new(range.document())));
        Held { range, ids, starts: PartStarts::default(), replay_progress: Arc::default(), listing }
    }

    /// The document that is committed.
    pub(super) fn listing(&self) -> Arc<Listing> {
        let mut listing = self.listing.lock();
        // Read under the lock, so that a listing is never replaced by an older one.
        let document = self.range.document();
        if !Arc::ptr_eq(&listing.document, &document) {
            *listing = Arc::new(Listing::new(document));
            let extents = &listing.extents;
            self.starts.settle(|extent| extents.get(&extent).map(|listed| listed.length));
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

    pub(super) fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        let length = |extent, length: Option<u64>| length.unwrap_or_else(|| self.open_length(extent));
        let listed = self.extents(stream)?.into_iter();
        let extents = listed.map(|(extent, known)| (extent.short(), length(extent, known)));
        let extents: Vec<_> = extents.collect();
        Ok(StreamStat { extents })
    }
}

/// What a failed change of the document says to the layers above: one that was sent may have been made.
pub(super) fn of_change(error: StampError) -> StreamError {
    match error {
        StampError::Stored(error) => StreamError::Corrupt(error.to_string()),
        StampError::Full(..) => StreamError::DiskFull,
        StampError::Change(_) | StampError::Setup(_) => StreamError::Unavailable(error.to_string()),
        other => StreamError::OutcomeUnknown(other.to_string()),
    }
}

/// What a failed read says: nothing was done. See [`stream::StreamLayer`].
pub(crate) fn of_stamp(error: StampError) -> StreamError {
    match error {
        StampError::Stored(error) => StreamError::Corrupt(error.to_string()),
        other => StreamError::Unavailable(other.to_string()),
    }
}

/// The same of an append.
pub(super) fn of_append(error: AppendError) -> StreamError {
    match error.may_be_there {
        true => StreamError::OutcomeUnknown(error.to_string()),
        false if error.is_full => StreamError::DiskFull,
        false => StreamError::Unavailable(error.to_string()),
    }
}
