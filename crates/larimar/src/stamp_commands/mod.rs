//! `larimar stamp` and `larimar check --stamp`: what an operator does with a stamp of several processes.
//! Serving one is in `stamp/`.
//!
//! | file | content |
//! |---|---|
//! | `opened.rs` | the stores of a stamp, and the stamp read at one revision |
//! | `status.rs`, `list.rs` | who serves it, and what there is |
//! | `init.rs` | the first start without serving |
//! | `leave.rs` | a process that is gone for good |
//! | `restore_metadata.rs` | a lost etcd, rebuilt |
//! | `check.rs`, `check_parts.rs`, `holes.rs` | what is damaged |
//!
//! What always holds: nothing is sealed, taken or deleted; only `init` and `restore-metadata` make something,
//! where nothing is, and `leave` removes the beat of a process that is gone. The exit code is 2 if what was
//! typed can't be, 1 if it could not be done, 3 for damage.

mod check;
pub(crate) mod check_parts;
pub(crate) mod holes;
mod init;
mod leave;
mod list;
pub(crate) mod opened;
mod restore_metadata;
mod status;

use crate::Failure;
use crate::arguments::CheckArguments;
use crate::arguments::stamp_command_arguments::StampCommand;
use crate::lasting_runtime::run_to_the_end;
use opened::OpenedStamp;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use tokio::runtime::Builder;

/// Does what was asked for.
pub(crate) fn stamp(command: &StampCommand) -> Result<ExitCode, Failure> {
    run(async {
        match command {
            StampCommand::Status(arguments) => {
                status::status(&OpenedStamp::of(&arguments.stamp).await?, arguments.json).await
            }
            StampCommand::List(arguments) => {
                list::list(&OpenedStamp::of(&arguments.stamp).await?, arguments.json).await
            }
            StampCommand::Init(arguments) => init::init(&OpenedStamp::of(arguments).await?).await,
            StampCommand::Leave(arguments) => {
                let process = leave::parse_process(&arguments.process)?;
                leave::leave(&OpenedStamp::of(&arguments.stamp).await?, process).await
            }
            StampCommand::RestoreMetadata(arguments) => {
                restore_metadata::restore(&OpenedStamp::of(&arguments.stamp).await?, arguments).await
            }
        }
    })
}

/// Checks the stamp and prints what is found.
pub(crate) fn check_stamp(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    run(async { check::check(&OpenedStamp::of(&arguments.stamp).await?, arguments.quiet).await })
}

fn run(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    run_to_the_end(Builder::new_current_thread(), command).map_err(|error| Failure::of_work(&error))?
}

/// A reader that has had enough is no failure.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// As JSON, or as text.
fn print_value(value: &Value, is_json: bool, text: impl FnOnce(&Value) -> String) -> ExitCode {
    print(&if is_json { format!("{value:#}\n") } else { text(value) });
    ExitCode::SUCCESS
}
