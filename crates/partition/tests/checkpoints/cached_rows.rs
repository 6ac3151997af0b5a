//! Which row blocks stay in the cache.

use crate::rows::{TABLE, Write, key, open, value};
use partition::{
    Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowKey, RowVersion, Rows,
};
use sim::World;

fn settings() -> PartitionSettings {
    PartitionSettings {
        compaction_count_min: 1000,
        cache_size_bytes_max: 8 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

fn name(at: u64) -> String {
    format!("{at:05}")
}

/// Puts these rows in one operation.
async fn write(partitions: &Partitions, rows: impl Iterator<Item = u64>, size: usize) {
    let changes = rows.map(|at| (key(1, "p", &name(at)), Some(value(at, size)))).collect();
    partitions.execute(Write { changes }).await.unwrap();
}

async fn read(partitions: &Partitions, at: u64) {
    assert!(partitions.get(TABLE, &key(1, "p", &name(at))).await.unwrap().is_some());
}

/// Inserts a row, which is refused: it is there.
struct Insert(RowKey);

impl Operation for Insert {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.0.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        assert!(rows.point(0).is_some());
        Decision::unchanged(())
    }
}

/// What asks for the first twenty rows.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Read,
    Change,
    ChangeTogether,
    Refused,
}

/// Where rows of some KiB were changed all over a range, as with small blobs that are put again, the cache
/// filled with blocks of which nobody needed any other row: memory that the machine had to find, for nothing.
#[test]
fn blocks_of_few_rows_are_not_kept_for_rows_that_are_changed() {
    for (size, ask, least, most) in [
        // Five rows in a block.
        (3000, Ask::Change, 20, 20),
        (3000, Ask::ChangeTogether, 3, 7),
        (3000, Ask::Refused, 3, 7),
        (3000, Ask::Read, 3, 7),
        (100, Ask::Change, 1, 2),
        (100, Ask::Refused, 1, 2),
        (100, Ask::Read, 1, 2),
    ] {
        let finished = World::new(1).run(|env, _| async move {
            let (_, partitions) = open(&env, settings()).await.unwrap();
            // The first of them lie in checkpoints then.
            for at in 0..(500_000 / size as u64) {
                write(&partitions, at..at + 1, size).await;
            }
            let before = partitions.statistics().cache.row_blocks_read;
            for at in 0..20 {
                match ask {
                    Ask::Read => read(&partitions, at).await,
                    Ask::Change => write(&partitions, at..at + 1, size).await,
                    Ask::ChangeTogether if at == 0 => write(&partitions, 0..20, size).await,
                    Ask::ChangeTogether => {}
                    Ask::Refused => partitions.execute(Insert(key(1, "p", &name(at)))).await.unwrap(),
                }
            }
            let count = partitions.statistics().cache.row_blocks_read - before;
            assert!((least..=most).contains(&count), "{count} blocks, size {size}, {ask:?}");
            partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}
