//! Writers that are faster than flushes are slowed evenly before they are stopped, in virtual time.

use crate::rows::{Write, key, open, value};
use futures_util::future::join_all;
use partition::{MemoryStatistics, PartitionSettings};
use sim::{Faults, World};
use std::time::Duration;

const WRITES: u64 = 2400;
const VALUE_SIZE_BYTES: usize = 2000;

/// How long writes took, in order, and the statistics.
fn run(seed: u64, writer_count: u64) -> (Vec<Duration>, MemoryStatistics) {
    let world = World::new(seed);
    let disk = world.disk.clone();
    let settings = PartitionSettings {
        memory_table_size_bytes: 512 << 10,
        memory_tables_size_bytes_max: 4 << 20,
        range_size_bytes_max: 64 << 20,
        ..PartitionSettings::tiny()
    };
    let outcome = world.run(|env, _| async move {
        let (_streams, partitions) = open(&env, settings).await.unwrap();
        let (partitions, clock) = (&partitions, &env.clock);
        disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        let writers = (0..writer_count).map(|writer| async move {
            let mut took = Vec::new();
            for at in 0..WRITES / writer_count {
                let row = key(1, &format!("p{writer:03}"), &format!("{at:04}"));
                let began_at = clock.monotonic();
                let changes = vec![(row, Some(value(at, VALUE_SIZE_BYTES)))];
                partitions.execute(Write { changes }).await.unwrap();
                took.push(clock.monotonic() - began_at);
            }
            took
        });
        let took: Vec<Duration> = join_all(writers).await.into_iter().flatten().collect();
        (took, partitions.statistics().memory)
    });
    let (mut took, memory) = outcome.unwrap();
    took.sort();
    (took, memory)
}

/// With two frozen tables all writers stopped until a flush had ended, and then wrote at full speed again.
#[test]
fn writers_are_slowed_before_they_are_stopped() {
    for seed in 0..3 {
        let p99_of = |writer_count: u64| {
            let (took, memory) = run(seed, writer_count);
            let p99 = took[took.len() * 99 / 100];
            println!("{writer_count} writers: p99 {p99:?}, longest {:?}, {memory:?}", took[took.len() - 1]);
            // Once: how fast flushes are is not known before the first one has ended.
            assert!(memory.waits <= writer_count, "seed {seed}: {memory:?}");
            assert!(memory.slowed > 20 * writer_count, "seed {seed}: {memory:?}");
            p99
        };
        let (few, many) = (p99_of(8), p99_of(16));
        assert!(many <= few * 5 / 2, "seed {seed}: {few:?} with 8 writers, {many:?} with 16");
    }
}
