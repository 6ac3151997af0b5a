//! Bounds under pressure: memory follows its budget whatever the number of ranges, and waiting writers always
//! learn how it ends.

use crate::rows::{ACCOUNT, TABLE, Write, key, open, read_everything, value};
use futures_util::future::join_all;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, PartitionSettings, Read, RowVersion, Rows,
};
use sim::{Faults, World};
use std::time::Duration;

const RANGES: u64 = 6;

/// The log refused the group that held such an operation, as too large for a block. That was taken for a
/// failed disk: the range, with everybody's rows, took no more writes until the next start, and the same
/// request closed it again.
#[test]
fn an_operation_too_large_for_the_log_is_refused_alone() {
    World::new(3).run(|env, _| async move {
        let (_, partitions) = open(&env, PartitionSettings::default()).await.unwrap();
        let execute = |name: &str, size: usize| {
            partitions.execute(Write { changes: vec![(key(1, "p", name), Some(vec![7; size].into()))] })
        };
        let (too_large, beside) =
            futures_util::future::join(execute("huge", 65 << 20), execute("a", 10)).await;
        assert!(matches!(too_large, Err(PartitionError::TooLarge { .. })), "{too_large:?}");
        beside.unwrap();
        execute("large", 63 << 20).await.unwrap();
        execute("b", 10).await.unwrap();
        partitions.close().await;
        let (_, partitions) = open(&env, PartitionSettings::default()).await.unwrap();
        let rows = read_everything(&partitions).await.unwrap();
        assert_eq!(rows.len(), 3);
        partitions.close().await;
    });
}

/// Groups in the log of the rows' range after a thousand writes one by one, and how many tables were flushed.
fn groups_of_a_thousand_writes(log_groups_max: u64) -> (usize, u64) {
    let settings = move || PartitionSettings {
        memory_table_size_bytes: 1 << 20,
        memory_tables_size_bytes_max: 4 << 20,
        range_size_bytes_max: 1 << 30,
        log_groups_max,
        ..PartitionSettings::tiny()
    };
    let counted = World::new(5).run(move |env, _| async move {
        let (streams, partitions) = open(&env, settings()).await.unwrap();
        for at in 0..1000 {
            let changes = vec![(key(1, "p", &format!("{at:04}")), Some(value(at, 10)))];
            partitions.execute(Write { changes }).await.unwrap();
        }
        env.clock.sleep(Duration::from_secs(1)).await;
        let logs = streams.list(&format!("{}/", TABLE.name()));
        let log = logs.iter().find(|stream| stream.as_str().ends_with("/log")).expect("a log");
        let (mut replay, mut groups) = (streams.replay(log, None).unwrap(), 0);
        while replay.next().await.unwrap().is_some() {
            groups += 1;
        }
        drop(replay);
        let flushes = partitions.statistics().flushes;
        partitions.close().await;
        let (_, partitions) = open(&env, settings()).await.unwrap();
        assert_eq!(read_everything(&partitions).await.unwrap().len(), 1000);
        partitions.close().await;
        (groups, flushes)
    });
    counted.expect("the disk works")
}

/// A load from a store far away needs a request for each group of a log, however small it is. Small writes
/// one by one left as many as there were, until the memory tables were full.
#[test]
fn few_groups_are_left_of_many_small_ones_where_they_are_bounded() {
    assert_eq!(groups_of_a_thousand_writes(u64::MAX), (1000, 0));
    // Half of them for tables that take changes, an eighth of it for one: 250 or, as it looks, 256. The
    // extent before, of 211 groups, may go with the next flush only.
    let (groups, flushes) = groups_of_a_thousand_writes(4000);
    assert!(groups <= 256 + 211 && (3..=4).contains(&flushes), "{groups} groups after {flushes} flushes");
}

