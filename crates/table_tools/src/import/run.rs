//! The course of an import: reads, plans, hands out, keeps the state, ends with the first error.

use super::PORTIONS_MAX;
use super::batch::{jobs, plan};
use super::compared::Compared;
use super::worker::{Job, Report, Shared, work};
use super::writer::{Counts, OnConflict};
use crate::access::TableAccess;
use crate::environment::{Progress, Rate, Rest, ToolEnvironment};
use crate::error::ToolError;
use crate::files::format::Format;
use crate::files::records::RecordFile;
use crate::files::state_file::StateFile;
use crate::files::window::Window;
use crate::place::TablePlace;
use crate::scan::run::BROKE_DOWN;
use futures_util::future::LocalBoxFuture;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage_client::TableClient;
use tokio::sync::{Mutex, mpsc};

/// Progress is shown, and the state is kept, so often.
const EVERY: Duration = Duration::from_millis(250);
/// Jobs of all portions under way, at most: a portion has 16,384 lines at most, a job 50 lines or a batch.
const JOBS_MAX: usize = PORTIONS_MAX * 1024;

/// What is imported.
pub struct ImportPlan {
    /// The table.
    pub place: TablePlace,
    /// The file's path.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// What becomes of entities whose keys are there.
    pub on_conflict: OnConflict,
    /// Workers, each with a connection.
    pub connections: usize,
    /// The table is made unless it is there.
    pub creates_table: bool,
    /// The file is read and checked, and nothing is written.
    pub is_dry: bool,
    /// What an earlier run has done is forgotten.
    pub restarts: bool,
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Entities that were written; with a dry run those that would be.
    pub written: u64,
    /// Entities that were left out, because their keys were there.
    pub skipped: u64,
}

/// What is kept of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ImportState {
    /// All lines before it are written (bytes, of Parquet rows); and its line.
    done_to: u64,
    line: u64,
    /// Lines behind `done_to` up to here may be written.
    issued_to: u64,
    counts: Counts,
    /// Of the file's first bytes, and of how many: of `done_to`, of Parquet of all, but a state of a former
    /// version is of 64 KiB.
    checksum: u64,
    compared_size: u64,
    /// Bytes of the file; 0 in a state of a former version.
    #[serde(default)]
    file_size: u64,
}

impl ImportState {
    /// The same for a file that may have been mended: lines that may be written are further behind in a
    /// longer one. Too many are only read and compared in vain.
    fn moved_to(mut self, format: Format, file_size: u64) -> Self {
        let is_known = self.file_size > 0 && format != Format::Parquet;
        if is_known && self.issued_to > self.done_to {
            self.issued_to += file_size.saturating_sub(self.file_size);
        }
        self.file_size = file_size;
        self
    }
}

/// A portion under way.
struct UnderWay {
    id: u64,
    keys: BTreeSet<u64>,
    jobs: usize,
    counts: Counts,
    /// Where it ends in the file, and the line of that.
    end: (u64, u64),
    has_failed: bool,
}

/// Imports a file, or goes on with an import that was stopped.
pub fn import<'a, 'e: 'a>(
    plan: &'a ImportPlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Imported, ToolError>> {
    Box::pin(async move {
        let disk = environment.disk.clone();
        let work =
            format!("import of {} into {}, on conflict {:?}", plan.file, plan.place.url(), plan.on_conflict);
        let state_file = StateFile::new(disk.clone(), format!("{}.state", plan.file), work);
        if plan.is_dry {
            return check(plan, environment).await;
        }
        let mut compared = Compared::open(&*disk, &plan.file).await?;
        let _held = state_file.hold(state_file.path(), &*environment.locks)?;
        if plan.restarts {
            state_file.remove().await?;
        }
        let kept = state_file.read::<ImportState>().await?;
        let start = kept.unwrap_or(ImportState { line: 1, ..ImportState::default() });
        let start = start.moved_to(plan.format, compared.size_bytes());
        let before = (start.checksum, start.compared_size);
        let done_bytes = plan.format.bytes_before(start.done_to, compared.size_bytes());
        // What decides all is to be the same up to its end.
        let is_other = plan.format == Format::Parquet && done_bytes != start.compared_size;
        if kept.is_some() && (is_other || !compared.check(before, done_bytes, environment).await?) {
            let what = format!(
                "{} is not the file that {} is about; give --restart to import it from its beginning",
                plan.file,
                state_file.path()
            );
            return Err(ToolError::Refused(what));
        }
        let file = RecordFile::open(&*disk, &plan.file, plan.format, (start.done_to, start.line)).await?;
        let table = plan.place.client(&environment.surroundings, plan.connections);
        if plan.creates_table {
            table.create_if_absent().await?;
        }
        let mut import = Import::new(plan, (file, compared), state_file, start);
        import.start_workers(&table, plan.connections, environment);
        let ran = import.run(environment).await;
        import.end(ran, plan).await
    })
}

