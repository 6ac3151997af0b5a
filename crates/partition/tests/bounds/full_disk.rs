//! A full disk with a reserve: writes are refused, deletions go on and give space back, and then writes are
//! taken again.

use crate::rows::{self, Everything, NameBlob, TABLE, Write, key, put, read_table, value};
use base::Environment;
use futures_util::FutureExt;
use futures_util::future::join_all;
use partition::{
    Decision, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, PlantedFault, Read,
    RowVersion, Rows, put_pieces,
};
use sim::{Faults, SimDisk, World};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, StreamError, StreamName, StreamSettings, Streams};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

const BLOB_COUNT: u64 = 60;
const BLOB_SIZE: usize = 8000;
const RESERVE: u64 = 256 << 10;
/// Of each of the two files of the stream manager's log.
const LOG_GROWTH: u64 = 16 << 10;

async fn put_blob(partitions: &Partitions, name: u64) -> Result<(), PartitionError> {
    let key = key(1, &format!("{name:02}"), "b");
    let (piece, _pin) = partitions.append_data(ObjectTable::Blob, &key, value(name, BLOB_SIZE)).await?;
    let mut named = Vec::new();
    put_pieces(&mut named, &[piece]);
    partitions.execute(NameBlob { key, value: Some(named.into()) }).await
}

async fn open(env: &Environment) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    let settings = StreamSettings {
        reserve_size_bytes: RESERVE,
        manager_log_growth_bytes: LOG_GROWTH,
        ..StreamSettings::tiny()
    };
    let streams = Streams::open(env, settings).await?;
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await?;
    Ok((streams, partitions))
}

/// Writes until the disk is so full that the reserve is given up.
async fn fill(streams: &Streams, partitions: &Partitions, disk: &SimDisk, all: &mut Everything) {
    disk.set_free_bytes(Some(10_000));
    for at in 0..200 {
        if streams.is_scarce() {
            return;
        }
        match put(partitions, all, key(1, "fill", &format!("{at:03}")), Some(value(at, 3000))).await {
            Ok(()) | Err(PartitionError::DiskFull) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("a full disk must cost the reserve");
}

/// On a full disk nothing could be deleted: a server that was full stayed so until somebody gave its disk
/// space.
#[test]
fn what_is_deleted_on_a_full_disk_makes_room_for_writes() {
    for seed in 0..10 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let all = world.run(|env, _| async move {
            let (streams, partitions) = open(&env).await.unwrap();
            let mut all = Everything::new();
            put(&partitions, &mut all, key(1, "kept", "r"), Some(value(1, 100))).await.unwrap();
            for name in 0..BLOB_COUNT {
                put_blob(&partitions, name).await.unwrap();
                let row = key(1, "rows", &format!("{name:02}"));
                put(&partitions, &mut all, row, Some(value(name, 1000))).await.unwrap();
            }
            env.clock.sleep(Duration::from_secs(10)).await;
            fill(&streams, &partitions, &disk, &mut all).await;
            // Other writes are refused, whatever their size.
            for at in 0..5 {
                let refused = put(&partitions, &mut all, key(1, "p", "r"), Some(value(at, 1))).await;
                assert_eq!(refused, Err(PartitionError::DiskFull), "seed {seed}");
                let bytes = value(at, BLOB_SIZE);
                let uploaded = partitions.append_data(ObjectTable::Blob, &key(1, "99", "b"), bytes).await;
                assert_eq!(uploaded.map(|_| ()), Err(PartitionError::DiskFull), "seed {seed}");
            }
            for name in 0..BLOB_COUNT {
                let deleted = NameBlob { key: key(1, &format!("{name:02}"), "b"), value: None };
                assert_eq!(partitions.execute(deleted).await, Ok(()), "seed {seed}, blob {name}");
                let row = key(1, "rows", &format!("{name:02}"));
                assert_eq!(put(&partitions, &mut all, row, None).await, Ok(()), "seed {seed}, row {name}");
            }
            env.clock.sleep(Duration::from_secs(60)).await;
            assert!(!streams.is_scarce(), "seed {seed}: what was deleted is not given back");
            for at in 0..20 {
                put(&partitions, &mut all, key(1, "p", &format!("{at:02}")), Some(value(at, 1000)))
                    .await
                    .unwrap();
            }
            put_blob(&partitions, 99).await.unwrap();
            assert_eq!(read_table(&partitions, TABLE).await.unwrap(), all, "seed {seed}");
            all
        });
        world.disk.set_free_bytes(None);
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env).await.unwrap();
            read_table(&partitions, TABLE).await.unwrap()
        });
        assert!(found == all, "seed {seed}: after a restart");
    }
}

