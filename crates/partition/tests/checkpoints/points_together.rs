//! Points that one operation reads are looked up together: what it finds is what each of them is.

use crate::rows::{Everything, TABLE, Write, key, open, value};
use base::Random;
use bytes::Bytes;
use partition::{
    Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowKey, RowVersion, Rows,
};
use sim::World;
use std::sync::Arc;
use std::time::Duration;

const ROW_COUNT: u64 = 60;
const PARTITION_COUNT: u64 = 4;
const ROUND_COUNT: u64 = 150;

/// Reads many rows of one partition name.
struct Look(Vec<RowKey>);

impl Operation for Look {
    type Reply = Vec<Option<(RowVersion, Vec<u8>)>>;

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        self.0.iter().cloned().map(Read::Point).collect()
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Self::Reply> {
        let row = |at| rows.point(at).map(|row| (row.version, row.value.to_vec()));
        Decision::unchanged((0..self.0.len()).map(row).collect())
    }
}

fn row_key(partition: u64, row: u64) -> RowKey {
    key(1, &format!("p{partition}"), &format!("r{row:03}"))
}

/// Puts and deletes a group of rows of one partition name.
async fn write_group(random: &dyn Random, partitions: &Partitions, expected: &mut Everything) {
    let partition = random.next_u64() % PARTITION_COUNT;
    let first = random.next_u64() % ROW_COUNT;
    let rows = first..ROW_COUNT.min(first + 1 + random.next_u64() % 20);
    let change = |row| {
        let tag = random.next_u64();
        let new = (!tag.is_multiple_of(4)).then(|| value(tag, 20 + (tag % 300) as usize));
        (row_key(partition, row), new)
    };
    let changes: Vec<(RowKey, Option<Bytes>)> = rows.map(change).collect();
    let version = partitions.execute(Write { changes: changes.clone() }).await.unwrap();
    for (key, value) in changes {
        let key = key.as_bytes().to_vec();
        match value {
            Some(value) => drop(expected.insert(key, (version, value.to_vec()))),
            None => drop(expected.remove(&key)),
        }
    }
}

/// In any order, some of them twice, and rows that never were beside those that are and those that went.
async fn look(random: &dyn Random, partitions: &Partitions, expected: &Everything) {
    let partition = random.next_u64() % (PARTITION_COUNT + 1);
    let count = 1 + random.next_u64() % 300;
    let keys: Vec<RowKey> =
        (0..count).map(|_| row_key(partition, random.next_u64() % (ROW_COUNT + 20))).collect();
    let found = partitions.execute(Look(keys.clone())).await.unwrap();
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found.as_ref(), expected.get(key.as_bytes().as_ref()), "{key:?} of {count}");
    }
}

#[test]
fn rows_that_are_looked_up_together_are_what_each_of_them_is() {
    for seed in 0..12 {
        let run = World::new(seed).run(|env, _| async move {
            // Few merges, and a cache that holds some filters and not others.
            let settings = PartitionSettings {
                compaction_count_min: 6 + seed as usize % 6,
                cache_size_bytes_max: if seed % 2 == 0 { 16 << 10 } else { 4 << 20 },
                memory_table_size_bytes: 8 << 10,
                // So that a group lies over several parts of a checkpoint, and over their ends.
                part_row_count_max: [None, Some(1), Some(3), Some(7)][seed as usize % 4],
                ..PartitionSettings::tiny()
            };
            let (streams, partitions) = open(&env, settings).await.unwrap();
            let random: Arc<dyn Random> = env.random.clone();
            let mut expected = Everything::new();
            let mut most_checkpoints = 0;
            for round in 0..ROUND_COUNT {
                write_group(&*random, &partitions, &mut expected).await;
                if round % 3 == 0 {
                    look(&*random, &partitions, &expected).await;
                }
                let checkpoints =
                    partitions.range_statistics(TABLE).iter().map(|range| range.checkpoints).max();
                most_checkpoints = most_checkpoints.max(checkpoints.unwrap_or(0));
                if round % 40 == 39 {
                    let at = row_key(random.next_u64() % PARTITION_COUNT, 0);
                    match random.next_u64() % 3 {
                        0 => drop(partitions.merge(TABLE, &at).await),
                        _ => drop(partitions.split(TABLE, &at).await),
                    }
                }
                env.clock.sleep(Duration::from_millis(random.next_u64() % 40)).await;
            }
            assert!(most_checkpoints > 3, "{most_checkpoints} checkpoints of one range");
            partitions.close().await;
            streams.close().await;
        });
        assert_eq!(run, Some(()), "seed {seed}");
    }
}
