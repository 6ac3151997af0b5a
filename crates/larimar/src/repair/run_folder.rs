//! The folder of one repair that changes something: what it was to do, and what it has replaced.
//!
//! ```text
//! repair/2026-11-26T22-31-05Z/     when the run began, in UTC
//!   kept/PATH                      each file that may be replaced or removed, as it was
//!   kept/rows.json                 each row that reads and goes or is changed, as it was: one object a line,
//!                                  key and value in hexadecimal
//!   plan.txt plan.json             the plan; nothing is changed before they are durable
//!   result.txt result.json         what was done
//!   finished                       the run came to its end: its losses were printed
//! ```
//!
//! What always holds: a folder with a plan and without `finished` is of a run that was broken off while it
//! may have changed something, and its plan has all it may have lost. Copies and names are durable before the
//! plan is.

use super::error::RepairError;
use super::plan::Plan;
use base::{Disk, OpenMode, Ticks};
use partition::{ObjectTable, Row};
use service::date_time_text;
use std::collections::BTreeSet;
use std::io;
use stream::StreamDamage;

/// Where they are.
const RUNS: &str = "repair";
const PLAN_JSON: &str = "plan.json";
const FINISHED: &str = "finished";
const KEPT_ROWS: &str = "kept/rows.json";
/// Bytes of a kept row's line besides key and value, at most.
const ROW_SIZE_BYTES_MAX: u64 = 128;
/// Files are copied in pieces of this size; those of zeros take no space.
const PIECE_SIZE_BYTES: u64 = 1 << 20;
/// Characters of "2026-11-26T22:31:05".
const TIME_LEN: usize = 19;
/// Runs that may begin in one second.
const RUNS_A_SECOND_MAX: usize = 100;

/// A run that was broken off.
pub(super) struct UnfinishedRun {
    pub(super) path: String,
    pub(super) plan: Plan,
}

/// The runs that were broken off after they had a plan.
pub(super) async fn unfinished_runs(disk: &dyn Disk) -> Result<Vec<UnfinishedRun>, RepairError> {
    let failed = |path: &str| {
        let path = path.to_owned();
        move |error| RepairError::Run { path, error }
    };
    let mut runs = Vec::new();
    if !disk.exists(RUNS).await.map_err(failed(RUNS))? {
        return Ok(runs);
    }
    for name in disk.list(RUNS).await.map_err(failed(RUNS))? {
        let path = format!("{RUNS}/{name}");
        // A file that somebody has put there is none.
        let Ok(names) = disk.list(&path).await else { continue };
        let has = |name: &str| names.iter().any(|known| known == name);
        // Without a plan nothing was changed.
        if has(FINISHED) || !has(PLAN_JSON) {
            continue;
        }
        let plan_path = format!("{path}/{PLAN_JSON}");
        let content = read_whole(disk, &plan_path).await.map_err(failed(&plan_path))?;
        let plan = Plan::from_json(&content).map_err(|error| RepairError::Run {
            path: plan_path,
            error: io::Error::new(io::ErrorKind::InvalidData, error),
        })?;
        runs.push(UnfinishedRun { path, plan });
    }
    Ok(runs)
}

async fn read_whole(disk: &dyn Disk, path: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read).await?;
    let size = file.size().await?;
    Ok(file.read_at(0, size as usize).await?.into())
}

/// Marks a run that was broken off as finished: another one, which has finished, has listed what it may have
/// lost.
pub(super) async fn close_unfinished(disk: &dyn Disk, run: &str) -> Result<(), RepairError> {
    RunFolder { path: run.to_owned() }.finish(disk).await
}

/// Files that a repair may replace or remove: those that are damaged, and those that it writes anew anyway.
/// With their sizes.
pub(super) async fn files_to_keep(
    disk: &dyn Disk,
    damages: &[StreamDamage],
) -> Result<Vec<(String, u64)>, RepairError> {
    let failed = |path: &str| {
        let path = path.to_owned();
        move |error| RepairError::Keep { path, error }
    };
    let mut paths: BTreeSet<String> = damages.iter().map(|damage| damage.place.clone()).collect();
    let is_journal_damaged = paths.contains("journal");
    for (folder, start) in [("", "FORMAT"), ("journal", "table"), ("stream_manager", "")] {
        let start = if folder == "journal" && is_journal_damaged { "" } else { start };
        if !folder.is_empty() && !disk.exists(folder).await.map_err(failed(folder))? {
            continue;
        }
        for name in disk.list(folder).await.map_err(failed(folder))? {
            if name.starts_with(start) {
                paths.insert(if folder.is_empty() { name } else { format!("{folder}/{name}") });
            }
        }
    }
    let mut files = Vec::new();
    for path in paths {
        // Missing files, and places that are no files.
        if let Ok(file) = disk.open(&path, OpenMode::Read).await
            && let Ok(size) = file.size().await
            && path != "journal"
        {
            files.push((path, size));
        }
    }
    Ok(files)
}

/// The folder of the run that is under way.
pub(super) struct RunFolder {
    path: String,
}

