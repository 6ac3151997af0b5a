//! A small disk that fills up and is emptied again, in seeded histories: deletions are never refused, within
//! a minute half of what was deleted is writable, and nothing else is lost. A model of the rows says what
//! must be there, one of the space how much must be free.

mod rows;

use partition::{PartitionError, PartitionSettings, Partitions, PlantedFault};
use rows::{Everything, TABLE, key, put, read_table, value};
use sim::{Faults, World};
use std::time::Duration;
use stream::{StreamSettings, Streams};

const DISK_SIZE_BYTES: u64 = 6 << 20;
const EXTENT_SIZE_BYTES: u64 = 96 << 10;
const SEGMENT_SIZE_BYTES: u64 = 96 << 10;
const TABLE_SIZE_BYTES: u64 = 48 << 10;
const ROW_SIZE_BYTES: usize = 700;

/// A server's proportions, by the arithmetic of `StreamSettings::for_disk`.
fn settings(reserve_size_bytes: u64) -> (StreamSettings, PartitionSettings) {
    let streams = StreamSettings {
        extent_size_bytes_max: EXTENT_SIZE_BYTES,
        journal_segment_size_bytes: SEGMENT_SIZE_BYTES,
        reserve_size_bytes,
        flush_size_bytes_max: TABLE_SIZE_BYTES,
        manager_log_growth_bytes: 8 << 10,
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
fn live(seed: u64, reserve_size_bytes: u64, planted_fault: Option<PlantedFault>) -> Ended {
    let world = World::new(seed);
    world.disk.set_faults(Faults { capacity_bytes: DISK_SIZE_BYTES, ..Faults::default() });
    let (stream_settings, settings) = settings(reserve_size_bytes);
    let settings = PartitionSettings { planted_fault, ..settings };
    let run = world.run(|env, _| async move {
        let mut streams = Streams::open(&env, stream_settings.clone()).await.unwrap();
        let mut partitions = Partitions::open(&env, streams.clone(), settings.clone()).await.unwrap();
        let mut all = Everything::new();
        env.clock.sleep(Duration::from_secs(10)).await;
        let mut there = Vec::new();
        for at in 0..20_000u64 {
            let row = key(1, &format!("{:04x}", at.wrapping_mul(0x9e37) & 0xffff), &format!("{at:06}"));
            match put(&partitions, &mut all, row.clone(), Some(value(at, ROW_SIZE_BYTES))).await {
                Ok(()) => there.push(row),
                Err(PartitionError::DiskFull) if streams.is_scarce() => break,
                Err(PartitionError::DiskFull) => env.clock.sleep(Duration::from_millis(100)).await,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        assert!(there.len() > 1000, "seed {seed}: {} rows fill the disk", there.len());
        let mut gone: Vec<_> = there.iter().skip(seed as usize % 2).step_by(2).cloned().collect();
        for at in (1..gone.len()).rev() {
            gone.swap(at, (env.random.next_u64() % (at as u64 + 1)) as usize);
        }
        let (mut refused_count, half) = (0, gone.len() / 2);
        for (at, row) in gone.iter().enumerate() {
            while put(&partitions, &mut all, row.clone(), None).await.is_err() {
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
        let deleted_bytes = (gone.len() * ROW_SIZE_BYTES) as u64;
        let mut writable_bytes = 0;
        let deleted_at = env.clock.monotonic();
        let mut at = 1_000_000u64;
        while env.clock.monotonic() < deleted_at + Duration::from_secs(60)
            && writable_bytes < deleted_bytes / 2
        {
            let row = key(1, &format!("{:04x}", at & 0xffff), &format!("{at:06}"));
            match put(&partitions, &mut all, row, Some(value(at, ROW_SIZE_BYTES))).await {
                Ok(()) => writable_bytes += ROW_SIZE_BYTES as u64,
                Err(PartitionError::DiskFull) => env.clock.sleep(Duration::from_millis(100)).await,
                Err(other) => panic!("seed {seed}: {other}"),
            }
            at += 1;
        }
        assert_eq!(read_table(&partitions, TABLE).await.unwrap(), all, "seed {seed}");
        Ended { refused_count, deleted_bytes, writable_bytes }
    });
    run.unwrap()
}

fn comes_back(ended: &Ended) -> bool {
    ended.refused_count == 0 && ended.writable_bytes >= ended.deleted_bytes / 2
}

#[test]
fn half_of_what_is_deleted_on_a_small_disk_is_writable_in_a_minute() {
    for seed in 0..6 {
        let ended = live(seed, RESERVE_SIZE_BYTES, None);
        assert!(comes_back(&ended), "seed {seed}: {ended:?}");
    }
}

#[test]
fn a_reserve_that_is_too_small_is_caught() {
    let caught = (0..4).filter(|seed| !comes_back(&live(*seed, RESERVE_SIZE_BYTES / 8, None))).count();
    assert!(caught > 0, "the disk came back each time");
}

/// A collection that takes space and gives none back must be noticed.
#[test]
fn a_collection_that_needs_more_than_it_frees_is_caught() {
    let fault = Some(PlantedFault::FruitlessReclaim);
    let caught = (0..4).filter(|seed| !comes_back(&live(*seed, RESERVE_SIZE_BYTES, fault))).count();
    assert!(caught > 0, "the disk came back each time");
}
