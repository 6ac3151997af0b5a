//! Rows are inserted in scattered order, on a server with a small memory budget: how inserts fare once the
//! filters of all rows are more than its cache takes.

use super::rows::{Change, GROUP_ROWS, TableClient, change_all};
use super::{Stage, Verdict};
use crate::Outcome;
use crate::client::load::processor_time_of;

const TEXT_SIZE: usize = 20;
/// The rate is printed for each such part of the rows.
const STEPS: u64 = 10;
/// Slower than the first rows at most by so much.
const SLOWER_PERCENT_MAX: f64 = 25.0;

#[derive(clap::Args)]
pub(crate) struct GrowthArguments {
    /// Rows that are inserted in scattered order with a small memory budget.
    #[arg(long, default_value_t = 5_000_000)]
    pub(super) growth_rows: u64,
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let (rows, address) = (stage.arguments.size.growth.growth_rows, stage.server.address);
    TableClient::connect(address)?.create_table()?;
    // A partition for each group, so that all keys of a group are new ones of a place that nobody foresees.
    let partition = |row: u64| format!("p{:016x}", (row / GROUP_ROWS).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let step = (rows / STEPS).max(GROUP_ROWS);
    let mut rates = Vec::new();
    for from in (0..rows).step_by(step as usize) {
        let inserted = from..rows.min(from + step);
        let before = processor_time_of(stage.server.id())?;
        let rate = change_all(address, partition, inserted.clone(), Change::Insert { text_size: TEXT_SIZE })?;
        let took = processor_time_of(stage.server.id())?.saturating_sub(before);
        let cpu_us = took.as_secs_f64() * 1e6 / (inserted.end - inserted.start) as f64;
        println!(
            "  up to {} rows: {rate:.0} rows/s, {cpu_us:.1} µs of processor a row, {:.0} MiB resident",
            inserted.end,
            stage.resident_mib()?
        );
        rates.push(rate);
    }
    println!("  {:.0} MiB stored", stage.stored_mib()?);
    // The first step has no checkpoints to look into for half of its time, so the second is the yardstick.
    let first = rates.get(1).or(rates.first()).copied().unwrap_or(f64::NAN);
    let last = rates.last().copied().unwrap_or(f64::NAN);
    let slower = 100.0 * (1.0 - last / first);
    Ok(vec![Verdict::at_most("inserts slower than at first", slower, SLOWER_PERCENT_MAX, "%")])
}
