//! `larimar table`, `queue`, `blob`, `explain` and `advise`: the thin end of crates `table_tools` and
//! `advise`: arguments, signals, files and the terminal.
//!
//! What always holds: whatever goes wrong is one line and exit code 2; the first signal ends the work and
//! keeps what was done, the second ends the process at once, after which the same command goes on, too.

pub(crate) mod advise;
pub(crate) mod blobs;
pub(crate) mod explain;
pub(crate) mod queues;
mod report;
mod settings;
mod signals;

use crate::arguments::table_arguments::{
    CopyArguments, CountArguments, DeleteArguments, DiffArguments, ExportArguments, ImportArguments,
    SchemaArguments, TableCommand,
};
use crate::output::progress::Progress as ProgressLine;
use crate::{EXIT_FAILED, Failure};
use base::FileLock;
use base::file_lock::SystemFileLock;
use base::system::SystemDisk;
use report::{counted, diff_json, schema_json};
use settings::{
    CONNECTIONS, IMPORT_CONNECTIONS, connections, format, on_conflict, other_place, path, place, selection,
};
use signals::{EXIT_INTERRUPTED, stop_at_signals};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage_client::Surroundings;
use table_tools::{
    CopyPlan, Deleted, ExportPlan, ImportPlan, Locks, Mapping, Progress, ToolEnvironment, ToolError,
};

/// Between two lines of progress where that is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Does what was asked for.
pub(crate) fn table(command: &TableCommand) -> Result<ExitCode, Failure> {
    in_runtime(async {
        match command {
            TableCommand::Export(arguments) => export(arguments).await,
            TableCommand::Import(arguments) => import(arguments).await,
            TableCommand::Copy(arguments) => copy(arguments).await,
            TableCommand::Count(arguments) => count(arguments).await,
            TableCommand::Diff(arguments) => diff(arguments).await,
            TableCommand::Delete(arguments) => delete(arguments).await,
            TableCommand::Schema(arguments) => schema(arguments).await,
        }
    })
}

fn in_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    // Exit code 1 is a difference that was found.
    let bad = |error| Failure { exit_code: crate::arguments::EXIT_BAD_ARGUMENTS, ..Failure::of_work(&error) };
    let runtime = runtime.map_err(bad)?;
    let ended = runtime.block_on(work);
    // Workers of what has failed need no goodbye.
    runtime.shutdown_background();
    ended
}

/// Whatever goes wrong is the command's input, or its surroundings.
fn failed(error: &ToolError) -> Failure {
    let exit_code = if error.is_stopped() { EXIT_INTERRUPTED } else { crate::arguments::EXIT_BAD_ARGUMENTS };
    Failure { line: error.to_string().replace('\n', " "), exit_code }
}

/// Prints what came of it. A closed standard output changes nothing about the exit code.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The locks of files, as the system has them.
struct SystemLocks;

impl Locks for SystemLocks {
    fn of_file(&self, path: &str) -> Box<dyn FileLock> {
        Box::new(SystemFileLock::new(Path::new(path)))
    }

    fn passing(&self, path: &str) -> Box<dyn FileLock> {
        Box::new(SystemFileLock::passing(Path::new(path)))
    }
}

