//! The engine bench: builds and runs the program of that name in `crates/partition/examples`, with the
//! profile of figures, over a scratch folder. It runs in a program of its own because nothing of the server
//! is linked into the chores.

use crate::bench::measured::Profile;
use crate::{Outcome, workspace};

const PROFILE: Profile = Profile::Dist;

#[derive(clap::Args)]
pub(crate) struct EngineBenchArguments {
    /// Entities of 1 KiB to load.
    #[arg(long, default_value_t = 5_000_000)]
    entities: u64,
    /// Partition names that they are spread over.
    #[arg(long, default_value_t = 1000)]
    partitions: u64,
    /// Memory tables, what waits for its checkpoint and the block cache together, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_budget_mib: u64,
}

pub(crate) fn run(arguments: &EngineBenchArguments) -> Outcome<()> {
    let scratch = workspace::Scratch::create("engine-bench")?;
    println!("engine: profile {}", PROFILE.name());
    let mut command = workspace::cargo()?;
    command.args([
        "run",
        "--quiet",
        "--profile",
        PROFILE.name(),
        "--package",
        "partition",
        "--example",
        "engine_bench",
        "--",
    ]);
    command.arg("--folder").arg(scratch.path().join("data"));
    for (flag, number) in [
        ("--entities", arguments.entities),
        ("--partitions", arguments.partitions),
        ("--memory-budget-mib", arguments.memory_budget_mib),
    ] {
        command.args([flag, &number.to_string()]);
    }
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err("the engine bench missed something or failed".into()) }
}
