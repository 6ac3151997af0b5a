//! Seeded histories of streams and range partitions on the simulated disk: many of them, in release, with the
//! seeds printed; damage at rest and its repair, disks that are small or full at each start, and hand-overs
//! cut off at each of their operations. Those of shards and of stamps of several processes run apart.

use crate::{Outcome, workspace};

/// Histories that run only if they are named.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Part {
    /// Routers with old maps and movers over shards, and faults on purpose that must be found.
    Shard,
    /// Three processes of a stamp over models of both stores, and faults on purpose that must be found.
    Cluster,
}

#[derive(clap::Args)]
pub(crate) struct SimulationArguments {
    /// Only these histories. Without it those of streams and range partitions run, and not the others.
    #[arg(value_enum)]
    pub(crate) part: Option<Part>,
    /// How many histories to run.
    #[arg(long, default_value_t = 1000)]
    pub(crate) seeds: u64,
}

/// Test programs that run so many seeds, by their crate.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("stream", &["histories", "damage", "full_disk_starts"]), ("partition", &["histories"])];

/// The programs of shards.
const SHARD_PROGRAMS: [(&str, &[&str]); 1] = [("shard_mover", &["sharding"])];

/// The programs of stamps of several processes.
const CLUSTER_PROGRAMS: [(&str, &[&str]); 1] = [("stamp_streams", &["cluster"])];

pub(crate) fn run(arguments: &SimulationArguments) -> Outcome<()> {
    let programs: &[(&str, &[&str])] = match arguments.part {
        None => &PROGRAMS,
        Some(Part::Shard) => &SHARD_PROGRAMS,
        Some(Part::Cluster) => &CLUSTER_PROGRAMS,
    };
    for (package, programs) in programs {
        let mut command = workspace::cargo()?;
        command.args(["test", "--quiet", "--release", "--package", package]);
        command.args(programs.iter().flat_map(|program| ["--test", program]));
        command.args(["--", "--nocapture"]);
        let status = command.env("LARIMAR_SIM_SEEDS", arguments.seeds.to_string()).status()?;
        if !status.success() {
            return Err(format!("a seeded history of {package} failed").into());
        }
    }
    Ok(())
}
