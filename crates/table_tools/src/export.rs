//! `larimar table export`: a table into a file.
//!
//! ```text
//! FILE.partial    lines of JSON, in whatever format the file is to be; grows by whole pages
//! FILE.state      where each range is, and how many bytes of FILE.partial that accounts for
//! FILE            by a rename, once all is there; of columns after a second pass, which knows all of them
//! ```
//!
//! The order of lines: within a partition, and within a range, that of keys; ranges are mixed by pages as
//! they come, because keeping whole ranges back needs as much memory or disk as they are large. With one
//! range, read by one worker, the file is in the order of keys: `--ordered`.
//!
//! What always holds: FILE is not there, or whole; after a kill FILE.partial is cut to what FILE.state
//! accounts for, so that a run that goes on has nothing twice and nothing missing; memory is a page for each
//! worker.

use crate::conversion::{Conversion, made_path};
use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use crate::files::folder_of;
use crate::files::format::Format;
use crate::files::output::Output;
use crate::files::state_file::StateFile;
use crate::lines::row::Row;
use crate::place::TablePlace;
use crate::scan::ledger::Ledger;
use crate::scan::range::KeyRange;
use crate::scan::run::{Keeper, Kept, run};
use crate::scan::worker::{Book, Place, Scan, ScanRequest, Sink};
use base::{BoxFuture, Disk};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use storage_client::SnapshotToken;

/// Progress of the second pass is shown so often.
const EVERY: Duration = Duration::from_millis(250);

/// What is exported, and where to.
pub struct ExportPlan {
    /// The table.
    pub place: TablePlace,
    /// Which entities; all without it.
    pub filter: Option<String>,
    /// Which properties beside the keys; all if it is empty.
    pub select: Vec<String>,
    /// The file's path.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// Workers, each with a connection.
    pub connections: usize,
    /// Lines are in the order of keys; one worker reads.
    pub is_ordered: bool,
    /// All of it is of one moment, of which the service has to keep a snapshot.
    pub is_snapshot: bool,
    /// A file that is there is replaced.
    pub overwrites: bool,
    /// What an earlier run has left is forgotten.
    pub restarts: bool,
}

/// What was exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Entities in the file.
    pub entities: u64,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// It was all there: an earlier run was ended just before it had said so.
    pub was_finished: bool,
}

/// What is kept of an export.
#[derive(Serialize, Deserialize)]
struct ExportState {
    ledger: Ledger,
    /// The token of the snapshot that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// Of the partial file.
    size_bytes: u64,
    /// All is in the partial file.
    is_read: bool,
    /// Bytes of the finished file, just before it gets its name.
    #[serde(default)]
    made_bytes: Option<u64>,
}

struct Files {
    disk: Arc<dyn Disk>,
    file: String,
    partial: String,
    state: StateFile,
    format: Format,
}

/// Exports a table, or goes on with an export that was stopped.
pub fn export<'a, 'e: 'a>(
    plan: &'a ExportPlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Exported, ToolError>> {
    Box::pin(async move {
        plan.format.check()?;
        let files = plan.files(environment.disk.clone());
        let _held = files.state.hold(&files.file, &*environment.locks)?;
        if plan.restarts {
            files.state.remove().await?;
        }
        let kept: Option<ExportState> = files.state.read().await?;
        if let Some(exported) = files.finished(kept.as_ref()).await? {
            return Ok(exported);
        }
        let kept_snapshot = kept_token(kept.as_ref().and_then(|kept| kept.snapshot.as_deref()), &files.file)?;
        let has_partial = files.size_of(&files.partial).await?.is_some();
        let (ledger, output, snapshot) = match kept {
            Some(kept) if kept.is_read && has_partial => return files.finish(plan, kept, environment).await,
            // What it speaks of is gone, or was taken for other work.
            Some(kept) if kept.is_read => files.begin(plan, environment).await?,
            Some(kept) => {
                files.refuse_existing(plan).await?;
                let output = Output::resume(&*files.disk, &files.partial, kept.size_bytes).await?;
                (kept.ledger, output, kept_snapshot)
            }
            None => files.begin(plan, environment).await?,
        };
        let (select, is_parallel) = (plan.selected(), !plan.is_ordered);
        let (url, filter) = (plan.place.url(), plan.filter.clone());
        let request = ScanRequest { url, filter, select, snapshot: snapshot.clone(), is_parallel };
        let connections = if plan.is_ordered { 1 } else { plan.connections };
        let table = plan.place.client(&environment.surroundings, connections);
        let book = Book { ledger, output: Some(output) };
        let clock = environment.surroundings.clock.clone();
        let scan = Arc::new(Scan::new(book, request, clock, environment.stop.clone()));
        let sinks: Vec<Lines> = (0..connections).map(|_| Lines).collect();
        let token = snapshot.as_ref().map(SnapshotToken::to_string);
        let mut keeper = StateKeeper { state: files.state.clone(), snapshot: token };
        let ran = run("exporting", &scan, &table, sinks, environment, &mut keeper).await;
        let book = scan.book.lock().await;
        let (rows, output) = (book.ledger.rows, book.output.as_ref());
        if let Err(error) = ran {
            if let Some(output) = output {
                // The first error is what is to be known. A run that goes on cuts, too.
                let _ = output.cut().await;
            }
            let kept =
                format!("{} has {rows} whole entities; the same command goes on with them", files.partial);
            return Err(error.keeping(kept));
        }
        let (ledger, size_bytes) = (book.ledger.clone(), output.map_or(0, Output::size_bytes));
        let kept = ExportState { ledger, snapshot: None, size_bytes, is_read: true, made_bytes: None };
        if let Some(output) = output {
            output.sync().await?;
            files.state.write(&kept).await?;
        }
        if let Some(snapshot) = &snapshot {
            // Else the service ends it later.
            let _ = table.end_snapshot(snapshot).await;
        }
        files.finish(plan, kept, environment).await
    })
}

