//! Seeded histories of range partitions on the simulated disk: many of them, in release, with the seeds printed; damage
//! at rest, and hand-overs cut off at each of their operations.

use crate::{Outcome, workspace};

#[derive(clap::Args)]
pub(crate) struct SimulationArguments {
    /// How many histories to run.
    #[arg(long, default_value_t = 1000)]
    pub(crate) seeds: u64,
}

pub(crate) fn run(arguments: &SimulationArguments) -> Outcome<()> {
    let status = workspace::cargo()?
        .args([
            "test",
            "--quiet",
            "--release",
            "--package",
            "partition",
            "--test",
            "histories",
            "--test",
            "damage",
            "--test",
            "hand_over_crashes",
            "--",
            "--nocapture",
        ])
        .env("LARIMAR_SIM_SEEDS", arguments.seeds.to_string())
        .status()?;
    if status.success() { Ok(()) } else { Err("a seeded history failed".into()) }
}
