//! A process whose lease ends at a moment that the seed chooses, in the midst of its requests, and another
//! one that takes its ranges over after that.
//!
//! What is checked: whatever the former owner acknowledged is there, no read of it misses what its successor
//! had acknowledged before the read began, and after its end it answers nothing at all.

use crate::rows::{Write, key};
use crate::seeds::chosen_seeds;
use base::{Clock, Environment};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use partition::{
    Lease, ObjectTable, PartitionError, PartitionSettings, Partitions, PlantedFault, Row, RowKey,
};
use sim::World;
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

const SEED_COUNT: u64 = 100;
const WRITERS: u64 = 4;
const TABLE: ObjectTable = ObjectTable::Entity;

/// A lease that ends at a time of the clock.
struct EndsAt {
    clock: Arc<dyn Clock>,
    end: Duration,
}

impl Lease for EndsAt {
    fn holds(&self) -> bool {
        self.clock.monotonic() < self.end
    }
}

/// One counter: what was acknowledged last, and what may be there because its outcome is unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    acknowledged: u64,
    tried: u64,
}

/// What the run came to.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    not_mine: u64,
    unknown: u64,
    /// Reads that missed what had been acknowledged before they began, or answers after the end.
    wrong: u64,
}

fn counter_key(writer: u64) -> RowKey {
    key(1, &format!("p{writer}"), "counter")
}

async fn write(partitions: &Partitions, writer: u64, count: u64) -> Result<(), PartitionError> {
    let value = Bytes::from(count.to_le_bytes().to_vec());
    partitions.execute(Write { changes: vec![(counter_key(writer), Some(value))] }).await.map(|_| ())
}

fn count_of(row: Option<Row>) -> u64 {
    row.map_or(0, |row| u64::from_le_bytes(row.value[..].try_into().unwrap()))
}

/// Writes and reads at `partitions` until `until`.
async fn use_counter(
    env: &Environment,
    partitions: &Partitions,
    (writer, ends_at): (u64, Duration),
    until: Duration,
    counters: &Mutex<Vec<Counter>>,
    outcome: &Mutex<Outcome>,
) {
    let at = writer as usize;
    while env.clock.monotonic() < until {
        env.clock.sleep(Duration::from_micros(env.random.next_u64() % 2000)).await;
        let before = counters.lock()[at];
        let answer = if env.random.next_u64().is_multiple_of(2) {
            let next = before.tried + 1;
            counters.lock()[at].tried = next;
            let written = write(partitions, writer, next).await;
            if written.is_ok() {
                let mut counters = counters.lock();
                counters[at].acknowledged = counters[at].acknowledged.max(next);
            }
            written
        } else {
            let read = partitions.get(TABLE, &counter_key(writer)).await.map(count_of);
            if let Ok(found) = read {
                outcome.lock().wrong += u64::from(found < before.acknowledged);
            }
            read.map(|_| ())
        };
        let mut outcome = outcome.lock();
        match answer {
            Ok(()) => outcome.wrong += u64::from(env.clock.monotonic() > ends_at),
            Err(PartitionError::NotMine) => outcome.not_mine += 1,
            Err(PartitionError::Unavailable(_)) => outcome.unknown += 1,
            Err(other) => panic!("{other}"),
        }
    }
}

/// One life: the former owner is used all the time, its successor comes after the end of the lease.
fn life(seed: u64, planted_fault: Option<PlantedFault>) -> Outcome {
    let run = World::new(seed).run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let end = env.clock.monotonic() + Duration::from_millis(20 + env.random.next_u64() % 60);
        let lease = Arc::new(EndsAt { clock: env.clock.clone(), end });
        let settings = PartitionSettings { planted_fault, ..PartitionSettings::tiny() };
        let former = Partitions::open_while(&env, streams.clone(), settings, lease).await.unwrap();
        let counters = Mutex::new(vec![Counter::default(); WRITERS as usize]);
        let outcome = Mutex::new(Outcome::default());
        let until = end + Duration::from_millis(60);
        let used =
            (0..WRITERS).map(|writer| use_counter(&env, &former, (writer, end), until, &counters, &outcome));
        let taken = async {
            env.clock.sleep(end.saturating_sub(env.clock.monotonic()) + Duration::from_millis(1)).await;
            let successor = Partitions::open(&env, streams.clone(), PartitionSettings::tiny()).await.unwrap();
            let before = counters.lock().clone();
            for (writer, counter) in before.iter().enumerate() {
                let found = count_of(successor.get(TABLE, &counter_key(writer as u64)).await.unwrap());
                assert!(found >= counter.acknowledged, "seed {seed}: {found}, {counter:?}");
                assert!(found <= counters.lock()[writer].tried, "seed {seed}: {found}, {counter:?}");
            }
            for round in 1..20u64 {
                for writer in 0..WRITERS {
                    // Beyond whatever the former owner may still try.
                    let count = (1 << 32) + round;
                    write(&successor, writer, count).await.unwrap();
                    counters.lock()[writer as usize].acknowledged = count;
                }
            }
            for writer in 0..WRITERS {
                let found = count_of(successor.get(TABLE, &counter_key(writer)).await.unwrap());
                assert_eq!(found, (1 << 32) + 19, "seed {seed}: a late write of the former owner is there");
            }
            successor
        };
        futures_util::future::join(join_all(used), taken).await;
        *outcome.lock()
    });
    run.unwrap()
}

#[test]
fn a_former_owner_answers_nothing_after_the_end_of_its_lease() {
    let mut all = Outcome::default();
    for seed in chosen_seeds(SEED_COUNT, 1) {
        let outcome = life(seed, None);
        assert_eq!(outcome.wrong, 0, "seed {seed}: {outcome:?}");
        all.not_mine += outcome.not_mine;
        all.unknown += outcome.unknown;
    }
    assert!(all.not_mine > 0, "{all:?}");
}

/// The epoch alone keeps a former owner from writing, and not from reading.
#[test]
fn a_lease_that_is_ignored_is_noticed() {
    let noticed = (0..5).filter(|seed| life(*seed, Some(PlantedFault::IgnoredLease)).wrong > 0).count();
    assert!(noticed > 0, "no seed of 5 shows it");
}
