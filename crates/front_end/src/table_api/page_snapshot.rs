//! The pinned snapshot that a page of entities is of.
//!
//! ```text
//! x-larimar-extensions: snapshot           request: pins one
//! x-larimar-snapshot: 0123…                answer; with following requests: reads it
//! x-larimar-extensions: snapshot-end       with a request that reads it: it ends with this page
//! ```
//!
//! What always holds: a page that names a snapshot is of it, or an error; a snapshot that a request pinned
//! whose reply was not made whole, because it failed or its client has gone, is ended.

use super::errors::from_table;
use super::extensions::{SNAPSHOT, SnapshotUse};
use super::request_context::RequestContext;
use crate::error::ApiError;
use crate::reply::Reply;
use table::{SnapshotId, SnapshotOf, TableService};

/// What a page reads.
pub(super) struct PageSnapshot<'a> {
    /// `None`: what there is.
    pub(super) id: Option<SnapshotId>,
    new: Option<NewSnapshot<'a>>,
    ends: bool,
}

/// A snapshot of whose id its client has not heard: it ends when this is dropped.
struct NewSnapshot<'a> {
    service: &'a TableService,
    /// `None`: it stays.
    snapshot: Option<SnapshotOf>,
}

impl Drop for NewSnapshot<'_> {
    fn drop(&mut self) {
        if let Some(snapshot) = &self.snapshot {
            self.service.unpin_snapshot(snapshot);
        }
    }
}

impl<'a> PageSnapshot<'a> {
    /// Pins one if that is wanted.
    pub(super) async fn open(context: &RequestContext<'a>, table: &str) -> Result<Self, ApiError> {
        Ok(match context.extensions.snapshot {
            SnapshotUse::None => PageSnapshot { id: None, new: None, ends: false },
            SnapshotUse::Read { id, ends } => PageSnapshot { id: Some(id), new: None, ends },
            SnapshotUse::Pin => {
                let service = context.service;
                let snapshot = service.pin_snapshot(context.account, table).await.map_err(from_table)?;
                let id = snapshot.id;
                let new = Some(NewSnapshot { service, snapshot: Some(snapshot) });
                PageSnapshot { id: Some(id), new, ends: false }
            }
        })
    }

    /// The reply is whole: ends the snapshot if that is wanted, else adds the header with its id.
    pub(super) async fn finish(self, context: &RequestContext<'a>, table: &str, reply: &mut Reply) {
        let Some(id) = self.id else { return };
        if self.ends {
            // A table that is gone by now has no queries any more; its snapshot ends unused.
            let _ = context.service.end_snapshot(context.account, table, id).await;
            return;
        }
        reply.header_bytes(SNAPSHOT, id.to_string().into_bytes());
        if let Some(mut new) = self.new {
            new.snapshot = None;
        }
    }
}
