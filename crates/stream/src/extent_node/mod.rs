//! The extent node: keeps extents on its disk. It knows extents and blocks, nothing of streams or keys.
//!
//! Small appends go to the journal (one sync for all that wait) and to their extent later; large ones go
//! straight to the extent and only their length goes to the journal. What always holds: a returned append is
//! durable and reads back the same bytes, or the read fails loudly.
//!
//! ```text
//! journal/*             see journal/mod.rs
//! extents/<16 hex>      append blocks one after the other, see block.rs
//! ```

mod append;
mod check;
mod drain;
mod extent;
mod extent_files;
mod forgotten;
mod journal;
mod lifecycle;
mod lost_file;
mod misplaced;
mod open;
mod read;
mod repair;
mod settle;
mod state;
mod stop;
mod unsure_end;
mod walk;

pub(crate) use check::{NodeFacts, read_node};
pub(crate) use open::{OnNoSpace, RecoveredNode, read_whole};
pub(crate) use read::ExtentReader;
pub(crate) use settle::ListedExtent;
pub(crate) use walk::WalkStep;

use crate::error::StreamError;
use crate::ids::{ExtentId, OwnerEpoch};
use crate::sealed::{ExtentDigest, Seal};
use crate::settings::StreamSettings;
use crate::space::Space;
use base::{BoxFuture, Disk, TaskThread};
use extent::Extent;
use journal::Request;
use parking_lot::RwLock;
use state::ExtentState;
use std::collections::BTreeMap;
use std::sync::Arc;
use stop::Stop;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for the journal; further ones wait to be admitted.
const JOURNAL_QUEUE_COUNT_MAX: usize = 1024;
/// Bytes read at a time when an extent is replayed.
const REPLAY_READ_SIZE_BYTES: usize = 1 << 20;

/// What a node says about an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentStat {
    /// Bytes that are durable.
    pub length: u64,
    /// Newest owner seen.
    pub epoch: OwnerEpoch,
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
        let ExtentState { epoch, length, frozen, digest, in_doubt: _ } = state;
        ExtentStat { length, epoch, frozen, digest }
    }
}

/// The extents of one disk. Each verb has its file.
pub(crate) struct ExtentNode {
    disk: Arc<dyn Disk>,
    settings: StreamSettings,
    extents: RwLock<BTreeMap<ExtentId, Arc<Extent>>>,
    journal: mpsc::Sender<Request>,
    /// Where the journal's writer runs.
    journal_thread: Arc<dyn TaskThread>,
    stop: Arc<Stop>,
    space: Arc<Space>,
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

    fn extent(&self, extent: ExtentId) -> Result<Arc<Extent>, StreamError> {
        self.extents.read().get(&extent).cloned().ok_or(StreamError::NoExtent(extent))
    }

    /// Sends a request to the journal and waits for its reply.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StreamError>>) -> Request,
    ) -> Result<T, StreamError> {
        let (reply, answer) = oneshot::channel();
        self.journal.send(request(reply)).await.map_err(|_| StreamError::Closing)?;
        answer.await.map_err(|_| StreamError::Closing)?
    }
}

/// Path of the extent's file.
pub(crate) fn extent_path(extent: ExtentId) -> String {
    format!("extents/{extent}")
}
