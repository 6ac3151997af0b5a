//! Creating, fencing and deleting extents, and closing the node.

use super::extent::Extent;
use super::journal::Request;
use super::state::ExtentState;
use super::{ExtentNode, ExtentStat, extent_path};
use crate::error::{StreamError, is_disk_full, not_made};
use crate::ids::ExtentId;
use crate::owner::Owner;
use base::OpenMode;
use base::disk::is_out_of_files;
use std::sync::Arc;
use tokio::sync::oneshot;

impl ExtentNode {
    /// Makes an empty extent; durable when it returns.
    pub(crate) async fn create(&self, extent: ExtentId, owner: Owner) -> Result<(), StreamError> {
        self.stop.check()?;
        let path = extent_path(extent);
        let given_up = self.space.given_up();
        let mut file = self.disk.open(&path, OpenMode::CreateNew).await;
        if file.as_ref().is_err_and(is_disk_full) && self.space.give_up(given_up).await {
            file = self.disk.open(&path, OpenMode::CreateNew).await;
        }
        let file = file.map_err(|error| not_made(&path, &error))?;
        if let Err(error) = self.disk.sync_folder("extents").await {
            if is_out_of_files(&error) {
                // No sync was tried. The file will never be used; if it stays, the next start removes it.
                let _ = self.disk.remove(&path).await;
                return Err(StreamError::OutOfFiles(error.to_string()));
            }
            let error = StreamError::write("folder extents", &error);
            self.stop.writes(error.clone());
            return Err(error);
        }
        let created = Arc::new(Extent::new(extent, file, ExtentState::empty(owner)));
        let asked = self.ask(|reply| Request::Create { extent: created.clone(), owner, reply }).await;
        if asked == Err(StreamError::DiskFull) {
            // The journal has no space, and for certain does not have the extent: see above.
            let _ = self.disk.remove(&path).await;
        }
        asked?;
        self.extents.write().insert(extent, created);
        Ok(())
    }

    /// Shuts out the owners before `owner` and, with `freeze`, every append for ever; then returns the length
    /// and the digest. Refused if the extent has an owner that this one does not follow. One persisted step,
    /// so no append can follow the returned length.
    pub(crate) async fn fence(
        &self,
        extent: ExtentId,
        owner: Owner,
        freeze: bool,
    ) -> Result<ExtentStat, StreamError> {
        let extent = self.extent(extent)?;
        let state = self.ask(|reply| Request::Fence { extent: extent.clone(), owner, freeze, reply }).await?;
        Ok(state.into())
    }

    /// Deletes an extent. Its readers get an error from now on, also if the journal has no space: then it is
    /// to be deleted again.
    pub(crate) async fn delete(&self, extent: ExtentId) -> Result<(), StreamError> {
        self.extents.write().remove(&extent);
        self.ask(|reply| Request::Delete { extent, reply }).await?;
        self.remove_file(extent).await
    }

    /// Removes the file of an extent that the journal does not have (any more).
    pub(super) async fn remove_file(&self, extent: ExtentId) -> Result<(), StreamError> {
        // A name that comes back after a power loss is removed at the next start.
        match self.disk.remove(&extent_path(extent)).await {
            // It was lost.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| StreamError::write("removing an extent", &error)),
        }
    }

    /// Writes and syncs all that is journaled, then ends the node's tasks.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.journal.send(Request::Close { reply }).await.is_ok() {
            // An error means that the task is gone already.
            let _ = closed.await;
        }
    }
}
