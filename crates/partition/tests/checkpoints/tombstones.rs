//! Tombstones: what they delete goes, and so do they; on the simulated disk, in virtual time.

use crate::rows::{TABLE, Write, key, open, read_everything, value};
use base::Environment;
use partition::{KeyRange, PartitionSettings, Partitions, PlantedFault, RowRef, Scan, ScanEnd, Visit};
use sim::World;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

/// As many as make a scan slow.
const MANY: u64 = 20_000;
const AT_ONCE: usize = 500;

fn settings() -> PartitionSettings {
    PartitionSettings {
        memory_table_size_bytes: 4 << 20,
        memory_tables_size_bytes_max: 32 << 20,
        cache_size_bytes_max: 16 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

/// On extents that are large enough for that.
async fn open_large(env: &Environment) -> (Arc<Streams>, Partitions) {
    let stream_settings = StreamSettings {
        extent_size_bytes_max: 1 << 20,
        journal_segment_size_bytes: 4 << 20,
        ..StreamSettings::tiny()
    };
    let streams = Streams::open(env, stream_settings).await.unwrap();
    let partitions = Partitions::open(env, streams.clone(), settings()).await.unwrap();
    (streams, partitions)
}

/// Puts or deletes rows.
async fn write(partitions: &Partitions, rows: Range<u64>, is_there: bool) {
    let rows: Vec<u64> = rows.collect();
    for rows in rows.chunks(AT_ONCE) {
        let change = |row: &u64| (key(1, "p", &format!("{row:08}")), is_there.then(|| value(*row, 100)));
        partitions.execute(Write { changes: rows.iter().map(change).collect() }).await.unwrap();
    }
}

/// The first row, and how many deleted ones are before it.
#[derive(Default)]
struct First {
    found: Option<Vec<u8>>,
    passed: u64,
}

impl Scan for First {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.found.is_some() {
            return Visit::StopBefore;
        }
        self.found = Some(row.key.to_vec());
        Visit::Continue
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.passed += unseen;
        Visit::Continue
    }
}

async fn first(partitions: &Partitions) -> First {
    let (scan, end) = partitions.scan(TABLE, KeyRange::all(), First::default()).await.unwrap();
    assert!(scan.found.is_some() || end == ScanEnd::Complete);
    scan
}

fn stored_bytes(streams: &Streams) -> u64 {
    let names = streams.list(&format!("{}/", TABLE.name()));
    let checkpoints = names.iter().filter(|name| name.as_str().contains("/row_data/"));
    let sizes = checkpoints.flat_map(|name| streams.stat(name).unwrap().extents);
    sizes.map(|(_, size_bytes)| size_bytes).sum()
}

async fn sleep(env: &Environment, seconds: u64) {
    env.clock.sleep(Duration::from_secs(seconds)).await;
}

/// The first rows of a partition were deleted: each look for the first one took as long as ever, and their
/// space stayed.
#[test]
fn half_a_minute_after_rows_were_deleted_no_tombstone_and_no_dead_byte_is_left() {
    let finished = World::new(1).run(|env, _| async move {
        let (streams, partitions) = open_large(&env).await;
        write(&partitions, 0..6 * MANY, true).await;
        sleep(&env, 30).await;
        let full_bytes = stored_bytes(&streams);
        write(&partitions, 0..MANY, false).await;
        sleep(&env, 30).await;
        let (found, left_bytes) = (first(&partitions).await, stored_bytes(&streams));
        // So few are in nobody's way.
        assert!(found.passed < 4096, "{} tombstones", found.passed);
        // The rows that were in memory then are part of the rest now.
        assert!(left_bytes < full_bytes * 11 / 12, "{left_bytes} of {full_bytes}");
        // All of them: nothing stays but the rest of what was in memory.
        write(&partitions, MANY..6 * MANY, false).await;
        // Tombstones in memory are flushed once a minute when idle.
        sleep(&env, 90).await;
        let (found, left_bytes) = (first(&partitions).await, stored_bytes(&streams));
        assert_eq!(found.found, None);
        assert!(found.passed < 4096, "{} tombstones", found.passed);
        assert!(left_bytes < full_bytes / 8, "{left_bytes} of {full_bytes}");
        let all = read_everything(&partitions).await.unwrap();
        partitions.close().await;
        let (_, partitions) = open_large(&env).await;
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Rows in at the end and out at the start: what a look for the first one passed over grew for ever. It is
/// never idle here.
#[test]
fn in_a_steady_flow_scans_pass_over_a_bounded_number_of_tombstones() {
    let finished = World::new(2).run(|env, _| async move {
        let (_, partitions) = open_large(&env).await;
        let (step, backlog) = (1000, 5000);
        write(&partitions, 0..backlog, true).await;
        let mut most_passed = 0;
        for round in 0..150 {
            write(&partitions, backlog + round * step..backlog + (round + 1) * step, true).await;
            write(&partitions, round * step..(round + 1) * step, false).await;
            let found = first(&partitions).await;
            let expected = key(1, "p", &format!("{:08}", (round + 1) * step));
            assert_eq!(found.found.as_deref(), Some(&expected.as_bytes()[..]));
            most_passed = most_passed.max(found.passed);
            env.clock.sleep(Duration::from_millis(50)).await;
        }
        assert!(most_passed <= 3 * 8192, "{most_passed} tombstones before the first row");
        assert!(partitions.statistics().compactions > 0);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// The tests above notice it where no compaction is due because of tombstones.
#[test]
fn tombstones_that_stay_are_noticed() {
    let finished = World::new(3).run(|env, _| async move {
        let planted_fault = Some(PlantedFault::StuckTombstones);
        let (_, partitions) = open(&env, PartitionSettings { planted_fault, ..settings() }).await.unwrap();
        write(&partitions, 0..6 * MANY, true).await;
        write(&partitions, 0..MANY, false).await;
        sleep(&env, 60).await;
        assert!(first(&partitions).await.passed > MANY / 2);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// A tombstone that is dropped while an older checkpoint has its row brings the row back: the same writes as
/// everywhere here show it.
#[test]
fn tombstones_that_go_too_early_are_noticed() {
    for planted_fault in [None, Some(PlantedFault::DroppedTombstones)] {
        let finished = World::new(4).run(|env, _| async move {
            let settings = PartitionSettings { planted_fault, ..PartitionSettings::tiny() };
            let (_, partitions) = open(&env, settings).await.unwrap();
            write(&partitions, 0..1000, true).await;
            write(&partitions, 0..999, false).await;
            // Memory tables of the rows and of the tombstones become checkpoints.
            write(&partitions, 2000..3000, true).await;
            sleep(&env, 5).await;
            let found = first(&partitions).await.found;
            partitions.close().await;
            found
        });
        let is_right = finished.flatten() == Some(key(1, "p", "00000999").as_bytes().to_vec());
        assert_eq!(is_right, planted_fault.is_none(), "{planted_fault:?}");
    }
}
