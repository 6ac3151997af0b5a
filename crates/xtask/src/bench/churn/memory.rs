//! Rows are put, overwritten and left alone, on a server with a small memory budget: what is resident at the
//! peak of each.

use super::rows::{Change, TableClient, change_all};
use super::{Stage, Verdict, wait_for_quiet};
use crate::Outcome;
use std::time::Duration;

/// The server's `--memory-budget`.
pub(super) const BUDGET_MIB: u64 = 256;
/// What it may have resident beyond that.
const BEYOND_MIB_MAX: f64 = 150.0;
const PARTITION_ROWS: u64 = 10_000;
const TEXT_SIZE: usize = 100;

#[derive(clap::Args)]
pub(crate) struct MemoryArguments {
    /// Rows that are put and overwritten on a server with a small memory budget.
    #[arg(long, default_value_t = 4_000_000)]
    pub(super) memory_rows: u64,
    /// The most seconds in which that server is left alone.
    #[arg(long, default_value_t = 120)]
    pub(super) memory_idle_seconds: u64,
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let MemoryArguments { memory_rows, memory_idle_seconds } = stage.arguments.memory;
    let address = stage.server.address;
    TableClient::connect(address)?.create_table()?;
    let partition = |row: u64| format!("p{:06}", row / PARTITION_ROWS);
    let mut most_mib = stage.peak_mib("start")?;
    for what in ["put", "overwritten"] {
        let rate = change_all(address, partition, 0..memory_rows, Change::Put { text_size: TEXT_SIZE })?;
        println!("  {memory_rows} rows {what}: {rate:.0} rows/s");
        most_mib = most_mib.max(stage.peak_mib(what)?);
        wait_for_quiet(stage, Duration::from_secs(memory_idle_seconds))?;
        most_mib = most_mib.max(stage.peak_mib("idle")?);
    }
    println!("  {:.0} MiB resident in the end, {:.0} MiB stored", stage.resident_mib()?, stage.stored_mib()?);
    let bound_mib = BUDGET_MIB as f64 + BEYOND_MIB_MAX;
    Ok(vec![Verdict::at_most("memory at a budget of 256 MiB", most_mib, bound_mib, "MiB")])
}
