//! What a load does along the way: a line for each part of it, with what the background did meanwhile and
//! whose threads kept the processor busy.

use crate::measured_disk::{Cost, MeasuredDisk};
use crate::process::MachineTime;
use crate::rows::TABLE;
use crate::{Outcome, process};
use partition::{PartitionStatistics, Partitions};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was true at one moment.
#[derive(Clone, Default)]
pub(crate) struct Moment {
    /// Monotonic.
    pub(crate) at: Duration,
    statistics: PartitionStatistics,
    ranges: usize,
    /// Of all ranges.
    checkpoints: usize,
    filters: usize,
    serial_sections_held_for: Duration,
    threads: BTreeMap<String, Duration>,
    journal: Cost,
    others: Cost,
    machine: MachineTime,
}

impl Moment {
    pub(crate) fn now(partitions: &Partitions, disk: &MeasuredDisk, at: Duration) -> Outcome<Self> {
        let ranges = partitions.range_statistics(TABLE);
        Ok(Moment {
            at,
            statistics: partitions.statistics(),
            ranges: ranges.len(),
            checkpoints: ranges.iter().map(|range| range.checkpoints).sum(),
            filters: ranges.iter().map(|range| range.filters).sum(),
            serial_sections_held_for: ranges.iter().map(|range| range.serial_section_held_for).sum(),
            threads: process::processor_time_by_thread()?,
            journal: disk.journal(),
            others: disk.others(),
            machine: process::machine_time()?,
        })
    }
}

/// Prints what happened between two moments, in which `count` entities were written.
pub(crate) fn print(before: &Moment, after: &Moment, count: u64) {
    let seconds = after.at.saturating_sub(before.at).as_secs_f64().max(1e-9);
    let percent = |spent: Duration| format!("{:.0} %", spent.as_secs_f64() / seconds * 100.0);
    let mut threads: Vec<(&String, Duration)> = after
        .threads
        .iter()
        .map(|(name, spent)| {
            (name, spent.saturating_sub(before.threads.get(name).copied().unwrap_or_default()))
        })
        .filter(|(_, spent)| spent.as_secs_f64() / seconds >= 0.01)
        .collect();
    threads.sort_by_key(|(_, spent)| std::cmp::Reverse(*spent));
    let threads: Vec<String> =
        threads.into_iter().map(|(name, spent)| format!("{name} {}", percent(spent))).collect();
    let (was, is) = (&before.statistics, &after.statistics);
    let held_for = after.serial_sections_held_for.saturating_sub(before.serial_sections_held_for);
    let (journal, others) = (after.journal.since(before.journal), after.others.since(before.others));
    println!(
        "    {:>6.0}/s: {} flushes, {} merges, {:.2} GB merged, {} ranges with {} checkpoints and {} filters, waited {:.2} s, in serial \
         sections {}; journal {} in {:.0} syncs/s, other files {} with {:.0} MB/s; cores: {}, idle {}, taken by the host {}",
        count as f64 / seconds,
        is.flushes - was.flushes,
        is.compactions - was.compactions,
        (is.compacted_bytes - was.compacted_bytes) as f64 / 1e9,
        after.ranges,
        after.checkpoints,
        after.filters,
        is.memory.waited_for.saturating_sub(was.memory.waited_for).as_secs_f64(),
        percent(held_for),
        percent(journal.busy_for),
        journal.sync_count as f64 / seconds,
        percent(others.busy_for),
        others.written_bytes as f64 / 1e6 / seconds,
        threads.join(", "),
        percent(after.machine.idle.saturating_sub(before.machine.idle)),
        percent(after.machine.stolen.saturating_sub(before.machine.stolen)),
    );
}
