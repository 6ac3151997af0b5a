//! The node itself: its fields, facts about its extents, and requests to its journal. Each verb has its file.
//!
//! What always holds: an extent's state changes only through a request to the journal.

use super::extent::Extent;
use super::journal::Request;
use super::state::ExtentState;
use super::stop::Stop;
use crate::error::StreamError;
use crate::ids::ExtentId;
use crate::owner::Owner;
use crate::sealed::{ExtentDigest, Seal};
use crate::settings::StreamSettings;
use crate::space::Space;
use base::{BoxFuture, Disk, TaskThread};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for the journal; further ones wait to be admitted.
pub(super) const JOURNAL_QUEUE_COUNT_MAX: usize = 1024;
/// Bytes read at a time when an extent is replayed.
pub(super) const REPLAY_READ_SIZE_BYTES: usize = 1 << 20;

/// Facts about an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentStat {
    /// Bytes that are durable.
    pub length: u64,
    /// Newest owner seen.
    pub owner: Owner,
    /// Whether it takes no more appends.
    pub frozen: bool,
    /// Digest of its blocks, if one was kept from the first on.
    pub digest: Option<ExtentDigest>,
}

impl ExtentStat {
    /// What is fixed for ever, if the extent is frozen.
    pub(crate) fn sealed(&self) -> Seal {
        Seal { length: self.length, digest: self.digest }
    }
}

impl From<ExtentState> for ExtentStat {
    fn from(state: ExtentState) -> Self {
        let ExtentState { owner, length, frozen, digest, in_doubt: _ } = state;
        ExtentStat { length, owner, frozen, digest }
    }
}

/// The extents of one disk. Each verb has its file.
pub(crate) struct ExtentNode {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) settings: StreamSettings,
    pub(super) extents: RwLock<BTreeMap<ExtentId, Arc<Extent>>>,
    pub(super) journal: mpsc::Sender<Request>,
    /// Where the journal's writer runs.
    pub(super) journal_thread: Arc<dyn TaskThread>,
    pub(super) stop: Arc<Stop>,
    pub(super) space: Arc<Space>,
}

impl ExtentNode {
    /// Facts about one extent.
    pub(crate) fn stat(&self, extent: ExtentId) -> Result<ExtentStat, StreamError> {
        Ok(self.extent(extent)?.state().into())
    }

    /// Every extent here.
    pub(crate) fn list(&self) -> Vec<ExtentId> {
        self.extents.read().keys().copied().collect()
    }

    /// Why writing has stopped, if it has.
    pub(crate) fn check_writes(&self) -> Result<(), StreamError> {
        self.stop.check()
    }

    /// Starts a task on the journal's thread.
    pub(crate) fn spawn_beside_journal(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.journal_thread.spawn(name, task);
    }

    pub(super) fn extent(&self, extent: ExtentId) -> Result<Arc<Extent>, StreamError> {
        self.extents.read().get(&extent).cloned().ok_or(StreamError::NoExtent(extent))
    }

    /// Sends a request to the journal and waits for its reply.
    pub(super) async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StreamError>>) -> Request,
    ) -> Result<T, StreamError> {
        let (reply, answer) = oneshot::channel();
        self.journal.send(request(reply)).await.map_err(|_| StreamError::Closing)?;
        answer.await.map_err(|_| StreamError::Closing)?
    }
}
