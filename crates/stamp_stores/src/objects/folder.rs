//! Objects in a folder of a file system that all processes share: a local one, or one of the network.
//!
//! What always holds: each operation runs on a thread of its own, because a file system may block for long,
//! and there are never more than [`OPERATIONS_MAX`]; one that its caller gave up goes on to its end, so
//! what it was to do may be done yet. What the files are is in `folder_files.rs`.

use crate::error::OpenError;
use crate::objects::folder_files::FolderFiles;
use async_trait::async_trait;
use base::{Random, Spawner};
use bytes::Bytes;
use stamp::PutAnswer;
use stamp_streams::{ListPage, ObjectStore, StoreError};
use std::sync::Arc;
use tokio::sync::{Semaphore, oneshot};

/// Operations at a time, a thread each.
pub(crate) const OPERATIONS_MAX: usize = 64;

/// Objects in a folder.
pub(crate) struct FolderObjects {
    files: Arc<FolderFiles>,
    spawner: Arc<dyn Spawner>,
    permits: Arc<Semaphore>,
}

impl FolderObjects {
    /// Opens a folder, which must be there, and looks whether its file system can do what is needed.
    pub(crate) async fn open(
        path: &str,
        spawner: Arc<dyn Spawner>,
        random: Arc<dyn Random>,
    ) -> Result<Self, OpenError> {
        let what = format!("the folder {path}");
        let opened_path = path.to_owned();
        let permits = Arc::new(Semaphore::new(OPERATIONS_MAX));
        let opened = run(&spawner, &permits, move || FolderFiles::open(&opened_path, random)).await;
        let files = opened.and_then(|opened| opened.map_err(|error| error.to_string()));
        let files = files.map_err(|why| OpenError::setting(&what, format!("{why}; make it, or mount it")))?;
        Ok(FolderObjects { files: Arc::new(files), spawner, permits })
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&FolderFiles) -> T + Send + 'static,
    ) -> Result<T, String> {
        let files = self.files.clone();
        run(&self.spawner, &self.permits, move || operation(&files)).await
    }
}

/// Runs on a thread of its own; an error says why that can't be had, and nothing was done.
async fn run<T: Send + 'static>(
    spawner: &Arc<dyn Spawner>,
    permits: &Arc<Semaphore>,
    operation: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let permit = permits.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let (sender, outcome) = oneshot::channel();
    let task = async move {
        let done = operation();
        drop(permit);
        // The caller may have given up.
        drop(sender.send(done));
    };
    let spawned = spawner.spawn_dedicated("objects in a folder", Box::pin(task));
    spawned.map_err(|error| format!("there is no thread: {error}"))?;
    outcome.await.map_err(|_| "its thread ended".to_owned())
}

#[async_trait]
impl ObjectStore for FolderObjects {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        let name = name.to_owned();
        self.run(move |files| files.create(&name, &content)).await.unwrap_or(PutAnswer::Unknown)
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let name = name.to_owned();
        self.run(move |files| files.read(&name, offset, length)).await.map_err(StoreError::Unavailable)?
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let listed = self.run(move |files| files.list(&prefix, after.as_deref())).await;
        listed.map_err(StoreError::Unavailable)?
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |files| files.delete(&name)).await.map_err(StoreError::UnknownOutcome)?
    }
}
