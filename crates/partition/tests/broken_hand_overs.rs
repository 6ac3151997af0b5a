//! A hand-over whose task ends in the middle, as by a panic: whoever waits for its ranges is told, nobody waits for ever,
//! and the next start finds all rows.

mod rows;

use base::{BoxFuture, Clock, Environment, Spawner};
use futures_util::future::{join_all, select};
use partition::{PartitionError, PartitionSettings};
use rows::{Everything, TABLE, key, open, put, read_everything, value};
use sim::{Faults, World};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Drops the tasks of hand-overs after so many milliseconds.
struct BreakOff {
    inner: Arc<dyn Spawner>,
    clock: Arc<dyn Clock>,
    after_ms: u64,
}

impl Spawner for BreakOff {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.inner.spawn(name, task);
    }

    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        if name != "hand-over" {
            return self.inner.spawn_dedicated(name, task);
        }
        let (clock, after) = (self.clock.clone(), Duration::from_millis(self.after_ms));
        let cut_off = async move {
            select(task, clock.sleep(after)).await;
        };
        self.inner.spawn_dedicated(name, Box::pin(cut_off))
    }

    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.inner.spawn_background(name, task)
    }
}

/// Operations waited for ever for a hand-over that had ended with a panic.
#[test]
fn nobody_waits_for_a_hand_over_that_broke_off() {
    let (mut broken_off, mut refused) = (0, 0);
    for after_ms in 1..60 {
        let world = World::new(after_ms);
        let disk = world.disk.clone();
        let run = world.run(|env, _| async move {
            let inner = env.spawner.clone();
            let spawner = Arc::new(BreakOff { inner, clock: env.clock.clone(), after_ms });
            let env = Environment { spawner, ..env };
            let settings = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
            let (_, partitions) = open(&env, settings).await.unwrap();
            let partitions = &partitions;
            let mut all = Everything::new();
            for at in 0..20u64 {
                let row = key(1, &format!("p{}", at % 4), &format!("r{at:02}"));
                put(partitions, &mut all, row, Some(value(at, 1000))).await.unwrap();
            }
            disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
            let clock = &env.clock;
            let writes = (0..40u64).map(|at| async move {
                clock.sleep(Duration::from_millis(2 * at)).await;
                let mut written = Everything::new();
                let row = key(1, &format!("p{}", at % 4), &format!("w{at:02}"));
                let outcome = put(partitions, &mut written, row, Some(value(at, 100))).await;
                (outcome, written)
            });
            let key = key(1, "p2", "");
            let (split, written) = tokio::select! {
                ended = async { tokio::join!(partitions.split(TABLE, &key), join_all(writes)) } => ended,
                () = clock.sleep(Duration::from_secs(600)) => panic!("{after_ms} ms: somebody waits for ever"),
            };
            let mut refused = 0;
            for (outcome, written) in written {
                match outcome {
                    Ok(()) => all.extend(written),
                    Err(PartitionError::Unavailable(_)) => refused += 1,
                    Err(other) => panic!("{after_ms} ms: {other}"),
                }
            }
            (all, split.is_err(), refused)
        });
        let (all, broke_off, its_refused) = run.unwrap();
        broken_off += u64::from(broke_off);
        refused += its_refused;
        world.disk.set_faults(Faults::default());
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            read_everything(&partitions).await.unwrap()
        });
        let found = found.unwrap();
        assert!(all.iter().all(|(key, row)| found.get(key) == Some(row)), "{after_ms} ms: rows are lost");
    }
    println!("{broken_off} hand-overs broke off, {refused} writes were refused");
    assert!(broken_off > 10 && refused > 10, "{broken_off} broke off, {refused} writes were refused");
}
