//! Many rows are put and compacted: how much more than in the end the folder takes on the way.

use super::rows::{Change, TableClient, change_all};
use super::{Stage, Verdict};
use crate::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TEXT_SIZE: usize = 100;
const PARTITION_ROWS: u64 = 10_000;
/// More than in the end, at most.
const BEYOND_PERCENT_MAX: f64 = 25.0;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Compactions are over once the folder has not changed for so long, or after so long in all.
const QUIET_FOR: Duration = Duration::from_secs(30);
const QUIET_AFTER_MAX: Duration = Duration::from_secs(300);

#[derive(clap::Args)]
pub(crate) struct SpaceArguments {
    /// Rows that are put, in order, while the folder's size is watched.
    #[arg(long, default_value_t = 20_000_000)]
    pub(super) watched_rows: u64,
}

pub(super) fn run(stage: &Stage<'_>) -> Outcome<Vec<Verdict>> {
    let rows = stage.arguments.size.space.watched_rows;
    TableClient::connect(stage.server.address)?.create_table()?;
    let empty_mib = stage.empty_mib()?;
    let partition = |row: u64| format!("p{:06}", row / PARTITION_ROWS);
    let address = stage.server.address;
    let done = AtomicBool::new(false);
    let (peak_mib, end_mib, rate) = std::thread::scope(|scope| -> Outcome<(f64, f64, f64)> {
        let writer = scope.spawn(|| {
            let rate = change_all(address, partition, 0..rows, Change::Insert { text_size: TEXT_SIZE });
            done.store(true, Ordering::Release);
            rate.map_err(|error| error.to_string())
        });
        let (mut peak_mib, mut last_mib) = (0f64, 0f64);
        let (mut changed_at, mut done_at) = (Instant::now(), None);
        loop {
            std::thread::sleep(LOOK_EVERY);
            let now_mib = stage.stored_mib()? - empty_mib;
            peak_mib = peak_mib.max(now_mib);
            if (now_mib - last_mib).abs() >= 1.0 {
                (last_mib, changed_at) = (now_mib, Instant::now());
            }
            if done.load(Ordering::Acquire) {
                let done_at = *done_at.get_or_insert_with(Instant::now);
                if changed_at.elapsed() >= QUIET_FOR || done_at.elapsed() >= QUIET_AFTER_MAX {
                    break;
                }
            }
        }
        let rate = writer.join().map_err(|_| "the writer panicked")??;
        Ok((peak_mib, last_mib, rate))
    })?;
    println!("  {rows} rows put, {rate:.0}/s: {peak_mib:.0} MiB at the peak, {end_mib:.0} MiB in the end");
    let most_mib = end_mib * (1.0 + BEYOND_PERCENT_MAX / 100.0);
    Ok(vec![Verdict::at_most("space on the way", peak_mib, most_mib, "MiB")])
}