impl RunFolder {
    /// Makes one.
    pub(super) async fn make(disk: &dyn Disk, now: Ticks) -> Result<Self, RepairError> {
        let time: String = date_time_text(now).chars().take(TIME_LEN).collect();
        let time = time.replace(':', "-");
        for number in 0..RUNS_A_SECOND_MAX {
            let end = if number == 0 { String::new() } else { format!("-{number}") };
            let path = format!("{RUNS}/{time}Z{end}");
            let failed = |error| RepairError::Run { path: path.clone(), error };
            if !disk.exists(&path).await.map_err(failed)? {
                disk.create_folder(&path).await.map_err(failed)?;
                disk.sync_folder("").await.map_err(failed)?;
                disk.sync_folder(RUNS).await.map_err(failed)?;
                return Ok(RunFolder { path });
            }
        }
        let error = io::Error::new(io::ErrorKind::AlreadyExists, "too many repairs began in this second");
        Err(RepairError::Run { path: format!("{RUNS}/{time}Z"), error })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Keeps copies of these files.
    pub(super) async fn keep(
        &self,
        disk: &dyn Disk,
        files: &[(String, u64)],
        told: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), RepairError> {
        let kept = format!("{}/kept", self.path);
        let mut folders = BTreeSet::from([self.path.clone(), kept.clone()]);
        for (path, _) in files {
            told(&format!("keeping a copy of {path}"));
            let to = format!("{kept}/{path}");
            let folder = to.rsplit_once('/').map_or(kept.as_str(), |(folder, _)| folder).to_owned();
            let copied = async {
                disk.create_folder(&folder).await?;
                copy(disk, path, &to).await
            };
            copied.await.map_err(|error| RepairError::Keep { path: path.clone(), error })?;
            folders.insert(folder);
        }
        for folder in folders {
            if disk.exists(&folder).await.unwrap_or(true) {
                let synced = disk.sync_folder(&folder).await;
                synced.map_err(|error| RepairError::Keep { path: folder.clone(), error })?;
            }
        }
        Ok(())
    }

    /// Keeps copies of rows that are removed though they read, or are changed: they are nothing without what
    /// is lost.
    pub(super) async fn keep_rows(
        &self,
        disk: &dyn Disk,
        rows: &[(ObjectTable, Row)],
    ) -> Result<(), RepairError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = format!("{}/{KEPT_ROWS}", self.path);
        let kept = async {
            let folder = format!("{}/kept", self.path);
            disk.create_folder(&folder).await?;
            let file = disk.open(&path, OpenMode::CreateNew).await?;
            let mut at = 0;
            let mut piece = Vec::new();
            for (index, (table, row)) in rows.iter().enumerate() {
                put_row(&mut piece, *table, row);
                if piece.len() as u64 >= PIECE_SIZE_BYTES || index + 1 == rows.len() {
                    let written = std::mem::take(&mut piece);
                    let len = written.len() as u64;
                    file.write_at(at, written.into()).await?;
                    at += len;
                }
            }
            file.sync_data().await?;
            disk.sync_folder(&folder).await?;
            disk.sync_folder(&self.path).await
        };
        kept.await.map_err(|error| RepairError::Keep { path: "rows that are removed".to_owned(), error })
    }

    /// Writes what is to be done, or was, to files of this name, in one step each.
    pub(super) async fn write_plan(
        &self,
        disk: &dyn Disk,
        name: &str,
        plan: &Plan,
    ) -> Result<(), RepairError> {
        // The JSON comes last: it says that there is a plan.
        self.write(disk, &format!("{name}.txt"), plan.text(true)).await?;
        self.write(disk, &format!("{name}.json"), plan.to_json()).await
    }

    /// Declares the run to have come to its end.
    pub(super) async fn finish(&self, disk: &dyn Disk) -> Result<(), RepairError> {
        self.write(disk, FINISHED, String::new()).await
    }

    async fn write(&self, disk: &dyn Disk, name: &str, text: String) -> Result<(), RepairError> {
        let path = format!("{}/{name}", self.path);
        let new_path = format!("{path}.new");
        let written = async {
            if disk.exists(&new_path).await? {
                disk.remove(&new_path).await?;
            }
            let file = disk.open(&new_path, OpenMode::CreateNew).await?;
            file.write_at(0, text.into_bytes().into()).await?;
            file.sync_data().await?;
            disk.rename(&new_path, &path).await?;
            disk.sync_folder(&self.path).await
        };
        written.await.map_err(|error| RepairError::Run { path: path.clone(), error })
    }
}

/// Bytes that a file of these rows has, at most.
pub(super) fn rows_size(rows: &[(ObjectTable, Row)]) -> u64 {
    let hexadecimal = |bytes: &[u8]| 2 * bytes.len() as u64;
    rows.iter()
        .map(|(_, row)| ROW_SIZE_BYTES_MAX + hexadecimal(row.key.as_bytes()) + hexadecimal(&row.value))
        .sum()
}

fn put_row(out: &mut Vec<u8>, table: ObjectTable, row: &Row) {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let line = serde_json::json!({
        "table": table.name(),
        "key": hexadecimal(row.key.as_bytes()),
        "version": row.version.0.to_string(),
        "value": hexadecimal(&row.value),
    });
    out.extend_from_slice(format!("{line}\n").as_bytes());
}

/// Copies a file, durably but for its name.
async fn copy(disk: &dyn Disk, from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (disk.open(from, OpenMode::Read).await?, disk.open(to, OpenMode::CreateNew).await?);
    let size = from.size().await?;
    to.set_len(size).await?;
    let mut at = 0;
    while at < size {
        let piece = from.read_once_at(at, PIECE_SIZE_BYTES.min(size - at) as usize).await?;
        let len = piece.len() as u64;
        if piece.iter().any(|byte| *byte != 0) {
            to.write_at(at, piece).await?;
        }
        at += len;
    }
    to.sync_data().await
}