/// Each range had memory tables of its own once: thirty ranges took thirty times the memory of one.
#[test]
fn memory_tables_of_many_ranges_stay_within_one_budget() {
    // One table of each range would be within its own bound, all of them together are far over the budget.
    let settings = PartitionSettings {
        memory_table_size_bytes: 64 << 10,
        memory_tables_size_bytes_max: 256 << 10,
        ..PartitionSettings::tiny()
    };
    let budget = settings.memory_tables_size_bytes_max;
    let world = World::new(1);
    world.disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
    let (peak, statistics) = world
        .run(|env, _| async move {
            let (_, partitions) = open(&env, settings).await.unwrap();
            let partitions = &partitions;
            for range in 1..RANGES {
                partitions.split(TABLE, &key(1, &format!("p{range}"), "")).await.unwrap();
            }
            assert_eq!(partitions.ranges(TABLE).len() as u64, RANGES);
            let mut peak = 0;
            for round in 0..60 {
                let writes = (0..RANGES * 4).map(|writer| async move {
                    let key = key(1, &format!("p{}", writer % RANGES), &format!("{round} {writer}"));
                    partitions
                        .execute(Write { changes: vec![(key, Some(value(writer, 2000)))] })
                        .await
                        .unwrap();
                });
                join_all(writes).await;
                peak = peak.max(partitions.statistics().memory.table_size_bytes);
            }
            let rows = read_everything(partitions).await.unwrap().len() as u64;
            assert_eq!(rows, 60 * RANGES * 4);
            (peak, partitions.statistics())
        })
        .unwrap();
    println!("peak {peak} of {budget} bytes, {statistics:?}");
    // What was admitted together may go over it.
    assert!(peak <= budget + RANGES * 4 * 2200, "{peak} bytes under a budget of {budget}");
    assert!(peak > budget / 2, "the load must press");
    assert!(
        statistics.memory.waits > 0 && statistics.memory.waited_for > Duration::ZERO,
        "writers must be slowed"
    );
}

/// Writers that waited for a flush, on a range that a failed append had closed, waited for ever: its frozen
/// tables held changes that were never durable, so no flush came.
#[test]
fn writers_that_wait_for_a_flush_learn_that_a_failed_append_has_closed_their_range() {
    let mut refused = 0;
    for seed in 0..60 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let outcomes = world.run(|env, _| async move {
            let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            let partitions = &partitions;
            disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
            let writes = (0..80u64).map(|writer| {
                let write = async move {
                    let key = key(1, &format!("p{}", writer % 3), &writer.to_string());
                    partitions.execute(Write { changes: vec![(key, Some(value(writer, 3000)))] }).await
                };
                let clock = env.clock.clone();
                async move {
                    tokio::select! {
                        outcome = write => outcome,
                        () = clock.sleep(Duration::from_secs(600)) => panic!("seed {seed}: writer {writer} waits for ever"),
                    }
                }
            });
            let fail = async {
                env.clock.sleep(Duration::from_millis(seed)).await;
                disk.set_faults(Faults { slow_one_in: 1, sync_fails_one_in: 1, ..Faults::default() });
            };
            tokio::join!(join_all(writes), fail).0
        });
        for outcome in outcomes.unwrap() {
            match outcome {
                Ok(_) => {}
                Err(PartitionError::Storage(_) | PartitionError::Unavailable(_)) => refused += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
    }
    assert!(refused > 100, "the failures must hit writers: {refused}");
}

/// Closing waited for writers that waited for a flush, and they for one that never came.
#[test]
fn closing_ends_the_wait_of_writers_and_loses_nothing_that_they_were_told() {
    let (mut refused, mut waited) = (0, 0);
    for seed in 0..40 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let told = world.run(|env, _| async move {
            let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
            let writes = (0..80u64).map(|writer| {
                let key = key(1, &format!("p{}", writer % 3), &writer.to_string());
                partitions.execute(Write { changes: vec![(key, Some(value(writer, 3000)))] })
            });
            let close = async {
                env.clock.sleep(Duration::from_millis(5 + seed)).await;
                let waits = partitions.statistics().memory.waits;
                partitions.close().await;
                waits
            };
            let all = async { tokio::join!(join_all(writes), close) };
            let (outcomes, waits) = tokio::select! {
                ended = all => ended,
                () = env.clock.sleep(Duration::from_secs(600)) => panic!("seed {seed}: closing waits for ever"),
            };
            streams.close().await;
            (outcomes, waits)
        });
        let (outcomes, waits) = told.unwrap();
        waited += waits;
        let mut written = 0;
        for outcome in outcomes {
            match outcome {
                Ok(_) => written += 1,
                Err(PartitionError::Unavailable(_)) => refused += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            read_everything(&partitions).await.unwrap().len()
        });
        assert_eq!(found, Some(written), "seed {seed}: what was told and what is there");
    }
    assert!(waited > 100 && refused > 100, "closing must meet writers that wait: {waited}, {refused}");
}

