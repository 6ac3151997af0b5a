//! Moves between real shards: Postgres databases, SQLite files and accounts, and each unlike pair, under
//! writers, with movers that are killed. What always holds: what it needs of Debian's packages is installed
//! before, and its servers end with it.

use crate::suite::postgres;
use crate::{Outcome, workspace};

#[derive(clap::Args)]
pub(crate) struct ShardArguments {
    /// Rows of the range that is moved.
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Only pairs whose name has this in it: `postgres-account`, or `sqlite-`.
    #[arg(long)]
    only: Option<String>,
    /// Chooses keys, changes and pauses; the schedule of threads is not a part of it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pairs that run at once.
    #[arg(long, default_value_t = 1)]
    at_once: u64,
}

/// Rows in the short form: enough for several batches of a copy.
const SHORT_ROWS: u64 = 300;

/// The short form, two to three minutes of mostly waiting: each pair at once.
pub(crate) fn run_short() -> Outcome<()> {
    run(&ShardArguments { rows: SHORT_ROWS, only: None, seed: 1, at_once: u64::from(u8::MAX) })
}

pub(crate) fn run(arguments: &ShardArguments) -> Outcome<()> {
    postgres::set_up()?;
    let mut command = workspace::cargo()?;
    command.args(["test", "--quiet", "--release", "--package", "shard_mover", "--test", "trial", "--"]);
    for (flag, number) in
        [("--rows", arguments.rows), ("--seed", arguments.seed), ("--at-once", arguments.at_once)]
    {
        command.args([flag, &number.to_string()]);
    }
    if let Some(only) = &arguments.only {
        command.args(["--only", only]);
    }
    match command.status()?.success() {
        true => Ok(()),
        false => Err("a move between shards is not as it must be".into()),
    }
}