/// Checkpoints that were due for a merge, which had no room, once kept the rows of a deleted table where they
/// were: space stayed scarce for ever.
#[test]
fn a_deleted_table_gives_its_space_back_where_merges_have_no_room() {
    for seed in 0..10 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = StreamSettings {
                    reserve_size_bytes: RESERVE,
                    manager_log_growth_bytes: LOG_GROWTH,
                    ..StreamSettings::tiny()
                };
                let streams = Streams::open(&env, streams).await.unwrap();
                let whole = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
                let partitions = Partitions::open(&env, streams.clone(), whole).await.unwrap();
                let mut all = Everything::new();
                put(&partitions, &mut all, key(1, "kept", "r"), Some(value(1, 100))).await.unwrap();
                env.clock.sleep(Duration::from_secs(10)).await;
                disk.set_free_bytes(Some(800_000 + 50_000 * seed));
                let mut count = 0;
                while !streams.is_scarce() {
                    assert!(count < 2000, "a full disk must cost the reserve");
                    let row = key(2, "gone", &format!("{count:04}"));
                    let _ = put(&partitions, &mut Everything::new(), row, Some(value(count, 3000))).await;
                    count += 1;
                }
                partitions.retire_container(ObjectTable::Entity, rows::ACCOUNT, 2).await.unwrap();
                env.clock.sleep(Duration::from_secs(120)).await;
                assert!(!streams.is_scarce(), "seed {seed}: what was deleted is not given back");
                put(&partitions, &mut all, key(1, "p", "r"), Some(value(2, 1000))).await.unwrap();
                let found = read_table(&partitions, TABLE).await.unwrap();
                assert!(all.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}");
            })
            .unwrap();
    }
}

/// Splits and merges took of the reserve, which is there for deletions.
#[test]
fn no_range_is_split_or_merged_while_space_is_scarce() {
    let world = World::new(5);
    let disk = world.disk.clone();
    let run = world.run(|env, _| async move {
        let (streams, partitions) = open(&env).await.unwrap();
        let mut all = Everything::new();
        for at in 0..40 {
            let row = key(1, &format!("p{}", at % 4), &format!("{at:02}"));
            put(&partitions, &mut all, row, Some(value(at, 1000))).await.unwrap();
        }
        // The reserve is there, and the manager has not had its first round.
        env.clock.sleep(Duration::from_secs(10)).await;
        fill(&streams, &partitions, &disk, &mut all).await;
        let ranges = partitions.ranges(TABLE);
        assert_eq!(ranges.len(), 1);
        for _ in 0..3 {
            assert_eq!(partitions.balance_now().await, Ok(0));
        }
        let asked = partitions.split(TABLE, &key(1, "p2", "")).await;
        assert_eq!(asked, Err(PartitionError::DiskFull));
        assert_eq!(partitions.ranges(TABLE), ranges);
        disk.set_free_bytes(None);
        env.clock.sleep(Duration::from_secs(30)).await;
        assert!(!streams.is_scarce());
        assert!(partitions.ranges(TABLE).len() > 1, "the range is far too large");
        assert_eq!(read_table(&partitions, TABLE).await.unwrap(), all);
    });
    run.unwrap();
}

