//! The stream manager: names streams, lists and seals their extents, counts references. It has no notion of
//! blocks.
//!
//! Its state (`state.rs`) is pure; its log (`log.rs`) makes each list of commands durable as one record
//! before the state shows it.

mod log;
mod log_files;
mod restart_in_place;
mod state;

pub(crate) use log_files::{LogRecovery, PATHS as LOG_PATHS};
pub(crate) use state::Command;
pub(crate) use state::State;

use crate::error::StreamError;
use crate::ids::{ExtentId, StreamName};
use crate::settings::StreamSettings;
use crate::space::Space;
use base::Environment;
use log::{Log, Request};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Lists of commands that may wait for the log.
const LOG_QUEUE_COUNT_MAX: usize = 256;

/// The streams of a stamp. One at a time owns the log.
pub(crate) struct StreamManager {
    state: Arc<RwLock<State>>,
    next_extent: AtomicU64,
    log: mpsc::Sender<Request>,
}

impl StreamManager {
    /// Lays out an empty log.
    pub(crate) async fn format(
        env: &Environment,
        settings: &StreamSettings,
        space: &Arc<Space>,
    ) -> Result<(), StreamError> {
        Self::format_with(env, settings, space, &State::default()).await
    }

    /// Lays out a log that begins with `state`.
    pub(crate) async fn format_with(
        env: &Environment,
        settings: &StreamSettings,
        space: &Arc<Space>,
        state: &State,
    ) -> Result<(), StreamError> {
        log::format(env, settings, space, state).await
    }

    /// Reads the log without changing anything. `is_kept_twice`: the folder's format has its second file.
    pub(crate) async fn read(env: &Environment, is_kept_twice: bool) -> Result<LogRecovery, StreamError> {
        log::read(env, is_kept_twice).await
    }

    /// Starts a new log from what was read, and its task. New extents get `next_extent` or higher ids: files
    /// of extents that no stream lists may have lower ones.
    pub(crate) async fn start(
        env: &Environment,
        settings: &StreamSettings,
        recovered: LogRecovery,
        next_extent: u64,
        space: &Arc<Space>,
    ) -> Result<Self, StreamError> {
        let given_up = space.given_up();
        let log = match Log::start(env, settings, &recovered, space).await {
            Err(StreamError::DiskFull) if space.give_up_at_start(given_up).await => {
                Log::start(env, settings, &recovered, space).await?
            }
            started => started?,
        };
        let next_extent = AtomicU64::new(recovered.state.next_extent.max(next_extent));
        let state = Arc::new(RwLock::new(recovered.state));
        let (sender, requests) = mpsc::channel(LOG_QUEUE_COUNT_MAX);
        let task = log.run(env.clock.clone(), state.clone(), requests);
        env.spawner
            .spawn_dedicated("stream-manager", Box::pin(task))
            .map_err(StreamError::no_thread("stream-manager"))?;
        Ok(StreamManager { state, next_extent, log: sender })
    }

    /// Changes several streams' extent lists in one durable step, or not at all.
    pub(crate) async fn multi_modify(&self, commands: Vec<Command>) -> Result<(), StreamError> {
        let (reply, answer) = oneshot::channel();
        self.log.send(Request { commands, reply }).await.map_err(|_| StreamError::Closing)?;
        answer.await.map_err(|_| StreamError::Closing)?
    }

    /// Returns when all requests are done.
    pub(crate) async fn close(&self) {
        // An error means that the log has stopped: nothing is under way.
        let _ = self.multi_modify(Vec::new()).await;
    }

    /// An id that no extent has had.
    pub(crate) fn new_extent_id(&self) -> ExtentId {
        ExtentId(self.next_extent.fetch_add(1, Ordering::Relaxed))
    }

    /// Looks at the state.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// The stream's extents, with the length of those that are sealed.
    pub(crate) fn extents(&self, stream: &StreamName) -> Result<Vec<(ExtentId, Option<u64>)>, StreamError> {
        self.with(|state| {
            let info = state.streams.get(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
            Ok(info
                .extents
                .iter()
                .map(|id| {
                    (*id, state.extents.get(id).and_then(|info| info.sealed).map(|sealed| sealed.length))
                })
                .collect())
        })
    }
}
