//! The server: one process that runs a whole stamp. Arguments become checked settings (`arguments`,
//! `configuration`), then `serve` opens the layers from the bottom up and closes them from the top down.
#![allow(clippy::disallowed_methods)] // The binary is where the real clock, disk and network are handed in.

mod arguments;
mod byte_size;
mod check;
mod configuration;
mod data_folder;
mod open_files;
mod report;
mod serve;

use arguments::{Arguments, Chore, ServeArguments};
use configuration::Configuration;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse_or_exit();
    start_log();
    let outcome = match arguments.chore() {
        Chore::Serve(arguments) => serve(*arguments),
        Chore::Check(arguments) => check::check(&arguments.folder).map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: ServeArguments) -> Result<ExitCode, String> {
    let configuration = Configuration::from_arguments(arguments, &|name| std::env::var(name).ok())
        .map_err(|error| error.to_string())?;
    serve::serve(configuration).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Logs go to standard error: warnings and worse, or what `LARIMAR_LOG` asks for (such as `info` or `partition=debug`).
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LARIMAR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