/// Makes streams until there is room for no further change of any list of streams.
async fn exhaust_stream_lists(streams: &Streams, disk: &SimDisk) {
    disk.set_free_bytes(Some(0));
    for at in 0..100_000 {
        match streams.create(&[StreamName::new(&format!("filler/{at}"))], OWNER).await {
            Ok(()) => {}
            Err(StreamError::DiskFull) => return,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("lists of streams can't grow without end on a full disk");
}

/// How many checkpoints of the table have streams, how many ranges have, and how many of both there are.
fn stored_and_known(streams: &Streams, partitions: &Partitions) -> ((usize, usize), (usize, usize)) {
    let names = streams.list("entity/");
    let checkpoints = names.iter().filter(|name| name.as_str().contains("/row_data/")).count();
    let ids: BTreeSet<&str> = names.iter().filter_map(|name| name.as_str().split('/').nth(1)).collect();
    let known = partitions.range_statistics(TABLE);
    ((checkpoints, ids.len()), (known.iter().map(|range| range.checkpoints).sum(), known.len()))
}

/// Rows that fill some checkpoints; those of one round are all over the keys.
async fn put_round(partitions: &Partitions, round: u64) {
    for at in 0..200 {
        let key = key(1, &format!("p{}", at % 4), &format!("{at:03}"));
        put(partitions, &mut Everything::new(), key, Some(value(round * 1000 + at, 200))).await.unwrap();
    }
}

/// Appends until there is room in the journal for no further entry.
async fn exhaust_journal(streams: &Streams, disk: &SimDisk) {
    disk.set_free_bytes(Some(0));
    let filler = StreamName::new("filler");
    streams.create(std::slice::from_ref(&filler), OWNER).await.unwrap();
    for size in [7000, 3000, 10] {
        while streams.append(&filler, OWNER, vec![value(1, size)]).await.is_ok() {}
    }
}

/// Extents with a file that no stream lists.
fn unlisted_extent_count(streams: &Streams, disk: &SimDisk) -> usize {
    let listed = streams.list("").into_iter().flat_map(|name| streams.stat(&name).unwrap().extents);
    let listed: BTreeSet<_> = listed.map(|(extent, _)| extent).collect();
    disk.files().iter().filter(|(path, _)| path.starts_with("extents/")).count() - listed.len()
}

/// One deletion that the full disk refused made the range forget all other checkpoints that it had merged:
/// their space came back with the next start. And where the journal had no room their streams went, but their
/// extents stayed.
#[test]
fn what_a_full_disk_kept_from_being_removed_goes_once_there_is_space() {
    for (with_split, with_full_journal) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new(u64::from(with_split));
        let disk = world.disk.clone();
        let run = world.run(|env, _| async move {
            let settings = PartitionSettings {
                range_size_bytes_max: 64 << 20,
                compaction_count_min: 6,
                ..PartitionSettings::tiny()
            };
            let manager_log_growth_bytes = if with_full_journal { 4 << 20 } else { 32 << 10 };
            let stream_settings = StreamSettings { manager_log_growth_bytes, ..StreamSettings::tiny() };
            let streams = Streams::open(&env, stream_settings).await.unwrap();
            let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
            let mut rounds = 0..20;
            while rounds.start < 3 || stored_and_known(&streams, &partitions).1.0 < 3 {
                put_round(&partitions, rounds.next().expect("several checkpoints at a time")).await;
                env.clock.sleep(Duration::from_secs(1)).await;
            }
            // A reader in the middle of a scan keeps what it reads from.
            let mut reader = Box::pin(read_table(&partitions, TABLE));
            assert!((&mut reader).now_or_never().is_none());
            for round in rounds.start..rounds.start + 6 {
                put_round(&partitions, round).await;
            }
            if with_split {
                assert!(partitions.split(TABLE, &key(1, "p2", "")).await.unwrap());
            }
            env.clock.sleep(Duration::from_secs(20)).await;
            let (stored, known) = stored_and_known(&streams, &partitions);
            assert!(stored.0 > known.0 + 1, "the reader must keep several: {stored:?}, {known:?}");
            match with_full_journal {
                true => exhaust_journal(&streams, &disk).await,
                false => exhaust_stream_lists(&streams, &disk).await,
            }
            drop(reader);
            // Before the stream manager's log begins anew in its place, and after the journal was asked.
            env.clock.sleep(Duration::from_millis(if with_full_journal { 6_000 } else { 500 })).await;
            let left = match with_full_journal {
                true => unlisted_extent_count(&streams, &disk),
                false => stored_and_known(&streams, &partitions).0.0 - known.0,
            };
            assert!(left > 0, "the full disk must refuse it");
            disk.set_free_bytes(None);
            env.clock.sleep(Duration::from_secs(60)).await;
            let (stored, known) = stored_and_known(&streams, &partitions);
            let case = format!("with a split: {with_split}, with a full journal: {with_full_journal}");
            assert_eq!(stored, known, "streams and what is known, {case}");
            assert_eq!(unlisted_extent_count(&streams, &disk), 0, "extents, {case}");
        });
        run.unwrap();
    }
}

/// Streams of heirs that inherited nothing, because the disk was full, stayed until the next start.
#[test]
fn heirs_of_a_split_that_a_full_disk_refused_go_once_there_is_space() {
    let mut left = 0;
    for seed in 0..6 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let run = world.run(|env, _| async move {
            let settings = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
            let (streams, partitions) = rows::open(&env, settings).await.unwrap();
            put_round(&partitions, 0).await;
            env.clock.sleep(Duration::from_secs(20)).await;
            disk.set_free_bytes(Some(0));
            let mut left = 0;
            for at in 0..2000 {
                match partitions.split(TABLE, &key(1, "p2", "")).await {
                    Ok(changed) => assert!(changed),
                    Err(error) => assert_eq!(error, PartitionError::DiskFull),
                }
                if partitions.ranges(TABLE).len() == 2 {
                    let _ = partitions.merge(TABLE, &key(1, "p0", "")).await;
                }
                let (stored, known) = stored_and_known(&streams, &partitions);
                left = left.max(stored.1 - known.1);
                let filler: Vec<_> =
                    (0..7 + seed).map(|one| StreamName::new(&format!("filler/{at}/{one}"))).collect();
                if streams.create(&filler, OWNER).await == Err(StreamError::DiskFull) {
                    break;
                }
            }
            disk.set_free_bytes(None);
            env.clock.sleep(Duration::from_secs(60)).await;
            let (stored, known) = stored_and_known(&streams, &partitions);
            assert_eq!(stored, known, "seed {seed}: streams and what is known");
            left
        });
        left = left.max(run.unwrap());
    }
    assert!(left > 0, "a split must leave streams behind");
}

