//! What a fenced write to a Postgres shard costs beside a plain one, and how fast a range moves from one
//! Postgres database to another. `cargo xtask bench shard` builds and runs it.
//!
//! The server is Debian's, with its own settings (`fsync` on), started here and ended with the process.
//! Plain and fenced writes take turns, so that both meet the same machine; figures are medians of rounds.
//! A figure that is worse than its target makes the run fail at its end.
// Starts a server and reads clocks by nature; it is no part of the server.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod databases;
mod moves;
mod writes;

#[path = "../../../shard_store/tests/places/postgres_server.rs"]
#[allow(dead_code)] // The tests there need more of it.
mod postgres_server;

use clap::Parser;
use std::process::ExitCode;

/// What goes wrong ends the run.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Costs of Postgres shards.
#[derive(Parser)]
struct Arguments {
    /// Rows of 200 bytes that are moved.
    #[arg(long, default_value_t = 500_000)]
    rows: u64,
    /// Moves there and back, each of which is measured.
    #[arg(long, default_value_t = 3)]
    moves: usize,
    /// Pairs of plain and fenced writing, of each number of writers.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of each round's plain writing, and of its fenced writing.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let arguments = Arguments::parse();
    let databases = databases::Databases::start().await?;
    let mut is_fine = writes::run(&databases, arguments.rounds, arguments.seconds).await?;
    is_fine &= moves::run(&databases, arguments.rows, arguments.moves).await?;
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The middle one, or the mean of both that are.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle), values.get(middle.wrapping_sub(1))) {
        (0, Some(above), Some(below)) => f64::midpoint(*above, *below),
        (_, Some(value), _) => *value,
        _ => f64::NAN,
    }
}
