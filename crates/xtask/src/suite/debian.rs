//! Debian's packages that tests need and a checkout can't have: installed where they are missing, by root.

use crate::{Outcome, suite};
use std::path::Path;
use std::process::Command;

/// Where Debian puts each version of Postgres.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
const POSTGRES_PACKAGES: [&str; 1] = ["postgresql"];

/// Installs packages; `what_for` is for the message if that fails.
pub(super) fn install(packages: &[&str], what_for: &str) -> Outcome<()> {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        suite::finish(&mut command)
            .map_err(|error| format!("{error}; {what_for} needs {}", packages.join(", ")))
    };
    apt(&["update", "-qq"])?;
    Ok(apt(&[&["install", "-qq", "--yes", "--no-install-recommends"], packages].concat())?)
}

/// Installs Postgres, whose servers tests start and end themselves.
pub(super) fn set_up_postgres() -> Outcome<()> {
    let versions = std::fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let has_programs = |version: &Path| {
        ["initdb", "postgres", "psql"].iter().all(|name| version.join("bin").join(name).is_file())
    };
    if versions.into_iter().any(|version| has_programs(&version.path())) {
        return Ok(());
    }
    install(&POSTGRES_PACKAGES, "the test of a shard map in Postgres")
}