const PROPORTIONAL_RESERVE: u64 = 1 << 20;

/// A server's proportions on a disk of a GiB, a 64th of each.
fn proportional_settings() -> (StreamSettings, PartitionSettings) {
    const RESERVE: u64 = PROPORTIONAL_RESERVE;
    let stream_settings = StreamSettings {
        reserve_size_bytes: RESERVE,
        extent_size_bytes_max: RESERVE / 4,
        journal_segment_size_bytes: RESERVE / 4,
        journaled_append_size_bytes_max: RESERVE / 64,
        manager_log_growth_bytes: RESERVE / 256,
        flush_size_bytes_max: RESERVE / 8,
        ..StreamSettings::tiny()
    };
    let settings = PartitionSettings {
        memory_table_size_bytes: RESERVE / 8,
        memory_tables_size_bytes_max: 8 * RESERVE,
        cache_size_bytes_max: 8 * RESERVE,
        range_size_bytes_max: 64 * RESERVE,
        ..PartitionSettings::default()
    };
    (stream_settings, settings)
}

/// Extents larger than the reserve, so that no checkpoint can be reclaimed in parts: what merges do alone.
fn settings_for_compactions_alone() -> (StreamSettings, PartitionSettings) {
    const RESERVE: u64 = PROPORTIONAL_RESERVE;
    let (stream_settings, settings) = proportional_settings();
    let stream_settings = StreamSettings {
        // An eighth of it is for the next start.
        reserve_size_bytes: RESERVE / 7 * 8,
        extent_size_bytes_max: 4 * RESERVE,
        journal_segment_size_bytes: RESERVE / 2,
        manager_log_growth_bytes: RESERVE / 64,
        ..stream_settings
    };
    (stream_settings, PartitionSettings { memory_table_size_bytes: RESERVE / 2, ..settings })
}