/// The token of the snapshot that an earlier run has read. One that is none is refused: without it the rest
/// of the file would be of now, and its first part of then.
fn kept_token(kept: Option<&str>, file: &str) -> Result<Option<SnapshotToken>, ToolError> {
    let Some(text) = kept else { return Ok(None) };
    let refused = || {
        ToolError::Refused(format!(
            "what is kept of the export to {file} names the snapshot '{text}', which is none; begin anew with --restart"
        ))
    };
    SnapshotToken::parse(text).map(Some).ok_or_else(refused)
}

impl ExportPlan {
    fn files(&self, disk: Arc<dyn Disk>) -> Files {
        let work = format!(
            "export of {}{}{} into {:?}{}",
            self.place.url(),
            self.filter.as_ref().map_or_else(String::new, |filter| format!(", filter {filter}")),
            if self.select.is_empty() {
                String::new()
            } else {
                format!(", select {}", self.select.join(","))
            },
            self.format,
            if self.is_ordered { ", ordered" } else { "" },
        ) + if self.is_snapshot { ", snapshot" } else { "" };
        let state = StateFile::new(disk.clone(), format!("{}.state", self.file), work);
        let (partial, format) = (format!("{}.partial", self.file), self.format);
        Files { disk, file: self.file.clone(), partial, state, format }
    }

    /// Pins the snapshot that is read, if one is wanted.
    async fn pin(&self, environment: &ToolEnvironment<'_>) -> Result<Option<SnapshotToken>, ToolError> {
        if !self.is_snapshot {
            return Ok(None);
        }
        let pinned = self.place.client(&environment.surroundings, 1).pin_snapshot().await?;
        let none = || format!("{} is at a service without snapshots; leave --snapshot out", self.place.url());
        pinned.ok_or_else(|| ToolError::Refused(none())).map(Some)
    }

    /// Keys are always there.
    fn selected(&self) -> Vec<String> {
        if self.select.is_empty() {
            return Vec::new();
        }
        let keys = ["PartitionKey", "RowKey"].map(str::to_owned);
        let others = self.select.iter().filter(|name| !keys.contains(name)).cloned();
        keys.iter().cloned().chain(others).collect()
    }
}

impl Files {
    async fn refuse_existing(&self, plan: &ExportPlan) -> Result<(), ToolError> {
        let exists =
            self.disk.exists(&self.file).await.map_err(|error| ToolError::file(&self.file, error))?;
        if exists && !plan.overwrites {
            let what = format!("{} is there already; give --overwrite, or another name", self.file);
            return Err(ToolError::Refused(what));
        }
        Ok(())
    }

    /// Bytes of a file; none if it is not there.
    async fn size_of(&self, path: &str) -> Result<Option<u64>, ToolError> {
        let failed = |error| ToolError::file(path, error);
        if !self.disk.exists(path).await.map_err(failed)? {
            return Ok(None);
        }
        let file = self.disk.open(path, base::OpenMode::Read).await.map_err(failed)?;
        file.size().await.map(Some).map_err(failed)
    }

    /// What an earlier run has made: the file has its name already, and the size that the state says.
    async fn finished(&self, kept: Option<&ExportState>) -> Result<Option<Exported>, ToolError> {
        let Some((kept, size_bytes)) = kept.and_then(|kept| Some((kept, kept.made_bytes?))) else {
            return Ok(None);
        };
        let is_renamed = match self.size_of(&made_path(&self.partial, self.format)).await? {
            Some(_) => false,
            None => self.size_of(&self.file).await? == Some(size_bytes),
        };
        if !is_renamed {
            return Ok(None);
        }
        self.clean_up().await?;
        Ok(Some(Exported { entities: kept.ledger.rows, size_bytes, was_finished: true }))
    }