/// Reads the whole file.
async fn check(import: &ImportPlan, environment: &mut ToolEnvironment<'_>) -> Result<Imported, ToolError> {
    if !import.creates_table {
        import.place.checked(None, 1, environment).await?;
    }
    let mut file = RecordFile::open(&*environment.disk, &import.file, import.format, (0, 1)).await?;
    let mut written = 0;
    while let Some(window) = file.next_window().await? {
        let mut start = 0;
        while start < window.lines.len() {
            let portion = plan(&window, &import.file, start, |_| false)?;
            written += (portion.end - start) as u64;
            start = portion.end;
        }
        if environment.stop.is_set() {
            return Err(ToolError::Stopped);
        }
    }
    Ok(Imported { written, skipped: 0 })
}

struct Import {
    file: RecordFile,
    compared: Compared,
    state_file: StateFile,
    state: ImportState,
    shared: Arc<Shared>,
    sender: Option<mpsc::Sender<Job>>,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    under_way: VecDeque<UnderWay>,
    next_id: u64,
    /// The window at hand, and its first line that is not under way.
    window: Option<(Arc<Window>, usize)>,
    /// The next portion begins when none is under way.
    waits: bool,
    /// A portion has failed: what is behind it is not done, even if it is written.
    has_gap: bool,
}

impl Import {
    fn new(
        plan: &ImportPlan,
        (file, compared): (RecordFile, Compared),
        state_file: StateFile,
        state: ImportState,
    ) -> Self {
        let (sender, jobs) = mpsc::channel(JOBS_MAX);
        let shared = Shared {
            jobs: Mutex::new(jobs),
            path: plan.file.clone(),
            on_conflict: plan.on_conflict,
            doubtful_to: state.issued_to,
            failed: AtomicBool::new(false),
        };
        Import {
            file,
            compared,
            state_file,
            state,
            shared: Arc::new(shared),
            sender: Some(sender),
            reports: mpsc::channel(JOBS_MAX),
            under_way: VecDeque::new(),
            next_id: 0,
            window: None,
            waits: false,
            has_gap: false,
        }
    }

    fn start_workers(&self, table: &TableClient, count: usize, environment: &ToolEnvironment<'_>) {
        for _ in 0..count {
            let (shared, sender) = (self.shared.clone(), self.reports.0.clone());
            let work = work(shared, sender, TableAccess::of(table));
            environment.surroundings.spawner.spawn("import", work);
        }
    }

