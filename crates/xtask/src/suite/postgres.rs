//! Postgres of Debian's packages, whose servers the tests of sharding start and end themselves: installed
//! where it is missing, by root.

use crate::Outcome;
use crate::programs::install_packages;
use std::path::Path;

/// Where Debian puts each version.
const VERSIONS: &str = "/usr/lib/postgresql";
const PACKAGES: [&str; 1] = ["postgresql"];
/// What the tests run.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];

pub(crate) fn set_up() -> Outcome<()> {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let has_programs = |version: &Path| PROGRAMS.iter().all(|name| version.join("bin").join(name).is_file());
    if versions.into_iter().any(|version| has_programs(&version.path())) {
        return Ok(());
    }
    install_packages("the test of a shard map in Postgres", &PACKAGES)
}
