//! Records in one file of lines (`file_lines.rs`): a map without a database, for one machine.
//!
//! A writer holds the file's lock, reads what is there, appends one line and syncs. A reader takes no lock:
//! it sees whole lines only. Once removed records take more than the others, and more than
//! [`SLACK_BYTES_MAX`], the file is written anew beside and renamed.
//!
//! After a sync that failed nobody knows what the disk holds; a sync is not tried again, the file is written
//! anew.
//!
//! What always holds: a put that is done is on the disk; the file is never longer than it is whole at the end
//! of a write that was acknowledged; writers of one machine exclude each other.

use super::file_lines::{Lines, compacted, header_line, read_lines, record_line};
use super::records::{Put, Record, Records};
use crate::error::StoreError;
use crate::on_thread::on_thread;
use base::{BoxFuture, Clock, Disk, DiskFile, FileLock, OpenMode, TaskThread};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a writer waits for another.
const LOCK_FOR_MAX: Duration = Duration::from_secs(10);
/// How often it looks.
const LOCK_EVERY: Duration = Duration::from_millis(10);
/// Bytes of removed records that stay at any rate.
const SLACK_BYTES_MAX: usize = 1 << 20;
/// Bytes of a file, at most: it is read whole.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What records in a file need of the outside.
#[derive(Clone)]
pub struct FilePlace {
    /// The folder.
    pub disk: Arc<dyn Disk>,
    /// The file's name in it.
    pub name: String,
    /// The lock of another file beside it, because this one is renamed.
    pub lock: Arc<dyn FileLock>,
    /// Waits for the lock.
    pub clock: Arc<dyn Clock>,
    /// Reads and writes, which may block.
    pub thread: Arc<dyn TaskThread>,
    /// The whole path, for messages.
    pub shown: String,
}

/// Records in a file.
pub struct FileRecords {
    place: FilePlace,
    /// A write or sync failed: the file is written anew before anything is appended to it.
    is_suspect: Arc<AtomicBool>,
}

impl FileRecords {
    /// The records of a file, which is made at the first put.
    pub fn new(place: FilePlace) -> Self {
        FileRecords { place, is_suspect: Arc::default() }
    }

    fn refused(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::refused(&self.place.shown, what)
    }

    async fn locked(&self) -> Result<Box<dyn Send + Sync>, StoreError> {
        let started_at = self.place.clock.monotonic();
        loop {
            match self.place.lock.try_lock() {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) if self.place.clock.monotonic() - started_at < LOCK_FOR_MAX => {
                    self.place.clock.sleep(LOCK_EVERY).await;
                }
                Ok(None) => {
                    return Err(self.refused("another process has locked it; try again, or end that one"));
                }
                Err(error) => return Err(self.refused(format!("it can't be locked: {error}"))),
            }
        }
    }

    async fn read(&self) -> Result<Lines, StoreError> {
        let (disk, name) = (self.place.disk.clone(), self.place.name.clone());
        let read = on_thread(&self.place.thread, "read shard records", async move {
            read_file(&*disk, &name).await.map(|(lines, _)| lines)
        });
        read.await.unwrap_or_else(|| Err(gone())).map_err(|failure| self.refused(failure))
    }

    /// Appends the line that `decide` makes of what is there, or none.
    async fn append<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&Lines) -> (Option<String>, T) + Send + 'static,
    ) -> Result<T, StoreError> {
        let lock = self.locked().await?;
        let (disk, name) = (self.place.disk.clone(), self.place.name.clone());
        let is_suspect = self.is_suspect.clone();
        let done = on_thread(&self.place.thread, "write shard records", async move {
            let (mut lines, mut file) = read_file(&*disk, &name).await.map_err(Failure::Before)?;
            if is_suspect.load(Ordering::Relaxed) {
                rewrite(&*disk, &name, &lines.records).await.map_err(not_written)?;
                is_suspect.store(false, Ordering::Relaxed);
                (lines, file) = read_file(&*disk, &name).await.map_err(Failure::Before)?;
            }
            let (line, outcome) = decide(&lines);
            let done = match (line, file) {
                (Some(line), file) => write(&*disk, &name, file, lines, &line).await,
                // What is there may be another's write that is not durable yet.
                (None, Some(file)) => file.sync_data().await.map_err(perhaps_written),
                (None, None) => Ok(()),
            };
            if matches!(done, Err(Failure::Perhaps(_))) {
                is_suspect.store(true, Ordering::Relaxed);
            }
            drop(lock);
            done.map(|()| outcome)
        });
        match done.await.unwrap_or_else(|| Err(Failure::Before(gone()))) {
            Ok(outcome) => Ok(outcome),
            Err(Failure::Before(what)) => Err(self.refused(what)),
            Err(Failure::Perhaps(what)) => Err(StoreError::uncertain(&self.place.shown, what)),
        }
    }
}

