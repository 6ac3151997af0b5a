//! The same seed gives the same run, with many who wait for one thing as well: they wake in the order in which they came.

mod rows;

use futures_util::future::join_all;
use partition::PartitionSettings;
use rows::{Everything, TABLE, key, open, put, value};
use sim::{Faults, World};
use std::time::Duration;

/// Writers who waited for memory, and those who waited for a hand-over, woke in an order of chance.
#[test]
fn many_writers_who_wait_leave_the_same_trace_each_time() {
    const WRITERS: u64 = 48;
    let trace = |seed: u64| {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let waits = world.run(|env, _| async move {
            let settings = PartitionSettings {
                memory_table_size_bytes: 64 << 10,
                memory_tables_size_bytes_max: 256 << 10,
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
                for partition in ["p12", "p24", "p36"] {
                    env.clock.sleep(Duration::from_millis(300)).await;
                    partitions.split(TABLE, &key(1, partition, "")).await.unwrap();
                }
            };
            tokio::join!(join_all(writes), changes);
            partitions.statistics().memory.waits
        });
        assert!(waits.unwrap() > 2 * WRITERS, "writers must wait for memory: {waits:?}");
        world.disk.trace()
    };
    for seed in 0..4 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}
