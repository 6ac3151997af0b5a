//! Hot rows are overwritten and read again and again: how much memory the server keeps.

use super::rows::{Change, TableClient, change_all};
use super::{Stage, Verdict};
use crate::Outcome;
use std::time::Duration;

const PARTITION_ROWS: u64 = 1000;
const TEXT_SIZE: usize = 1000;
/// MiB that the server may have resident; its memory budget is 1 GiB.
const RESIDENT_MIB_MAX: f64 = 600.0;

#[derive(clap::Args)]
pub(crate) struct CacheArguments {
    /// Hot rows of 1 KiB that are overwritten.
    #[arg(long, default_value_t = 190_000)]
    pub(super) hot_rows: u64,
    /// Times that they are overwritten.
    #[arg(long, default_value_t = 10)]
    pub(super) overwrites: u64,
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let (rows, address) = (stage.arguments.cache.hot_rows, stage.server.address);
    let mut client = TableClient::connect(address)?;
    client.create_table()?;
    let partition = |row: u64| format!("p{:06}", row / PARTITION_ROWS);
    let mut most_mib: f64 = 0.0;
    for round in 0..stage.arguments.cache.overwrites {
        let rate = change_all(address, partition, 0..rows, Change::Put { text_size: TEXT_SIZE })?;
        for first in (0..rows).step_by(PARTITION_ROWS as usize) {
            let found = client.first(&partition(first))?;
            if found.number != Some(first) {
                return Err(format!("partition of row {first}: {found:?}").into());
            }
        }
        let resident_mib = stage.resident_mib()?;
        most_mib = most_mib.max(resident_mib);
        println!("  round {}: {rate:.0} rows/s, {resident_mib:.0} MiB resident", round + 1);
    }
    std::thread::sleep(Duration::from_secs(stage.arguments.waits.quiet_seconds));
    let idle_mib = stage.resident_mib()?;
    println!("  idle: {idle_mib:.0} MiB resident, {:.0} MiB stored", stage.stored_mib()?);
    Ok(vec![
        Verdict::at_most("memory beside overwrites", most_mib, RESIDENT_MIB_MAX, "MiB"),
        Verdict::at_most("memory when idle", idle_mib, RESIDENT_MIB_MAX, "MiB"),
    ])
}