/// Runs a tool with the real clock, disk and terminal.
async fn with_environment<T>(
    run: impl AsyncFnOnce(&mut ToolEnvironment<'_>) -> Result<T, ToolError>,
) -> Result<T, Failure> {
    let mut line = ProgressLine::new();
    let is_terminal = std::io::stderr().is_terminal();
    let mut shown_at = Instant::now();
    let mut watcher = |progress: &Progress| {
        if is_terminal {
            line.line(&progress.to_string());
        } else if shown_at.elapsed() >= LINE_EVERY {
            shown_at = Instant::now();
            // What can't be shown is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{progress}");
        }
    };
    let mut environment = ToolEnvironment {
        surroundings: Surroundings::system(),
        disk: Arc::new(SystemDisk::new(Path::new("."))),
        locks: Arc::new(SystemLocks),
        stop: stop_at_signals(),
        watcher: &mut watcher,
    };
    let ended = run(&mut environment).await;
    drop(environment);
    line.clear();
    ended.map_err(|error| failed(&error))
}

async fn export(of: &ExportArguments) -> Result<ExitCode, Failure> {
    let file = path(&of.file)?;
    let plan = ExportPlan {
        place: place(&of.table)?,
        filter: of.filter.clone(),
        select: of.select.clone(),
        format: format(of.format, &file)?,
        file,
        connections: connections(&of.table, CONNECTIONS)?,
        is_ordered: of.ordered,
        is_snapshot: of.snapshot,
        overwrites: of.overwrite,
        restarts: of.restart,
    };
    let done = with_environment(async |environment| table_tools::export(&plan, environment).await).await?;
    let earlier = if done.was_finished { "; it was finished by an earlier run" } else { "" };
    let (entities, bytes) = (counted(done.entities), done.size_bytes);
    print(&format!("{} has {entities}, {bytes} bytes{earlier}\n", plan.file));
    Ok(ExitCode::SUCCESS)
}

async fn import(of: &ImportArguments) -> Result<ExitCode, Failure> {
    let file = path(&of.file)?;
    let plan = ImportPlan {
        place: place(&of.table)?,
        format: format(of.format, &file)?,
        file,
        on_conflict: on_conflict(of.change.on_conflict),
        connections: connections(&of.table, IMPORT_CONNECTIONS)?,
        creates_table: of.change.create,
        is_dry: of.change.dry_run,
        restarts: of.change.restart,
    };
    let done = with_environment(async |environment| table_tools::import(&plan, environment).await).await?;
    let (written, skipped) = (counted(done.written), done.skipped);
    match plan.is_dry {
        true => print(&format!("dry run: nothing was written; {written} can be\n")),
        false => print(&format!("written: {written}; left out, because they were there: {skipped}\n")),
    }
    Ok(ExitCode::SUCCESS)
}

async fn copy(of: &CopyArguments) -> Result<ExitCode, Failure> {
    let from = selection(&of.table, &of.selection)?;
    let mapping =
        Mapping::parse(&of.set, &of.drop).map_err(|error| Failure::of_words(format!("--set: {error}")))?;
    let plan = CopyPlan {
        to: other_place(&from.place, of.to.as_deref(), &of.target)?,
        from,
        mapping,
        on_conflict: on_conflict(of.change.on_conflict),
        creates_table: of.change.create,
        is_dry: of.change.dry_run,
        state: of.state.as_deref().map(path).transpose()?,
        restarts: of.change.restart,
    };
    let done = with_environment(async |environment| table_tools::copy(&plan, environment).await).await?;
    match plan.is_dry {
        true => print(&format!("dry run: nothing was written; {} can be\n", counted(done.read))),
        false => print(&format!(
            "copied: {}; left out of them, because they were there: {}\n",
            counted(done.read),
            done.skipped
        )),
    }
    Ok(ExitCode::SUCCESS)
}

async fn count(of: &CountArguments) -> Result<ExitCode, Failure> {
    let which = selection(&of.table, &of.selection)?;
    let count = with_environment(async |environment| table_tools::count(&which, environment).await).await?;
    match of.json {
        true => print(&format!("{{\"entities\":{count}}}\n")),
        false => print(&format!("{}\n", counted(count))),
    }
    Ok(ExitCode::SUCCESS)
}

async fn schema(of: &SchemaArguments) -> Result<ExitCode, Failure> {
    let which = selection(&of.count.table, &of.count.selection)?;
    let schema = with_environment(async |environment| table_tools::schema(&which, environment).await).await?;
    match of.count.json {
        true => print(&(schema_json(&schema).to_string() + "\n")),
        false => print(&schema.to_string()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn diff(of: &DiffArguments) -> Result<ExitCode, Failure> {
    let which = selection(&of.table, &of.selection)?;
    let other = other_place(&which.place, of.to.as_deref(), &of.other)?;
    let found = with_environment(async |environment| table_tools::diff(&which, &other, environment).await);
    let found = found.await?;
    match of.json {
        true => print(&(diff_json(&found).to_string() + "\n")),
        false => print(&found.to_string()),
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

async fn delete(of: &DeleteArguments) -> Result<ExitCode, Failure> {
    let which = selection(&of.table, &of.selection)?;
    let is_dry = of.dry_run;
    let done = with_environment(async |environment| table_tools::delete(&which, is_dry, environment).await);
    let Deleted { deleted, changed } = done.await?;
    let count = counted(deleted);
    match (is_dry, changed) {
        (true, _) => print(&format!("dry run: nothing was deleted; {count} can be\n")),
        (false, 0) => print(&format!("deleted: {count}\n")),
        (false, _) => print(&format!("deleted: {count}; changed meanwhile, and left: {changed}\n")),
    }
    Ok(ExitCode::SUCCESS)
}
