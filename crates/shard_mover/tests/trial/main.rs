//! Moves between shards of all kinds under writers, with movers that are killed at every step.
//!
//! For each pair of kinds: three shards with a map of ranges, one of which is moved from the first shard to
//! the second while writers go on through `shard_router`. The mover is killed before, in and after each of
//! its operations, once for each place and state, and another goes on. At the end each acknowledged write
//! is on the shard that the map names and on no other, the certificate is that of the rows, and a client
//! whose map is older than the move was refused and then routed right.
//!
//! Servers are started here and end with the process: Postgres of Debian's packages, SQLite in files, and
//! accounts served by the real front end in memory. `cargo xtask shard` runs it, and the step `shard` with
//! few rows; it is no test of the workspace, because it takes minutes.
// Starts servers and opens files by nature; it is no part of the server.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod chance;
mod checks;
mod client;
mod gate;
mod model;
mod places;
mod settings;
mod trial;
mod writers;

#[path = "../../../shard_store/tests/places/postgres_server.rs"]
#[allow(dead_code)] // The tests there need more of it.
mod postgres_server;
#[path = "../../../shard_store/tests/places/served_account.rs"]
#[allow(dead_code)] // As above.
mod served_account;

use clap::Parser;
use futures_util::stream::{StreamExt, iter};
use places::Kind;
use settings::Settings;
use std::process::ExitCode;
use std::time::Instant;
use trial::Outcome;

/// Moves between shards of all kinds under writers, with movers that are killed at every step.
#[derive(Parser)]
struct Arguments {
    /// Rows of the range that is moved.
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Only pairs whose name has this in it: `postgres-account`, or `sqlite-`.
    #[arg(long, default_value = "")]
    only: String,
    /// Chooses keys, changes and pauses; the schedule of threads is not a part of it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pairs that run at once.
    #[arg(long, default_value_t = 1)]
    at_once: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(&arguments));
            // Accounts in memory have threads that sleep by its timers until the process ends.
            std::mem::forget(runtime);
            code
        }
        Err(error) => {
            eprintln!("shard_trial: no runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> ExitCode {
    let pairs = Kind::ALL.into_iter().flat_map(|from| Kind::ALL.map(|to| (from, to)));
    let pairs = pairs.filter(|(from, to)| format!("{from}-{to}").contains(&arguments.only));
    let pairs: Vec<(Kind, Kind)> = pairs.collect();
    if pairs.is_empty() {
        eprintln!("shard_trial: no pair is called `{}`", arguments.only);
        return ExitCode::FAILURE;
    }
    let settings = Settings::new(arguments.rows, arguments.seed);
    let started_at = Instant::now();
    let outcomes: Vec<Outcome> =
        iter(pairs).map(|pair| trial::run(pair, settings)).buffered(arguments.at_once.max(1)).collect().await;
    println!("\n{}", Outcome::HEADER);
    for outcome in &outcomes {
        println!("{outcome}");
    }
    for outcome in &outcomes {
        outcome.wrong.iter().for_each(|wrong| println!("{}: {wrong}", outcome.pair));
    }
    let bad = outcomes.iter().filter(|outcome| !outcome.wrong.is_empty()).count();
    println!("\n{} pairs, {bad} bad, {:.0} s", outcomes.len(), started_at.elapsed().as_secs_f64());
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
