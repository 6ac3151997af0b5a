//! Which row blocks stay in the cache.

mod rows;

use partition::{PartitionSettings, Partitions};
use rows::{TABLE, Write, key, open, value};
use sim::World;

fn settings() -> PartitionSettings {
    PartitionSettings {
        merge_count_min: 1000,
        cache_size_bytes_max: 8 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

fn name(at: u64) -> String {
    format!("{at:05}")
}

async fn write(partitions: &Partitions, at: u64, size: usize) {
    let changes = vec![(key(1, "p", &name(at)), Some(value(at, size)))];
    partitions.execute(Write { changes }).await.unwrap();
}

async fn read(partitions: &Partitions, at: u64) {
    assert!(partitions.get(TABLE, &key(1, "p", &name(at))).await.unwrap().is_some());
}

/// Puts so many rows of this size: the first of them lie in checkpoints then, many in a block or few. Does `ask` for each
/// of the first ones and says how many blocks were read for it.
async fn blocks_read(partitions: &Partitions, size: usize, ask: impl AsyncFn(u64)) -> u64 {
    for at in 0..(500_000 / size as u64) {
        write(partitions, at, size).await;
    }
    // The index and the filters.
    read(partitions, 40).await;
    let before = partitions.statistics().cache.row_blocks_read;
    for at in 0..20 {
        ask(at).await;
    }
    partitions.statistics().cache.row_blocks_read - before
}

/// Where rows of some KiB were changed all over a range, as with small blobs that are put again, the cache filled with blocks
/// of which nobody needed any other row: memory that the machine had to find, for nothing.
#[test]
fn blocks_of_few_rows_are_kept_for_reads_not_for_changes() {
    for (size, changes, least, most) in
        [(3000, true, 20, 20), (3000, false, 3, 7), (100, true, 0, 2), (100, false, 0, 2)]
    {
        let finished = World::new(1).run(|env, _| async move {
            let (_, partitions) = open(&env, settings()).await.unwrap();
            let ask = async |at| match changes {
                true => write(&partitions, at, size).await,
                false => read(&partitions, at).await,
            };
            let count = blocks_read(&partitions, size, ask).await;
            assert!((least..=most).contains(&count), "{count} blocks, size {size}, changes: {changes}");
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
