//! Where things are: the checkout, the built server, and scratch folders on the checkout's own disk (a `/tmp`
//! that lives in memory would make every `fdatasync` free).

use crate::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with `Cargo.lock`, looked for from the current folder upwards.
pub(crate) fn root() -> Outcome<PathBuf> {
    let here = std::env::current_dir()?;
    let found =
        here.ancestors().find(|folder| folder.join("Cargo.lock").is_file() && folder.join("crates").is_dir());
    Ok(found.ok_or("run this inside the checkout")?.to_path_buf())
}

/// Cargo's target folder.
pub(crate) fn target() -> Outcome<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => Ok(root()?.join(folder)),
        None => Ok(root()?.join("target")),
    }
}

/// The same cargo that started this program, told nothing of what it has told this program about itself:
/// build scripts of dependencies ask for some of that, and all that depends on them was built anew after each
/// plain call of cargo.
pub(crate) fn cargo() -> Outcome<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_this_package = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_of_this_package {
            command.env_remove(name);
        }
    }
    command.current_dir(root()?);
    Ok(command)
}

/// The server's release binary: the one asked for, or the one of this checkout, built now.
pub(crate) fn server_binary(asked_for: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(binary) = asked_for {
        return Ok(binary.to_path_buf());
    }
    let status = cargo()?.args(["build", "--quiet", "--release", "--package", "larimar"]).status()?;
    if !status.success() {
        return Err("the server does not build".into());
    }
    Ok(target()?.join("release").join("larimar"))
}

/// The program with all features, as packages have it, in the profile of the tests, which have built most of
/// it.
pub(crate) fn full_binary() -> Outcome<PathBuf> {
    let status = cargo()?.args(["build", "--quiet", "--package", "larimar", "--all-features"]).status()?;
    if !status.success() {
        return Err("the program with all features does not build".into());
    }
    Ok(target()?.join("debug").join("larimar"))
}

/// A folder that is new now and gone when this is dropped.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder under the target folder, named after the chore and this process.
    pub(crate) fn create(chore: &str) -> Outcome<Self> {
        let path = target()?.join("scratch").join(format!("{chore}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder behind, for someone to look into after a failure.
    pub(crate) fn keep(self) -> PathBuf {
        let mut kept = std::mem::ManuallyDrop::new(self);
        std::mem::take(&mut kept.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("xtask: {} stays behind: {error}", self.path.display());
        }
    }
}
