//! Look-ups in ranges with many checkpoints, most of which share filters in memory with their neighbours; and
//! checkpoints whose row blocks are made while others are written.

use crate::rows::{Everything, TABLE, Write, key, open, put, read_everything, value};
use partition::{PartitionSettings, Partitions};
use sim::{Faults, World};
use std::time::Duration;

const CHECKPOINTS_MIN: usize = 40;

fn settings(compaction_count_min: usize) -> PartitionSettings {
    PartitionSettings {
        compaction_count_min,
        cache_size_bytes_max: 4 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

/// Row `at` of so many, which lie across all checkpoints.
fn name(at: u64) -> String {
    format!("{:03}", at * 617 % 1000)
}

/// Puts rows 0 to 999, each a second time with another value or deleted, if it is one of some.
async fn fill(partitions: &Partitions) {
    let write = async |at, value| {
        let changes = vec![(key(1, "p", &name(at)), value)];
        partitions.execute(Write { changes }).await.unwrap();
    };
    for at in 0..1000 {
        write(at, Some(value(at, 1000))).await;
        let old = at / 2;
        match at % 8 {
            1 => write(old, Some(value(old + 10_000, 500))).await,
            5 => write(old, None).await,
            _ => {}
        }
    }
}

/// What [`fill`] leaves of row `at`.
fn expected(at: u64) -> Option<bytes::Bytes> {
    // The later ones replace: row `old` was changed when rows 2 * old and 2 * old + 1 were put.
    match (at < 500, (2 * at + 1) % 8) {
        (true, 1) => Some(value(at + 10_000, 500)),
        (true, 5) => None,
        _ => Some(value(at, 1000)),
    }
}

async fn check(partitions: &Partitions) {
    for at in 0..1000 {
        let found = partitions.get(TABLE, &key(1, "p", &name(at))).await.unwrap();
        assert_eq!(found.map(|row| row.value), expected(at), "row {at}, {}", name(at));
    }
}

#[test]
fn every_row_is_found_in_its_newest_state_and_missing_ones_cost_no_read() {
    let finished = World::new(1).run(|env, _| async move {
        let (_, partitions) = open(&env, settings(1000)).await.unwrap();
        fill(&partitions).await;
        let checkpoints = partitions.range_statistics(TABLE)[0].checkpoints;
        assert!(checkpoints >= CHECKPOINTS_MIN, "{checkpoints} checkpoints");
        check(&partitions).await;
        let read = || partitions.statistics().cache.row_blocks_read;
        let before = read();
        for at in 0..1000 {
            let missing = key(1, "p", &format!("{}x", name(at)));
            assert_eq!(partitions.get(TABLE, &missing).await.unwrap(), None);
        }
        let read = read() - before;
        assert!(read <= 10, "{read} row blocks read for 1000 missing keys");
        let all = read_everything(&partitions).await.unwrap();
        assert_eq!(all.len(), (0..1000).filter(|at| expected(*at).is_some()).count());
        partitions.close().await;
        // Nothing of what checkpoints share outlives the process.
        let (_, partitions) = open(&env, settings(1000)).await.unwrap();
        check(&partitions).await;
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Look-ups in the halves of a range with many checkpoints asked each of these alone, and cost twice as much
/// from then on.
#[test]
fn what_checkpoints_share_goes_on_with_those_who_take_over() {
    let finished = World::new(2).run(|env, _| async move {
        let (_, partitions) = open(&env, settings(1000)).await.unwrap();
        fill(&partitions).await;
        let mut all = read_everything(&partitions).await.unwrap();
        for at in 0..1000 {
            put(&partitions, &mut all, key(1, "o", &name(at)), Some(value(at, 1000))).await.unwrap();
        }
        // Those of the halves, too, if they have many.
        let check = async |range_count| {
            assert_eq!(read_everything(&partitions).await.unwrap(), all);
            let ranges = partitions.range_statistics(TABLE);
            let many: Vec<_> = ranges.iter().filter(|range| range.checkpoints >= CHECKPOINTS_MIN).collect();
            assert_eq!(many.len(), range_count, "{ranges:?}");
            assert!(many.iter().all(|range| range.filters * 4 < range.checkpoints), "{ranges:?}");
        };
        check(1).await;
        assert!(partitions.split(TABLE, &key(1, "p", "")).await.unwrap());
        check(2).await;
        assert!(partitions.merge(TABLE, &key(1, "o", "")).await.unwrap());
        check(1).await;
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Merges take checkpoints out of the middle of a group, and their results found groups of their own.
#[test]
fn rows_stay_where_they_are_while_neighbours_are_merged() {
    for compaction_count_min in [2, 3, 5, 12] {
        let finished = World::new(compaction_count_min as u64).run(|env, _| async move {
            let (_, partitions) = open(&env, settings(compaction_count_min)).await.unwrap();
            fill(&partitions).await;
            check(&partitions).await;
            partitions.split(TABLE, &key(1, "p", "")).await.unwrap();
            check(&partitions).await;
            fill(&partitions).await;
            check(&partitions).await;
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// A table of several batches of row blocks, on a disk that is full in the middle of it.
#[test]
fn a_checkpoint_of_many_batches_has_all_rows_or_is_discarded_whole() {
    const ROW_SIZE: usize = 256 << 10;
    let settings = || PartitionSettings {
        memory_table_size_bytes: 16 << 20,
        memory_tables_size_bytes_max: 64 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    };
    for seed in 0..5 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        disk.set_faults(Faults { slow_one_in: 3, ..Faults::default() });
        let finished = world.run(|env, _| async move {
            let (streams, partitions) = open(&env, settings()).await.unwrap();
            let mut all = Everything::new();
            let mut at = 0;
            while partitions.statistics().memory.table_size_bytes < 15 << 20 {
                put(&partitions, &mut all, key(1, "p", &format!("{at:03}")), Some(value(at, ROW_SIZE)))
                    .await
                    .unwrap();
                at += 1;
            }
            // Room for the last rows, and for the first batches.
            disk.set_free_bytes(Some((4 + 2 * seed) << 20));
            for _ in 0..5 {
                put(&partitions, &mut all, key(1, "p", &format!("{at:03}")), Some(value(at, ROW_SIZE)))
                    .await
                    .unwrap();
                at += 1;
            }
            env.clock.sleep(Duration::from_secs(3)).await;
            assert_eq!(partitions.statistics().flushes, 0, "seed {seed}");
            assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}");
            disk.set_free_bytes(None);
            env.clock.sleep(Duration::from_secs(60)).await;
            assert_eq!(partitions.statistics().flushes, 1, "seed {seed}");
            assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}");
            let rows = partitions.range_statistics(TABLE);
            assert_eq!(rows.iter().map(|range| range.checkpoints).sum::<usize>(), 1, "seed {seed}");
            let streams =
                streams.list("").into_iter().filter(|stream| stream.to_string().contains("row_data"));
            assert_eq!(streams.count(), 1, "seed {seed}: nothing is left of those that were cut off");
            partitions.close().await;
            let (_, partitions) = open(&env, settings()).await.unwrap();
            assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}");
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
