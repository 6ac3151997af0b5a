//! The load: rate at the start and the end, peak of memory, write amplification.

use crate::engine::{Engine, settings};
use crate::progress::{self, Moment};
use crate::rows::{Insert, TABLE, key, value};
use crate::verdicts::Verdicts;
use crate::{Arguments, Outcome, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The load is timed in this many equal parts.
const PART_COUNT: u64 = 20;
/// Parts of the first and the last of the load that are compared.
const END_PART_COUNT: usize = 2;
const RESIDENT_BYTES_MAX: u64 = 600 << 20;

pub(crate) async fn run(arguments: Arguments, verdicts: &mut Verdicts) -> Outcome<()> {
    let engine = Engine::open(&arguments, settings(&arguments)?).await?;
    let written_before = process::written_bytes()?;
    let (next, user_bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let part = arguments.entities.div_ceil(PART_COUNT);
    let start = Moment::now(&engine.partitions, &engine.disk, engine.clock.monotonic())?;
    let (journal, others) = (engine.disk.journal(), engine.disk.others());
    let processor_before = process::processor_time()?;
    let partitions = engine.partitions.clone();
    let (disk, clock) = (engine.disk.clone(), engine.clock.clone());
    let (entities, names) = (arguments.entities, arguments.partitions);
    let outcomes = engine
        .gather(arguments.writers, |_| {
            let (partitions, disk, clock) = (partitions.clone(), disk.clone(), clock.clone());
            let (next, user_bytes) = (next.clone(), user_bytes.clone());
            async move {
                let mut ends = Vec::new();
                let mut slowest = Duration::ZERO;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= entities {
                        return Ok((ends, slowest));
                    }
                    let insert = Insert { key: key(number, names), value: value(number) };
                    let size = insert.key.as_bytes().len() + insert.value.len();
                    user_bytes.fetch_add(size as u64, Ordering::Relaxed);
                    let begun = clock.monotonic();
                    if !partitions.execute(insert).await? {
                        return Err(format!("entity {number} is there before it is inserted").into());
                    }
                    let now = clock.monotonic();
                    slowest = slowest.max(now - begun);
                    if (number + 1) % part == 0 || number + 1 == entities {
                        ends.push((number / part, Moment::now(&partitions, &disk, now)?));
                    }
                }
            }
        })
        .await?;
    let took = engine.clock.monotonic() - start.at;
    let (journal, others) = (engine.disk.journal().since(journal), engine.disk.others().since(others));
    let processor = process::processor_time()? - processor_before;
    let slowest = outcomes.iter().map(|(_, slowest)| *slowest).max().unwrap_or_default();
    let mut ends: Vec<(u64, Moment)> = outcomes.into_iter().flat_map(|(ends, _)| ends).collect();
    // By time: the last writer of a part may be held up beyond the end of the next.
    ends.sort_by_key(|(_, end)| end.at);
    println!("load");
    let mut before = &start;
    let mut rates = Vec::new();
    for (_, end) in &ends {
        rates.push(part as f64 / end.at.saturating_sub(before.at).as_secs_f64().max(1e-9));
        progress::print(before, end, part);
        before = end;
    }
    let shown: Vec<String> = rates.iter().map(|rate| format!("{:.0}", rate / 1000.0)).collect();
    println!(
        "  {:.0} entities/s over {:.1} s, in thousands along the way: {}",
        entities as f64 / took.as_secs_f64(),
        took.as_secs_f64(),
        shown.join(" ")
    );
    println!(
        "  processor: {:.2} cores busy; slowest insert {:.0} ms",
        processor.as_secs_f64() / took.as_secs_f64(),
        slowest.as_secs_f64() * 1000.0
    );
    println!(
        "  journal: {:.2} GB, {} syncs, writing or syncing {:.0} % of the time; other files {:.2} GB, {} syncs, {:.0} %",
        journal.written_bytes as f64 / 1e9,
        journal.sync_count,
        journal.busy_for.as_secs_f64() / took.as_secs_f64() * 100.0,
        others.written_bytes as f64 / 1e9,
        others.sync_count,
        others.busy_for.as_secs_f64() / took.as_secs_f64() * 100.0,
    );
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let at_start = mean(&rates[..END_PART_COUNT.min(rates.len())]);
    let at_end = mean(&rates[rates.len().saturating_sub(END_PART_COUNT)..]);
    let share = at_end / at_start * 100.0;
    verdicts.judge(
        "rate at the end",
        &format!("{at_start:.0}/s at the start, {at_end:.0}/s at the end, {share:.0} %"),
        "70 % or more",
        share >= 70.0,
    );
    engine.settle().await;
    let written = process::written_bytes()? - written_before;
    let user_bytes = user_bytes.load(Ordering::Relaxed);
    let statistics = engine.partitions.statistics();
    println!(
        "  write amplification: {:.2} ({:.2} GB written for {:.2} GB), {} flushes, {} merges, {} ranges; {} inserts \
         waited for memory, {:.1} s in all",
        written as f64 / user_bytes as f64,
        written as f64 / 1e9,
        user_bytes as f64 / 1e9,
        statistics.flushes,
        statistics.compactions,
        engine.partitions.ranges(TABLE).len(),
        statistics.memory.waits,
        statistics.memory.waited_for.as_secs_f64(),
    );
    let peak = process::peak_resident_bytes()?;
    verdicts.judge(
        "peak of resident memory",
        &format!("{} MiB", peak >> 20),
        "under 600 MiB",
        peak < RESIDENT_BYTES_MAX,
    );
    engine.close().await;
    Ok(())
}
