//! A small disk that fills up and is emptied again, in seeded histories: deletions are never refused, within
//! a minute half of what was deleted is writable, and nothing else is lost. A model of the rows says what
//! must be there, one of the space how much must be free.

use crate::rows::{Everything, key, put, put_blob_row, read_table, value, value_with_overflow};
use partition::{ObjectTable, PartitionError, PartitionSettings, Partitions, PlantedFault, RowKey};
use sim::{Faults, World};
use std::time::Duration;
use stream::{StreamSettings, Streams};

const DISK_SIZE_BYTES: u64 = 6 << 20;
const EXTENT_SIZE_BYTES: u64 = 96 << 10;
const SEGMENT_SIZE_BYTES: u64 = 96 << 10;
const TABLE_SIZE_BYTES: u64 = 48 << 10;

/// What the disk is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Rows of 700 bytes.
    Plain,
    /// Rows with an overflow of 3,000 bytes, whose keys begin alike for longer than a row directory tells
    /// them apart: walks begin a few rows before the one they want.
    Overflowing,
}

impl Kind {
    fn row_size_bytes(self) -> usize {
        match self {
            Kind::Plain => 700,
            Kind::Overflowing => 3000,
        }
    }

    fn key(self, group: u64, at: u64) -> RowKey {
        let group = format!("{:04x}", group & 0xffff);
        match self {
            Kind::Plain => key(1, &group, &format!("{at:06}")),
            Kind::Overflowing if at == 0 => key(1, "a", ""),
            Kind::Overflowing => key(1, &format!("begins-alike-{group}-{at:06}"), ""),
        }
    }

    /// Puts the row with this key and a value made from `tag`; without a tag deletes it.
    async fn put(
        self,
        partitions: &Partitions,
        all: &mut Everything,
        key: RowKey,
        tag: Option<u64>,
    ) -> Result<(), PartitionError> {
        let size_bytes = self.row_size_bytes();
        match self {
            Kind::Plain => put(partitions, all, key, tag.map(|tag| value(tag, size_bytes))).await,
            Kind::Overflowing => {
                // Even ones do not compress.
                let value = tag.map(|tag| value_with_overflow(2 * tag, 50, size_bytes));
                put_blob_row(partitions, all, key, value).await
            }
        }
    }

    fn table(self) -> ObjectTable {
        match self {
            Kind::Plain => ObjectTable::Entity,
            Kind::Overflowing => ObjectTable::Blob,
        }
    }
}

/// A server's proportions, by the arithmetic of `StreamSettings::for_disk`.
fn settings(reserve_size_bytes: u64, manager_log_growth_bytes: u64) -> (StreamSettings, PartitionSettings) {
    let streams = StreamSettings {
        extent_size_bytes_max: EXTENT_SIZE_BYTES,
        journal_segment_size_bytes: SEGMENT_SIZE_BYTES,
        reserve_size_bytes,
        flush_size_bytes_max: TABLE_SIZE_BYTES,
        manager_log_growth_bytes,
        ..StreamSettings::tiny()
    };
    let partitions = PartitionSettings {
        memory_table_size_bytes: TABLE_SIZE_BYTES,
        memory_tables_size_bytes_max: 8 * TABLE_SIZE_BYTES,
        cache_size_bytes_max: 1 << 20,
        range_size_bytes_max: 64 << 20,
        ..PartitionSettings::tiny()
    };
    (streams, partitions)
}

const RESERVE_SIZE_BYTES: u64 =
    (2 * EXTENT_SIZE_BYTES + SEGMENT_SIZE_BYTES / 4 * 3 + TABLE_SIZE_BYTES + (96 << 10)) / 7 * 8;

/// What a history ends with.
#[derive(Debug)]
struct Ended {
    refused_count: u64,
    deleted_bytes: u64,
    writable_bytes: u64,
}

