//! Extents with overflows that a compaction leaves where they are: the new checkpoint lists them as well, so
//! that the content of small blobs is not written again each time. A compaction in parts shares all extents
//! of the part before in the same way.
//!
//! What always holds: the new stream lists them from its creation on, in the same change of the stream
//! manager, so they outlive the streams that listed them before.

use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{ExtentId, Owner, StreamChange, StreamError, StreamName, Streams};

/// Extents with overflows, or with the part of a checkpoint that was written before, that stay.
#[derive(Clone, Default)]
pub(crate) struct SharedOverflow {
    pub(crate) extents: Arc<BTreeSet<ExtentId>>,
    /// Streams that list them now, each some of them or none.
    pub(crate) listed_by: Vec<StreamName>,
}

impl SharedOverflow {
    /// Makes a checkpoint's stream that lists them; all are the owner's.
    pub(crate) async fn create(
        &self,
        streams: &Streams,
        stream: &StreamName,
        owner: Owner,
    ) -> Result<(), StreamError> {
        if self.extents.is_empty() {
            // Without the lock that shared extents take, which writers may wait for.
            return streams.create(std::slice::from_ref(stream), owner).await;
        }
        let extents: Vec<ExtentId> = self.extents.iter().copied().collect();
        let share = |from: &StreamName| StreamChange::ShareSome {
            from: from.owned_by(owner),
            to: stream.owned_by(owner),
            extents: extents.clone(),
        };
        let create = StreamChange::Create(stream.owned_by(owner));
        let changes: Vec<StreamChange> =
            std::iter::once(create).chain(self.listed_by.iter().map(share)).collect();
        streams.multi_modify(&changes).await
    }
}
