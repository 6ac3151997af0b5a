//! Merges that are not due, when idle: they make checkpoints few, and are in nobody's way. On the simulated
//! disk, in virtual time.

use crate::rows::{TABLE, key, open, read_everything, value};
use base::Environment;
use bytes::Bytes;
use partition::{
    Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowKey, RowVersion,
    Rows,
};
use sim::{Faults, World};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, StreamName, StreamSettings, Streams};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

const COUNT_MIN: usize = 30;
/// So many make a merge when idle.
const IDLE_COUNT_MIN: usize = 6;

fn settings() -> PartitionSettings {
    PartitionSettings {
        compaction_count_min: COUNT_MIN,
        cache_size_bytes_max: 4 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

/// Puts some rows of any table.
struct Put {
    table: ObjectTable,
    rows: Vec<(RowKey, Bytes)>,
}

impl Operation for Put {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        self.table
    }

    fn reads(&self) -> Vec<Read> {
        self.rows.iter().map(|(key, _)| Read::Point(key.clone())).collect()
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let put = |(key, value): &(RowKey, Bytes)| RowChange::Put { key: key.clone(), value: value.clone() };
        Decision { changes: self.rows.iter().map(put).collect(), reply: () }
    }
}

fn checkpoints(partitions: &Partitions, table: ObjectTable) -> usize {
    partitions.range_statistics(table)[0].checkpoints
}

/// Writes rows until the range has so many checkpoints.
async fn write_checkpoints(env: &Environment, partitions: &Partitions, table: ObjectTable, count: usize) {
    let mut row = 0;
    while checkpoints(partitions, table) < count {
        put_rows(partitions, table, row..row + 5).await;
        row += 5;
        env.clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Puts rows at once.
async fn put_rows(partitions: &Partitions, table: ObjectTable, rows: Range<u64>) {
    let rows = rows.map(|row| (key(1, "p", &format!("{:06}", row * 617 % 100_003)), value(row, 1000)));
    partitions.execute(Put { table, rows: rows.collect() }).await.unwrap();
}

/// Waits until a merge has begun to write: it has a stream that the range does not know yet.
async fn wait_for_compaction(
    env: &Environment,
    streams: &Streams,
    partitions: &Partitions,
    table: ObjectTable,
) {
    let begins_before = env.clock.monotonic() + Duration::from_secs(60);
    let count = || {
        let names = streams.list(&format!("{}/", table.name()));
        names.iter().filter(|name| name.as_str().contains("/row_data/")).count()
    };
    while count() <= checkpoints(partitions, table) {
        assert!(env.clock.monotonic() < begins_before, "no merge began");
        env.clock.sleep(Duration::from_millis(1)).await;
    }
}

/// A range of a few checkpoints, too few for a merge under load: walks asked all of them for ever.
#[test]
fn when_it_has_become_quiet_a_range_has_few_checkpoints() {
    let finished = World::new(1).run(|env, _| async move {
        let (_, partitions) = open(&env, settings()).await.unwrap();
        let count = || checkpoints(&partitions, TABLE);
        let mut many = 2 * IDLE_COUNT_MIN;
        write_checkpoints(&env, &partitions, TABLE, many).await;
        // Each flush puts it off.
        for _ in 0..6 {
            env.clock.sleep(Duration::from_secs(6)).await;
            many = count();
            write_checkpoints(&env, &partitions, TABLE, many + 1).await;
            assert!((many + 1..COUNT_MIN).contains(&count()), "{} after {many} checkpoints", count());
        }
        let all = read_everything(&partitions).await.unwrap();
        env.clock.sleep(Duration::from_secs(60)).await;
        assert!(count() < IDLE_COUNT_MIN, "{} of {many} checkpoints", count());
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        partitions.close().await;
        let (_, partitions) = open(&env, settings()).await.unwrap();
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// It would have used up, for a while, what others need.
#[test]
fn nothing_is_merged_in_quiet_where_there_is_no_plenty_of_room() {
    let world = World::new(2);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let (_, partitions) = open(&env, settings()).await.unwrap();
        write_checkpoints(&env, &partitions, TABLE, 2 * IDLE_COUNT_MIN).await;
        // Four times what the checkpoints take.
        disk.set_free_bytes(Some(1 << 20));
        env.clock.sleep(Duration::from_secs(120)).await;
        assert!(checkpoints(&partitions, TABLE) >= 2 * IDLE_COUNT_MIN);
        disk.set_free_bytes(Some(64 << 20));
        env.clock.sleep(Duration::from_secs(120)).await;
        assert!(checkpoints(&partitions, TABLE) < IDLE_COUNT_MIN);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// One that failed might fail for ever, each time after much was written.
#[test]
fn a_merge_in_quiet_that_failed_is_not_tried_again() {
    let world = World::new(3);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings()).await.unwrap();
        write_checkpoints(&env, &partitions, TABLE, 2 * IDLE_COUNT_MIN).await;
        let all = read_everything(&partitions).await.unwrap();
        disk.set_faults(Faults { slow_one_in: 2, ..Faults::default() });
        wait_for_compaction(&env, &streams, &partitions, TABLE).await;
        disk.set_free_bytes(Some(0));
        env.clock.sleep(Duration::from_secs(20)).await;
        disk.set_free_bytes(None);
        disk.set_faults(Faults::default());
        env.clock.sleep(Duration::from_secs(300)).await;
        let many = checkpoints(&partitions, TABLE);
        assert!(many >= 2 * IDLE_COUNT_MIN, "{many} checkpoints");
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        // Then others are merged.
        write_checkpoints(&env, &partitions, TABLE, many + 1).await;
        env.clock.sleep(Duration::from_secs(60)).await;
        assert!(checkpoints(&partitions, TABLE) < IDLE_COUNT_MIN);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// A reserve that takes more than is free below, once it was given up.
const RESERVE: u64 = 1 << 20;

async fn open_with_reserve(env: &Environment) -> (Arc<Streams>, Partitions) {
    // The stream manager's log does not begin anew, which would free more than the tests' bounds.
    let stream_settings = StreamSettings {
        reserve_size_bytes: RESERVE,
        manager_log_growth_bytes: RESERVE / 8,
        ..StreamSettings::tiny()
    };
    let streams = Streams::open(env, stream_settings).await.unwrap();
    let partitions = Partitions::open(env, streams.clone(), settings()).await.unwrap();
    // It is made.
    env.clock.sleep(Duration::from_secs(10)).await;
    (streams, partitions)
}

/// What room there is then is for merges that give more of it back.
#[test]
fn nothing_is_merged_in_quiet_while_space_is_scarce() {
    let world = World::new(4);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let (streams, partitions) = open_with_reserve(&env).await;
        write_checkpoints(&env, &partitions, TABLE, IDLE_COUNT_MIN).await;
        let filler = StreamName::new("filler");
        streams.create(std::slice::from_ref(&filler), OWNER).await.unwrap();
        disk.set_free_bytes(Some(0));
        let _ = streams.append(&filler, OWNER, vec![value(1, 100_000)]).await;
        for _ in 0..240 {
            disk.set_free_bytes(Some(RESERVE / 2));
            env.clock.sleep(Duration::from_millis(250)).await;
        }
        assert!(streams.is_scarce());
        assert_eq!(partitions.statistics().compactions, 0);
        disk.set_free_bytes(None);
        env.clock.sleep(Duration::from_secs(120)).await;
        assert!(!streams.is_scarce());
        assert!(checkpoints(&partitions, TABLE) < IDLE_COUNT_MIN);
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Merges are done one after the other: those that are due would have to wait for one that nobody needs.
#[test]
fn nothing_is_merged_in_quiet_while_a_merge_is_due_elsewhere() {
    let world = World::new(5);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let (_, partitions) = open_with_reserve(&env).await;
        let elsewhere = ObjectTable::Message;
        write_checkpoints(&env, &partitions, TABLE, IDLE_COUNT_MIN).await;
        write_checkpoints(&env, &partitions, elsewhere, COUNT_MIN - 1).await;
        // Plenty for the small merge, and no room for the large one.
        disk.set_free_bytes(Some(RESERVE * 35 / 64));
        write_checkpoints(&env, &partitions, elsewhere, COUNT_MIN).await;
        for _ in 0..240 {
            disk.set_free_bytes(Some(RESERVE * 35 / 64));
            env.clock.sleep(Duration::from_millis(250)).await;
        }
        let counts = || [TABLE, elsewhere].map(|table| checkpoints(&partitions, table));
        assert_eq!((counts(), partitions.statistics().compactions), ([IDLE_COUNT_MIN, COUNT_MIN], 0));
        disk.set_free_bytes(None);
        env.clock.sleep(Duration::from_secs(120)).await;
        assert!(counts().iter().all(|count| *count < IDLE_COUNT_MIN), "{:?}", counts());
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}