/// Fills the disk, deletes every second row in random order, is stopped in between, and writes.
fn live(kind: Kind, seed: u64, reserve_size_bytes: u64, planted_fault: Option<PlantedFault>) -> Ended {
    let world = World::new(seed);
    world.disk.set_faults(Faults { capacity_bytes: DISK_SIZE_BYTES, ..Faults::default() });
    // With the larger steps the log ate up what deletions freed.
    let manager_log_growth_bytes = if seed.is_multiple_of(2) { 8 << 10 } else { 12 << 10 };
    let (stream_settings, settings) = settings(reserve_size_bytes, manager_log_growth_bytes);
    let settings = PartitionSettings { planted_fault, ..settings };
    let run = world.run(|env, _| async move {
        let mut streams = Streams::open(&env, stream_settings.clone()).await.unwrap();
        let mut partitions = Partitions::open(&env, streams.clone(), settings.clone()).await.unwrap();
        let mut all = Everything::new();
        env.clock.sleep(Duration::from_secs(10)).await;
        let mut there = Vec::new();
        for at in 0..20_000u64 {
            let row = kind.key(at.wrapping_mul(0x9e37), at);
            match kind.put(&partitions, &mut all, row.clone(), Some(at)).await {
                Ok(()) => there.push(row),
                Err(PartitionError::DiskFull) if streams.is_scarce() => break,
                Err(PartitionError::DiskFull) => env.clock.sleep(Duration::from_millis(100)).await,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        let filled_bytes = there.len() * kind.row_size_bytes();
        assert!(filled_bytes > 700_000, "seed {seed}: {} rows fill the disk", there.len());
        let mut gone: Vec<_> = there.iter().skip(seed as usize % 2).step_by(2).cloned().collect();
        for at in (1..gone.len()).rev() {
            gone.swap(at, (env.random.next_u64() % (at as u64 + 1)) as usize);
        }
        let (mut refused_count, half) = (0, gone.len() / 2);
        for (at, row) in gone.iter().enumerate() {
            while kind.put(&partitions, &mut all, row.clone(), None).await.is_err() {
                refused_count += 1;
                if refused_count > 20 {
                    return Ended { refused_count, deleted_bytes: 1, writable_bytes: 0 };
                }
            }
            if at == half && !seed.is_multiple_of(3) {
                partitions.close().await;
                streams.close().await;
                drop(partitions);
                streams = Streams::open(&env, stream_settings.clone()).await.unwrap();
                partitions = Partitions::open(&env, streams.clone(), settings.clone()).await.unwrap();
            }
        }
        let deleted_bytes = (gone.len() * kind.row_size_bytes()) as u64;
        let mut writable_bytes = 0;
        let deleted_at = env.clock.monotonic();
        let mut at = 1_000_000u64;
        while env.clock.monotonic() < deleted_at + Duration::from_secs(60)
            && writable_bytes < deleted_bytes / 2
        {
            match kind.put(&partitions, &mut all, kind.key(at, at), Some(at)).await {
                Ok(()) => writable_bytes += kind.row_size_bytes() as u64,
                Err(PartitionError::DiskFull) => env.clock.sleep(Duration::from_millis(100)).await,
                Err(other) => panic!("seed {seed}: {other}"),
            }
            at += 1;
        }
        assert_eq!(read_table(&partitions, kind.table()).await.unwrap(), all, "seed {seed}");
        Ended { refused_count, deleted_bytes, writable_bytes }
    });
    run.unwrap()
}

/// One history takes as long as hundreds of others do.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..(number("LARIMAR_SIM_SEEDS").unwrap_or(0) / 40).max(6),
    }
}

fn comes_back(ended: &Ended) -> bool {
    ended.refused_count == 0 && ended.writable_bytes >= ended.deleted_bytes / 2
}

#[test]
fn half_of_what_is_deleted_on_a_small_disk_is_writable_in_a_minute() {
    for seed in seeds() {
        let ended = live(Kind::Plain, seed, RESERVE_SIZE_BYTES, None);
        assert!(comes_back(&ended), "seed {seed}: {ended:?}");
    }
}

/// Parts that were taken off a checkpoint were compacted together with what was left of it, to what it had
/// been, and the first part was taken off again: without end, and no time passed.
#[test]
fn what_is_begun_is_ended_before_its_parts_are_compacted() {
    let ended = live(Kind::Plain, 32, RESERVE_SIZE_BYTES, None);
    assert!(comes_back(&ended), "{ended:?}");
}

/// A checkpoint whose live half is larger than the reserve, and whose overflows were left by a compaction in
/// extents that hold keys of its whole range: a part of it in key order frees no extent, and the reserve is
/// used up before all parts are written.
#[test]
fn half_of_what_is_deleted_is_writable_where_overflows_are_scattered() {
    for seed in seeds() {
        let ended = live(Kind::Overflowing, seed, RESERVE_SIZE_BYTES, None);
        assert!(comes_back(&ended), "seed {seed}: {ended:?}");
    }
}

#[test]
fn a_reserve_that_is_too_small_is_caught() {
    let caught =
        (0..4).filter(|seed| !comes_back(&live(Kind::Plain, *seed, RESERVE_SIZE_BYTES / 8, None))).count();
    assert!(caught > 0, "the disk came back each time");
}

/// A collection that takes space and gives none back must be noticed. Of rows without overflows the whole
/// checkpoints that go are enough. With five eighths of the reserve a disk comes back all the same; with all
/// of it, it hides the fault.
#[test]
fn a_collection_that_needs_more_than_it_frees_is_caught() {
    let fault = Some(PlantedFault::FruitlessReclaim);
    let reserve_size_bytes = RESERVE_SIZE_BYTES / 8 * 5;
    let comes_back = |seed: u64, fault| comes_back(&live(Kind::Overflowing, seed, reserve_size_bytes, fault));
    let found = (0..12).find(|seed| !comes_back(*seed, fault));
    let found = found.expect("the disk came back each time");
    assert!(comes_back(found, None), "seed {found}: without the fault it does not come back either");
}
