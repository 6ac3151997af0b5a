//! Metrics that the layers keep for themselves: read when somebody asks for them, so that they cost nothing
//! else.
//!
//! What always holds: until the layers are open, and once they close, only what is known of the process is
//! brought up to date.

use super::process::ProcessMetrics;
use super::readiness::{Layers, Phase, Readiness};
use super::sampled_stamp;
use Unit::{Bytes, Count, Seconds};
use base::metrics::{Family, Metrics, Unit};
use partition::{ObjectTable, PartitionStatistics};

/// A disk of so many bytes has no end: it is memory.
pub(super) const ENDLESS_BYTES: u64 = u64::MAX / 2;

/// Object tables, as labels have them.
pub(super) const TABLES_BY_NAME: [(ObjectTable, &str); 5] = [
    (ObjectTable::PartitionMap, "map"),
    (ObjectTable::Container, "container"),
    (ObjectTable::Entity, "entity"),
    (ObjectTable::Message, "message"),
    (ObjectTable::Blob, "blob"),
];

static BUILD: Family =
    Family::gauge("larimar_build_info", Count, &["version"], "1; the version is in the label.");
static PHASE: Family = Family::gauge(
    "larimar_phase",
    Count,
    &["phase"],
    "1 for the phase the process is in: starting, serving or draining.",
);
static READY: Family = Family::gauge(
    "larimar_ready",
    Count,
    &[],
    "1 while GET /ready answers 200: requests of every kind are served, but for writes of a stamp that is full.",
);

static RESIDENT: Family =
    Family::gauge("process_resident_memory_bytes", Bytes, &[], "Memory of the process that is resident.");
static VIRTUAL: Family =
    Family::gauge("process_virtual_memory_bytes", Bytes, &[], "Addresses that the process has.");
static CPU: Family =
    Family::counter("process_cpu_seconds_total", Seconds, &[], "Time of all threads on a processor.");
static THREADS: Family = Family::gauge("process_threads", Count, &[], "Threads of the process.");
static OPEN_FILES: Family = Family::gauge("process_open_fds", Count, &[], "File descriptors that are open.");
static STARTED_AT: Family =
    Family::gauge("process_start_time_seconds", Seconds, &[], "When the process was started, since 1970.");

static WRITES_STOPPED: Family = Family::gauge(
    "larimar_writes_stopped",
    Count,
    &[],
    "1 once a sync or a write of the journal has failed: nothing is written any more until a restart.",
);
static SCARCE: Family =
    Family::gauge("larimar_disk_full", Count, &[], "1 while only what reclaims space is admitted.");
static MISSING: Family = Family::gauge(
    "larimar_disk_missing_bytes",
    Bytes,
    &[],
    "Bytes that must become free before writes are admitted again.",
);
static RESERVE: Family = Family::gauge(
    "larimar_disk_reserve_bytes",
    Bytes,
    &[],
    "Bytes that are kept back for a full disk; 0 while they are given up.",
);
static GIVEN_UP: Family = Family::gauge(
    "larimar_disk_reserve_given_up",
    Count,
    &[],
    "1 after the disk was full, until the reserve is whole again.",
);
static BELOW_FLOOR: Family = Family::gauge(
    "larimar_disk_below_floor",
    Count,
    &[],
    "1 while so little is free that even work that reclaims space waits.",
);
static FREE: Family =
    Family::gauge("larimar_disk_free_bytes", Bytes, &[], "Bytes that are free on the disk; 0: in memory.");
static TOTAL: Family = Family::gauge(
    "larimar_disk_bytes",
    Bytes,
    &[],
    "Bytes of the whole disk, used or free; 0: in memory, or nobody knows.",
);
static EXTENT_SIZE: Family = Family::gauge(
    "larimar_extent_bytes_max",
    Bytes,
    &[],
    "Bytes after which an extent takes no more: 256 MiB, less on a small disk.",
);
static STREAMS: Family = Family::gauge("larimar_streams", Count, &[], "Streams of the data folder.");
static SCRUB_ROUNDS: Family = Family::counter(
    "larimar_scrub_rounds_total",
    Count,
    &[],
    "Rounds of the background scrub over all sealed extents that have ended.",
);
static SCRUB_BYTES: Family = Family::counter(
    "larimar_scrub_read_bytes_total",
    Bytes,
    &[],
    "Bytes that the background scrub has read.",
);
static SCRUB_DAMAGED: Family = Family::counter(
    "larimar_scrub_damaged_extents_total",
    Count,
    &[],
    "Extents that the background scrub found damaged, each once a round.",
);

static RANGES: Family = Family::gauge("larimar_ranges", Count, &["table"], "Ranges of an object table.");
static CHECKPOINTS: Family =
    Family::gauge("larimar_checkpoints", Count, &["table"], "Checkpoints of all ranges of an object table.");
