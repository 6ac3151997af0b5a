//! `larimar check DIR`: reads a data folder that nobody serves, and says what is damaged and what that means.
//!
//! What always holds: nothing in the folder is written; a folder that a server holds is refused. The exit code is 0
//! for a healthy folder, 3 for a damaged one, 1 if it could not be looked at.

use crate::data_folder;
use base::Environment;
use base::overlay_disk::OverlayDisk;
use base::system::SystemDisk;
use blob::{BlobError, FormerNames, find_former_names};
use partition::{FolderCheck, PartitionError, PartitionSettings, Partitions, check_folder};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::{StreamSettings, Streams};

/// Exit code for damage, so that scripts can tell it from a folder that could not be looked at.
const EXIT_DAMAGED: u8 = 3;
/// Columns of the progress bar.
const BAR_WIDTH: u64 = 40;
/// Blobs that are named because no new one gets a name like theirs.
const FORMER_NAMES_MAX: usize = 100;

/// Why the folder can't be looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Folder(#[from] data_folder::FolderError),
    #[error("{}: {error}", path.display())]
    Stream { path: std::path::PathBuf, error: stream::StreamError },
    #[error("{}: {error}", path.display())]
    Partition { path: std::path::PathBuf, error: PartitionError },
    #[error("the operating system refuses the check's threads: {0}")]
    Runtime(std::io::Error),
}

/// Checks the folder and prints what is found.
pub(crate) fn check(path: &Path) -> Result<ExitCode, CheckError> {
    let _held = data_folder::hold_for_reading(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CheckError::Runtime)?;
    let mut bar = ProgressBar::new();
    let outcome = runtime.block_on(async {
        let env = base::system::environment_on(Arc::new(SystemDisk::new(path)));
        let stream_failed = |error| CheckError::Stream { path: path.to_owned(), error };
        Streams::check_folder(&env).await.map_err(stream_failed)?;
        let partition_failed = |error| CheckError::Partition { path: path.to_owned(), error };
        let found =
            check_folder(&env, &mut |read, all| bar.show(read, all)).await.map_err(partition_failed)?;
        // Where rows are damaged the walk over the names would only say so again.
        let names = match found.damages.is_empty() && !found.is_fresh {
            true => former_names(&env).await.map_err(partition_failed)?,
            false => FormerNames::default(),
        };
        Ok::<_, CheckError>((found, names))
    });
    bar.clear();
    let (found, names) = outcome?;
    let mut text = text(path, &found);
    put_former_names(&mut text, path, &names);
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if found.damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DAMAGED) })
}

/// Looks for blobs whose names no new blob gets. What opening the layers writes goes to a disk in memory over the folder.
async fn former_names(env: &Environment) -> Result<FormerNames, PartitionError> {
    let env = &Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env.clone() };
    let settings =
        StreamSettings { scrub_bytes_per_second: 0, reserve_size_bytes: 0, ..StreamSettings::default() };
    let streams = Streams::open(env, settings).await?;
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await?;
    let found = find_former_names(&partitions, FORMER_NAMES_MAX).await;
    partitions.close().await;
    streams.close().await;
    found.map_err(|error| match error {
        BlobError::Partition(error) => error,
        other => PartitionError::Unavailable(other.to_string()),
    })
}

fn put_former_names(text: &mut String, path: &Path, names: &FormerNames) {
    if names.count == 0 {
        return;
    }
    let path = path.display();
    text.push_str(&format!(
        "{path}: {} blobs have names that no new blob gets (control characters, or dots at the end of a segment). They \
         can be listed, read, copied and deleted under exactly these names (delete with If-Match: a repeated deletion \
         would mean the name without the dots); copy those that you need to other names:\n",
        names.count
    ));
    for blob in &names.first {
        let (account, container, name) = (&blob.account, &blob.container, blob.name.escape_debug());
        text.push_str(&format!("  {account}/{container}/{name}\n"));
    }
    let listed = names.first.len() as u64;
    if names.count > listed {
        text.push_str(&format!("  and {} more\n", names.count - listed));
    }
}

fn text(path: &Path, found: &FolderCheck) -> String {
    let path = path.display();
    if found.is_fresh {
        return format!("{path}: nothing was ever stored here\n");
    }
    let mut text = String::new();
    for damage in &found.damages {
        text.push_str(&format!(
            "{}\n  problem: {}\n  meaning: {}\n",
            damage.place, damage.problem, damage.meaning
        ));
    }
    let verdict = match found.damages.len() {
        0 => "no damage found".to_owned(),
        1 => "1 damaged place".to_owned(),
        count => format!("{count} damaged places"),
    };
    if let Some(torn) = &found.torn {
        text.push_str(&format!("{path}: {torn}\n"));
    }
    if found.undigested_extent_count > 0 {
        text.push_str(&format!(
            "{path}: {} extents were begun by an earlier version, which kept no digest of extents: each of their blocks \
             was checked, but not whether they are the ones that were written\n",
            found.undigested_extent_count
        ));
    }
    text.push_str(&format!(
        "{path}: {verdict}; {} extents with {} blocks ({} bytes), {} ranges, {} rows in checkpoints, {} changes in logs\n",
        found.extent_count,
        found.block_count,
        found.size_bytes,
        found.range_count,
        found.row_count,
        found.log_change_count
    ));
    text
}

/// A bar on standard error, if that is a terminal.
struct ProgressBar {
    is_terminal: bool,
    /// Columns that are filled; `None`: nothing is shown.
    shown: Option<u64>,
}

impl ProgressBar {
    fn new() -> Self {
        ProgressBar { is_terminal: std::io::stderr().is_terminal(), shown: None }
    }

    fn show(&mut self, read: u64, all: u64) {
        let filled = (read * BAR_WIDTH).checked_div(all).unwrap_or(BAR_WIDTH).min(BAR_WIDTH);
        if !self.is_terminal || self.shown == Some(filled) {
            return;
        }
        self.shown = Some(filled);
        let (done, left) = ("#".repeat(filled as usize), ".".repeat((BAR_WIDTH - filled) as usize));
        // A bar that can't be drawn is no reason to stop.
        let _ = write!(std::io::stderr(), "\r[{done}{left}] {} of {} MiB", read >> 20, all >> 20);
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::Damage;

    #[test]
    fn damage_is_told_with_its_meaning() {
        let damage = Damage { place: "a".to_owned(), problem: "b".to_owned(), meaning: "c".to_owned() };
        let found = FolderCheck { damages: vec![damage], ..FolderCheck::default() };
        let told = text(Path::new("d"), &found);
        assert!(told.starts_with("a\n  problem: b\n  meaning: c\nd: 1 damaged place; "), "{told}");
        assert!(text(Path::new("d"), &FolderCheck::default()).starts_with("d: no damage found; "));
        let older = FolderCheck { undigested_extent_count: 2, ..FolderCheck::default() };
        let told = text(Path::new("d"), &older);
        assert!(told.starts_with("d: 2 extents were begun by an earlier version"), "{told}");
        assert!(told.contains("\nd: no damage found; "), "{told}");
    }
}
