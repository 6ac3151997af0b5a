//! What a route of a shard map costs: builds and runs the programs `route_cost` of
//! `crates/shard_map/examples` and `cached_route_cost` of `crates/shard_router/examples`, with the profile
//! of figures.

use crate::bench::measured::Profile;
use crate::{Outcome, workspace};

const PROFILE: Profile = Profile::Dist;

pub(crate) fn run() -> Outcome<()> {
    println!("routes: profile {}", PROFILE.name());
    let mut is_fine = true;
    for (package, example) in [("shard_map", "route_cost"), ("shard_router", "cached_route_cost")] {
        let mut command = workspace::cargo()?;
        command.args(["run", "--quiet", "--profile", PROFILE.name(), "--package", package]);
        is_fine &= command.args(["--example", example]).status()?.success();
    }
    if is_fine { Ok(()) } else { Err("a route costs too much, or the bench failed".into()) }
}
