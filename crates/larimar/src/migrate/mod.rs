//! `larimar migrate`: a stopped data folder becomes a stamp of several processes, or such a stamp a folder.
//!
//! | file | content |
//! |---|---|
//! | `into_stamp.rs` | a folder becomes a stamp; what was copied is dropped |
//! | `into_folder.rs` | a stamp becomes a folder |
//! | `summary.rs` | what was done, as text and as JSON |
//! | `shown.rs` | how far it is |
//!
//! What always holds: the source is not changed; a migration that was cut off, by Ctrl-C too, is no stamp and
//! no folder that is served, and the same command goes on with it. The exit code is 2 if what was typed
//! can't be, 1 if it could not be done, 130 if it was stopped.

mod into_folder;
mod into_stamp;
mod shown;
mod summary;

use crate::Failure;
use crate::arguments::migrate_arguments::MigrateArguments;
use crate::configuration::stamp::StampConfiguration;
use crate::lasting_runtime::run_to_the_end;
use crate::output::error_line::print_error;
use stamp_streams::MigrationError;
use std::io::Write;
use std::process::ExitCode;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of work that was stopped: what shells have for Ctrl-C.
const EXIT_STOPPED: u8 = 130;
/// Threads for checksums and requests.
const THREADS: usize = 4;
/// How anybody goes on who was cut off.
const GO_ON: &str = "the same command goes on from here";

/// Copies, or drops what was copied.
pub(crate) fn migrate(arguments: &MigrateArguments) -> Result<ExitCode, Failure> {
    let stamp = StampConfiguration::of(&arguments.stamp).map_err(|error| Failure::of_settings(&error))?;
    let wanted = || Failure::of_words("--stamp: which stamp? Give --store and --etcd, too".to_owned());
    let stamp = stamp.ok_or_else(wanted)?;
    base::system::raise_open_files_max();
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(THREADS);
    // A store that does not answer does not keep the process.
    let outcome = run_to_the_end(runtime, async {
        match (&arguments.from, &arguments.to) {
            (Some(folder), _) => into_stamp::migrate(folder, &stamp, arguments).await,
            (None, Some(folder)) => into_folder::migrate(folder, &stamp, arguments).await,
            (None, None) if arguments.abandon => into_stamp::abandon(&stamp, arguments.json).await,
            (None, None) => {
                let why = "--from, --to: give the folder that is copied into the stamp, or the one that the stamp is \
                           copied into";
                Err(Failure::of_words(why.to_owned()))
            }
        }
    });
    outcome.map_err(|error| Failure::of_work(&error))?
}

/// Completes with the first Ctrl-C or its like; the second one ends the process.
async fn stopped() {
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
        return std::future::pending().await;
    };
    let mut next = async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    tokio::spawn(async move {
        next().await;
        print_error(&format!("stopped at once; {GO_ON}"));
        std::process::exit(EXIT_STOPPED.into());
    });
}

/// The failure of a migration, with how it goes on.
fn failure(error: &MigrationError) -> Failure {
    let line = error.to_string();
    match error {
        MigrationError::Stopped => Failure { line: format!("{line}; {GO_ON}"), exit_code: EXIT_STOPPED },
        MigrationError::Away(_) => {
            Failure { line: format!("{line}; {GO_ON}"), exit_code: crate::EXIT_FAILED }
        }
        _ => Failure::of_work(error),
    }
}

/// A reader that has had enough is no failure.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
