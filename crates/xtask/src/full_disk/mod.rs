//! A full disk comes back: small file systems are filled until writes are refused, then half of what is
//! there, or all of it, is deleted, with the server killed in between. Deletions must never be refused, the
//! space must be writable again in time, and nothing else may be lost.
//!
//! Needs root: each scenario has an ext4 file system of its own on a loop device.

mod no_bytes_free;
mod rows;
mod scenario;
pub(crate) mod small_disk;

use crate::{Outcome, workspace};
use rows::Kind;
use scenario::{Deleted, Scenario};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct FullDiskArguments {
    /// Sizes of the file systems in MiB.
    #[arg(long, value_delimiter = ',', default_value = "300,1000")]
    sizes: Vec<u64>,
    /// Only scenarios whose name has this in it.
    #[arg(long)]
    only: Option<String>,
    /// The server; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Prints the names of the scenarios and ends.
    #[arg(long)]
    list: bool,
    /// Keeps the server's log of each scenario in this folder.
    #[arg(long)]
    logs: Option<PathBuf>,
}

/// What is deleted, how, and on which disk.
fn scenarios(sizes: &[u64]) -> Vec<Scenario> {
    let kinds = [
        Kind::Blob(4 << 10),
        Kind::Blob(1_000_000),
        Kind::Blob(300_000_000),
        Kind::Entity(100),
        Kind::Entity(1 << 10),
        Kind::Entity(4 << 10),
        Kind::Message(8 << 10),
    ];
    let mut all = Vec::new();
    for &size_mib in sizes {
        for kind in kinds {
            let is_huge = kind.is_huge();
            if is_huge && size_mib < 700 {
                continue;
            }
            let plain =
                Scenario { size_mib, kind, deleted: Deleted::EverySecond, pauses: false, kills: false };
            all.push(plain);
            all.push(Scenario { deleted: Deleted::All, kills: true, ..plain });
            all.push(Scenario { deleted: Deleted::Whole, ..plain });
            if !is_huge {
                all.push(Scenario { pauses: true, kills: true, ..plain });
            }
        }
    }
    all
}

/// Says that mounts and processes of this program end with it, and which process it is for others.
pub(crate) const INSIDE_VARIABLE: &str = "LARIMAR_FULL_DISK_INSIDE";

/// Runs this program once more, with mounts and processes that nobody else sees: whatever ends it, even
/// SIGKILL, ends the servers, and takes mounts and loop devices with them.
pub(crate) fn run_inside() -> Outcome<()> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(INSIDE_VARIABLE, std::process::id().to_string());
    let status = command.status().map_err(|error| format!("unshare does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("it failed, or was ended".into()) }
}

/// The end of what a server that did not start has printed.
fn last_line(text: &str) -> String {
    text.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Copies the server's log to where it was asked for.
fn keep_log(arguments: &FullDiskArguments, folder: &Path, name: &str) -> Outcome<()> {
    if let Some(logs) = &arguments.logs {
        std::fs::create_dir_all(logs)?;
        std::fs::copy(folder.join("server.log"), logs.join(format!("{name}.log")))?;
    }
    Ok(())
}

pub(crate) fn run(arguments: &FullDiskArguments) -> Outcome<()> {
    let mut chosen = scenarios(&arguments.sizes);
    if let Some(only) = &arguments.only {
        chosen.retain(|scenario| scenario.to_string().contains(only.as_str()));
    }
    if arguments.list {
        chosen.iter().for_each(|scenario| println!("{scenario}"));
        no_bytes_free::NAMES.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("full-disk makes loop devices, which needs root".into());
    }
    let Ok(outside) = std::env::var(INSIDE_VARIABLE) else { return run_inside() };
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let scratch = workspace::Scratch::create(&format!("full-disk-{outside}"))?;
    let mut broken = Vec::new();
    for (index, scenario) in chosen.iter().enumerate() {
        let folder = scratch.path().join(index.to_string());
        std::fs::create_dir_all(&folder)?;
        let outcome = scenario.run(&binary, &folder);
        keep_log(arguments, &folder, &index.to_string())?;
        match outcome {
            Ok(report) => {
                println!("{scenario}: {report}");
                broken.extend(report.broken().into_iter().map(|what| format!("{scenario}: {what}")));
            }
            Err(error) => {
                println!("{scenario}: {}", last_line(&error.to_string()));
                broken.push(format!("{scenario}: {}", last_line(&error.to_string())));
            }
        }
        std::fs::remove_dir_all(&folder)?;
    }
    let is_chosen = |name: &&str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for (index, name) in no_bytes_free::NAMES.into_iter().enumerate().filter(|(_, name)| is_chosen(name)) {
        let folder = scratch.path().join(format!("no-bytes-free-{index}"));
        std::fs::create_dir_all(&folder)?;
        let outcome = no_bytes_free::run(name, &binary, &folder);
        keep_log(arguments, &folder, &format!("no-bytes-free-{index}"))?;
        let outcome = outcome.map_err(|error| last_line(&error.to_string()));
        println!("{name}: {}", outcome.as_ref().unwrap_or_else(|error| error));
        broken.extend(outcome.err().map(|error| format!("{name}: {error}")));
        std::fs::remove_dir_all(&folder)?;
    }
    match broken.len() {
        0 => Ok(()),
        count => {
            broken.iter().for_each(|what| println!("BROKEN {what}"));
            Err(format!("{count} bounds are broken").into())
        }
    }
}
