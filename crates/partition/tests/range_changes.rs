//! A range under load on a real disk is split ten times and merged back: no operation fails, none is lost, and the
//! longest time in which operations waited is printed.

use bytes::Bytes;
use futures_util::future::join_all;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowKey, RowRef,
    RowVersion, Rows, Scan, Visit,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use stream::{StreamSettings, Streams};

const PARTITION_NAMES: u64 = 11;
const WRITERS: u64 = 16;
const VALUE_SIZE_BYTES: usize = 1000;
/// Writers run this long between two changes.
const BETWEEN_CHANGES: Duration = Duration::from_millis(100);

struct Put {
    key: RowKey,
}

impl Operation for Put {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Entity
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let value = Bytes::from(vec![7; VALUE_SIZE_BYTES]);
        Decision { changes: vec![RowChange::Put { key: self.key.clone(), value }], reply: () }
    }
}

#[derive(Default)]
struct Count {
    rows: u64,
    last: Vec<u8>,
}

impl Scan for Count {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        assert!(self.rows == 0 || *self.last < *row.key, "keys must rise: row {}, {} then {}", self.rows, self.last.escape_ascii(), row.key.escape_ascii());
        self.last = row.key.to_vec();
        self.rows += 1;
        Visit::Continue
    }
}

fn key(partition: u64, name: &str) -> RowKey {
    RowKey::new("acct", 1, &format!("p{partition:02}"), name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_under_load_splits_ten_times_and_merges_back() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let clock = env.clock.clone();
    let streams = Streams::open(&env, StreamSettings::default()).await.unwrap();
    let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
    let (partitions, done) = (Arc::new(partitions), Arc::new(AtomicBool::new(false)));
    let slowest_us = Arc::new(AtomicU64::new(0));
    let writers = (0..WRITERS).map(|writer| {
        let (partitions, done, clock) = (partitions.clone(), done.clone(), clock.clone());
        let slowest_us = slowest_us.clone();
        async move {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                let key = key(count % PARTITION_NAMES, &format!("w{writer}r{count:08}"));
                let started = clock.monotonic();
                partitions.execute(Put { key }).await.unwrap();
                let took = clock.monotonic().saturating_sub(started);
                slowest_us.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
                count += 1;
            }
            count
        }
    });
    let started = clock.monotonic();
    let changes = async {
        for partition in 1..PARTITION_NAMES {
            clock.sleep(BETWEEN_CHANGES).await;
            assert!(partitions.split(ObjectTable::Entity, &key(partition, "")).await.unwrap());
        }
        assert_eq!(partitions.ranges(ObjectTable::Entity).len() as u64, PARTITION_NAMES);
        while partitions.ranges(ObjectTable::Entity).len() > 1 {
            clock.sleep(BETWEEN_CHANGES).await;
            assert!(partitions.merge(ObjectTable::Entity, &key(0, "")).await.unwrap());
        }
        done.store(true, Ordering::Relaxed);
    };
    let (counts, ()) = tokio::join!(join_all(writers), changes);
    let acknowledged: u64 = counts.into_iter().sum();
    let seconds = clock.monotonic().saturating_sub(started).as_secs_f64();
    let statistics = partitions.statistics();
    let (found, _) =
        partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
    assert_eq!(found.rows, acknowledged, "every acknowledged row is there once");
    println!(
        "{} splits and {} merges of ranges under {:.0} writes/s: longest pause {:?}, slowest write {:?}",
        statistics.range_splits,
        statistics.range_merges,
        acknowledged as f64 / seconds,
        statistics.longest_pause,
        Duration::from_micros(slowest_us.load(Ordering::Relaxed)),
    );
    partitions.close().await;
    drop(partitions);
    // And after a restart.
    let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
    let (found, _) =
        partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
    assert_eq!(found.rows, acknowledged, "every acknowledged row is there once");
    partitions.close().await;
    streams.close().await;
}
