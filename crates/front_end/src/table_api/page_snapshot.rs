//! The pinned snapshot that a page of entities is of.
//!
//! ```text
//! x-larimar-extensions: snapshot           request: pins one
//! x-larimar-snapshot: 0123…-1              answer; with following requests: reads it
//! x-larimar-extensions: snapshot-end       with a request that reads it: it ends with this page
//! ```
//!
//! What always holds: a page that names a snapshot is of it, or an error; a snapshot that a request pinned
//! that then fails is ended.

use super::errors::from_table;
use super::extensions::{SNAPSHOT, SnapshotUse};
use super::request_context::RequestContext;
use crate::error::ApiError;
use crate::reply::Reply;
use table::SnapshotId;

/// What a page reads.
pub(super) struct PageSnapshot {
    /// `None`: what there is.
    pub(super) id: Option<SnapshotId>,
    is_new: bool,
    ends: bool,
}

impl PageSnapshot {
    /// Pins one if that is wanted.
    pub(super) async fn open(context: &RequestContext<'_>, table: &str) -> Result<Self, ApiError> {
        Ok(match context.extensions.snapshot {
            SnapshotUse::None => PageSnapshot { id: None, is_new: false, ends: false },
            SnapshotUse::Read { id, ends } => PageSnapshot { id: Some(id), is_new: false, ends },
            SnapshotUse::Pin => {
                let id = context.service.pin_snapshot(context.account, table).await.map_err(from_table)?;
                PageSnapshot { id: Some(id), is_new: true, ends: false }
            }
        })
    }

    /// The page was read, or failed.
    pub(super) fn note_page(&self, context: &RequestContext<'_>, is_read: bool) {
        let Some(id) = self.id else { return };
        if (self.ends && is_read) || (self.is_new && !is_read) {
            context.service.unpin_snapshot(id);
        }
    }

    /// Adds the header with its id, unless it has ended.
    pub(super) fn put_into(&self, reply: &mut Reply) {
        if let Some(id) = self.id.filter(|_| !self.ends) {
            reply.header_bytes(SNAPSHOT, id.to_string().into_bytes());
        }
    }
}
