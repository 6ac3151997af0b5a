//! `larimar check DIR`: reads a data folder that nobody serves, and says what is damaged and what that means.
//!
//! What always holds: nothing in the folder is written; a folder that a server holds is refused. The exit code is 0
//! for a healthy folder, 3 for a damaged one, 1 if it could not be looked at.

use crate::data_folder;
use base::system::SystemDisk;
use partition::{FolderCheck, check_folder};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::Streams;

/// Exit code for damage, so that scripts can tell it from a folder that could not be looked at.
const EXIT_DAMAGED: u8 = 3;
/// Columns of the progress bar.
const BAR_WIDTH: u64 = 40;

/// Why the folder can't be looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Folder(#[from] data_folder::FolderError),
    #[error("{}: {error}", path.display())]
    Stream { path: std::path::PathBuf, error: stream::StreamError },
    #[error("{}: {error}", path.display())]
    Partition { path: std::path::PathBuf, error: partition::PartitionError },
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
        check_folder(&env, &mut |read, all| bar.show(read, all)).await.map_err(partition_failed)
    });
    bar.clear();
    let found = outcome?;
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text(path, &found).as_bytes());
    Ok(if found.damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DAMAGED) })
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