fn gone() -> String {
    "the thread that reads and writes it is gone".to_owned()
}

/// A write that failed.
enum Failure {
    /// Before anything was written.
    Before(String),
    /// When it may have been.
    Perhaps(String),
}

fn not_written(error: io::Error) -> Failure {
    Failure::Before(format!("it can't be written: {error}"))
}

fn perhaps_written(error: io::Error) -> Failure {
    Failure::Perhaps(format!("it can't be written: {error}"))
}

/// What the file holds, and the file if it is there.
async fn read_file(disk: &dyn Disk, name: &str) -> Result<(Lines, Option<Arc<dyn DiskFile>>), String> {
    let shown = |error: io::Error| format!("it can't be read: {error}");
    let file = match disk.open(name, OpenMode::Write).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Lines::default(), None)),
        // A reader need not be allowed to write.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            disk.open(name, OpenMode::Read).await.map_err(shown)?
        }
        Err(error) => return Err(shown(error)),
    };
    let size = file.size().await.map_err(shown)?;
    if size > FILE_BYTES_MAX {
        return Err(format!("it has {size} bytes, more than {FILE_BYTES_MAX}; keep the map in a database"));
    }
    let bytes = match usize::try_from(size) {
        Ok(0) => Vec::new(),
        Ok(size) => file.read_at(0, size).await.map_err(shown)?.to_vec(),
        Err(_) => return Err("it does not fit into memory".to_owned()),
    };
    Ok((read_lines(&bytes)?, Some(file)))
}

/// Writes a line behind the whole ones, and makes it durable.
async fn write(
    disk: &dyn Disk,
    name: &str,
    file: Option<Arc<dyn DiskFile>>,
    lines: Lines,
    line: &str,
) -> Result<(), Failure> {
    let is_new = file.is_none();
    let file = match file {
        Some(file) => file,
        None => disk.open(name, OpenMode::CreateNew).await.map_err(not_written)?,
    };
    // What a crash left of a line that was not acknowledged.
    file.set_len(lines.whole_bytes as u64).await.map_err(not_written)?;
    let header = if lines.whole_bytes == 0 { header_line() } else { String::new() };
    let bytes = (header + line).into_bytes();
    file.write_at(lines.whole_bytes as u64, bytes.into()).await.map_err(perhaps_written)?;
    file.sync_data().await.map_err(perhaps_written)?;
    if is_new {
        disk.sync_folder(folder(name)).await.map_err(perhaps_written)?;
    }
    let live_bytes: usize = lines.records.iter().map(|(key, value)| key.len() + value.len()).sum();
    if lines.whole_bytes > SLACK_BYTES_MAX + 2 * live_bytes
        && let Ok((lines, _)) = read_file(disk, name).await
    {
        // The line is durable whatever becomes of this.
        drop(rewrite(disk, name, &lines.records).await);
    }
    Ok(())
}

/// Writes the file anew, without removed records.
async fn rewrite(disk: &dyn Disk, name: &str, records: &BTreeMap<String, String>) -> io::Result<()> {
    let new = format!("{name}.new");
    if disk.exists(&new).await? {
        disk.remove(&new).await?;
    }
    let file = disk.open(&new, OpenMode::CreateNew).await?;
    file.write_at(0, compacted(records).into_bytes().into()).await?;
    file.sync_data().await?;
    disk.rename(&new, name).await?;
    disk.sync_folder(folder(name)).await
}

fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Records for FileRecords {
    fn place(&self) -> &str {
        &self.place.shown
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        let (key, value) = (key.to_owned(), value.to_owned());
        Box::pin(self.append(move |lines| match lines.records.contains_key(&key) {
            true => (None, Put::Taken),
            false => (Some(record_line(&key, Some(&value))), Put::Done),
        }))
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { Ok(self.read().await?.records.remove(key)) })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let records = self.read().await?.records.into_iter();
            let found = records.filter(|(key, _)| key.as_str() >= from && key.as_str() < to).take(count_max);
            Ok(found.map(|(key, value)| Record { key, value }).collect())
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.to_owned();
        Box::pin(
            self.append(move |lines| (lines.records.contains_key(&key).then(|| record_line(&key, None)), ())),
        )
    }
}
