//! The file beside unfinished work that says how far it is: JSON.
//!
//! ```text
//! {"format":1,"work":{"command":"export","from":"http://…/Table", …},"state":{…}}
//! ```
//!
//! What always holds: it is replaced as a whole, by a rename, after what it speaks of is on the disk; one of
//! other work is refused, because the lines of two of them must not be mixed; a process that holds its lock,
//! which is `FILE.state.lock`, is the only one that changes it.

use crate::environment::{Held, Locks, hold};
use crate::error::ToolError;
use base::{Disk, OpenMode};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const FORMAT: u32 = 1;
/// Bytes of such a file, at most.
const SIZE_BYTES_MAX: u64 = 64 << 20;

/// The file of some work.
#[derive(Clone)]
pub(crate) struct StateFile {
    disk: Arc<dyn Disk>,
    path: String,
    work: String,
}

#[derive(Serialize, Deserialize)]
struct Document<T> {
    format: u32,
    work: String,
    state: T,
}

impl StateFile {
    /// `work` says what is done, with all that must be the same in the run that goes on.
    pub(crate) fn new(disk: Arc<dyn Disk>, path: String, work: String) -> Self {
        StateFile { disk, path, work }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Keeps other processes from this state and what it speaks of, which `what` names, until it is dropped.
    pub(crate) fn hold(&self, what: &str, locks: &dyn Locks) -> Result<Held, ToolError> {
        let path = format!("{}.lock", self.path);
        hold(&*locks.passing(&path), &path, what)
    }

    /// The state of an earlier run; none without one.
    pub(crate) async fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, ToolError> {
        let failed = |error| ToolError::file(&self.path, error);
        if !self.disk.exists(&self.path).await.map_err(failed)? {
            return Ok(None);
        }
        let file = self.disk.open(&self.path, OpenMode::Read).await.map_err(failed)?;
        let size = file.size().await.map_err(failed)?.min(SIZE_BYTES_MAX);
        let bytes = file.read_at(0, size as usize).await.map_err(failed)?;
        let refused = |what: String| {
            ToolError::Refused(format!("{}: {what}; remove it, or give --restart, to begin anew", self.path))
        };
        let document: Document<T> =
            serde_json::from_slice(&bytes).map_err(|error| refused(format!("is no state: {error}")))?;
        if document.format != FORMAT || document.work != self.work {
            return Err(refused(format!("is of other work ({})", document.work)));
        }
        Ok(Some(document.state))
    }

    /// Replaces the state.
    pub(crate) async fn write<T: Serialize>(&self, state: &T) -> Result<(), ToolError> {
        let failed = |error| ToolError::file(&self.path, error);
        let document = Document { format: FORMAT, work: self.work.clone(), state };
        let bytes = serde_json::to_vec(&document).map_err(|error| failed(error.into()))?;
        let next = format!("{}.new", self.path);
        if self.disk.exists(&next).await.map_err(failed)? {
            self.disk.remove(&next).await.map_err(failed)?;
        }
        let file = self.disk.open(&next, OpenMode::CreateNew).await.map_err(failed)?;
        file.write_at(0, Bytes::from(bytes)).await.map_err(failed)?;
        file.sync_data().await.map_err(failed)?;
        self.disk.rename(&next, &self.path).await.map_err(failed)
    }

    /// Removes it, if it is there.
    pub(crate) async fn remove(&self) -> Result<(), ToolError> {
        for path in [&self.path, &format!("{}.new", self.path)] {
            let failed = |error| ToolError::file(path, error);
            if self.disk.exists(path).await.map_err(failed)? {
                self.disk.remove(path).await.map_err(failed)?;
            }
        }
        Ok(())
    }
}
