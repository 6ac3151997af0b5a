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
const FEW: usize = 12;
const MANY: usize = 60;
/// What a compaction holds at most: 8 MiB that are read ahead, 4 MiB of row blocks that wait, the same as
/// they are written, and what is unpacked.
const HELD_BYTES_MAX: usize = 18 * MIB;

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

/// Bytes that a compaction of so many checkpoints held at most, beyond what the process has afterwards.
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
    reset_peak();
    let partitions = Partitions::open(&env, streams.clone(), settings(4)).await.unwrap();
    let waits_until = env.clock.monotonic() + Duration::from_secs(120);
    while checkpoints(&partitions) > 4 {
        assert!(env.clock.monotonic() < waits_until, "{} checkpoints are left", checkpoints(&partitions));
        env.clock.sleep(Duration::from_millis(20)).await;
    }
    let held = peak_allocated_bytes().saturating_sub(allocated_bytes());
    println!("{checkpoint_count} checkpoints of {row} rows: {} KiB", held >> 10);
    partitions.close().await;
    streams.close().await;
    held
}

/// Each checkpoint that was compacted had half a mebibyte read ahead, and a list for all rows kept its memory
/// to the end: a compaction of 40 million rows took 400 MiB beyond the memory budget.
#[test]
fn a_compaction_of_many_rows_holds_no_more_than_one_of_few() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let [few, many] = [FEW, MANY].map(|count| runtime.block_on(held_bytes(count)));
    assert!(many <= HELD_BYTES_MAX, "{many} bytes");
    assert!(many <= few + 6 * MIB, "{many} bytes, {few} with a fifth of the rows");
}