/// Writers that waited for a flush when other ranges took over waited for ever: nobody flushes a range that
/// has left.
#[test]
fn writers_that_wait_for_a_flush_go_to_the_ranges_that_take_over() {
    const SEEDS: u64 = 16;
    const WRITERS: u64 = 24;
    const WRITES: u64 = 240;
    let mut waited = 0;
    for seed in 0..SEEDS {
        let world = World::new(seed);
        world.disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
        let (waits, rows) = world
            .run(|env, _| async move {
                let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
                let partitions = &partitions;
                partitions.split(TABLE, &key(1, "p2", "")).await.unwrap();
                let writes = (0..WRITERS).map(|writer| async move {
                    for at in 0..WRITES / WRITERS {
                        let key = key(1, &format!("p{}", writer % 4), &format!("{writer} {at}"));
                        let write = Write { changes: vec![(key, Some(value(writer, 15_000)))] };
                        partitions.execute(write).await.unwrap();
                    }
                });
                let changes = async {
                    for _ in 0..6 {
                        env.clock.sleep(Duration::from_millis(env.random.next_u64() % 8)).await;
                        let name = format!("p{}", 1 + env.random.next_u64() % 3);
                        if env.random.next_u64().is_multiple_of(3) {
                            partitions.merge(TABLE, &key(1, &name, "")).await.unwrap();
                        } else {
                            partitions.split(TABLE, &key(1, &name, "")).await.unwrap();
                        }
                    }
                };
                tokio::select! {
                    _ = async { tokio::join!(join_all(writes), changes) } => {}
                    () = env.clock.sleep(Duration::from_secs(600)) => panic!("seed {seed}: a writer waits for ever"),
                }
                let rows = read_everything(partitions).await.unwrap().len() as u64;
                (partitions.statistics().memory.waits, rows)
            })
            .unwrap();
        assert_eq!(rows, WRITES, "seed {seed}: every row is there once");
        waited += waits;
    }
    assert!(waited > 100, "hand-overs must meet writers that wait: {waited}");
}

/// Replies with the keys of the first rows of a partition name.
struct First(usize);

impl Operation for First {
    type Reply = Vec<Vec<u8>>;

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Range { range: KeyRange::partition(ACCOUNT, 1, "p"), limit: self.0 }]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Vec<Vec<u8>>> {
        Decision::unchanged(rows.range(0).iter().map(|row| row.key.as_bytes().to_vec()).collect())
    }
}

/// Deleted rows in checkpoints counted as rows that were read, and over some 65,000 of them each operation
/// was refused as too busy, for good: a queue whose consumers had paused could not be read any more.
#[test]
fn a_range_read_goes_over_any_number_of_deleted_rows() {
    const DELETED: u64 = 100_000;
    const TOGETHER: u64 = 1000;
    let settings = PartitionSettings {
        memory_table_size_bytes: 256 << 10,
        memory_tables_size_bytes_max: 1 << 20,
        compaction_count_min: 1000,
        ..PartitionSettings::tiny()
    };
    let found = World::new(1)
        .run(|env, _| async move {
            let (_, partitions) = open(&env, settings).await.unwrap();
            let write = async |changes| partitions.execute(Write { changes }).await.unwrap();
            // A checkpoint behind the deletions, so that they are kept.
            write(vec![(key(1, "p", "z"), Some(value(1, 100)))]).await;
            write(vec![(key(1, "q", "big"), Some(value(2, 1 << 20)))]).await;
            for start in (0..DELETED).step_by(TOGETHER as usize) {
                let deleted = start..start + TOGETHER;
                write(deleted.map(|at| (key(1, "p", &format!("d{at:05}")), None)).collect()).await;
            }
            let in_memory = partitions.statistics().memory.table_size_bytes;
            assert!(in_memory < 3 << 19, "{in_memory} bytes are not in checkpoints");
            partitions.execute(First(1)).await
        })
        .unwrap();
    assert_eq!(found, Ok(vec![key(1, "p", "z").as_bytes().to_vec()]));
}

