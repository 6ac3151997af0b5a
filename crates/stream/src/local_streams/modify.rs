//! Changes several streams' extent lists in one durable step, and removes extents that no stream lists any
//! more.

use super::LocalStreams;
use crate::error::StreamError;
use crate::owner::OwnedStream;
use crate::stream_manager::Command;
use crate::streams::change::StreamChange;
use base::BoxFuture;
use futures_util::future::try_join_all;

impl LocalStreams {
    /// Changes several streams' extent lists in one durable step, or not at all.
    pub(crate) fn multi_modify<'a>(
        &'a self,
        changes: &'a [StreamChange],
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let mut commands = Vec::with_capacity(changes.len());
            let mut deletes = false;
            {
                let _rolling = self.rolling.lock().await;
                let mut shared: Vec<&OwnedStream> = changes.iter().filter_map(shared_stream).collect();
                shared.sort_by(|a, b| a.name.cmp(&b.name));
                shared.dedup();
                for seal in try_join_all(shared.into_iter().map(|stream| self.seal_tail(stream))).await? {
                    commands.extend(seal);
                }
                for change in changes {
                    let command = match change {
                        StreamChange::Create(stream) => Command::Create(stream.clone()),
                        StreamChange::Delete(stream) => {
                            deletes = true;
                            Command::Delete(stream.clone())
                        }
                        StreamChange::Rename { from, to } => {
                            Command::Rename { from: from.clone(), to: to.clone() }
                        }
                        StreamChange::Unlist { stream, extents } => {
                            deletes = true;
                            Command::Unlist { stream: stream.clone(), extents: extents.clone() }
                        }
                        StreamChange::Share { from, to } => {
                            let extents =
                                self.manager.extents(&from.name)?.into_iter().map(|(extent, _)| extent);
                            Command::Share { from: from.clone(), to: to.clone(), extents: extents.collect() }
                        }
                        StreamChange::ShareSome { from, to, extents: shared } => {
                            let listed =
                                self.manager.extents(&from.name)?.into_iter().map(|(extent, _)| extent);
                            let extents = listed.filter(|extent| shared.contains(extent)).collect();
                            Command::Share { from: from.clone(), to: to.clone(), extents }
                        }
                    };
                    commands.push(command);
                }
                self.manager.multi_modify(commands).await?;
            }
            if deletes { self.collect().await } else { Ok(()) }
        })
    }

    /// Freezes the stream's last extent and returns the command that records it at the manager; `None` if it
    /// takes no appends anyway.
    pub(super) async fn seal_tail(&self, stream: &OwnedStream) -> Result<Option<Command>, StreamError> {
        // A former owner's seal would be refused by the manager, but the extent would be frozen by then.
        let tail = self.manager.with(|state| state.tail_for(&stream.name, stream.owner))?;
        let Some(extent) = tail else { return Ok(None) };
        let sealed = self.node.fence(extent, stream.owner, true).await?.sealed();
        Ok(Some(Command::Seal { stream: Some(stream.clone()), extent, sealed }))
    }

    /// Removes extents that no stream lists and that stayed because their removal was refused, by a full disk
    /// perhaps. To be called from time to time.
    pub(crate) fn collect_left<'a>(&'a self) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move { self.collect().await })
    }

    /// Second phase of deletion: extents that no stream lists are removed from their node, then from the
    /// manager's list. A failure of one stops no other; the first failure is returned.
    pub(super) async fn collect(&self) -> Result<(), StreamError> {
        let _collecting = self.collecting.lock().await;
        let mut outcome = Ok(());
        // After the first refusal each further command would only use up the disk's last bytes; the files
        // are what takes space.
        let mut forgets = true;
        for extent in self.manager.with(|state| state.unreferenced()) {
            let removed = match self.node.delete(extent).await {
                Ok(()) | Err(StreamError::NoExtent(_)) if forgets => {
                    let forgotten = self.manager.multi_modify(vec![Command::Forget(extent)]).await;
                    forgets = forgotten.is_ok();
                    forgotten
                }
                Ok(()) | Err(StreamError::NoExtent(_)) => Ok(()),
                Err(error) => Err(error),
            };
            outcome = outcome.and(removed);
        }
        outcome
    }
}

/// The stream whose extents a change shares.
fn shared_stream(change: &StreamChange) -> Option<&OwnedStream> {
    match change {
        StreamChange::Share { from, .. } | StreamChange::ShareSome { from, .. } => Some(from),
        StreamChange::Create(_)
        | StreamChange::Rename { .. }
        | StreamChange::Delete(_)
        | StreamChange::Unlist { .. } => None,
    }
}
