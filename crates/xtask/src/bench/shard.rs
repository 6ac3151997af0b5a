//! What a fence costs a write to a Postgres shard, and how fast rows move between two: builds and runs the
//! program `postgres_cost` of `crates/shard_mover/examples`, with the profile of figures.

use crate::bench::measured::Profile;
use crate::suite::postgres;
use crate::{Outcome, workspace};

const PROFILE: Profile = Profile::Dist;

#[derive(clap::Args)]
pub(crate) struct ShardBenchArguments {
    /// Rows of 200 bytes that are moved.
    #[arg(long, default_value_t = 500_000)]
    rows: u64,
    /// Moves there and back, each of which is measured.
    #[arg(long, default_value_t = 3)]
    moves: u64,
    /// Pairs of plain and fenced writing, of each number of writers.
    #[arg(long, default_value_t = 7)]
    rounds: u64,
    /// Seconds of each round's plain writing, and of its fenced writing.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

pub(crate) fn run(arguments: &ShardBenchArguments) -> Outcome<()> {
    postgres::set_up()?;
    println!("shards in Postgres: profile {}", PROFILE.name());
    let mut command = workspace::cargo()?;
    command.args(["run", "--quiet", "--profile", PROFILE.name(), "--package", "shard_mover"]);
    command.args(["--example", "postgres_cost", "--"]);
    let ShardBenchArguments { rows, moves, rounds, seconds } = arguments;
    for (flag, number) in [("--rows", rows), ("--moves", moves), ("--rounds", rounds), ("--seconds", seconds)]
    {
        command.args([flag, &number.to_string()]);
    }
    match command.status()?.success() {
        true => Ok(()),
        false => Err("a shard in Postgres costs too much, or the bench failed".into()),
    }
}
