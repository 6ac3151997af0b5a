//! A range's commit log ends an extent with each memory table, so that the flush of the table lets go of all
//! of its log, which then reaches no disk but by the journal.

use crate::rows::{self, Everything, key, put, read_everything, value};
use partition::{PartitionSettings, Partitions};
use sim::{SimDisk, World};
use std::time::Duration;
use stream::{StreamName, StreamSettings, Streams};

const MIB: u64 = 1 << 20;
const TABLE_SIZE_BYTES: u64 = 6 * MIB;
const VALUE_SIZE_BYTES: u64 = 100 << 10;

fn stream_settings() -> StreamSettings {
    StreamSettings {
        extent_size_bytes_max: 256 * MIB,
        journal_segment_size_bytes: 16 * MIB,
        journaled_append_size_bytes_max: MIB,
        ..StreamSettings::tiny()
    }
}

fn settings() -> PartitionSettings {
    PartitionSettings {
        memory_table_size_bytes: TABLE_SIZE_BYTES,
        memory_tables_size_bytes_max: 8 * TABLE_SIZE_BYTES,
        cache_size_bytes_max: 8 * MIB,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::default()
    }
}

/// The log's extents: bytes each has, and bytes of its file.
fn log_extents(streams: &Streams, disk: &SimDisk) -> Vec<(u64, u64)> {
    let files = disk.files();
    let extents = streams.stat(&StreamName::new("entity/1/log")).unwrap().extents;
    let sizes = extents.into_iter().map(|(extent, length)| {
        let path = format!("extents/{extent}");
        (length, files.iter().find(|(file, _)| *file == path).map_or(0, |(_, size)| *size))
    });
    sizes.collect()
}

#[test]
fn the_log_of_a_flushed_memory_table_was_only_in_the_journal() {
    let world = World::new(1);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let streams = Streams::open(&env, stream_settings()).await.unwrap();
        let partitions = Partitions::open(&env, streams.clone(), settings()).await.unwrap();
        let mut expected = Everything::new();
        for at in 0..600 {
            let value = value(at, VALUE_SIZE_BYTES as usize);
            put(&partitions, &mut expected, key(1, "p", &format!("{at:04}")), Some(value)).await.unwrap();
            // Flushes keep up.
            env.clock.sleep(Duration::from_millis(5)).await;
            for (length, file_size) in log_extents(&streams, &disk) {
                assert!(length <= TABLE_SIZE_BYTES + 2 * VALUE_SIZE_BYTES, "an extent of {length} bytes");
                assert_eq!(file_size, 0, "row {at}");
            }
        }
        let checkpoints = partitions.range_statistics(rows::TABLE)[0].checkpoints;
        assert!(checkpoints > 3, "{checkpoints} checkpoints");
        // What is not flushed gets to its extents when nothing follows.
        env.clock.sleep(Duration::from_secs(3)).await;
        let rest = log_extents(&streams, &disk);
        assert!(rest.iter().all(|(length, file_size)| length == file_size), "{rest:?}");
        assert_eq!(read_everything(&partitions).await.unwrap(), expected);
        drop((partitions, streams));
        expected
    });
    let expected = finished.unwrap();
    let read = world.run(|env, _| async move {
        let streams = Streams::open(&env, stream_settings()).await.unwrap();
        let partitions = Partitions::open(&env, streams.clone(), settings()).await.unwrap();
        read_everything(&partitions).await.unwrap()
    });
    assert_eq!(read, Some(expected), "after a start without a stop");
}

#[test]
fn small_memory_tables_share_an_extent_of_the_log() {
    let world = World::new(2);
    let disk = world.disk.clone();
    let lives = |env, _| async move {
        let streams = Streams::open(&env, stream_settings()).await.unwrap();
        let settings = PartitionSettings { memory_table_size_bytes: MIB / 2, ..settings() };
        let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
        let mut expected = Everything::new();
        let mut longest = 0;
        for at in 0..200 {
            let value = value(at, VALUE_SIZE_BYTES as usize);
            put(&partitions, &mut expected, key(1, "p", &format!("{at:04}")), Some(value)).await.unwrap();
            let lengths = log_extents(&streams, &disk).into_iter().map(|(length, _)| length);
            longest = lengths.max().max(Some(longest)).unwrap_or_default();
        }
        assert!((4 * MIB..5 * MIB).contains(&longest), "{longest} bytes");
    };
    world.run(lives).unwrap();
}
