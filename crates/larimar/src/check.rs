//! `larimar check DIR`: reads a data folder that nobody serves, and says what is damaged and what that means.
//! A stamp's check is in `stamp_commands/check.rs`.
//!
//! What always holds: nothing in the folder is written; a folder that a server holds is refused. The exit
//! code is 0 for a healthy folder, 3 for a damaged one, 1 if it could not be looked at.

use crate::Failure;
use crate::arguments::CheckArguments;
use crate::data_folder;
use crate::lasting_runtime::run_to_the_end;
use crate::output::progress::Progress;
use crate::places::ContainerNames;
use crate::places::container_names::{Opened, container_names};
use crate::repair::{Plan, RepairError, plan_for};
use crate::stamp_commands;
use base::system::SystemDisk;
use base::{ByteSize, Environment};
use blob::{BlobError, FormerNames, find_former_names};
use partition::{FolderCheck, PartitionError, check_folder};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::Streams;
use tokio::runtime::Builder;

/// Exit code for damage, so that scripts can tell it from a folder that could not be looked at.
pub(crate) const EXIT_DAMAGED: u8 = 3;
/// Rows that damage touches and actions of a repair that are shown, of each.
const TOLD_MAX: usize = 20;
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

/// Checks the folder or the stamp.
pub(crate) fn run(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    match &arguments.folder {
        Some(folder) => check(folder, arguments.quiet).map_err(|error| Failure::of_work(&error)),
        None => stamp_commands::check_stamp(arguments),
    }
}

/// Checks the folder and prints what is found.
fn check(path: &Path, is_quiet: bool) -> Result<ExitCode, CheckError> {
    let _held = data_folder::hold_for_reading(path)?;
    let mut bar = Progress::with_plain_lines(is_quiet);
    let outcome = run_to_the_end(Builder::new_current_thread(), async {
        let env = base::system::environment_on(Arc::new(SystemDisk::new(path)));
        let stream_failed = |error| CheckError::Stream { path: path.to_owned(), error };
        Streams::check_folder(&env).await.map_err(stream_failed)?;
        let partition_failed = |error| CheckError::Partition { path: path.to_owned(), error };
        let found =
            check_folder(&env, &mut |read, all| bar.bar(read, all)).await.map_err(partition_failed)?;
        // Where rows are damaged the walk over the names would only say so again.
        let (names, remedy) = match found.damages.is_empty() {
            true if found.is_fresh => (FormerNames::default(), None),
            true => (former_names(&env).await.map_err(partition_failed)?, None),
            false => (FormerNames::default(), Some(remedy(&env, path, &found, &mut bar).await)),
        };
        Ok::<_, CheckError>((found, names, remedy))
    });
    bar.clear();
    let (found, names, remedy) = outcome.map_err(CheckError::Runtime)??;
    let names_of_damage = remedy.as_ref().map(|remedy| &remedy.names);
    let plan = remedy.as_ref().map(|remedy| &remedy.plan);
    let mut text = text(&path.display().to_string(), &found, names_of_damage, plan);
    put_former_names(&mut text, path, &names);
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if found.damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DAMAGED) })
}

/// Looks for blobs whose names no new blob gets.
async fn former_names(env: &Environment) -> Result<FormerNames, PartitionError> {
    let opened = Opened::over(env).await?;
    let found = find_former_names(&opened.partitions, FORMER_NAMES_MAX).await;
    opened.close().await;
    found.map_err(|error| match error {
        BlobError::Partition(error) => error,
        other => PartitionError::Unavailable(other.to_string()),
    })
}

/// What a repair would do about the damage.
async fn remedy(env: &Environment, path: &Path, found: &FolderCheck, progress: &mut Progress) -> Remedy {
    let damaged = found.damages.iter().map(|damage| damage.place.clone()).collect();
    match plan_for(env, path.display().to_string(), damaged, progress).await {
        Ok((plan, names)) => Remedy { plan: Ok(plan), names },
        Err(error) => {
            let why = match error {
                RepairError::Failed(error) => error.to_string(),
                other => other.to_string(),
            };
            Remedy { plan: Err(why), names: container_names(env).await }
        }
    }
}

