//! Seeded histories of streams and range partitions on the simulated disk: many of them, in release, with the
//! seeds printed; damage at rest and its repair, disks that are small or full at each start, and hand-overs
//! cut off at each of their operations.

use crate::{Outcome, workspace};

#[derive(clap::Args)]
pub(crate) struct SimulationArguments {
    /// How many histories to run.
    #[arg(long, default_value_t = 1000)]
    pub(crate) seeds: u64,
}

/// Test programs that run so many seeds, by their crate.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("stream", &["histories", "damage", "full_disk_starts"]), ("partition", &["histories"])];

pub(crate) fn run(arguments: &SimulationArguments) -> Outcome<()> {
    for (package, programs) in PROGRAMS {
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
