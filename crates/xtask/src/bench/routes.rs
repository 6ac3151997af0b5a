//! What a route of a shard map costs: builds and runs the program `route_cost` of
//! `crates/shard_map/examples`, with the profile of figures.

use crate::bench::measured::Profile;
use crate::{Outcome, workspace};

const PROFILE: Profile = Profile::Dist;

pub(crate) fn run() -> Outcome<()> {
    println!("routes: profile {}", PROFILE.name());
    let mut command = workspace::cargo()?;
    command.args(["run", "--quiet", "--profile", PROFILE.name(), "--package", "shard_map"]);
    let status = command.args(["--example", "route_cost"]).status()?;
    if status.success() { Ok(()) } else { Err("a route costs too much, or the bench failed".into()) }
}
