//! A task that ends in the middle, as by a panic: of a hand-over, operations that wait for its ranges get an
//! error; of a group commit, waiters for the group and all after it. No waiter waits for ever, and the next
//! start finds all rows.

use crate::rows::{Everything, TABLE, key, open, put, read_everything, value};
use base::{BoxFuture, Clock, Environment, Spawner, TaskThread};
use futures_util::future::{join_all, select};
use partition::{PartitionError, PartitionSettings};
use sim::{Faults, World};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Drops the tasks of a name when the time has come.
struct BreakOff {
    inner: Arc<dyn Spawner>,
    when: When,
}

/// Which tasks end early, and when.
#[derive(Clone)]
struct When {
    name: &'static str,
    clock: Arc<dyn Clock>,
    /// Each of them this long after its start.
    after: Duration,
    /// Those that start before this time go on.
    not_before: Duration,
}

impl When {
    fn cut_off(&self, name: &'static str, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        if name != self.name || self.clock.monotonic() < self.not_before {
            return task;
        }
        let end = self.clock.sleep(self.after);
        Box::pin(async move {
            select(task, end).await;
        })
    }
}

impl Spawner for BreakOff {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.inner.spawn(name, task);
    }

    fn spawn_dedicated(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.inner.spawn_dedicated(name, self.when.cut_off(name, task))
    }

    fn spawn_background(&self, name: &'static str, task: BoxFuture<'static, ()>) -> io::Result<()> {
        self.inner.spawn_background(name, task)
    }

    fn start_thread(&self, name: &'static str) -> io::Result<Arc<dyn TaskThread>> {
        let thread = self.inner.start_thread(name)?;
        Ok(Arc::new(BreakOffThread { thread, when: self.when.clone() }))
    }
}

struct BreakOffThread {
    thread: Arc<dyn TaskThread>,
    when: When,
}

impl TaskThread for BreakOffThread {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.thread.spawn(name, self.when.cut_off(name, task));
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
            let when = When {
                name: "hand-over",
                clock: env.clock.clone(),
                after: Duration::from_millis(after_ms),
                not_before: Duration::ZERO,
            };
            let spawner = Arc::new(BreakOff { inner: env.spawner.clone(), when });
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
                    Err(PartitionError::Unavailable(_) | PartitionError::OutcomeUnknown(_)) => refused += 1,
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

/// A group that was on its way to the log when its task ended may be there or not: its writers are refused,
/// those after them too, and what was acknowledged before is there at the next start.
#[test]
fn nobody_waits_for_a_group_commit_that_broke_off() {
    let (mut broken_off, mut acknowledged) = (0, 0);
    for seed in 0..40 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let run = world.run(|env, _| async move {
            let when = When {
                name: "group-commit",
                clock: env.clock.clone(),
                after: Duration::from_millis(1 + seed % 4),
                not_before: Duration::from_millis(1000 + 3 * seed),
            };
            let spawner = Arc::new(BreakOff { inner: env.spawner.clone(), when });
            let env = Environment { spawner, ..env };
            let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            let (partitions, clock) = (&partitions, &env.clock);
            disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
            clock.sleep(Duration::from_millis(1000).saturating_sub(clock.monotonic())).await;
            let writes = (0..100u64).map(|at| async move {
                clock.sleep(Duration::from_millis(2 * at)).await;
                let mut written = Everything::new();
                let row = key(1, &format!("p{}", at % 4), &format!("w{at:02}"));
                let outcome = put(partitions, &mut written, row, Some(value(at, 100))).await;
                (outcome, written)
            });
            tokio::select! {
                written = join_all(writes) => written,
                () = clock.sleep(Duration::from_secs(600)) => panic!("seed {seed}: somebody waits for ever"),
            }
        });
        let (mut all, mut refused) = (Everything::new(), false);
        for (outcome, written) in run.unwrap() {
            match outcome {
                Ok(()) => {
                    assert!(!refused, "seed {seed}: a write after one that was refused");
                    all.extend(written);
                }
                Err(PartitionError::Unavailable(_) | PartitionError::OutcomeUnknown(_)) => refused = true,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        broken_off += u64::from(refused);
        acknowledged += all.len();
        world.disk.set_faults(Faults::default());
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            read_everything(&partitions).await.unwrap()
        });
        let found = found.unwrap();
        assert!(all.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}: rows are lost");
    }
    println!("{broken_off} group commits broke off, {acknowledged} writes were acknowledged before");
    assert!(broken_off > 20 && acknowledged > 200, "{broken_off} broke off, {acknowledged} acknowledged");
}