/// Rows that an operation reads were counted, but not their bytes: a quarter of a million snapshots of a blob
/// took 15 GB of memory.
#[test]
fn what_one_operation_reads_from_checkpoints_is_bounded_in_bytes() {
    const SIZE: usize = 2000;
    const READ_MAX: u64 = 64 << 10;
    let settings = PartitionSettings { operation_read_size_bytes_max: READ_MAX, ..PartitionSettings::tiny() };
    let finished = World::new(1).run(|env, _| async move {
        let (_, partitions) = open(&env, settings).await.unwrap();
        let write = async |changes| partitions.execute(Write { changes }).await.unwrap();
        for at in 0..100 {
            write(vec![(key(1, "p", &format!("{at:03}")), Some(value(at, SIZE)))]).await;
        }
        // Now those are in checkpoints.
        for at in 0..100 {
            write(vec![(key(1, "q", &format!("{at:03}")), Some(value(at, SIZE)))]).await;
        }
        let in_memory = partitions.statistics().memory.table_size_bytes;
        assert!(in_memory < 100 * SIZE as u64, "{in_memory} bytes are not in checkpoints");
        let refused = Err(PartitionError::TooMuchToRead { size_bytes_max: READ_MAX });
        assert_eq!(partitions.execute(First(100)).await, refused);
        assert_eq!(partitions.execute(First(40)).await, refused);
        // What is fetched besides, in case some are deleted meanwhile, is no reason to refuse.
        let few = partitions.execute(First(30)).await.unwrap();
        assert_eq!(few.len(), 30, "all that was asked for");
        // Of what is deleted nothing is read.
        for at in 0..80 {
            write(vec![(key(1, "p", &format!("{at:03}")), None)]).await;
        }
        assert_eq!(partitions.execute(First(40)).await.unwrap().len(), 20);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Rows that a hand-over copies lie in the tables of two ranges, the old one of which nobody flushes. They
/// counted twice for as long as somebody read the old one, and could hold up all writers of all ranges.
#[test]
fn rows_of_a_range_that_was_handed_over_count_once() {
    let mut copied = 0;
    for seed in 0..10 {
        let settings = PartitionSettings {
            memory_table_size_bytes: 1 << 20,
            memory_tables_size_bytes_max: 8 << 20,
            range_size_bytes_max: 1 << 30,
            hot_requests_per_second: u64::MAX,
            cold_requests_per_second: 0,
            ..PartitionSettings::tiny()
        };
        let world = World::new(seed);
        world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        copied += world
            .run(|env, _| async move {
                let (_, partitions) = open(&env, settings).await.unwrap();
                let partitions = &partitions;
                let done = std::cell::Cell::new(false);
                let writer = async |writer: u64| {
                    for at in (0..).take_while(|_| !done.get()) {
                        let key = key(1, &format!("p{writer}"), &format!("{at:05}"));
                        let changes = vec![(key, Some(value(at, 500)))];
                        partitions.execute(Write { changes }).await.unwrap();
                    }
                };
                let split = async {
                    env.clock.sleep(Duration::from_millis(50)).await;
                    partitions.split(TABLE, &key(1, "p4", "")).await.unwrap();
                    done.set(true);
                    partitions.statistics()
                };
                let (at_once, _) = tokio::join!(split, join_all((0..8).map(writer)));
                // By now nobody reads the old range any more, and what the writers still had under way is in.
                env.clock.sleep(Duration::from_secs(60)).await;
                let later = partitions.statistics();
                assert_eq!(at_once.flushes, later.flushes, "seed {seed}");
                let (counted, left) = (at_once.memory.table_size_bytes, later.memory.table_size_bytes);
                assert!(counted <= left, "seed {seed}: {counted} bytes count, {left} are there");
                later.longest_pause.copied_bytes
            })
            .unwrap();
    }
    assert!(copied > 0, "nothing was copied");
}