/// What is known of damage besides where it is.
struct Remedy {
    /// What a repair would do, or why nobody knows.
    plan: Result<Plan, String>,
    names: ContainerNames,
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

/// What is found in a folder or a stamp, with the names of containers and what a repair would do, if they
/// were looked for.
pub(crate) fn text(
    path: &str,
    found: &FolderCheck,
    names: Option<&ContainerNames>,
    plan: Option<&Result<Plan, String>>,
) -> String {
    if found.is_fresh {
        return format!("{path}: nothing was ever stored here\n");
    }
    let mut text = String::new();
    for damage in &found.damages {
        text.push_str(&format!(
            "{}\n  problem: {}\n  meaning: {}\n",
            damage.place, damage.problem, damage.meaning
        ));
        if let (Some(names), Some((table, keys))) = (names, &damage.rows) {
            text.push_str(&format!("  rows: {}\n", names.of_range(*table, keys)));
        }
    }
    let verdict = match found.damages.len() {
        0 => "no damage found".to_owned(),
        1 => "1 damaged place".to_owned(),
        count => format!("{count} damaged places"),
    };
    if let Some(torn) = &found.torn {
        text.push_str(&format!("{path}: {torn}\n"));
    }
    if found.journaled_bytes > 0 {
        text.push_str(&format!(
            "{path}: the journal holds {} that are missing in their extents or are others there: the next start writes them \
             there\n",
            ByteSize(found.journaled_bytes)
        ));
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
    if let Some(plan) = plan {
        put_remedy(&mut text, path, plan);
    }
    text
}

/// What is lost, and what a repair would do.
fn put_remedy(text: &mut String, path: &str, plan: &Result<Plan, String>) {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            text.push_str(&format!("{path}: what a repair would do can't be found out: {error}\n"));
            return;
        }
    };
    let mut put = |title: &str, lines: Vec<String>, count: usize| {
        if count > 0 {
            text.push_str(&format!("{path}: {title}:\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        if count > lines.len() {
            text.push_str(&format!("  and {} more\n", count - lines.len()));
        }
    };
    let losses = plan.losses.iter().take(TOLD_MAX).map(ToString::to_string);
    put("what the damage touches (lost, older, or uncertain)", losses.collect(), plan.losses.len());
    let actions = plan.actions.iter().take(TOLD_MAX).cloned();
    put("what a repair would do", actions.collect(), plan.actions.len());
    text.push_str(&match plan.actions.is_empty() {
        true => format!("{path}: there is nothing that a repair would do\n"),
        false => format!("{path}: larimar repair {path} plans it, and changes nothing without --apply\n"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::{Damage, KeyRange, ObjectTable};

    #[test]
    fn damage_is_told_with_its_meaning() {
        let rows = Some((ObjectTable::Entity, KeyRange::container("acct", 7)));
        let (place, problem, meaning) = ("a".to_owned(), "b".to_owned(), "c".to_owned());
        let damage = Damage { place, problem, meaning, rows };
        let found = FolderCheck { damages: vec![damage], ..FolderCheck::default() };
        let told = text("d", &found, None, None);
        assert!(told.starts_with("a\n  problem: b\n  meaning: c\nd: 1 damaged place; "), "{told}");
        assert!(text("d", &FolderCheck::default(), None, None).starts_with("d: no damage found; "));
        let actions: Vec<_> = (0..TOLD_MAX + 2).map(|number| format!("action {number}")).collect();
        let plan = Ok(Plan { actions, ..Plan::default() });
        let names = ContainerNames::default();
        let told = text("d", &found, Some(&names), Some(&plan));
        assert!(told.contains("\n  meaning: c\n  rows: entities of the table with the id 7 "), "{told}");
        assert!(told.contains("\nd: what a repair would do:\n  action 0\n"), "{told}");
        assert!(told.contains("\n  and 2 more\nd: larimar repair d plans it"), "{told}");
        let unknown = Err("e".to_owned());
        assert!(text("d", &found, Some(&names), Some(&unknown)).ends_with("can't be found out: e\n"));
        let journaled = FolderCheck { journaled_bytes: 7, ..FolderCheck::default() };
        assert!(text("d", &journaled, None, None).contains("d: the journal holds 7 bytes that are missing"));
        let older = FolderCheck { undigested_extent_count: 2, ..FolderCheck::default() };
        let told = text("d", &older, None, None);
        assert!(told.starts_with("d: 2 extents were begun by an earlier version"), "{told}");
        assert!(told.contains("\nd: no damage found; "), "{told}");
    }
}
