//! Reads over what was loaded: random points cold and warm, keys that are not there, full scans.

use crate::engine::{Engine, settings};
use crate::rows::{Count, TABLE, key, missing_key, scattered, value};
use crate::verdicts::Verdicts;
use crate::{Arguments, Outcome, process};
use partition::{CacheStatistics, KeyRange, ScanEnd};
use std::time::Duration;

const COLD_COUNT: u64 = 20_000;
/// Keys that fit the cache together.
const WARM_KEY_COUNT: u64 = 2_000;
const WARM_COUNT: u64 = 100_000;
const MISSING_COUNT: u64 = 100_000;
const SCAN_MB_PER_SECOND_MIN: f64 = 300.0;

/// Latencies of a series.
struct Latencies(Vec<Duration>);

impl Latencies {
    fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort();
        let at = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }
}

fn report(what: &str, mut latencies: Latencies, before: CacheStatistics, after: CacheStatistics) {
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    println!(
        "  {what}: p50 {:.0} µs, p99 {:.0} µs, one after the other; cache hits {:.1} % of all blocks, {:.2} row blocks \
         read for 100 keys",
        latencies.percentile(50),
        latencies.percentile(99),
        hits as f64 / (hits + misses).max(1) as f64 * 100.0,
        row_blocks_per_100(before, after, latencies.0.len()),
    );
}

fn row_blocks_per_100(before: CacheStatistics, after: CacheStatistics, key_count: usize) -> f64 {
    (after.row_blocks_read - before.row_blocks_read) as f64 / key_count.max(1) as f64 * 100.0
}

pub(crate) async fn run(arguments: Arguments, verdicts: &mut Verdicts) -> Outcome<()> {
    println!("reads");
    process::drop_cached_files(&arguments.folder)?;
    let engine = Engine::open(&arguments, settings(&arguments)?).await?;
    let (partitions, clock) = (&engine.partitions, &engine.clock);
    let cache = || partitions.statistics().cache;
    for (what, count, among) in [
        ("random gets, cold", COLD_COUNT, arguments.entities),
        ("again, files cached by the kernel", COLD_COUNT, arguments.entities),
        ("gets of a warm set", WARM_COUNT, WARM_KEY_COUNT.min(arguments.entities)),
    ] {
        let before = cache();
        let mut latencies = Vec::new();
        for at in 0..count {
            let number = scattered(at + among) % among;
            let key = key(number, arguments.partitions);
            let begun = clock.monotonic();
            let found = partitions.get(TABLE, &key).await?;
            latencies.push(clock.monotonic() - begun);
            if found.is_none_or(|row| row.value != value(number)) {
                return Err(format!("entity {number} is not there").into());
            }
        }
        report(what, Latencies(latencies), before, cache());
    }
    let before = cache();
    let mut latencies = Vec::new();
    for at in 0..MISSING_COUNT {
        let key = missing_key(scattered(at) % arguments.entities, arguments.partitions);
        let begun = clock.monotonic();
        if partitions.get(TABLE, &key).await?.is_some() {
            return Err("a key that was never written is there".into());
        }
        latencies.push(clock.monotonic() - begun);
    }
    let after = cache();
    let per_key = row_blocks_per_100(before, after, MISSING_COUNT as usize);
    report("keys that are not there", Latencies(latencies), before, after);
    verdicts.judge(
        "row blocks read for keys that are not there",
        &format!("{per_key:.2} in 100 keys"),
        "1 in 100 at most",
        per_key <= 1.0,
    );
    let mut best: f64 = 0.0;
    for round in 1..=2 {
        let begun = clock.monotonic();
        let (count, end) = partitions.scan(TABLE, KeyRange::all(), Count::default()).await?;
        let took = (clock.monotonic() - begun).as_secs_f64();
        if end != ScanEnd::Complete || count.rows < arguments.entities {
            return Err(format!("a full scan shows {} rows and ends with {end:?}", count.rows).into());
        }
        let rate = count.bytes as f64 / 1e6 / took;
        println!("  full scan {round}: {} rows, {rate:.0} MB/s", count.rows);
        best = best.max(rate);
    }
    verdicts.judge(
        "full scan, files cached by the kernel",
        &format!("{best:.0} MB/s"),
        "300 MB/s or more",
        best >= SCAN_MB_PER_SECOND_MIN,
    );
    println!("  peak of resident memory: {} MiB", process::peak_resident_bytes()? >> 20);
    engine.close().await;
    Ok(())
}
