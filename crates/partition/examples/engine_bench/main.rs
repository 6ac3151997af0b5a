//! The engine bench: millions of entities through the partition layer under a memory budget, then restarts,
//! reads, scans and changes of ranges over what was loaded. `cargo xtask bench engine` builds and runs it.
//!
//! Each phase is a process of its own over the same data folder, so that its peak of memory is its own, a
//! restart is a real one, and `kill -9` kills something. Without a phase the program is the parent that
//! starts the others one after the other. Numbers are printed beside what they must be; one that is missed
//! makes the run fail at its end.
// A bench reads clocks, starts processes and looks at files by nature; the ban is for the server's layers.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod engine;
mod load;
mod measured_disk;
mod process;
mod progress;
mod ranges;
mod reads;
mod restart;
mod rows;
mod verdicts;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use verdicts::Verdicts;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Loads entities through the partition layer and measures what the engine makes of them.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// A folder on the disk to measure; it must not exist, and is removed at the end.
    #[arg(long)]
    folder: PathBuf,
    /// Entities of 1 KiB to load.
    #[arg(long, default_value_t = 5_000_000)]
    entities: u64,
    /// Partition names that they are spread over.
    #[arg(long, default_value_t = 1000)]
    partitions: u64,
    /// Memory tables, what waits for its checkpoint and the block cache together, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_budget_mib: u64,
    /// Operations under way at a time while loading.
    #[arg(long, default_value_t = 256)]
    writers: u64,
    /// Leave the data folder for a look.
    #[arg(long)]
    keep: bool,
    /// One phase over a folder that is there; else all, one after the other.
    #[arg(long)]
    phase: Option<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Load, settle, close.
    Load,
    /// Open, answer one get, close.
    FirstAnswer,
    /// Open, write until killed.
    Abide,
    /// Point reads, missing keys, full scans.
    Reads,
    /// Splits and merges under load, one range against two.
    Ranges,
}

fn main() -> ExitCode {
    allocator::keep_free_memory();
    let arguments = Arguments::parse();
    let mut verdicts = Verdicts::default();
    let outcome = match arguments.phase {
        None => run_all(&arguments),
        Some(Phase::Load) => engine::run(load::run(arguments, &mut verdicts)),
        Some(Phase::FirstAnswer) => engine::run(restart::first_answer(arguments)),
        Some(Phase::Abide) => engine::run(restart::abide(arguments)),
        Some(Phase::Reads) => engine::run(reads::run(arguments, &mut verdicts)),
        Some(Phase::Ranges) => engine::run(ranges::run(arguments, &mut verdicts)),
    };
    match outcome.and_then(|()| verdicts.end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("engine bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(arguments: &Arguments) -> Outcome<()> {
    if arguments.folder.exists() {
        return Err(format!("{} exists; choose a new folder", arguments.folder.display()).into());
    }
    std::fs::create_dir_all(&arguments.folder)?;
    println!(
        "{} entities of {} B in {} partitions, incompressible; memory budget {} MiB, {} writers, {} cores",
        arguments.entities,
        rows::VALUE_SIZE_BYTES,
        arguments.partitions,
        arguments.memory_budget_mib,
        arguments.writers,
        std::thread::available_parallelism()?,
    );
    let mut failed = Vec::new();
    let mut phase = |name: &'static str, outcome: Outcome<()>| {
        if outcome.is_err() {
            failed.push(name);
        }
    };
    phase("load", restart::run_phase(arguments, Phase::Load));
    phase("restarts", restart::run(arguments));
    phase("reads", restart::run_phase(arguments, Phase::Reads));
    phase("ranges", restart::run_phase(arguments, Phase::Ranges));
    if arguments.keep {
        println!("the data stays in {}", arguments.folder.display());
    } else {
        std::fs::remove_dir_all(&arguments.folder)?;
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("missed in: {}", failed.join(", ")).into()) }
}
