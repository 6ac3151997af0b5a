//! Giving streams their new last extents, in a task of its own.
//!
//! Why: a requester may be dropped in the middle, and an extent that is added but not listed, or sealed
//! without a successor, would block the next one. What always holds: a roll that was begun is ended, and
//! rolls, like all that changes a stream's last extent, are done one after the other.

use crate::error::StreamError;
use crate::extent_node::ExtentNode;
use crate::ids::{ExtentId, StreamName};
use crate::owner::Owner;
use crate::stream_manager::{Command, StreamManager};
use base::Spawner;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// Requests for new extents that may wait; further ones wait to be admitted.
const ROLL_QUEUE_COUNT_MAX: usize = 64;

/// Takes requests for new extents. The task ends when this is dropped.
pub(crate) struct Rolls(mpsc::Sender<Roll>);

/// A stream needs a new last extent.
struct Roll {
    stream: StreamName,
    owner: Owner,
    /// Its open tail when that was found.
    seen: Option<ExtentId>,
    reply: oneshot::Sender<Result<(), StreamError>>,
}

/// What the task works with.
struct Roller {
    node: Arc<ExtentNode>,
    manager: Arc<StreamManager>,
    rolling: Arc<Mutex<()>>,
    /// An extent that was made, then refused by the manager, and is not deleted yet.
    unlisted: Option<ExtentId>,
}

impl Rolls {
    /// Starts the task. It holds `rolling` while it changes a stream.
    pub(crate) fn start(
        spawner: &dyn Spawner,
        node: Arc<ExtentNode>,
        manager: Arc<StreamManager>,
        rolling: Arc<Mutex<()>>,
    ) -> Result<Self, StreamError> {
        let (rolls, asked) = mpsc::channel(ROLL_QUEUE_COUNT_MAX);
        let task = Roller { node, manager, rolling, unlisted: None }.run(asked);
        spawner.spawn_dedicated("roll", Box::pin(task)).map_err(StreamError::no_thread("roll"))?;
        Ok(Rolls(rolls))
    }

    /// Adds a new last extent to the stream, unless one was added since `seen` was its open tail.
    pub(crate) async fn ask(
        &self,
        stream: StreamName,
        owner: Owner,
        seen: Option<ExtentId>,
    ) -> Result<(), StreamError> {
        let (reply, outcome) = oneshot::channel();
        self.0.send(Roll { stream, owner, seen, reply }).await.map_err(|_| StreamError::Closing)?;
        outcome.await.map_err(|_| StreamError::Closing)?
    }
}

impl Roller {
    async fn run(mut self, mut asked: mpsc::Receiver<Roll>) {
        while let Some(Roll { stream, owner, seen, reply }) = asked.recv().await {
            let outcome = self.roll(stream, owner, seen).await;
            // A requester that was dropped is no reason to stop.
            let _ = reply.send(outcome);
        }
    }

    async fn roll(
        &mut self,
        stream: StreamName,
        owner: Owner,
        seen: Option<ExtentId>,
    ) -> Result<(), StreamError> {
        let _rolling = self.rolling.clone().lock_owned().await;
        if self.manager.with(|state| state.tail_for(&stream, owner))? != seen {
            return Ok(());
        }
        let stream = stream.owned_by(owner);
        // Where there is no space for its deletion there is none for another: so there is never more than
        // one.
        self.delete_unlisted().await?;
        let mut commands = Vec::new();
        if let Some(extent) = seen {
            let sealed = self.node.fence(extent, owner, true).await?.sealed();
            commands.push(Command::Seal { stream: Some(stream.clone()), extent, sealed });
        }
        let extent = self.manager.new_extent_id();
        self.node.create(extent, owner).await?;
        commands.push(Command::Add { stream, extent });
        let listed = self.manager.multi_modify(commands).await;
        if matches!(listed, Err(StreamError::DiskFull | StreamError::NotOwner { .. })) {
            // For certain no stream lists it. If it can't be deleted now, the next roll tries again.
            self.unlisted = Some(extent);
            let _ = self.delete_unlisted().await;
        }
        listed
    }

    async fn delete_unlisted(&mut self) -> Result<(), StreamError> {
        if let Some(extent) = self.unlisted {
            match self.node.delete(extent).await {
                Ok(()) | Err(StreamError::NoExtent(_)) => self.unlisted = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
