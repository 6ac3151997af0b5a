//! A large compaction is done in parts: it takes little space beside what is stored, reads are right
//! throughout, and a crash at any moment leaves a tree that is right.

use crate::rows::{ACCOUNT, Collect, Everything, TABLE, Write, key, read_table, value};
use base::Environment;
use futures_util::future::{join, join3};
use partition::{
    KeyRange, PartitionError, PartitionSettings, Partitions, RowVersion, SnapshotOf, Span, check_folder,
};
use sim::{Faults, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stream::{StreamName, StreamSettings, Streams};

const TABLE_SIZE_BYTES: u64 = 128 << 10;
const CHECKPOINT_COUNT: usize = 4;
const PART_SIZE_BYTES: u64 = 32 << 10;
const VALUE_SIZE_BYTES: usize = 700;
/// The space that is taken is looked at this often, in virtual time.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Checkpoints are compacted once there are so many, in parts of at least so many bytes.
fn settings(compaction_count_min: usize, compaction_part_size_bytes: u64) -> PartitionSettings {
    PartitionSettings {
        memory_table_size_bytes: TABLE_SIZE_BYTES,
        memory_tables_size_bytes_max: 8 * TABLE_SIZE_BYTES,
        range_size_bytes_max: 1 << 30,
        compaction_count_min,
        compaction_part_size_bytes,
        ..PartitionSettings::tiny()
    }
}

async fn open(
    env: &Environment,
    settings: PartitionSettings,
) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    open_with_extents_of(8 << 10, env, settings).await
}

async fn open_with_extents_of(
    extent_size_bytes_max: u64,
    env: &Environment,
    settings: PartitionSettings,
) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    let stream_settings = StreamSettings { extent_size_bytes_max, ..StreamSettings::tiny() };
    let streams = Streams::open(env, stream_settings).await?;
    let partitions = Partitions::open(env, streams.clone(), settings).await?;
    Ok((streams, partitions))
}

/// What fills the checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// All are new, each checkpoint with keys of the whole range.
    Scattered,
    /// All are new, and each checkpoint has later keys than the one before.
    InOrder,
    /// All are new, and each checkpoint has earlier keys than the one before: the newest is passed first.
    InReverse,
    /// They replace and delete each other.
    Replaced,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Makes checkpoints and what they hold.
fn filled(seed: u64, rows: Rows) -> (World, Everything) {
    let world = World::new(seed);
    let expected = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings(1000, PART_SIZE_BYTES)).await.unwrap();
        let mut expected = Everything::new();
        let mut at = 0u64;
        let flush_count = |partitions: &Partitions| partitions.statistics().flushes;
        while (flush_count(&partitions) as usize) < CHECKPOINT_COUNT {
            let name = match rows {
                Rows::Scattered => format!("{:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                Rows::InOrder => format!("{at:016}"),
                Rows::InReverse => format!("{:016}", u64::from(u32::MAX) - at),
                Rows::Replaced => format!("{:04}", env.random.next_u64() % 350),
            };
            let is_deleted = rows == Rows::Replaced && env.random.next_u64().is_multiple_of(5);
            let (key, value) = (key(1, "p", &name), (!is_deleted).then(|| value(at, VALUE_SIZE_BYTES)));
            let changes = vec![(key.clone(), value.clone())];
            let version: RowVersion = partitions.execute(Write { changes }).await.unwrap();
            match value {
                Some(value) => expected.insert(key.as_bytes().to_vec(), (version, value.to_vec())),
                None => expected.remove(&key.as_bytes()[..]),
            };
            at += 1;
        }
        partitions.close().await;
        streams.close().await;
        expected
    });
    (world, expected.unwrap())
}

/// Bytes of all extents.
fn stored_bytes(files: &[(String, u64)]) -> u64 {
    files.iter().filter(|(path, _)| path.starts_with("extents")).map(|(_, size)| size).sum()
}

/// Opens the filled folder so that its checkpoints are compacted; the most bytes that its extents take
/// meanwhile, and what they take before and after it.
fn peak(world: &World, expected: &Everything, part_size_bytes: u64) -> (u64, u64, u64) {
    let before = stored_bytes(&world.disk.files());
    let disk = world.disk.clone();
    disk.set_faults(Faults { slow_one_in: 3, ..Faults::default() });
    let most = world.run(|env, clock| async move {
        let (_streams, partitions) = open(&env, settings(CHECKPOINT_COUNT, part_size_bytes)).await.unwrap();
        let mut most = 0;
        while partitions.statistics().compactions == 0 {
            most = most.max(stored_bytes(&disk.files()));
            base::Clock::sleep(&*clock, LOOK_EVERY).await;
        }
        assert_eq!(read_table(&partitions, TABLE).await.unwrap(), *expected);
        partitions.close().await;
        most
    });
    (most.unwrap(), before, stored_bytes(&world.disk.files()))
}

