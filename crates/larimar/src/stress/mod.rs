//! `larimar stress`: the thin end of crate `stress`: threads, signals, files and the terminal.
//!
//! What always holds: what can be refused is refused before anything is made; the first signal ends the run
//! cleanly, the second at once, and says what stays behind.

mod output_file;
mod settings;
mod signals;
mod threads;

use crate::Failure;
use crate::arguments::stress_arguments::StressArguments;
use crate::output::error_line::print_error;
use crate::output::progress::Progress as ProgressLine;
use ::stress::{Plan, Progress, Report, RunEnvironment, StressError, Watcher, html, json, run, text};
use base::Clock;
use base::connector::SystemConnector;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use output_file::OutputFile;
use rustix::time::{ClockId, clock_gettime};
use settings::{StressSettingError, plan_of};
use signals::{EXIT_INTERRUPTED, Interrupt};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use storage_client::Surroundings;
use threads::Threads;

/// Runs what was asked for, and reports.
pub(crate) fn stress(arguments: &StressArguments) -> Result<ExitCode, Failure> {
    let plan = plan_of(arguments).map_err(|error| Failure::of_settings(&error))?;
    let open = |path: &Option<PathBuf>, flag| {
        let opened = path.as_deref().map(|path| OutputFile::open(path).map_err(|error| (flag, path, error)));
        opened.transpose().map_err(|(flag, path, error)| {
            let path = path.to_owned();
            Failure::of_settings(&StressSettingError::Output { flag, path, error })
        })
    };
    let (json_file, html_file) =
        (open(&arguments.reports.json, "--json")?, open(&arguments.reports.html, "--html")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of_work(&error))?;
    let report = runtime.block_on(conduct(plan)).map_err(|error| match error {
        StressError::Refused { .. } => Failure::of_settings(&error),
        StressError::Stopped { left_behind: None } => {
            Failure { line: error.to_string(), exit_code: EXIT_INTERRUPTED }
        }
        error => Failure::of_work(&error),
    })?;
    // Who has closed standard output does not want it.
    let _ = std::io::stdout().write_all(text(&report).as_bytes());
    for (file, content) in [(json_file, json as fn(&Report) -> String), (html_file, html)] {
        if let Some(file) = file {
            file.write(&content(&report)).map_err(|error| Failure::of_work(&error))?;
        }
    }
    Ok(exit_code(&report))
}

fn exit_code(report: &Report) -> ExitCode {
    match &report.end.left_behind {
        Some(place) => {
            print_error(place);
            ExitCode::from(crate::EXIT_FAILED)
        }
        None if report.end.is_interrupted => ExitCode::from(EXIT_INTERRUPTED),
        None => ExitCode::SUCCESS,
    }
}

/// Runs the plan on threads of its own.
async fn conduct(plan: Plan) -> Result<Report, StressError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let surroundings = Surroundings {
        clock: clock.clone(),
        random: Arc::new(SystemRandom::new()),
        spawner: Arc::new(TokioSpawner::current()),
        connector: Arc::new(SystemConnector),
    };
    let interrupt = Interrupt::watch();
    let seats = Threads::new(clock);
    let environment = RunEnvironment {
        surroundings,
        seats: &seats,
        stop: interrupt.stop.clone(),
        processor_time: &processor_time,
    };
    let mut watcher = Terminal { line: ProgressLine::new(), interrupt: &interrupt };
    let outcome = run(plan, &environment, &mut watcher).await;
    watcher.line.clear();
    outcome
}

/// What this process has taken of the processors.
fn processor_time() -> Option<Duration> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

struct Terminal<'a> {
    line: ProgressLine,
    interrupt: &'a Interrupt,
}

impl Watcher for Terminal<'_> {
    fn progress(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Creating { place } => self.interrupt.may_stay_behind(Some((*place).to_owned())),
            Progress::Ended => self.interrupt.may_stay_behind(None),
            _ => {}
        }
        self.line.line(&progress.to_string());
    }
}