    async fn run(&mut self, environment: &mut ToolEnvironment<'_>) -> Result<(), ToolError> {
        let clock = environment.surroundings.clock.clone();
        let mut rate = Rate::new(clock.monotonic(), self.state.counts.written);
        let mut tick = clock.sleep(EVERY);
        let (mut error, mut is_read) = (None, false);
        loop {
            while error.is_none() && !is_read && self.has_room() && !environment.stop.is_set() {
                match self.issue().await {
                    Ok(has_more) => is_read = !has_more,
                    Err(failed) => error = Some(failed),
                }
            }
            if self.under_way.is_empty() {
                return match error {
                    Some(error) => Err(error),
                    None if is_read => Ok(()),
                    None if environment.stop.is_set() => Err(ToolError::Stopped),
                    None => continue,
                };
            }
            let report = match select(pin!(self.reports.1.recv()), &mut tick).await {
                Either::Left((report, _)) => Some(report),
                Either::Right(_) => None,
            };
            match report {
                Some(Some(Some((id, result)))) => {
                    if let Err(failed) = self.account(id, result) {
                        self.shared.failed.store(true, Ordering::Relaxed);
                        error = error.or(Some(failed));
                    }
                }
                Some(Some(None) | None) => return Err(error.unwrap_or(ToolError::refused(BROKE_DOWN))),
                None => {
                    tick = clock.sleep(EVERY);
                    self.keep().await?;
                    let done = self.state.counts.written + self.state.counts.skipped;
                    let rate = rate.look(clock.monotonic(), done);
                    let share = self.state.done_to as f64 / self.file.size().max(1) as f64;
                    let (verb, rest) = ("importing", Rest::Share(share));
                    (environment.watcher)(&Progress { verb, done, rate, rest });
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        let room = if self.waits { 1 } else { PORTIONS_MAX };
        self.under_way.len() < room
    }

    /// Hands the next portion out; whether there was one.
    async fn issue(&mut self) -> Result<bool, ToolError> {
        let (window, start) = match self.window.take() {
            Some(window) => window,
            None => match self.file.next_window().await? {
                Some(window) => (Arc::new(window), 0),
                None => return Ok(false),
            },
        };
        let under_way = &self.under_way;
        let is_under_way = |key| under_way.iter().any(|portion| portion.keys.contains(&key));
        let portion = plan(&window, &self.shared.path, start, is_under_way)?;
        self.waits = portion.is_repeated;
        let is_whole = portion.end == window.lines.len();
        let end = match (is_whole, window.lines.get(portion.end)) {
            (false, Some(next)) => {
                (window.lines[..portion.end].last().map_or(0, |last| last.file_end), next.number)
            }
            _ => self.file.position(),
        };
        if !is_whole {
            self.window = Some((window.clone(), portion.end));
        }
        if portion.end == start && !is_whole {
            return Ok(true);
        }
        self.state.issued_to = self.state.issued_to.max(end.0);
        if self.shared.on_conflict == OnConflict::Fail || self.shared.on_conflict == OnConflict::Skip {
            // Before anything is sent, so that a run that goes on knows what may be its own.
            self.keep().await?;
        }
        let jobs = jobs(portion.batches);
        let id = self.next_id;
        self.next_id += 1;
        let (keys, counts) = (portion.keys, Counts::default());
        self.under_way.push_back(UnderWay { id, keys, jobs: jobs.len(), counts, end, has_failed: false });
        for batches in jobs {
            let job = Job { portion: id, window: window.clone(), batches };
            if let Some(sender) = &self.sender {
                sender.send(job).await.map_err(|_| ToolError::refused(BROKE_DOWN))?;
            }
        }
        self.settle();
        Ok(true)
    }

    /// Takes what a worker reports.
    fn account(&mut self, id: u64, result: Result<Counts, ToolError>) -> Result<(), ToolError> {
        let portion = self.under_way.iter_mut().find(|portion| portion.id == id);
        let counted = match (portion, result) {
            (Some(portion), Ok(counts)) => {
                portion.counts += counts;
                portion.jobs -= 1;
                Ok(())
            }
            (Some(portion), Err(error)) => {
                // It is never done.
                portion.jobs -= 1;
                portion.has_failed = true;
                Err(error)
            }
            (None, result) => result.map(drop),
        };
        self.settle();
        counted
    }

    /// What is before all that is under way is done, unless something before it has failed.
    fn settle(&mut self) {
        while let Some(portion) = self.under_way.pop_front_if(|portion| portion.jobs == 0) {
            self.has_gap |= portion.has_failed;
            if self.has_gap {
                continue;
            }
            self.state.counts += portion.counts;
            (self.state.done_to, self.state.line) = portion.end;
        }
    }

    async fn keep(&mut self) -> Result<(), ToolError> {
        let done_bytes = self.file.format().bytes_before(self.state.done_to, self.compared.size_bytes());
        self.compared.read_to(done_bytes).await?;
        (self.state.checksum, self.state.compared_size) = (self.compared.checksum(), self.compared.end());
        self.state_file.write(&self.state).await
    }

    async fn end(mut self, ran: Result<(), ToolError>, plan: &ImportPlan) -> Result<Imported, ToolError> {
        self.sender = None;
        let Counts { written, skipped } = self.state.counts;
        match ran {
            Ok(()) => {
                self.state_file.remove().await?;
                Ok(Imported { written, skipped })
            }
            // Nothing was sent.
            Err(error) if self.state.issued_to == 0 => Err(error),
            Err(error) => {
                // The first error is what is to be known; the state says less then.
                let _ = self.keep().await;
                let kept = format!(
                    "of {} the first {} entities are in {}, and perhaps some behind them; the same command goes on",
                    plan.file,
                    written + skipped,
                    plan.place.url(),
                );
                Err(error.keeping(kept))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a line had become longer, an import took its own last lines for a conflict.
    #[test]
    fn lines_that_may_be_written_move_with_the_files_size() {
        let text = r#"{"done_to":10,"line":2,"issued_to":50,"counts":{"written":1,"skipped":0},
            "checksum":7,"compared_size":10}"#;
        let old: ImportState = serde_json::from_str(text).expect("a state of a former version");
        let moved = |state: ImportState, size| state.moved_to(Format::JsonLines, size).issued_to;
        assert_eq!(moved(old, 90), 50, "nothing is known of its size");
        let state = ImportState { file_size: 80, ..old };
        assert_eq!([70, 80, 93].map(|size| moved(state, size)), [50, 50, 63]);
        assert_eq!(state.moved_to(Format::JsonLines, 93).moved_to(Format::JsonLines, 95).issued_to, 65);
        assert_eq!(state.moved_to(Format::Parquet, 93).issued_to, 50, "these are rows");
        assert_eq!(moved(ImportState { issued_to: 10, ..state }, 93), 10, "nothing was under way");
    }
}
