//! A file of records on the simulated disk: power is lost at a chosen operation, syncs fail, the disk fills
//! up.
//!
//! After each start: records that were acknowledged are there as they were put, those that were removed are
//! not, and of those that were under way each is there whole or not at all. A failure names its seed.

use base::FileLock;
use parking_lot::Mutex;
use shard_store::{FilePlace, FileRecords, Put, Records};
use sim::{Faults, World};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SEEDS: u64 = 200;
const LIVES: usize = 4;
const STEPS: u64 = 30;

/// A lock within one process; a crash ends its holder.
#[derive(Default)]
struct MemoryLock(Arc<AtomicBool>);

impl FileLock for MemoryLock {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        let is_free = !self.0.swap(true, Ordering::Relaxed);
        Ok(is_free.then(|| Box::new(Held(self.0.clone())) as Box<dyn Send + Sync>))
    }
}

/// The lock as long as it is held.
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What a record may be: a value, or not there.
type Allowed = BTreeMap<String, Vec<Option<String>>>;

#[test]
fn acknowledged_records_survive_crashes_failed_syncs_and_a_full_disk() {
    let seeds = std::env::var("LARIMAR_SIM_SEED").ok().map(|seed| seed.parse::<u64>().expect("a number"));
    for seed in seeds.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let world = World::new(seed);
        let mut allowed = Allowed::new();
        for life in 0..LIVES {
            let random = world.random.clone();
            world.disk.set_faults(Faults {
                crash_at_operation: world.disk.operation_count() + 1 + random.below(120),
                sync_fails_one_in: if random.one_in(3) { 10 } else { 0 },
                capacity_bytes: if random.one_in(4) { 2000 + random.below(4000) } else { 0 },
                ..Faults::default()
            });
            let seen = Arc::new(Mutex::new(std::mem::take(&mut allowed)));
            world.run(|env, _| {
                run_life(env, seen.clone(), random.clone(), format!("seed {seed}, life {life}"))
            });
            allowed = std::mem::take(&mut seen.lock());
        }
        world.disk.set_faults(Faults::default());
        let random = world.random.clone();
        let last = Arc::new(Mutex::new(allowed));
        let done = world
            .run(|env, _| check(records(&env), last, format!("seed {seed}, the end: {}", random.below(2))));
        assert!(done.is_some(), "seed {seed}: the last life ends");
    }
}

fn records(env: &base::Environment) -> FileRecords {
    FileRecords::new(FilePlace {
        disk: env.disk.clone(),
        name: "map".to_owned(),
        lock: Arc::new(MemoryLock::default()),
        clock: env.clock.clone(),
        thread: env.spawner.start_thread("file").expect("a thread"),
        shown: "map".to_owned(),
    })
}

async fn run_life(
    env: base::Environment,
    allowed: Arc<Mutex<Allowed>>,
    random: sim::SimRandom,
    what: String,
) {
    let records = records(&env);
    check(self::records(&env), allowed.clone(), what.clone()).await;
    for step in 0..STEPS {
        let key = format!("key-{}", random.below(8));
        let value = format!("{what}, step {step}, {}", "x".repeat(random.below(300) as usize));
        let is_put = !random.one_in(4);
        let wanted = if is_put { Some(value.clone()) } else { None };
        // A crash in the middle of it leaves it open.
        let former = allowed.lock().get(&key).cloned().unwrap_or_else(|| vec![None]);
        let open = match is_put {
            // A put changes nothing that is there.
            true if former.contains(&None) => [former.clone(), vec![wanted.clone()]].concat(),
            true => former.clone(),
            false => [former.clone(), vec![None]].concat(),
        };
        allowed.lock().insert(key.clone(), open);
        let done = match is_put {
            true => records.put(&key, &value).await,
            false => records.remove(&key).await.map(|()| Put::Done),
        };
        let settled = match done {
            Ok(Put::Done) => vec![wanted],
            Ok(Put::Taken) => former.into_iter().filter(Option::is_some).collect(),
            Err(error) if !error.may_be_done => former,
            Err(_) => continue,
        };
        assert!(!settled.is_empty(), "{what}: {key} was taken, and should not be there");
        allowed.lock().insert(key, settled);
    }
}

/// Reads all records; each is as it may be.
async fn check(records: FileRecords, allowed: Arc<Mutex<Allowed>>, what: String) {
    let found = records.list("", "z", 1000).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found: BTreeMap<String, String> =
        found.into_iter().map(|record| (record.key, record.value)).collect();
    for (key, values) in allowed.lock().iter() {
        assert!(
            values.contains(&found.get(key).cloned()),
            "{what}: {key} is {:?}, and not {values:?}",
            found.get(key)
        );
    }
    assert!(found.keys().all(|key| allowed.lock().contains_key(key)), "{what}: {found:?}");
}