static CHECKPOINTS_MAX: Family = Family::gauge(
    "larimar_range_checkpoints_max",
    Count,
    &["table"],
    "Checkpoints of the range that has most of them: how far compaction lags.",
);
static FILTERS: Family = Family::gauge(
    "larimar_filters",
    Count,
    &["table"],
    "Filters that look-ups of missing rows read, in all ranges of an object table.",
);
static SERIAL: Family = Family::gauge(
    "larimar_serial_section_seconds",
    Seconds,
    &["table"],
    "Time that decisions held the serial sections of the ranges that are open.",
);
static DAMAGED: Family = Family::gauge(
    "larimar_damaged_ranges",
    Count,
    &[],
    "Ranges that are damaged: requests for their keys fail.",
);
static FLUSHES: Family =
    Family::counter("larimar_flushes_total", Count, &[], "Memory tables that became checkpoints.");
static COMPACTIONS: Family =
    Family::counter("larimar_compactions_total", Count, &[], "Compactions of checkpoints.");
static COMPACTED: Family = Family::counter(
    "larimar_compacted_bytes_total",
    Bytes,
    &[],
    "Bytes of rows that compactions wrote, those that gave up included.",
);
static SPLITS: Family = Family::counter(
    "larimar_range_splits_total",
    Count,
    &["reason"],
    "Ranges that were split: by size, by heat, or for another reason.",
);
static MERGES: Family = Family::counter(
    "larimar_range_merges_total",
    Count,
    &["reason"],
    "Pairs of ranges that became one: because they were cold, or for another reason.",
);
static PAUSE: Family = Family::gauge(
    "larimar_range_change_pause_seconds_max",
    Seconds,
    &[],
    "The longest time in which operations waited for a split or merge of their range.",
);
static COPIED: Family = Family::gauge(
    "larimar_range_change_copied_bytes_max",
    Bytes,
    &[],
    "Bytes of rows that were copied during that longest pause.",
);
static TABLES: Family =
    Family::gauge("larimar_memory_table_bytes", Bytes, &[], "Bytes of all memory tables.");
static BUDGET: Family = Family::gauge(
    "larimar_memory_budget_bytes",
    Bytes,
    &[],
    "What memory tables and the cache may take together.",
);
static WAITS: Family = Family::counter(
    "larimar_write_stalls_total",
    Count,
    &[],
    "Writes that waited because memory tables were full.",
);
static WAITED: Family =
    Family::counter("larimar_write_stall_seconds_total", Seconds, &[], "How long they waited.");
static SLOWED: Family = Family::counter(
    "larimar_write_delays_total",
    Count,
    &[],
    "Writes that were delayed because flushes or compactions lagged.",
);
static SLOWED_FOR: Family =
    Family::counter("larimar_write_delay_seconds_total", Seconds, &[], "How long they were delayed.");
static CACHE_HITS: Family = Family::counter(
    "larimar_cache_hits_total",
    Count,
    &[],
    "Blocks that were found in the cache, without those that checkpoints hold themselves.",
);
static CACHE_MISSES: Family =
    Family::counter("larimar_cache_misses_total", Count, &[], "Blocks that had to be read.");
static ROW_BLOCKS: Family = Family::counter(
    "larimar_cache_row_blocks_read_total",
    Count,
    &[],
    "Row blocks among them: what neither a filter nor the cache could save.",
);
static CACHE_BYTES: Family =
    Family::gauge("larimar_cache_bytes", Bytes, &[], "Bytes of cached and held blocks.");
static DELETED_CONTAINERS: Family = Family::gauge(
    "larimar_deleted_containers",
    Count,
    &[],
    "Deleted tables, queues and blob containers whose rows are still being removed.",
);

/// Brings the metrics up to date, but for those of the disk.
pub(super) fn sample(into: &Metrics, readiness: &Readiness, version: &str) {
    into.gauge(&BUILD, &[version]).set(1);
    let now = readiness.phase();
    for (phase, name) in [
        (Phase::Starting, "starting"),
        (Phase::StandingBy, "standing-by"),
        (Phase::Serving, "serving"),
        (Phase::Draining, "draining"),
    ] {
        into.gauge(&PHASE, &[name]).set(u64::from(now == phase));
    }
    into.gauge(&READY, &[]).set(u64::from(readiness.reason().is_none()));
    let process = ProcessMetrics::read();
    into.gauge(&RESIDENT, &[]).set(process.resident_bytes);
    into.gauge(&VIRTUAL, &[]).set(process.virtual_bytes);
    into.counter(&CPU, &[]).set(process.cpu_us);
    into.gauge(&THREADS, &[]).set(process.threads);
    into.gauge(&OPEN_FILES, &[]).set(process.open_files);
    into.gauge(&STARTED_AT, &[]).set(process.started_at_us);
    sampled_stamp::sample(into, readiness.stamp().as_deref());
    if let Some(layers) = readiness.layers() {
        sample_streams(into, &layers);
        sample_partitions(into, &layers.partitions.statistics());
        sample_ranges(into, &layers);
    }
}

