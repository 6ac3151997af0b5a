//! The same seed gives the same run, with many who wait for one thing as well: they wake in the order in
//! which they came.

use crate::rows::{Everything, TABLE, key, open, put, value};
use futures_util::future::join_all;
use partition::{PartitionSettings, PartitionStatistics};
use sim::{Faults, World};
use std::time::Duration;

const WRITERS: u64 = 48;

/// The trace of a run in which many write on a slow disk while their range is split and merged again.
fn trace(seed: u64, memory_table_size_bytes: u64) -> (u64, PartitionStatistics) {
    let world = World::new(seed);
    let disk = world.disk.clone();
    let statistics = world.run(|env, _| async move {
        let settings = PartitionSettings {
            memory_table_size_bytes,
            memory_tables_size_bytes_max: 4 * memory_table_size_bytes,
            range_size_bytes_max: 64 << 20,
            ..PartitionSettings::tiny()
        };
        let (_streams, partitions) = open(&env, settings).await.unwrap();
        let partitions = &partitions;
        disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
        let writes = (0..WRITERS).map(|writer| async move {
            for at in 0..20 {
                let row = key(1, &format!("p{writer:02}"), &format!("{at:02}"));
                put(partitions, &mut Everything::new(), row, Some(value(at, 4000))).await.unwrap();
            }
        });
        let changes = async {
            for _ in 0..4 {
                env.clock.sleep(Duration::from_millis(20)).await;
                partitions.split(TABLE, &key(1, "p24", "")).await.unwrap();
                env.clock.sleep(Duration::from_millis(20)).await;
                partitions.merge(TABLE, &key(1, "p00", "")).await.unwrap();
            }
        };
        tokio::join!(join_all(writes), changes);
        partitions.statistics()
    });
    (world.disk.trace(), statistics.unwrap())
}

/// Writers who waited for memory woke in an order of chance.
#[test]
fn many_writers_who_wait_for_memory_leave_the_same_trace_each_time() {
    for seed in 0..4 {
        let (first, statistics) = trace(seed, 64 << 10);
        assert!(statistics.memory.waits > 2 * WRITERS, "writers must wait for memory: {statistics:?}");
        assert_eq!(trace(seed, 64 << 10).0, first, "seed {seed}");
    }
}

/// So did those who waited for a hand-over.
#[test]
fn many_writers_who_wait_for_a_hand_over_leave_the_same_trace_each_time() {
    for seed in 0..4 {
        let (first, statistics) = trace(seed, 4 << 20);
        assert_eq!(statistics.memory.waits, 0, "nobody waits for memory");
        assert_eq!((statistics.range_splits, statistics.range_merges), (4, 4));
        assert_eq!(trace(seed, 4 << 20).0, first, "seed {seed}");
    }
}
