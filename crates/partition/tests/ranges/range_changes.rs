//! Changes of ranges. Under load on a real disk a range is split ten times and merged back: no operation
//! fails, none is lost, and the longest time in which operations waited is printed. Left to the partition
//! manager, a table that grows is split, and what stays small and idle is merged again.

use bytes::Bytes;
use futures_util::future::join_all;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowKey,
    RowRef, RowVersion, Rows, Scan, Visit,
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

/// Puts a row, or deletes it if the value is empty.
struct Put {
    key: RowKey,
    value: Bytes,
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
        let (key, value) = (self.key.clone(), self.value.clone());
        let change = if value.is_empty() { RowChange::Delete { key } } else { RowChange::Put { key, value } };
        Decision { changes: vec![change], reply: () }
    }
}

#[derive(Default)]
struct Count {
    rows: u64,
    last: Vec<u8>,
}

impl Scan for Count {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        assert!(self.rows == 0 || *self.last < *row.key, "keys must rise");
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
                partitions.execute(Put { key, value: vec![7; VALUE_SIZE_BYTES].into() }).await.unwrap();
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
    let (found, _) = partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
    assert_eq!(found.rows, acknowledged, "every acknowledged row is there once");
    println!(
        "{} splits and {} merges of ranges under {:.0} writes/s: longest pause {:?}, {:?}, slowest write {:?}",
        statistics.range_splits,
        statistics.range_merges,
        acknowledged as f64 / seconds,
        statistics.longest_pause.total(),
        statistics.longest_pause,
        Duration::from_micros(slowest_us.load(Ordering::Relaxed)),
    );
    partitions.close().await;
    drop(partitions);
    // And after a restart.
    let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
    let (found, _) = partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
    assert_eq!(found.rows, acknowledged, "every acknowledged row is there once");
    partitions.close().await;
    streams.close().await;
}

#[test]
fn the_manager_splits_what_grows_and_merges_what_is_small_and_idle() {
    const NAMES: u64 = 40;
    const ROWS: u64 = 2000;
    sim::World::new(7).run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let tiny = PartitionSettings::tiny();
        let small = PartitionSettings { range_size_bytes_max: 400 << 10, range_count_max: 32, ..tiny };
        let partitions = Partitions::open(&env, streams.clone(), small).await.unwrap();
        for at in 0..ROWS {
            let value = (0..VALUE_SIZE_BYTES).map(|_| env.random.next_u64() as u8).collect();
            partitions.execute(Put { key: key(at % NAMES, &format!("{at:08}")), value }).await.unwrap();
        }
        while partitions.balance_now().await.unwrap() > 0 {}
        let grown = partitions.ranges(ObjectTable::Entity).len();
        // Halves of halves: what is not much too large is halved, too.
        assert!((5..=8).contains(&grown), "2 MB are {grown} ranges of at most 400 KiB");
        let statistics = partitions.statistics();
        assert_eq!(statistics.size_splits, statistics.range_splits);
        assert_eq!(partitions.balance_now().await, Ok(0), "a second look changes nothing");
        partitions.close().await;
        // The same ranges are small now.
        let large = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
        let partitions = Partitions::open(&env, streams.clone(), large).await.unwrap();
        for _ in 0..100 {
            env.clock.sleep(Duration::from_secs(15)).await;
        }
        let (left, statistics) = (partitions.ranges(ObjectTable::Entity).len(), partitions.statistics());
        assert_eq!((left, statistics.cold_merges), (1, grown as u64 - 1));
        let (found, _) =
            partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
        assert_eq!(found.rows, ROWS);
        partitions.close().await;
    });
}

/// Asks for `per_second` rows a second for so many seconds of virtual time.
async fn heat(
    partitions: &Partitions,
    clock: &dyn base::Clock,
    seconds: u64,
    per_second: u64,
    key_of: impl Fn(u64) -> RowKey,
) {
    for second in 0..seconds {
        let puts = (0..per_second).map(|at| {
            let put = Put { key: key_of(second * per_second + at), value: Bytes::from_static(b"value") };
            partitions.execute(put)
        });
        join_all(puts).await.into_iter().for_each(|outcome| outcome.unwrap());
        clock.sleep(Duration::from_secs(1)).await;
    }
}

#[test]
fn the_manager_splits_what_is_hot_for_long_where_its_requests_part() {
    const HOT: u64 = 20;
    const NAMES: u64 = 8;
    let run = |key_of: fn(u64) -> RowKey, seconds: u64, per_second: u64| {
        sim::World::new(11).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let settings = PartitionSettings {
                hot_requests_per_second: HOT,
                cold_requests_per_second: 0,
                range_size_bytes_max: 64 << 20,
                ..PartitionSettings::tiny()
            };
            let partitions = Partitions::open(&env, streams, settings).await.unwrap();
            heat(&partitions, &*env.clock, seconds, per_second, key_of).await;
            let ranges = partitions.ranges(ObjectTable::Entity);
            let statistics = partitions.statistics();
            assert_eq!(statistics.heat_splits, statistics.range_splits);
            let (found, _) =
                partitions.scan(ObjectTable::Entity, KeyRange::all(), Count::default()).await.unwrap();
            assert_eq!(found.rows, seconds * per_second, "every row is there once");
            partitions.close().await;
            (ranges.len(), statistics.heat_splits)
        })
    };
    let spread = |at: u64| key(at % NAMES, &format!("r{at:08}"));
    // Five rounds of the manager, the fourth hot one in a row splits.
    assert_eq!(run(spread, 80, 2 * HOT), Some((2, 1)));
    assert_eq!(run(spread, 40, 2 * HOT), Some((1, 0)), "not for long");
    assert_eq!(run(spread, 80, HOT / 2), Some((1, 0)), "not hot");
    let one_name = |at: u64| key(3, &format!("r{:08}", at * 7919 % 99_991));
    assert_eq!(run(one_name, 80, 2 * HOT), Some((1, 0)), "a partition name is never parted");
    let at_the_end = |at: u64| key(at / 40, &format!("r{at:08}"));
    assert_eq!(run(at_the_end, 80, 2 * HOT), Some((1, 0)), "a split would not part inserts at the end");
}