/// Rows that are deleted one by one gave nothing back on a full disk: what was in the log stayed because its
/// extent was not full, what was in few checkpoints because they were not many enough for a merge. So it is
/// on disks of little more than the reserve and of ten times as much; whether or not the server is stopped in
/// between.
#[test]
fn rows_that_are_deleted_one_by_one_on_a_full_disk_make_room_for_writes() {
    for (seed, quarter_reserves) in [(0, 4), (1, 2), (2, 2), (3, 8), (4, 12), (5, 20), (6, 36), (7, 36)] {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let (stream_settings, settings) = proportional_settings();
        let run = world.run(|env, _| async move {
            let mut streams = Streams::open(&env, stream_settings.clone()).await.unwrap();
            let mut partitions = Partitions::open(&env, streams.clone(), settings.clone()).await.unwrap();
            let mut all = Everything::new();
            put(&partitions, &mut all, key(1, "kept", "r"), Some(value(1, 100))).await.unwrap();
            env.clock.sleep(Duration::from_secs(10)).await;
            disk.set_free_bytes(Some((quarter_reserves + 3) * PROPORTIONAL_RESERVE / 4));
            let mut put_rows = Vec::new();
            for at in 0..10_000 {
                let row = key(1, &format!("p{}", at % 7), &format!("{at:06}"));
                match put(&partitions, &mut Everything::new(), row.clone(), Some(value(at, 7000))).await {
                    Ok(()) => put_rows.push(row),
                    Err(PartitionError::DiskFull) if streams.is_scarce() => break,
                    Err(PartitionError::DiskFull) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(streams.is_scarce(), "seed {seed}: a full disk must cost the reserve");
            for row in &put_rows {
                let mut refused = 0;
                while let Err(error) = put(&partitions, &mut Everything::new(), row.clone(), None).await {
                    assert_eq!(error, PartitionError::DiskFull, "seed {seed}");
                    refused += 1;
                    assert!(refused < 60, "seed {seed}: deletions are refused for good");
                    env.clock.sleep(Duration::from_secs(1)).await;
                }
            }
            if seed % 2 == 0 {
                partitions.close().await;
                streams.close().await;
                drop(partitions);
                streams = Streams::open(&env, stream_settings).await.unwrap();
                partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
            }
            env.clock.sleep(Duration::from_secs(120)).await;
            assert!(!streams.is_scarce(), "seed {seed}: {} rows are not given back", put_rows.len());
            put(&partitions, &mut all, key(1, "p", "r"), Some(value(1, 1000))).await.unwrap();
            assert_eq!(read_table(&partitions, TABLE).await.unwrap(), all, "seed {seed}");
        });
        run.unwrap();
    }
}

/// A write that needs more than there is.
async fn give_up_reserve(streams: &Streams, disk: &SimDisk) {
    let filler = StreamName::new("filler");
    streams.create(std::slice::from_ref(&filler), OWNER).await.unwrap();
    disk.set_free_bytes(Some(0));
    let _ = streams.append(&filler, OWNER, vec![value(1, 100_000)]).await;
    assert!(streams.is_scarce());
}

/// Rows that are put and deleted before they come to a checkpoint leave deletions that delete nothing. Taken
/// for the end of rows in checkpoints, they would have a full disk merged again and again, to its last byte,
/// for nothing.
#[test]
fn a_merge_that_keeps_more_than_was_thought_takes_little_and_is_not_tried_again() {
    const LARGE_ROWS: u64 = 400;
    let world = World::new(1);
    let disk = world.disk.clone();
    let (stream_settings, settings) = settings_for_compactions_alone();
    let run = world.run(|env, _| async move {
        let streams = Streams::open(&env, stream_settings).await.unwrap();
        // No compaction is due for the number of checkpoints or for tombstones, and no filter says that
        // nothing older has a row.
        let planted_fault = Some(PlantedFault::StuckTombstones);
        let settings = PartitionSettings {
            compaction_count_min: 20,
            cache_size_bytes_max: 256,
            planted_fault,
            ..settings
        };
        let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
        let mut all = Everything::new();
        for at in 0..LARGE_ROWS {
            let row = key(1, "large", &format!("{at:06}"));
            put(&partitions, &mut all, row, Some(value(at, 7000))).await.unwrap();
        }
        for at in 0..4 * LARGE_ROWS {
            // Among the others, or it would be clear that they have it not.
            let row = key(1, "large", &format!("{:06}-{}", at % LARGE_ROWS, at / LARGE_ROWS));
            put(&partitions, &mut all, row.clone(), Some(value(at, 10))).await.unwrap();
            put(&partitions, &mut all, row, None).await.unwrap();
        }
        env.clock.sleep(Duration::from_secs(20)).await;
        disk.set_free_bytes(Some(PROPORTIONAL_RESERVE / 4));
        for at in 0..10_000 {
            if streams.is_scarce() {
                break;
            }
            let row = key(1, "fill", &format!("{at:06}"));
            let _ = put(&partitions, &mut all, row, Some(value(at, 7000))).await;
        }
        assert!(streams.is_scarce());
        let before = partitions.statistics().compacted_bytes;
        for _ in 0..2400 {
            // Too little for the reserve, and for the rows that such a merge keeps: others use up what comes
            // back.
            disk.set_free_bytes(Some(PROPORTIONAL_RESERVE / 2));
            env.clock.sleep(Duration::from_millis(50)).await;
        }
        assert!(streams.is_scarce());
        let compacted_bytes = partitions.statistics().compacted_bytes - before;
        assert!(compacted_bytes > 0, "there was no such merge");
        // Each run of checkpoints was tried once at most.
        assert!(compacted_bytes < 2 * PROPORTIONAL_RESERVE, "{compacted_bytes} bytes were merged");
        // Until the disk was not full for a while.
        disk.set_free_bytes(None);
        env.clock.sleep(Duration::from_secs(30)).await;
        give_up_reserve(&streams, &disk).await;
        let before = partitions.statistics().compacted_bytes;
        for _ in 0..240 {
            disk.set_free_bytes(Some(PROPORTIONAL_RESERVE * 3 / 4));
            env.clock.sleep(Duration::from_millis(250)).await;
        }
        assert!(partitions.statistics().compacted_bytes > before, "it is not tried again");
    });
    run.unwrap();
}

/// A merge that others left without space in its middle was taken for one that keeps too much, and not tried
/// again until the next start.
#[test]
fn a_merge_that_found_no_space_is_tried_again() {
    const ROWS: u64 = 400;
    let mut refused_count = 0;
    for seed in 0..18 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let (stream_settings, settings) = settings_for_compactions_alone();
        let run = world.run(|env, _| async move {
            let streams = Streams::open(&env, stream_settings).await.unwrap();
            // No compaction is due, neither under load nor when it is idle.
            let planted_fault = Some(PlantedFault::StuckTombstones);
            let settings = PartitionSettings { compaction_count_min: 1000, planted_fault, ..settings };
            let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
            let mut all = Everything::new();
            let row = |at: u64| key(1, "rows", &format!("{at:06}"));
            for is_gone in [false, true] {
                for at in (0..ROWS).filter(|at| !is_gone || at % 13 > 0) {
                    let row_value = (!is_gone).then(|| value(at, 7000));
                    put(&partitions, &mut all, row(at), row_value).await.unwrap();
                }
                // They fill a memory table, and one of them is left in its checkpoint.
                for at in 0..80 {
                    put(&partitions, &mut all, key(1, "short", "r"), Some(value(at, 7000))).await.unwrap();
                }
            }
            env.clock.sleep(Duration::from_secs(20)).await;
            let numbers = || -> BTreeSet<u64> {
                let names = streams.list("entity/1/row_data/");
                names.iter().filter_map(|name| name.as_str().rsplit('/').next()?.parse().ok()).collect()
            };
            give_up_reserve(&streams, &disk).await;
            // Enough for what is in memory, too little for a merge: others use up what comes back.
            for _ in 0..4000 {
                disk.set_free_bytes(Some(PROPORTIONAL_RESERVE / 8));
                env.clock.sleep(Duration::from_millis(5)).await;
            }
            assert!(streams.is_scarce());
            disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
            let (before, compacted_before) = (numbers(), partitions.statistics().compacted_bytes);
            if before.len() == 1 || compacted_before > 0 {
                // There was room for it on the way here: this is not what the test is about.
                return false;
            }
            for _ in 0..3 {
                let last = numbers().last().copied();
                disk.set_free_bytes(Some(PROPORTIONAL_RESERVE * 3 / 4));
                let begins_before = env.clock.monotonic() + Duration::from_secs(40);
                while numbers().last().copied() <= last && env.clock.monotonic() < begins_before {
                    env.clock.sleep(Duration::from_millis(1)).await;
                }
                for _ in 0..2000 {
                    disk.set_free_bytes(Some(0));
                    env.clock.sleep(Duration::from_millis(1)).await;
                }
            }
            assert!(
                partitions.statistics().compacted_bytes > compacted_before,
                "seed {seed}: no merge had begun"
            );
            // A merge may have ended in spite of that: then this is not what the test is about.
            let was_refused = numbers().is_superset(&before);
            disk.set_free_bytes(Some(PROPORTIONAL_RESERVE * 3 / 4));
            env.clock.sleep(Duration::from_secs(60)).await;
            assert!(numbers().first() > before.last(), "seed {seed}: {before:?}, then {:?}", numbers());
            assert_eq!(read_table(&partitions, TABLE).await.unwrap(), all, "seed {seed}");
            was_refused
        });
        refused_count += u32::from(run.unwrap());
    }
    assert!(refused_count >= 9, "merges had space, but for {refused_count} seeds");
}

/// Puts a row as what gives space back may, on a full disk as well.
struct PutAnyway(Write);

impl Operation for PutAnyway {
    type Reply = RowVersion;

    fn object_table(&self) -> ObjectTable {
        self.0.object_table()
    }

    fn reads(&self) -> Vec<Read> {
        self.0.reads()
    }

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<RowVersion> {
        self.0.decide(rows, version)
    }
}

/// A log that could not be trimmed after a flush, because the stream manager's log was full, stayed until the
/// next flush, for which there was no space.
#[test]
fn a_log_that_could_not_be_trimmed_is_trimmed_once_the_managers_log_has_space() {
    const PAGE: u64 = 4096;
    const GROWTH: u64 = 16 * PAGE;
    const ROWS: u64 = 20;
    let mut refused = 0;
    for spare in 0..8 {
        let world = World::new(spare);
        let disk = world.disk.clone();
        let run = world.run(|env, _| async move {
            let stream_settings = StreamSettings {
                reserve_size_bytes: 4 * RESERVE,
                extent_size_bytes_max: 1 << 20,
                manager_log_growth_bytes: GROWTH,
                ..StreamSettings::tiny()
            };
            let streams = Streams::open(&env, stream_settings).await.unwrap();
            let settings = PartitionSettings {
                memory_table_size_bytes: 8 * ROWS * 1000,
                memory_tables_size_bytes_max: 4 << 20,
                range_size_bytes_max: 64 << 20,
                ..PartitionSettings::tiny()
            };
            let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
            env.clock.sleep(Duration::from_secs(10)).await;
            // The log holds more than memory.
            for at in 0..3 * ROWS {
                let row = key(1, "p", &format!("{:02}", at % ROWS));
                put(&partitions, &mut Everything::new(), row, Some(value(at, 1000))).await.unwrap();
            }
            let log = StreamName::new("entity/1/log");
            let before = streams.stat(&log).unwrap().extents;
            disk.set_free_bytes(Some(0));
            let mut count = 0;
            let mut create = async || {
                count += 1;
                streams.create(&[StreamName::new(&format!("filler/{count}"))], OWNER).await
            };
            // Until the reserve is given up for the log, which has grown then.
            while !streams.is_scarce() {
                let _ = create().await;
            }
            // A record takes a page, and one stays free.
            for _ in 0..GROWTH / PAGE - 1 - spare {
                create().await.unwrap();
            }
            // Enough for a flush, too little for the two files of the manager's log.
            disk.set_free_bytes(Some(2 * GROWTH - 1000));
            // Looked at as soon as it is flushed: the manager's log begins anew in its place after a
            // while.
            for _ in 0..500 {
                if partitions.range_statistics(TABLE)[0].checkpoints > 0 {
                    break;
                }
                env.clock.sleep(Duration::from_millis(20)).await;
            }
            env.clock.sleep(Duration::from_millis(20)).await;
            let checkpoints = partitions.range_statistics(TABLE)[0].checkpoints;
            let after = streams.stat(&log).unwrap().extents;
            if checkpoints == 0 || after.len() == 1 || after[0] != before[0] {
                return false;
            }
            disk.set_free_bytes(Some(2 * GROWTH - 1000));
            for at in 0..2 * ROWS {
                let changes = vec![(key(1, "p", &format!("x{at:02}")), Some(value(at, 1000)))];
                partitions.execute(PutAnyway(Write { changes })).await.unwrap();
            }
            // They come to their extent, which takes space as well.
            env.clock.sleep(Duration::from_secs(3)).await;
            // Enough for the manager's log, too little for another flush.
            disk.set_free_bytes(Some(2 * GROWTH + 1000));
            env.clock.sleep(Duration::from_secs(30)).await;
            let trimmed = streams.stat(&log).unwrap().extents;
            assert!(trimmed[0].0 > before[0].0, "spare {spare}: {before:?}, then {trimmed:?}");
            true
        });
        refused += u64::from(run.unwrap());
    }
    assert!(refused > 0, "no trim was refused");
}

/// What was in memory when the disk became full took the whole reserve when it was flushed, and the log
/// behind it gave nothing back.
#[test]
fn deletions_go_on_behind_memory_tables_that_are_large_beside_the_reserve() {
    const WRITERS: u64 = 64;
    const SMALL_ROWS: u64 = 20_000;
    const RESERVE: u64 = PROPORTIONAL_RESERVE;
    let (stream_settings, settings) = proportional_settings();
    // On the disk of the last one nearly nothing is free once the reserve is there again, and all that is
    // deleted with its container lies behind it.
    for seed in (0..8).chain([18, 25, 49]) {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let (stream_settings, settings) = (stream_settings.clone(), settings.clone());
        let run = world.run(|env, _| async move {
            let streams = Streams::open(&env, stream_settings).await.unwrap();
            let partitions = Partitions::open(&env, streams.clone(), settings).await.unwrap();
            let partitions = &partitions;
            let small_rows = |at: u64| (at..at + 100).map(|at| key(1, "small", &format!("{at:06}")));
            for at in (0..SMALL_ROWS).step_by(100) {
                let changes = small_rows(at).map(|row| (row, Some(value(at, 8)))).collect();
                partitions.execute(Write { changes }).await.unwrap();
            }
            env.clock.sleep(Duration::from_secs(10)).await;
            disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
            disk.set_free_bytes(Some(4 * RESERVE + seed * 3 * RESERVE / 4));
            // Together they fill two memory tables in the time of one append.
            let fill = (0..WRITERS).map(|writer| {
                let streams = &streams;
                async move {
                    for at in 0..100_000 {
                        let row = key(2, &format!("w{writer}"), &format!("{at:06}"));
                        let changes = vec![(row, Some(value(writer << 32 | at, 16_000)))];
                        match partitions.execute(Write { changes }).await {
                            Err(PartitionError::DiskFull) if streams.is_scarce() => return,
                            Ok(_) | Err(PartitionError::DiskFull) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                    panic!("a full disk must cost the reserve");
                }
            });
            join_all(fill).await;
            let mut refused = 0;
            for at in (0..SMALL_ROWS).step_by(100) {
                let changes: Vec<_> = small_rows(at).map(|row| (row, None)).collect();
                loop {
                    let deleted = tokio::select! {
                        deleted = partitions.execute(Write { changes: changes.clone() }) => deleted,
                        () = env.clock.sleep(Duration::from_secs(600)) => panic!("seed {seed}: it waits for ever"),
                    };
                    match deleted {
                        Ok(_) => break,
                        Err(error) => assert_eq!(error, PartitionError::DiskFull, "seed {seed}"),
                    }
                    refused += 1;
                    assert!(refused < 60, "seed {seed}: deletions are refused for good, from {at} on");
                    env.clock.sleep(Duration::from_secs(1)).await;
                }
            }
            let log = streams.stat(&StreamName::new("entity/1/log")).unwrap().extents;
            let log_bytes: u64 = log.iter().map(|(_, length)| length).sum();
            assert!(log_bytes <= 2 * RESERVE, "seed {seed}: the log keeps {log_bytes} bytes");
            partitions.retire_container(TABLE, rows::ACCOUNT, 2).await.unwrap();
            env.clock.sleep(Duration::from_secs(300)).await;
            assert!(!streams.is_scarce(), "seed {seed}: what was deleted is not given back");
            let mut all = Everything::new();
            put(partitions, &mut all, key(1, "p", "r"), Some(value(1, 1000))).await.unwrap();
            assert_eq!(read_table(partitions, TABLE).await.unwrap(), all, "seed {seed}");
        });
        run.unwrap();
    }
}
