//! The server: one process that runs a whole stamp. Arguments become checked settings (`arguments`,
//! `configuration`), then `serve` opens the layers from the bottom up and closes them from the top down.
#![allow(clippy::disallowed_methods)] // The binary is where the real clock, disk and network are handed in.

mod admin;
mod arguments;
mod check;
mod configuration;
mod data_folder;
mod manual;
mod memory_guard;
mod open_files;
mod output;
mod places;
mod repair;
mod sas;
mod serve;
mod stress;

use arguments::{Arguments, Chore, EXIT_BAD_ARGUMENTS, ServeArguments};
use base::Clock;
use configuration::Configuration;
use manual::ManualError;
use output::error_line::print_error;
use output::log;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Exit code for what was understood but could not be done.
const EXIT_FAILED: u8 = 1;

/// Why the program ends without having done what it was asked: one line, and the exit code.
struct Failure {
    line: String,
    exit_code: u8,
}

impl Failure {
    /// What was typed, or the environment or a file that holds settings, can't be used.
    fn of_settings(error: &dyn std::error::Error) -> Self {
        Failure { line: error.to_string(), exit_code: EXIT_BAD_ARGUMENTS }
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
    match run(Arguments::parse_or_exit()) {
        Ok(code) => code,
        Err(failure) => {
            print_error(&failure.line);
            ExitCode::from(failure.exit_code)
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let environment = |name: &str| std::env::var_os(name);
    let clock = Arc::new(base::system::SystemClock::new());
    let now = clock.now();
    let chore = arguments.chore();
    let usual = if matches!(chore, Chore::Check(_) | Chore::Repair(_)) { log::OFF } else { log::USUAL };
    log::start(&environment, usual, clock).map_err(|error| Failure::of_settings(&error))?;
    match chore {
        Chore::Serve(arguments) => serve(*arguments, &environment),
        Chore::Check(arguments) => check::check(&arguments.folder).map_err(|error| Failure::of_work(&error)),
        Chore::Repair(arguments) => repair::repair(&arguments).map_err(|error| Failure::of_work(&error)),
        Chore::Sas(arguments) => {
            sas::sas(&arguments, &environment, now).map_err(|error| Failure::of_settings(&error))?;
            Ok(ExitCode::SUCCESS)
        }
        Chore::Stress(arguments) => stress::stress(&arguments),
        Chore::Completions(arguments) => {
            let written = manual::completions(arguments.shell, &mut std::io::stdout());
            printed(written.map_err(|error| Failure::of_work(&error)))
        }
        Chore::Man(arguments) => match manual::man(&arguments, &mut std::io::stdout()) {
            Err(error @ ManualError::NoSuchCommand(_)) => Err(Failure::of_settings(&error)),
            written => printed(written.map_err(|error| Failure::of_work(&error))),
        },
    }
}

fn printed(written: Result<(), Failure>) -> Result<ExitCode, Failure> {
    written.map(|()| ExitCode::SUCCESS)
}

fn serve(
    arguments: ServeArguments,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<ExitCode, Failure> {
    let configuration = Configuration::from_arguments(arguments, environment)
        .map_err(|error| Failure::of_settings(&error))?;
    serve::serve(configuration).map_err(|error| Failure::of_work(&error))?;
    Ok(ExitCode::SUCCESS)
}