/// Brings the metrics of the disk up to date. It may wait for the disk.
pub(super) async fn sample_disk(into: &Metrics, layers: &Layers) {
    let shown = |bytes: Option<u64>| bytes.filter(|bytes| *bytes < ENDLESS_BYTES).unwrap_or(0);
    into.gauge(&FREE, &[]).set(shown(layers.disk.free_bytes().await.ok()));
    into.gauge(&TOTAL, &[]).set(shown(layers.disk.total_bytes().await.ok()));
}

fn sample_streams(into: &Metrics, layers: &Layers) {
    let streams = &layers.streams;
    into.gauge(&WRITES_STOPPED, &[]).set(u64::from(streams.check_writes().is_err()));
    into.gauge(&SCARCE, &[]).set(u64::from(streams.is_scarce()));
    into.gauge(&MISSING, &[]).set(streams.missing_bytes());
    into.gauge(&RESERVE, &[]).set(streams.kept_back_bytes());
    into.gauge(&GIVEN_UP, &[]).set(u64::from(streams.has_given_up_reserve()));
    into.gauge(&BELOW_FLOOR, &[]).set(u64::from(streams.is_below_floor()));
    into.gauge(&EXTENT_SIZE, &[]).set(streams.extent_size_bytes_max());
    into.gauge(&STREAMS, &[]).set(streams.count());
    let scrub = streams.scrub_statistics();
    into.counter(&SCRUB_ROUNDS, &[]).set(scrub.rounds);
    into.counter(&SCRUB_BYTES, &[]).set(scrub.size_bytes);
    into.counter(&SCRUB_DAMAGED, &[]).set(scrub.damaged_extents);
}

fn sample_partitions(into: &Metrics, statistics: &PartitionStatistics) {
    let PartitionStatistics { memory, cache, longest_pause, .. } = statistics;
    into.gauge(&DAMAGED, &[]).set(statistics.damaged_ranges);
    into.counter(&FLUSHES, &[]).set(statistics.flushes);
    into.counter(&COMPACTIONS, &[]).set(statistics.compactions);
    into.counter(&COMPACTED, &[]).set(statistics.compacted_bytes);
    let other_splits =
        statistics.range_splits.saturating_sub(statistics.size_splits + statistics.heat_splits);
    into.counter(&SPLITS, &["size"]).set(statistics.size_splits);
    into.counter(&SPLITS, &["heat"]).set(statistics.heat_splits);
    into.counter(&SPLITS, &["other"]).set(other_splits);
    into.counter(&MERGES, &["cold"]).set(statistics.cold_merges);
    into.counter(&MERGES, &["other"]).set(statistics.range_merges.saturating_sub(statistics.cold_merges));
    let pause_for = longest_pause.finished_for + longest_pause.map_changed_for + longest_pause.started_for;
    into.gauge(&PAUSE, &[]).set_duration(pause_for);
    into.gauge(&COPIED, &[]).set(longest_pause.copied_bytes);
    into.gauge(&TABLES, &[]).set(memory.table_size_bytes);
    into.counter(&WAITS, &[]).set(memory.waits);
    into.counter(&WAITED, &[]).set_duration(memory.waited_for);
    into.counter(&SLOWED, &[]).set(memory.slowed);
    into.counter(&SLOWED_FOR, &[]).set_duration(memory.slowed_for);
    into.counter(&CACHE_HITS, &[]).set(cache.hits);
    into.counter(&CACHE_MISSES, &[]).set(cache.misses);
    into.counter(&ROW_BLOCKS, &[]).set(cache.row_blocks_read);
    into.gauge(&CACHE_BYTES, &[]).set(cache.size_bytes);
}

fn sample_ranges(into: &Metrics, layers: &Layers) {
    let partitions = &layers.partitions;
    into.gauge(&BUDGET, &[]).set(partitions.memory_budget_size_bytes());
    into.gauge(&DELETED_CONTAINERS, &[]).set(partitions.retired_container_count() as u64);
    for (table, name) in TABLES_BY_NAME {
        let ranges = partitions.range_statistics(table);
        let checkpoints = || ranges.iter().map(|range| range.checkpoints as u64);
        into.gauge(&RANGES, &[name]).set(ranges.len() as u64);
        into.gauge(&CHECKPOINTS, &[name]).set(checkpoints().sum());
        into.gauge(&FILTERS, &[name]).set(ranges.iter().map(|range| range.filters as u64).sum());
        into.gauge(&CHECKPOINTS_MAX, &[name]).set(checkpoints().max().unwrap_or(0));
        let held_for = ranges.iter().map(|range| range.serial_section_held_for).sum();
        into.gauge(&SERIAL, &[name]).set_duration(held_for);
    }
}
