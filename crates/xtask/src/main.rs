//! Project chores: `cargo xtask test` passes or fails the whole project, the others measure and torment the
//! server.
//!
//! Everything here treats the server as users do: as a separate process that is spoken to over TCP. Nothing
//! here is linked into the server.
// Chores read clocks, start processes and threads and open files by nature; the ban is for the server's
// layers.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod alerts;
mod bench;
mod client;
mod damage;
mod full_disk;
mod fuzz;
mod kill9;
mod model;
mod programs;
mod shard;
mod simulation;
mod stamp;
mod suite;
mod table_tools;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// What a chore ends with; the error is printed as one line.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The project's chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Format, lints, all tests, official clients and a short kill -9 run: what must pass before a change
    /// lands.
    Test(suite::TestArguments),
    /// The rules of the tree: headers, lengths, words, layers, circles, links, documented settings.
    Tidy(tidy::TidyArguments),
    /// Durable inserts and point gets per second beside a bare HTTP server, in one run; `engine`: the engine
    /// alone; `queries`, `groups`: tables; `blobs`.
    Bench(Box<bench::BenchArguments>),
    /// Kills the server under load again and again, and checks that every acknowledged write is there.
    Kill9(kill9::KillArguments),
    /// Fuzzes what strangers may send, guided by coverage (needs a C++ compiler, no nightly).
    Fuzz(fuzz::FuzzArguments),
    /// Kills the server under 64 consumers of one queue, and checks that no message is lost or handed out
    /// twice at a time.
    Kill9Queues(kill9::queues::QueueKillArguments),
    /// Kills the server under uploads, and checks that committed blobs are whole and staged blocks are there
    /// or not.
    Kill9Blobs(kill9::blobs::BlobKillArguments),
    /// Damages copies of data folders, and checks that every answer is right or an error, and that a repair
    /// lists its losses.
    Damage(Box<damage::DamageArguments>),
    /// Fills small disks, deletes, and measures when the space is writable again (needs root, for loop
    /// devices).
    FullDisk(full_disk::FullDiskArguments),
    /// Makes the fault of each alert against a server, and waits until a Prometheus fires it (needs root, for
    /// a loop device and for faults of the disk).
    Alerts(alerts::AlertArguments),
    /// Seeded histories of range partitions on the simulated disk; with `shard`, `cluster`: of these.
    Sim(simulation::SimulationArguments),
    /// Entities of all types through `larimar table export | import | diff` in each format, with every
    /// command killed on its way, and through the peer emulator: nothing differs.
    TableTools(table_tools::TableToolsArguments),
    /// Moves between real shards of all kinds under writers, with movers that are killed at every step.
    Shard(shard::ShardArguments),
    /// Faults of a stamp of three processes under load, on etcd and Ceph of Debian's packages or a folder:
    /// nothing acknowledged is lost, nothing stale is read, and it serves again in time. With --migrate: a
    /// data folder becomes a stamp and a folder again, and nothing differs.
    Stamp(Box<stamp::StampArguments>),
    /// Every state of a small stamp of several processes, and planted faults that must be found.
    Model(model::ModelArguments),
    /// A stand-in for a process of a stamp (started by `stamp`).
    #[command(hide = true)]
    StampStandIn(stamp::stand_in::StandInArguments),
    /// The bare HTTP server that `bench` compares with (started by `bench`).
    #[command(hide = true)]
    BareServer(bench::bare_server::BareServerArguments),
}

fn main() -> ExitCode {
    if let Some(log) = std::env::var_os(bench::cold_build::LOG_VARIABLE) {
        return bench::cold_build::run_compiler(log);
    }
    let outcome = match Arguments::parse().chore {
        Chore::Test(arguments) => suite::run(&arguments),
        Chore::Tidy(arguments) => tidy::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Kill9(arguments) => kill9::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Kill9Queues(arguments) => kill9::queues::run(&arguments),
        Chore::Kill9Blobs(arguments) => kill9::blobs::run(&arguments),
        Chore::Damage(arguments) => damage::run(&arguments),
        Chore::FullDisk(arguments) => full_disk::run(&arguments),
        Chore::Alerts(arguments) => alerts::run(&arguments),
        Chore::Sim(arguments) => simulation::run(&arguments),
        Chore::TableTools(arguments) => table_tools::run(&arguments),
        Chore::Shard(arguments) => shard::run(&arguments),
        Chore::Stamp(arguments) => stamp::run(&arguments),
        Chore::StampStandIn(arguments) => stamp::stand_in::run(&arguments),
        Chore::Model(arguments) => model::run(&arguments),
        Chore::BareServer(arguments) => bench::bare_server::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
