//! Rows whose overflows are kept apart in checkpoints: they read the same however they are read, a reader of
//! heads reads few blocks, and an overflow that is damaged is an error for its readers and for no other.

use crate::rows::{Everything, WriteBlobRow, key, open, put_blob_row, read_everything, value_with_overflow};
use partition::{ObjectTable, PartitionError, PartitionSettings, Partitions, PlantedFault, check_folder};
use sim::{Faults, World};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use stream::{ExtentId, Streams};

const TABLE: ObjectTable = ObjectTable::Blob;
const ROW_COUNT: u64 = 400;
/// In each row, of a random overflow.
const OVERFLOW_SIZE_BYTES: usize = 2000;

fn settings(compaction_count_min: usize) -> PartitionSettings {
    PartitionSettings {
        compaction_count_min,
        cache_size_bytes_max: 1 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

fn row_key(at: u64) -> partition::RowKey {
    key(1, &format!("blob{:03}", at * 617 % ROW_COUNT), "h")
}

/// Puts all rows twice, so that merges find old ones, and deletes some.
async fn fill(partitions: &Partitions) -> Everything {
    let mut expected = Everything::new();
    for turn in 0..2 {
        for at in 0..ROW_COUNT {
            let value = value_with_overflow(2 * (turn * ROW_COUNT + at), 40, OVERFLOW_SIZE_BYTES);
            put_blob_row(partitions, &mut expected, row_key(at), Some(value)).await.unwrap();
            if at % 10 == 7 {
                put_blob_row(partitions, &mut expected, row_key(at), None).await.unwrap();
            }
        }
    }
    expected
}

#[test]
fn rows_with_overflows_are_the_same_after_flushes_merges_splits_and_restarts() {
    for compaction_count_min in [2, 1000] {
        let finished = World::new(1).run(|env, _| async move {
            let (streams, partitions) = open(&env, settings(compaction_count_min)).await.unwrap();
            let expected = fill(&partitions).await;
            env.clock.sleep(Duration::from_secs(5)).await;
            assert!(read_everything(&partitions).await.unwrap() == expected);
            assert!(partitions.split(TABLE, &key(1, "blob200", "")).await.unwrap());
            assert!(read_everything(&partitions).await.unwrap() == expected);
            assert!(partitions.merge(TABLE, &key(1, "blob100", "")).await.unwrap());
            env.clock.sleep(Duration::from_secs(5)).await;
            assert!(read_everything(&partitions).await.unwrap() == expected);
            partitions.close().await;
            streams.close().await;
            let checked = check_folder(&env, &mut |_, _| {}).await.unwrap();
            assert_eq!(checked.damages, []);
            let (_, partitions) = open(&env, settings(compaction_count_min)).await.unwrap();
            assert!(read_everything(&partitions).await.unwrap() == expected);
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// Whoever put a blob of some kilobytes again read a row block of 16 KiB for its few hundred bytes, and
/// listings read all content.
#[test]
fn who_wants_heads_reads_few_blocks() {
    let finished = World::new(2).run(|env, _| async move {
        let (_, partitions) = open(&env, settings(1000)).await.unwrap();
        let mut expected = fill(&partitions).await;
        partitions.close().await;
        drop(partitions);
        let (_, partitions) = open(&env, settings(1000)).await.unwrap();
        let read = || partitions.statistics().cache.row_blocks_read;
        let before = read();
        for at in (0..ROW_COUNT).rev() {
            let value = Some(value_with_overflow(at, 40, 0));
            put_blob_row(&partitions, &mut expected, row_key(at), value).await.unwrap();
        }
        let (read, stored) = (read() - before, ROW_COUNT * OVERFLOW_SIZE_BYTES as u64 / (16 << 10));
        assert!(read > 0 && read < stored, "{read} row blocks were read; all overflows would fill {stored}");
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

#[test]
fn a_damaged_tail_fails_those_who_want_it() {
    let world = World::new(3);
    let expected = world
        .run(|env, _| async move {
            let (streams, partitions) = open(&env, settings(1000)).await.unwrap();
            let expected = fill(&partitions).await;
            env.clock.sleep(Duration::from_secs(5)).await;
            partitions.close().await;
            streams.close().await;
            expected
        })
        .unwrap();
    // Some bytes of an overflow that is only in an extent: what the journal has, too, would be repaired.
    let (mut failed, mut heads) = (0, 0);
    for (row, (_, value)) in expected.iter().take(60) {
        let world = world.copy(failed);
        let sought = &value[value.len() - 500..value.len() - 400];
        for (path, _) in world.disk.files() {
            let content = world.disk.contents()[&path].clone();
            for at in memchr::memmem::find_iter(&content, sought) {
                world.disk.garble(&path, at as u64);
            }
        }
        let key = partition::RowKey::from_bytes(bytes::Bytes::copy_from_slice(row));
        let (checked, whole, head, put) = world
            .run(|env, _| async move {
                let checked = check_folder(&env, &mut |_, _| {}).await;
                let (_, partitions) = match open(&env, settings(1000)).await {
                    Ok(opened) => opened,
                    Err(error) => return (checked, Err(error), Ok(None), Ok(())),
                };
                let whole = partitions.get(TABLE, &key).await;
                let head = partitions.get_head(TABLE, &key).await;
                let put = partitions.execute(WriteBlobRow { key, value: None }).await;
                (checked, whole, head, put.map(|_| ()))
            })
            .unwrap();
        if let Err(error) = whole {
            assert!(matches!(error, PartitionError::Storage(_)), "{error}");
            let named = checked.map_or(true, |checked| !checked.damages.is_empty());
            assert!(named, "the check is content");
            // Unless the whole folder is refused, who does not need the overflow is not told of it.
            assert_eq!(put, Ok(()));
            if let Some(head) = head.unwrap() {
                assert!(value.starts_with(&head.value) && head.value.len() < value.len());
                heads += 1;
            }
            failed += 1;
        }
    }
    assert!(failed > 20, "{failed} damaged overflows were noticed");
    assert!(heads > 20, "{heads} rows were read without their overflows");
}

/// Puts all rows once, with overflows that do not compress, in each turn in another order: extents die row by
/// row.
async fn put_all(partitions: &Partitions, expected: &mut Everything, turn: u64) {
    let step = [1, 3, 7, 9, 11, 13][turn as usize];
    for at in 0..ROW_COUNT {
        let value = value_with_overflow(2 * (turn * ROW_COUNT + at), 40, OVERFLOW_SIZE_BYTES);
        put_blob_row(partitions, expected, row_key(at * step), Some(value)).await.unwrap();
    }
}

/// The extents that checkpoints list, with their lengths.
fn checkpoint_extents(streams: &Streams) -> BTreeMap<ExtentId, u64> {
    let names = streams.list("blob/").into_iter().filter(|name| name.as_str().contains("/row_data/"));
    names.flat_map(|name| streams.stat(&name).unwrap().extents).collect()
}

/// Each merge read and wrote the content of small blobs again, which was a third of all that their puts
/// wrote.
#[test]
fn merges_leave_overflows_where_they_are_until_many_of_them_are_dead() {
    let all_overflow = ROW_COUNT * OVERFLOW_SIZE_BYTES as u64;
    let finished = World::new(4).run(|env, _| async move {
        let (streams, partitions) = open(&env, settings(4)).await.unwrap();
        let mut expected = Everything::new();
        put_all(&partitions, &mut expected, 0).await;
        env.clock.sleep(Duration::from_secs(5)).await;
        let statistics = partitions.statistics();
        assert!(statistics.compactions > 4, "{statistics:?}");
        assert!(statistics.compacted_bytes < all_overflow / 2, "merges wrote overflows: {statistics:?}");
        assert!(read_everything(&partitions).await.unwrap() == expected);
        // Where rows are replaced, what is dead goes as it did when each merge wrote every overflow.
        for turn in 1..6 {
            put_all(&partitions, &mut expected, turn).await;
        }
        env.clock.sleep(Duration::from_secs(5)).await;
        assert!(read_everything(&partitions).await.unwrap() == expected);
        let stored: u64 = checkpoint_extents(&streams).values().sum();
        assert!(stored < 4 * all_overflow, "{stored} bytes are stored for {all_overflow}");
        assert!(partitions.statistics().compacted_bytes > all_overflow, "nothing was written anew");
        partitions.close().await;
        streams.close().await;
        assert_eq!(check_folder(&env, &mut |_, _| {}).await.unwrap().damages, []);
        let (_, partitions) = open(&env, settings(4)).await.unwrap();
        assert!(read_everything(&partitions).await.unwrap() == expected);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Rows whose overflows merges leave where they are.
const KEPT_ROWS: u64 = 60;

/// How often all that was read once is looked for in vain later, while merges replace checkpoints and leave
/// the overflows where they are.
fn misses_after_merges(planted_fault: Option<PlantedFault>) -> u64 {
    let finished = World::new(6).run(|env, _| async move {
        let settings = PartitionSettings { planted_fault, cache_size_bytes_max: 8 << 20, ..settings(4) };
        let (_, partitions) = open(&env, settings).await.unwrap();
        let mut expected = Everything::new();
        // Few: the rows that follow are enough to have them merged.
        for at in 0..KEPT_ROWS {
            let value = value_with_overflow(at, 40, OVERFLOW_SIZE_BYTES);
            put_blob_row(&partitions, &mut expected, row_key(at), Some(value)).await.unwrap();
        }
        env.clock.sleep(Duration::from_secs(5)).await;
        assert!(read_everything(&partitions).await.unwrap() == expected);
        let before = partitions.statistics();
        for at in 0..4 * ROW_COUNT {
            let row = key(1, &format!("new{at:06}"), "h");
            put_blob_row(&partitions, &mut expected, row, Some(value_with_overflow(at, 40, 100)))
                .await
                .unwrap();
        }
        env.clock.sleep(Duration::from_secs(5)).await;
        let merged = partitions.statistics();
        assert!(merged.compactions > before.compactions, "{merged:?}");
        assert!(read_everything(&partitions).await.unwrap() == expected);
        let misses = partitions.statistics().cache.misses - before.cache.misses;
        partitions.close().await;
        misses
    });
    finished.expect("the disk crashed unasked")
}

/// What a dropped checkpoint leaves in the cache goes, and what others name as well stays.
#[test]
fn evicting_blocks_that_are_still_named_is_noticed() {
    let right = misses_after_merges(None);
    let wrong = misses_after_merges(Some(PlantedFault::EvictedNamedBlocks));
    println!("{right} misses; {wrong} if named blocks are evicted");
    assert!(wrong > right + KEPT_ROWS / 2, "{right} and {wrong} misses");
}

/// Plays a start that merges what a former life has flushed, and stops it so many operations into the merges
/// (`None`: never). Returns how many operations they take.
fn compact_after_start(crash_after: Option<u64>) -> u64 {
    let world = World::new(5);
    let expected = Mutex::new(Everything::new());
    world.run(|env, _| {
        let expected = &expected;
        async move {
            let (streams, partitions) = open(&env, settings(1000)).await.unwrap();
            let mut rows = Everything::new();
            // Few enough that all of it is one merge: half of the first rows are dead, all later ones alive.
            for at in (0..40).chain(0..20) {
                let value = value_with_overflow(at, 40, OVERFLOW_SIZE_BYTES);
                put_blob_row(&partitions, &mut rows, row_key(at), Some(value)).await.unwrap();
            }
            *expected.lock().unwrap() = rows;
            partitions.close().await;
            streams.close().await;
        }
    });
    let (disk, mut count) = (world.disk.clone(), 0);
    let counted = &mut count;
    world.run(|env, _| async move {
        let before = disk.operation_count();
        if let Some(crash_after) = crash_after {
            disk.set_faults(Faults { crash_at_operation: before + crash_after, ..Faults::default() });
        }
        // A crash ends it; whatever it says is checked by what is there afterwards.
        let Ok((streams, partitions)) = open(&env, settings(2)).await else { return };
        env.clock.sleep(Duration::from_secs(2)).await;
        partitions.close().await;
        streams.close().await;
        *counted = disk.operation_count() - before;
    });
    world.disk.set_faults(Faults::default());
    let checked = world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await });
    assert_eq!(checked.unwrap().unwrap().damages, [], "cut off after {crash_after:?}");
    let (found, stored) = world
        .run(|env, _| async move {
            let (streams, partitions) = open(&env, settings(2)).await.unwrap();
            env.clock.sleep(Duration::from_secs(2)).await;
            let found = read_everything(&partitions).await.unwrap();
            partitions.close().await;
            let stored = checkpoint_extents(&streams).values().sum::<u64>();
            streams.close().await;
            (found, stored)
        })
        .unwrap();
    assert!(found == *expected.lock().unwrap(), "cut off after {crash_after:?}: rows differ");
    let alive = 40 * OVERFLOW_SIZE_BYTES as u64;
    assert!(stored < 2 * alive, "cut off after {crash_after:?}: {stored} bytes are stored for {alive}");
    count
}

#[test]
fn a_merge_that_leaves_overflows_survives_a_crash_at_each_of_its_operations() {
    let count = compact_after_start(None);
    println!("{count} disk operations");
    assert!(count > 20, "the merges take more than {count} operations");
    (1..=count).for_each(|crash_after| {
        compact_after_start(Some(crash_after));
    });
}