    /// A new partial file.
    async fn begin(
        &self,
        plan: &ExportPlan,
        environment: &ToolEnvironment<'_>,
    ) -> Result<(Ledger, Output, Option<SnapshotToken>), ToolError> {
        self.refuse_existing(plan).await?;
        // Nothing is made for a table that is not there.
        plan.place.checked(plan.filter.as_deref(), 1, environment).await?;
        let snapshot = plan.pin(environment).await?;
        let output = Output::create(&*self.disk, &self.partial).await?;
        Ok((Ledger::new(KeyRange::all()), output, snapshot))
    }

    /// Makes the file of the partial one, which is whole.
    async fn finish(
        &self,
        plan: &ExportPlan,
        mut kept: ExportState,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<Exported, ToolError> {
        let entities = kept.ledger.rows;
        let made = self.make(plan, &mut kept, environment).await;
        let size_bytes = made.map_err(|error| {
            let kept = format!("{} has all {entities} entities; the same command goes on", self.partial);
            error.keeping(kept)
        })?;
        self.clean_up().await?;
        Ok(Exported { entities, size_bytes, was_finished: false })
    }

    /// Makes it and gives it its name; its size.
    async fn make(
        &self,
        plan: &ExportPlan,
        kept: &mut ExportState,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<u64, ToolError> {
        let failed = |error| ToolError::file(&self.file, error);
        // It may have appeared since the beginning; before the work, and behind it.
        self.refuse_existing(plan).await?;
        let made = self.convert(kept.ledger.rows, environment).await?;
        let size_bytes = self.size_of(&made).await?.unwrap_or(0);
        kept.made_bytes = Some(size_bytes);
        self.state.write(kept).await?;
        self.refuse_existing(plan).await?;
        self.disk.rename(&made, &self.file).await.map_err(failed)?;
        self.disk.sync_folder(folder_of(&self.file)).await.map_err(failed)?;
        Ok(size_bytes)
    }

    /// Removes what was there for the file to be made.
    async fn clean_up(&self) -> Result<(), ToolError> {
        if self.size_of(&self.partial).await?.is_some() {
            self.disk.remove(&self.partial).await.map_err(|error| ToolError::file(&self.partial, error))?;
        }
        self.state.remove().await
    }

    /// The path of the partial file in the format that is wanted.
    async fn convert(
        &self,
        entities: u64,
        environment: &mut ToolEnvironment<'_>,
    ) -> Result<String, ToolError> {
        let clock = environment.surroundings.clock.clone();
        let (mut rate, mut shown_at) = (Rate::new(clock.monotonic(), 0), clock.monotonic());
        let mut watch = |verb, done| {
            let now = clock.monotonic();
            if now.saturating_sub(shown_at) >= EVERY {
                shown_at = now;
                let (rate, rest) = (rate.look(now, done), Rest::About(entities.saturating_sub(done)));
                (environment.watcher)(&Progress { verb, done, rate, rest });
            }
            if environment.stop.is_set() { Err(ToolError::Stopped) } else { Ok(()) }
        };
        let mut conversion = Conversion { disk: &*self.disk, lines: &self.partial, watch: &mut watch };
        match self.format {
            Format::JsonLines => Ok(self.partial.clone()),
            Format::Csv => conversion.write_csv().await,
            Format::Parquet => conversion.write_parquet().await,
        }
    }
}

/// Rows as lines.
struct Lines;

impl Sink for Lines {
    fn take<'a>(
        &'a mut self,
        _: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            let mut out = Vec::with_capacity(rows.len() * 1024);
            rows.iter().for_each(|row| row.put_line(&mut out));
            Ok(out)
        })
    }
}

struct StateKeeper {
    state: StateFile,
    snapshot: Option<String>,
}

impl Keeper for StateKeeper {
    fn keep<'a>(&'a mut self, kept: Kept) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let Some((file, size_bytes)) = kept.output else { return Ok(()) };
            file.sync_data().await.map_err(|error| ToolError::file(self.state.path(), error))?;
            let (ledger, snapshot, made_bytes) = (kept.ledger, self.snapshot.clone(), None);
            self.state.write(&ExportState { ledger, snapshot, size_bytes, is_read: false, made_bytes }).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An export went on with the rows of now, because the token of its snapshot did not read.
    #[test]
    fn a_kept_snapshot_is_read_or_the_export_refused() {
        assert!(kept_token(None, "f").is_ok_and(|token| token.is_none()));
        let token = kept_token(Some("00ff"), "f").ok().flatten();
        assert_eq!(token.map(|token| token.to_string()), Some("00ff".to_owned()));
        for text in ["", "a b", "\u{e9}"] {
            let refused = kept_token(Some(text), "f");
            assert!(matches!(&refused, Err(ToolError::Refused(why)) if why.contains("--restart")), "{text}");
        }
    }
}
