//! Other programs: run with what they print shown, and installed from Debian's packages.
//!
//! What always holds: a program that is missing or fails is an error that names it.

use crate::{Outcome, workspace};
use std::process::Command;

/// Installs Debian's packages, which needs root; one caller at a time, as apt itself wants it.
pub(crate) fn install_packages(what: &str, packages: &[&str]) -> Outcome<()> {
    let lock = std::fs::File::create(workspace::target()?.join("apt.lock"))?;
    lock.lock()?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        finish(&mut command).map_err(|error| format!("{error}; {what} needs {}", packages.join(", ")))
    };
    apt(&["update", "-qq"])?;
    Ok(apt(&[&["install", "-qq", "--yes", "--no-install-recommends"], packages].concat())?)
}

/// Runs a command with its output shown; a missing program or a failure is an error that names it.
pub(crate) fn finish(command: &mut Command) -> Outcome<()> {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    let shown: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
    println!("$ {}", shown.join(" "));
    let program = command.get_program().to_string_lossy().into_owned();
    let status =
        command.status().map_err(|error| format!("{program} can't be run: {error}. Is it installed?"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} ended with {status}").into()) }
}