/// However large extents may be: the next compaction gives them back one by one.
#[test]
fn the_output_of_a_compaction_lies_in_many_extents() {
    const EXTENT_SIZE_BYTES: u64 = 256 << 10;
    /// An extent is ended behind the batch that makes it large enough.
    const BATCH_SIZE_BYTES: u64 = EXTENT_SIZE_BYTES / 4;
    // In parts and at once.
    for part_size_bytes in [PART_SIZE_BYTES, 4 * PART_SIZE_BYTES] {
        let (world, expected) = filled(1, Rows::InOrder);
        let run = world.run(|env, clock| async move {
            let settings = settings(CHECKPOINT_COUNT, part_size_bytes);
            let (streams, partitions) =
                open_with_extents_of(EXTENT_SIZE_BYTES, &env, settings).await.unwrap();
            while partitions.statistics().compactions == 0 {
                base::Clock::sleep(&*clock, LOOK_EVERY).await;
            }
            assert_eq!(read_table(&partitions, TABLE).await.unwrap(), expected);
            partitions.close().await;
            let is_checkpoint =
                |name: &StreamName| !["log", "metadata"].iter().any(|end| name.as_str().ends_with(end));
            let checkpoints = streams.list("entity/").into_iter().filter(is_checkpoint);
            let listed = checkpoints.flat_map(|name| streams.stat(&name).unwrap().extents);
            let extents: Vec<u64> = listed.map(|(_, length)| length).collect();
            streams.close().await;
            extents
        });
        let largest = run.unwrap().into_iter().max().unwrap();
        assert!(largest <= part_size_bytes / 2 + BATCH_SIZE_BYTES, "{part_size_bytes}: {largest}");
    }
}

/// It used to write all of its output before anything of its input went.
#[test]
fn a_large_compaction_takes_a_quarter_more_space_at_most() {
    for rows in [Rows::Scattered, Rows::InOrder, Rows::InReverse, Rows::Replaced] {
        let (world, expected) = filled(1, rows);
        let (at_once, before, at_once_after) = peak(&world.copy(1), &expected, u64::MAX);
        let (in_parts, _, after) = peak(&world.copy(1), &expected, PART_SIZE_BYTES);
        println!("{rows:?}: {before} bytes, {at_once} at once, {in_parts} in parts, {after} afterwards");
        if rows != Rows::Replaced {
            assert!(at_once > before * 3 / 2, "{rows:?}: {at_once} of {before}");
        }
        assert!(in_parts <= before * 5 / 4 + PART_SIZE_BYTES, "{rows:?}: {in_parts} of {before}");
        assert!(after <= at_once_after + at_once_after / 20, "{rows:?}: {after}, {at_once_after} at once");
    }
}

/// Opens the folder, reads all of it again and again while its checkpoints are compacted, and closes it.
async fn compact_and_read(
    env: Environment,
    expected: &Everything,
    reads: &AtomicU64,
) -> Result<(), PartitionError> {
    let (_streams, partitions) = open(&env, settings(CHECKPOINT_COUNT, PART_SIZE_BYTES)).await?;
    loop {
        let is_done = partitions.statistics().compactions > 0;
        assert_eq!(read_table(&partitions, TABLE).await?, *expected);
        reads.fetch_add(1, Ordering::Relaxed);
        if is_done {
            partitions.close().await;
            return Ok(());
        }
    }
}

