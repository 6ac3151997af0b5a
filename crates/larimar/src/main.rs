//! The server: one process that runs a whole stamp. Arguments become checked settings (`arguments`,
//! `configuration`), then `serve` opens the layers from the bottom up and closes them from the top down.
#![allow(clippy::disallowed_methods)] // The binary is where the real clock, disk and network are handed in.

mod arguments;
mod configuration;
mod data_folder;
mod report;
mod serve;

use arguments::Arguments;
use configuration::Configuration;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse_or_exit();
    start_log();
    let outcome = Configuration::from_arguments(arguments.serve(), &|name| std::env::var(name).ok())
        .map_err(|error| error.to_string())
        .and_then(|configuration| serve::serve(configuration).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error: warnings and worse, or what `LARIMAR_LOG` asks for (such as `info` or `partition=debug`).
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LARIMAR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
