//! What is only in memory is copied to the ranges that take over while writers go on, and a replay skips what
//! is not newer than what it has seen. A row that was copied out of turn would be there until the next start,
//! and then be lost: after changes of ranges under writers of both, with a clock that jumps, and a power
//! loss, every row is there.

use crate::rows::{Everything, TABLE, key, open, put, read_everything, value};
use futures_util::future::join_all;
use partition::{PartitionSettings, Partitions};
use sim::{Faults, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SEEDS: u64 = 60;
const CHANGE_COUNT: u64 = 6;
/// Partition names, each with the milliseconds that its writer rests between two writes, about. Ranges part
/// before the last.
const WRITERS: [(u64, u64); 3] = [(0, 1), (1, 2), (5, 4)];
/// The wall clock is set back by up to this many ticks at a time (ten seconds), or forward.
const JUMP_TICKS: u64 = 100_000_000;

async fn write(
    partitions: &Partitions,
    random: &dyn base::Random,
    clock: &dyn base::Clock,
    (name, rest_ms): (u64, u64),
    done: &AtomicBool,
) -> Everything {
    let mut expected = Everything::new();
    let mut count = 0;
    while !done.load(Ordering::Relaxed) {
        let key = key(1, &format!("p{name}"), &format!("r{:02}", random.next_u64() % 60));
        let value = (!random.next_u64().is_multiple_of(5)).then(|| value(count, 300));
        put(partitions, &mut expected, key, value).await.unwrap();
        count += 1;
        clock.sleep(Duration::from_millis(random.next_u64() % (2 * rest_ms))).await;
    }
    expected
}

#[test]
fn every_row_that_was_written_while_ranges_changed_is_there_after_a_power_loss() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        // On a slow disk rounds of copies take time, in which the clock jumps and writers go on.
        let slow_one_in = [0, 3, 1][seed as usize % 3];
        world.disk.set_faults(Faults { slow_one_in, ..Faults::default() });
        let written = Mutex::new(Everything::new());
        let settings = PartitionSettings {
            memory_table_size_bytes: 1 << 20,
            memory_tables_size_bytes_max: 8 << 20,
            ..PartitionSettings::tiny()
        };
        world
            .run(|env, clock| {
                let (written, settings) = (&written, settings.clone());
                async move {
                    let (_streams, partitions) = open(&env, settings).await.unwrap();
                    let done = AtomicBool::new(false);
                    let writers =
                        WRITERS.map(|writer| write(&partitions, &*env.random, &*clock, writer, &done));
                    let changes = async {
                        for change in 0..CHANGE_COUNT {
                            base::Clock::sleep(&*clock, Duration::from_millis(20)).await;
                            let changed = match change % 2 {
                                0 => partitions.split(TABLE, &key(1, "p3", "")).await,
                                _ => partitions.merge(TABLE, &key(1, "p0", "")).await,
                            };
                            assert_eq!(changed, Ok(true));
                        }
                        done.store(true, Ordering::Relaxed);
                    };
                    let jumps = async {
                        while !done.load(Ordering::Relaxed) {
                            let ticks = env.random.next_u64() % (2 * JUMP_TICKS);
                            clock.move_wall(ticks as i64 - JUMP_TICKS as i64);
                            base::Clock::sleep(&*clock, Duration::from_micros(300)).await;
                        }
                    };
                    let (rows, (), ()) = futures_util::future::join3(join_all(writers), changes, jumps).await;
                    let all: Everything = rows.into_iter().flatten().collect();
                    assert!(read_everything(&partitions).await.unwrap() == all, "seed {seed}: while it runs");
                    // And once more without writers: nothing is left in memory to copy.
                    assert_eq!(partitions.split(TABLE, &key(1, "p3", "")).await, Ok(true));
                    assert_eq!(partitions.merge(TABLE, &key(1, "p0", "")).await, Ok(true));
                    *written.lock().unwrap() = all;
                }
            })
            .unwrap();
        let expected = written.into_inner().unwrap();
        let newest = expected.values().map(|(version, _)| *version).max().unwrap();
        let found = world.run(|env, clock| async move {
            clock.move_wall(-10 * JUMP_TICKS as i64);
            let (_streams, partitions) = open(&env, settings).await.unwrap();
            let found = read_everything(&partitions).await.unwrap();
            let mut more = Everything::new();
            put(&partitions, &mut more, key(1, "p0", "new"), Some(value(0, 10))).await.unwrap();
            let rises = more.values().all(|(version, _)| *version > newest);
            (found, rises)
        });
        let (found, rises) = found.unwrap();
        assert!(found == expected, "seed {seed}: after a power loss");
        assert!(rises, "seed {seed}: versions of a range never come again");
    }
}
