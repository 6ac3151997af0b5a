//! The handle of a log; what it does is in `log`.

use crate::extents::log_core::LogCore;
use crate::range::owned_range::OwnedRange;
use stamp::{Change, ExtentName, StreamId};
use std::sync::Arc;

/// A log in the hands of its owner. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    pub(crate) range: Arc<OwnedRange>,
    pub(crate) core: Arc<LogCore>,
    pub(crate) stream: StreamId,
}

impl Log {
    /// Bytes of an extent of this log, as far as its owner knows them by itself: that are acknowledged, while
    /// it is open; all, while the length is not recorded. None of any other.
    pub(crate) fn length_of(&self, extent: ExtentName) -> Option<u64> {
        let state = self.core.state.lock();
        if let Some(window) = state.window.as_ref().filter(|window| window.place().extent == extent) {
            return Some(window.end());
        }
        state.unrecorded.iter().find_map(|change| match change {
            Change::RecordLength { extent: sealed, length, .. } if *sealed == extent => Some(*length),
            _ => None,
        })
    }

    /// Whether the document has the length of this extent.
    pub(crate) fn range_lists_sealed(&self, extent: ExtentName) -> bool {
        let document = self.range.document();
        let entry = document.streams.get(&self.stream).and_then(|stream| stream.extent(extent));
        entry.is_none_or(|entry| entry.length.is_some())
    }

    /// Whether this extent takes appends.
    pub(crate) fn is_open(&self, extent: ExtentName) -> bool {
        let state = self.core.state.lock();
        state.window.as_ref().is_some_and(|window| window.place().extent == extent)
    }

    /// The extent that is open is sealed. The changes that record its length are the caller's: nothing is
    /// appended before they are made.
    ///
    /// # Errors
    ///
    /// If the range has stopped meanwhile.
    pub(crate) async fn seal_extent(&self) -> Result<Vec<Change>, String> {
        let sealed = self.close_unrecorded().await;
        let changes = std::mem::take(&mut self.core.state.lock().unrecorded);
        self.reopen();
        sealed.map(|()| changes)
    }

    /// The extent that is open is sealed and its length recorded; the next append opens another.
    ///
    /// # Errors
    ///
    /// If the range has stopped meanwhile.
    pub(crate) async fn end_extent(&self) -> Result<(), String> {
        // Also if the caller goes away meanwhile: a push that meets the seal then stops the range, which is
        // read again.
        let _reopened = Reopened(self);
        self.close().await
    }
}

/// Pushes are taken again in the end.
struct Reopened<'a>(&'a Log);

impl Drop for Reopened<'_> {
    fn drop(&mut self) {
        self.0.reopen();
    }
}
