//! The server: one process that runs a whole stamp. Flags, environment and file become arguments
//! (`settings`), arguments become a checked configuration (`arguments`, `configuration`), then `serve` opens
//! the layers from the bottom up and closes them from the top down.
#![allow(clippy::disallowed_methods)] // The binary is where the real clock, disk and network are handed in.

mod admin;
mod apart;
mod arguments;
mod bounded_file;
mod check;
mod collector;
mod configuration;
mod data_folder;
mod lasting_runtime;
mod manual;
mod memory_guard;
mod migrate;
mod open_files;
mod operate;
mod output;
mod over_ranges;
mod passed_sockets;
mod places;
mod repair;
mod sas;
mod serve;
mod serve_error;
mod service_manager;
mod settings;
mod shard;
mod stamp;
mod stamp_commands;
mod start_progress;
mod stress;
mod table_commands;

use arguments::{Arguments, Chore, ConfigCommand, EXIT_BAD_ARGUMENTS, ServeArguments, one_line};
use base::Clock;
use configuration::Configuration;
use manual::ManualError;
use output::error_line::print_error;
use output::log;
use settings::command;
use settings::reload::{Reload, first_of};
use settings::sources::{Gathered, Sources};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Exit code for what was understood but could not be done.
const EXIT_FAILED: u8 = 1;

/// Why the program ends without having done what was wanted: one line, of `config check` one for each
/// mistake, and the exit code.
struct Failure {
    line: String,
    exit_code: u8,
}

impl Failure {
    /// What was typed, or the environment or a file that holds settings, can't be used.
    fn of_settings(error: &dyn std::error::Error) -> Self {
        Failure::of_words(error.to_string())
    }

    /// The same, in words.
    fn of_words(line: String) -> Self {
        Failure { line, exit_code: EXIT_BAD_ARGUMENTS }
    }

    /// Anything else.
    fn of_work(error: &dyn std::error::Error) -> Self {
        let line = error.to_string();
        let advice = open_files::advice(&line);
        Failure { line: line + advice, exit_code: EXIT_FAILED }
    }
}

fn main() -> ExitCode {
    allocator::keep_free_memory();
    match run(std::env::args_os().collect()) {
        Ok(code) => code,
        Err(failure) => {
            failure.line.lines().for_each(print_error);
            ExitCode::from(failure.exit_code)
        }
    }
}

/// Looks a variable of the environment up.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn run(words: Vec<OsString>) -> Result<ExitCode, Failure> {
    match Sources::of(words.clone(), variable) {
        Some(sources) => run_with_settings(sources),
        None => {
            let arguments = Arguments::from_words(&words);
            run_chore(arguments.map_err(|error| Failure::of_words(one_line(&error)))?.chore())
        }
    }
}

/// What has settings from a file and the environment, too.
fn run_with_settings(sources: Sources) -> Result<ExitCode, Failure> {
    let Gathered { entries, arguments } = match sources.gather() {
        Ok(gathered) => gathered,
        Err(mistakes) if sources.is_check() => return Err(Failure::of_words(mistakes.join("\n"))),
        Err(mistakes) => return Err(Failure::of_words(first_of(&mistakes))),
    };
    let blame = |mistake: String| Failure::of_words(sources.blame(&entries, &mistake));
    let check = |arguments: ServeArguments| {
        log::parse_levels(&arguments.settings.log).map_err(|error| blame(error.to_string()))?;
        Configuration::from_arguments(arguments, &variable, None).map_err(|error| blame(error.to_string()))
    };
    let mut out = std::io::stdout();
    match arguments.chore() {
        Chore::Serve(arguments) => {
            let levels =
                log::parse_levels(&arguments.settings.log).map_err(|error| blame(error.to_string()))?;
            let log = log::start(levels, &variable, Arc::new(base::system::SystemClock::new()));
            let configuration = check(*arguments)?;
            for entry in &entries {
                if let Some(note) = entry.note() {
                    tracing::warn!("{note}");
                }
            }
            let reload = Reload::new(sources, entries, &configuration, log);
            serve::serve(configuration, reload).map_err(|error| Failure::of_work(&error))?;
            Ok(ExitCode::SUCCESS)
        }
        Chore::Config(ConfigCommand::Check(arguments)) => {
            check(*arguments)?;
            let printed_all = command::print_checked(&entries, sources.file(), &mut out);
            printed(printed_all.map_err(|error| Failure::of_work(&error)))
        }
        Chore::Config(ConfigCommand::Show(_)) => {
            let shown = command::print_shown(&entries, sources.file(), &mut out);
            printed(shown.map_err(|error| Failure::of_work(&error)))
        }
        // No other command has settings.
        other => run_chore(other),
    }
}

/// Any other command.
fn run_chore(chore: Chore) -> Result<ExitCode, Failure> {
    let clock = Arc::new(base::system::SystemClock::new());
    let now = clock.now();
    let usual = if matches!(chore, Chore::Check(_) | Chore::Repair(_)) { log::OFF } else { log::USUAL };
    let levels = log::levels_of(&variable, usual).map_err(|error| Failure::of_settings(&error))?;
    log::start(levels, &variable, clock);
    let mut out = std::io::stdout();
    match chore {
        Chore::Admin(arguments) => operate::operate(&arguments),
        Chore::Check(arguments) => check::run(&arguments),
        Chore::Repair(arguments) => repair::run(&arguments),
        Chore::Migrate(arguments) => migrate::migrate(&arguments),
        Chore::Sas(arguments) => {
            sas::sas(&arguments, &variable, now).map_err(|error| Failure::of_settings(&error))?;
            Ok(ExitCode::SUCCESS)
        }
        Chore::Shard(command) => shard::shard(&command, &variable),
        Chore::Stamp(command) => stamp_commands::stamp(&command),
        Chore::Stress(arguments) => stress::stress(&arguments),
        Chore::Table(command) => table_commands::table(&command),
        Chore::Blob(command) => table_commands::blobs::blob(&command),
        Chore::Queue(command) => table_commands::queues::queue(&command),
        Chore::Advise(arguments) => table_commands::advise::run(&arguments),
        Chore::Explain(arguments) => table_commands::explain::explain(&arguments),
        Chore::Config(_) => {
            let written = command::print_example(&mut out);
            printed(written.map_err(|error| Failure::of_work(&error)))
        }
        Chore::Completions(arguments) => {
            let written = manual::completions(arguments.shell, &mut out);
            printed(written.map_err(|error| Failure::of_work(&error)))
        }
        Chore::Man(arguments) => match manual::man(&arguments, &mut out) {
            Err(error @ ManualError::NoSuchCommand(_)) => Err(Failure::of_settings(&error)),
            written => printed(written.map_err(|error| Failure::of_work(&error))),
        },
        Chore::Serve(_) => {
            Err(Failure::of_words("serve takes its settings as flags: larimar serve --help".to_owned()))
        }
    }
}

fn printed(written: Result<(), Failure>) -> Result<ExitCode, Failure> {
    written.map(|()| ExitCode::SUCCESS)
}
