//! A compaction holds no more memory when it has more rows: on the real disk, with an allocator that counts.

#[path = "rows/mod.rs"]
mod rows;

use allocator::{CountedAllocator, allocated_bytes, peak_allocated_bytes, reset_peak};
use base::Environment;
use partition::{PartitionSettings, Partitions};
use rows::{TABLE, Write, key, value};
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

const MIB: usize = 1 << 20;
const ROW_SIZE_BYTES: usize = 1000;
const ROWS_TOGETHER: u64 = 16;
/// Checkpoints of about 800 KiB that are compacted.
const FEW: usize = 30;
const MANY: usize = 90;
/// As many have all buffers that are used again.
const FIRST: usize = 16;
/// What all takes at most: 8 MiB that are read ahead, 4 MiB of row blocks that wait, the same as they are
/// written, memory tables and cache of 5 MiB, and 12 MiB for the journal's records.
const HELD_BYTES_MAX: usize = 32 * MIB;
/// By how much a run differs from another, as flushes and the journal's records meet a compaction or not.
const NOISE_BYTES: usize = 8 * MIB;

fn settings(compaction_count_min: usize) -> PartitionSettings {
    PartitionSettings {
        compaction_count_min,
        memory_table_size_bytes: MIB as u64,
        memory_tables_size_bytes_max: 4 * MIB as u64,
        cache_size_bytes_max: MIB as u64,
        range_size_bytes_max: 1 << 40,
        ..PartitionSettings::default()
    }
}

async fn open_streams(env: &Environment) -> Arc<Streams> {
    let settings = StreamSettings {
        extent_size_bytes_max: 16 << 20,
        journal_segment_size_bytes: 4 << 20,
        scrub_bytes_per_second: 0,
        ..StreamSettings::default()
    };
    Streams::open(env, settings).await.unwrap()
}

fn checkpoints(partitions: &Partitions) -> usize {
    partitions.range_statistics(TABLE)[0].checkpoints
}

/// Bytes that were allocated at most, beyond those before, while ranges were opened and so many checkpoints
/// compacted.
async fn held_bytes(checkpoint_count: usize) -> usize {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let streams = open_streams(&env).await;
    let partitions = Partitions::open(&env, streams.clone(), settings(1000)).await.unwrap();
    let mut row: u64 = 0;
    while checkpoints(&partitions) < checkpoint_count {
        let rows = row..row + ROWS_TOGETHER;
        let changes = rows.map(|row| {
            // Rows of all checkpoints lie among each other.
            let name = format!("{:08}", row * 617 % 1_000_003);
            (key(1, "p", &name), Some(value(row, ROW_SIZE_BYTES)))
        });
        partitions.execute(Write { changes: changes.collect() }).await.unwrap();
        row += ROWS_TOGETHER;
    }
    partitions.close().await;
    streams.close().await;
    drop((streams, partitions));
    // The journal was read. A compaction may begin before ranges are open.
    let streams = open_streams(&env).await;
    let before = allocated_bytes();
    reset_peak();
    let partitions = Partitions::open(&env, streams.clone(), settings(4)).await.unwrap();
    let waits_until = env.clock.monotonic() + Duration::from_secs(120);
    while checkpoints(&partitions) > 4 {
        assert!(env.clock.monotonic() < waits_until, "{} checkpoints are left", checkpoints(&partitions));
        env.clock.sleep(Duration::from_millis(20)).await;
    }
    let held = peak_allocated_bytes() - before;
    let kib = [before, held, allocated_bytes()].map(|bytes| bytes >> 10);
    println!("{checkpoint_count} checkpoints of {row} rows: KiB before, held, afterwards {kib:?}");
    partitions.close().await;
    streams.close().await;
    held
}

/// Each checkpoint that was compacted had half a mebibyte read ahead, and a list for all rows kept its memory
/// to the end: a compaction of 40 million rows took 400 MiB beyond the memory budget.
#[test]
fn a_compaction_of_many_rows_holds_no_more_than_one_of_few() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let [_, few, many] = [FIRST, FEW, MANY].map(|count| runtime.block_on(held_bytes(count)));
    assert!(many <= HELD_BYTES_MAX, "{many} bytes");
    assert!(many <= few + NOISE_BYTES, "{many} bytes, {few} with a third of the rows");
}