/// Crashes at many operations of the disk during a compaction in parts, with readers beside it.
#[test]
fn a_compaction_in_parts_survives_a_crash_at_each_step() {
    const STEP: u64 = 71;
    let reads = &AtomicU64::new(0);
    let (mut crash_count, mut resumed_count) = (0, 0);
    let all = [(1, Rows::Replaced), (2, Rows::Scattered), (3, Rows::InOrder), (4, Rows::InReverse)];
    for (seed, rows) in all {
        let (filled, expected) = filled(seed, rows);
        let expected = &expected;
        let row_bytes: u64 = expected.values().map(|(_, value)| value.len() as u64).sum();
        let mut at = 1 + seed;
        loop {
            let world = filled.copy(seed);
            let crash_at_operation = world.disk.operation_count() + at;
            world.disk.set_faults(Faults { slow_one_in: 5, crash_at_operation, ..Faults::default() });
            let ended = world.run(|env, _| async move { compact_and_read(env, expected, reads).await });
            if let Some(Err(error)) = &ended {
                panic!("{rows:?}, crash at {at}: {error}");
            }
            world.disk.set_faults(Faults::default());
            let checked =
                world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await }).unwrap();
            let damages = checked.unwrap().damages;
            assert!(damages.is_empty(), "{rows:?}, crash at {at}: {damages:?}");
            let again = world.run(|env, _| async move {
                let (_streams, partitions) =
                    open(&env, settings(CHECKPOINT_COUNT, PART_SIZE_BYTES)).await.unwrap();
                assert_eq!(
                    read_table(&partitions, TABLE).await.unwrap(),
                    *expected,
                    "{rows:?}, crash at {at}"
                );
                env.clock.sleep(Duration::from_secs(60)).await;
                assert_eq!(
                    read_table(&partitions, TABLE).await.unwrap(),
                    *expected,
                    "{rows:?}, crash at {at}"
                );
                let compacted_bytes = partitions.statistics().compacted_bytes;
                partitions.close().await;
                compacted_bytes
            });
            // Without what the compaction had done before the crash.
            resumed_count += u64::from((1..row_bytes / 3 * 2).contains(&again.unwrap()));
            if ended.is_some() {
                break;
            }
            crash_count += 1;
            at += STEP;
        }
    }
    println!(
        "{crash_count} crashes, {resumed_count} resumed, {} reads of everything beside compactions",
        reads.load(Ordering::Relaxed)
    );
    assert!(crash_count > 60, "only {crash_count} crashes");
    assert!(resumed_count > 5, "only {resumed_count} compactions went on behind what was done");
}

/// Reads pinned moments of rows that nobody changes, until their checkpoints are one.
async fn read_pinned(
    env: &Environment,
    partitions: &Partitions,
    expected: &Everything,
) -> Result<u64, PartitionError> {
    let keys = KeyRange::container(ACCOUNT, 1);
    let mut read_count = 0;
    while partitions.statistics().compactions == 0 {
        let id = partitions.pin_snapshot(TABLE, keys.clone()).await?;
        let snapshot = SnapshotOf { id, table: TABLE, keys: keys.clone() };
        // More than once, so that it stays for a while, and is read again after what came meanwhile.
        for _ in 0..3 {
            let spans = vec![Span::Range(keys.clone())];
            let (scan, _) = partitions.scan_pinned(&snapshot, spans, Collect::default()).await?;
            assert_eq!(scan.rows, *expected);
            env.clock.sleep(Duration::from_millis(env.random.next_u64() % 40)).await;
            read_count += 1;
        }
        partitions.unpin_snapshot(&snapshot);
    }
    Ok(read_count)
}

/// Puts rows beside them, so that flushes come and go.
async fn put_beside(env: &Environment, partitions: &Partitions) -> Result<(), PartitionError> {
    let mut at = 0;
    while partitions.statistics().compactions == 0 {
        let changes = vec![(key(2, "p", &format!("{at:08}")), Some(value(at, VALUE_SIZE_BYTES)))];
        partitions.execute(Write { changes }).await?;
        at += 1;
        if at.is_multiple_of(16) {
            partitions.flush_now(TABLE, None).await?;
            env.clock.sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

/// A flush removed what a compaction beside it had moved since it asked for readers: extents went that those
/// who had come in between were still to read.
#[test]
fn a_pinned_moment_is_read_beside_compactions_in_parts_and_flushes() {
    let mut reads = 0;
    for seed in 0..(number("LARIMAR_SIM_SEEDS").unwrap_or(0) / 4).max(8) {
        let rows = [Rows::Scattered, Rows::InOrder, Rows::InReverse][(seed % 3) as usize];
        let (world, expected) = filled(seed, rows);
        world.disk.set_faults(Faults { slow_one_in: 3, ..Faults::default() });
        let expected = &expected;
        let run = world.run(|env, _| async move {
            let settings = settings(CHECKPOINT_COUNT, PART_SIZE_BYTES);
            let (_streams, partitions) = open(&env, settings).await?;
            let readers = join3(
                read_pinned(&env, &partitions, expected),
                read_pinned(&env, &partitions, expected),
                read_pinned(&env, &partitions, expected),
            );
            let ((one, two, three), beside) = join(readers, put_beside(&env, &partitions)).await;
            beside?;
            let reads = one? + two? + three?;
            partitions.close().await;
            Ok::<u64, PartitionError>(reads)
        });
        match run.unwrap() {
            Ok(count) => reads += count,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{reads} reads of pinned moments beside compactions");
}
