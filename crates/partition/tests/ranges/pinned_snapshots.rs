//! Pinned snapshots: a scan that names one reads its moment, whatever becomes of the rows and ranges, and
//! where that can't be, it is an error.

use crate::rows::backward::read_backward;
use crate::rows::{ACCOUNT, Collect, Everything, TABLE, key, open, put, value};
use base::Environment;
use base::memory_disk::MemoryDisk;
use partition::{
    KeyRange, ObjectTable, PINNED_SNAPSHOT_AGE_MAX, PINNED_SNAPSHOT_FIRST_IDLE_MAX, PINNED_SNAPSHOT_IDLE_MAX,
    PINNED_SNAPSHOTS_MAX, PINNED_SNAPSHOTS_OF_ACCOUNT_MAX, PartitionError, PartitionSettings, Partitions,
    RowKey, ScanEnd, SnapshotId, SnapshotOf, Span,
};
use sim::World;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;

/// Pins end for memory late enough to be tested for something else.
fn roomy() -> PartitionSettings {
    PartitionSettings { memory_tables_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() }
}

fn container() -> KeyRange {
    KeyRange::container(ACCOUNT, 1)
}

/// The snapshot as one of the container's rows.
fn of(id: SnapshotId) -> SnapshotOf {
    SnapshotOf { id, table: TABLE, keys: container() }
}

async fn read(partitions: &Partitions, id: SnapshotId) -> Result<Everything, PartitionError> {
    let spans = vec![Span::Range(container())];
    let (scan, end) = partitions.scan_pinned(&of(id), spans, Collect::default()).await?;
    assert_eq!(end, ScanEnd::Complete);
    Ok(scan.rows)
}

async fn pin(partitions: &Partitions) -> Result<SnapshotId, PartitionError> {
    partitions.pin_snapshot(TABLE, container()).await
}

/// One that was read twice, so that it stays for a while.
async fn pin_to_stay(partitions: &Partitions) -> Result<SnapshotId, PartitionError> {
    let id = pin(partitions).await?;
    read(partitions, id).await?;
    read(partitions, id).await?;
    Ok(id)
}

/// Rows change, are flushed and compacted, ranges are split and merged: what was pinned stays as it was.
async fn live_through_changes(env: Environment) {
    let (_, partitions) = open(&env, roomy()).await.unwrap();
    let random = |bound: u64| env.random.next_u64() % bound;
    let (mut now, mut pinned) = (Everything::new(), Vec::new());
    for step in 0..400u64 {
        let name = |number: u64| format!("p{number}");
        match random(40) {
            0 => drop(partitions.flush_now(TABLE, None).await.unwrap()),
            1 => drop(partitions.compact_now(TABLE, None).await.unwrap()),
            2 => drop(partitions.split(TABLE, &key(1, &name(random(6)), "")).await.unwrap()),
            3 => drop(partitions.merge(TABLE, &key(1, &name(random(6)), "")).await.unwrap()),
            4 if pinned.len() < PINNED_SNAPSHOTS_OF_ACCOUNT_MAX => {
                pinned.push((pin_to_stay(&partitions).await.unwrap(), now.clone()));
            }
            5 if !pinned.is_empty() => {
                let (id, _) = pinned.swap_remove(random(pinned.len() as u64) as usize);
                partitions.unpin_snapshot(&of(id));
                assert_eq!(read(&partitions, id).await, Err(PartitionError::SnapshotExpired));
            }
            6 if !pinned.is_empty() => {
                let (id, expected) = &pinned[random(pinned.len() as u64) as usize];
                assert!(read(&partitions, *id).await.unwrap() == *expected, "step {step}");
                let (spans, count_max) = ([Span::Range(container())], 1 + random(200) as usize);
                let found =
                    read_backward(&partitions, TABLE, &spans, Some(&of(*id)), count_max).await.unwrap();
                assert!(found.into_iter().rev().eq(expected.clone()), "step {step}, backward");
            }
            _ => {
                let key = key(1, &name(random(6)), &format!("r{:02}", random(30)));
                let value = (random(5) > 0).then(|| value(step, 100 + random(400) as usize));
                put(&partitions, &mut now, key, value).await.unwrap();
            }
        }
    }
    for (id, expected) in &pinned {
        assert!(read(&partitions, *id).await.unwrap() == *expected, "at the end");
    }
    // Their ranges and files go with them.
    pinned.iter().for_each(|(id, _)| partitions.unpin_snapshot(&of(*id)));
    assert_eq!(partitions.pinned_snapshot_count(), 0);
    partitions.close().await;
}

#[test]
fn a_pinned_snapshot_stays_as_it_was() {
    for seed in 0..24 {
        let finished = World::new(seed).run(|env, _| live_through_changes(env));
        assert!(finished.is_some(), "seed {seed}");
    }
}

#[test]
fn a_snapshot_that_is_gone_is_an_error() {
    let finished = World::new(7).run(|env, _| async move {
        let (streams, partitions) = open(&env, roomy()).await.unwrap();
        put(&partitions, &mut Everything::new(), key(1, "p", "r"), Some(value(1, 10))).await.unwrap();
        let expired = Err(PartitionError::SnapshotExpired);
        let unused = pin_to_stay(&partitions).await.unwrap();
        let used = pin_to_stay(&partitions).await.unwrap();
        let mut age = Duration::ZERO;
        while age < PINNED_SNAPSHOT_AGE_MAX - PINNED_SNAPSHOT_IDLE_MAX {
            assert_eq!(read(&partitions, used).await.map(|rows| rows.len()), Ok(1), "{age:?}");
            env.clock.sleep(PINNED_SNAPSHOT_IDLE_MAX / 2).await;
            age += PINNED_SNAPSHOT_IDLE_MAX / 2;
        }
        assert_eq!(read(&partitions, unused).await, expired, "it was not used");
        assert_eq!(partitions.pinned_snapshot_count(), 1);
        for _ in 0..4 {
            let _ = read(&partitions, used).await;
            env.clock.sleep(PINNED_SNAPSHOT_IDLE_MAX / 2).await;
        }
        assert_eq!(read(&partitions, used).await, expired, "it is old");
        assert_eq!(partitions.pinned_snapshot_count(), 0, "nobody had to ask");
        let left = pin(&partitions).await.unwrap();
        partitions.close().await;
        streams.close().await;
        drop((partitions, streams));
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        assert_eq!(read(&partitions, left).await, expired, "another life of the process");
        let first = pin(&partitions).await.unwrap();
        assert_ne!(first, left);
    });
    assert!(finished.is_some());
}

/// Who has an id that is another's reads nothing, not even that there is such a snapshot, neither ends it nor
/// keeps it: also where no rows are asked for, which are all of any snapshot.
#[test]
fn a_snapshot_is_there_for_its_own_rows_only() {
    let finished = World::new(10).run(|env, _| async move {
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        put(&partitions, &mut Everything::new(), key(1, "p", "r"), Some(value(1, 10))).await.unwrap();
        let id = pin_to_stay(&partitions).await.unwrap();
        let part = KeyRange { end: Some(key(1, "q", "").as_bytes().clone()), ..container() };
        let others = [
            (TABLE, KeyRange::container(ACCOUNT, 2)),
            (TABLE, KeyRange::container("other", 1)),
            (TABLE, part),
            (ObjectTable::Message, container()),
        ];
        let gone = Err(PartitionError::SnapshotExpired);
        for _ in 0..2 {
            for (table, keys) in others.clone() {
                let other = SnapshotOf { id, table, keys: keys.clone() };
                for spans in [vec![], vec![Span::Range(keys)]] {
                    let found = partitions.scan_pinned(&other, spans.clone(), Collect::default()).await;
                    assert_eq!(found.map(drop), gone, "{other:?}");
                    let found =
                        partitions.scan_backward(table, spans, Some(&other), Collect::default()).await;
                    assert_eq!(found.map(drop), gone, "{other:?}, backward");
                }
                partitions.unpin_snapshot(&other);
                assert_eq!(partitions.pinned_snapshot_count(), 1, "{other:?}");
            }
            env.clock.sleep(PINNED_SNAPSHOT_IDLE_MAX / 2).await;
        }
        assert_eq!(read(&partitions, id).await.map(drop), gone, "nobody has used it for so long");
    });
    assert!(finished.is_some());
}

/// The answer with its id may have been lost: then nobody ends it.
#[test]
fn a_snapshot_that_is_not_read_again_ends_soon() {
    let finished = World::new(11).run(|env, _| async move {
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        let id = pin(&partitions).await.unwrap();
        read(&partitions, id).await.unwrap();
        let stays = pin_to_stay(&partitions).await.unwrap();
        env.clock.sleep(PINNED_SNAPSHOT_FIRST_IDLE_MAX + Duration::from_secs(1)).await;
        assert_eq!(partitions.pinned_snapshot_count(), 1);
        assert_eq!(read(&partitions, id).await, Err(PartitionError::SnapshotExpired));
        assert!(read(&partitions, stays).await.is_ok());
    });
    assert!(finished.is_some());
}

#[test]
fn there_are_so_many_and_no_more() {
    let finished = World::new(8).run(|env, _| async move {
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        let keys_of = |account: usize| KeyRange::container(&format!("acct{account}"), 1);
        let pin_of = |account: usize| partitions.pin_snapshot(TABLE, keys_of(account));
        let accounts = PINNED_SNAPSHOTS_MAX / PINNED_SNAPSHOTS_OF_ACCOUNT_MAX;
        let mut pins = Vec::new();
        for account in 0..accounts {
            for _ in 0..PINNED_SNAPSHOTS_OF_ACCOUNT_MAX {
                let id = pin_of(account).await.unwrap();
                pins.push(SnapshotOf { id, table: TABLE, keys: keys_of(account) });
            }
            assert_eq!(pin_of(account).await, Err(PartitionError::TooManySnapshots), "of one account");
        }
        // One that has none takes the place of the oldest, and no second one.
        assert!(pin_of(accounts).await.is_ok());
        assert_eq!(partitions.pinned_snapshot_count(), PINNED_SNAPSHOTS_MAX);
        let oldest = partitions.scan_pinned(&pins[0], vec![], Collect::default()).await;
        assert_eq!(oldest.map(drop), Err(PartitionError::SnapshotExpired));
        assert_eq!(pin_of(accounts).await, Err(PartitionError::TooManySnapshots), "of all");
        partitions.unpin_snapshot(&pins[1]);
        assert!(pin_of(accounts).await.is_ok());
    });
    assert!(finished.is_some());
}

/// Memory tables that were flushed and stay for a pin count among those of writers, which would wait for it.
#[test]
fn a_pin_that_keeps_too_much_memory_ends() {
    let finished = World::new(9).run(|env, _| async move {
        let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let mut now = Everything::new();
        let mut pins = Vec::new();
        for round in 0..PINNED_SNAPSHOTS_OF_ACCOUNT_MAX as u64 {
            for row in 0..20 {
                let key = key(1, "p", &format!("{row:04}"));
                put(&partitions, &mut now, key, Some(value(row + round, 900))).await.unwrap();
            }
            pins.push((pin(&partitions).await.unwrap(), now.clone()));
            partitions.flush_now(TABLE, None).await.unwrap();
        }
        // The tables are of some 24 KiB each, and a quarter of 96 KiB may be kept.
        env.clock.sleep(Duration::from_secs(2)).await;
        assert!(partitions.pinned_snapshot_count() < pins.len(), "the oldest have ended");
        for (id, expected) in pins {
            match read(&partitions, id).await {
                Ok(rows) => assert!(rows == expected),
                Err(error) => assert_eq!(error, PartitionError::SnapshotExpired),
            }
        }
        for row in 0..200 {
            put(&partitions, &mut now, key(1, "p", &format!("{row:04}")), Some(value(row, 900)))
                .await
                .unwrap();
        }
    });
    assert!(finished.is_some());
}

/// Two rows in two ranges, always the first one first: a snapshot that is of two moments has the second one
/// newer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_moment_is_one_over_several_ranges() {
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let (_, partitions) = open(&env, PartitionSettings::default()).await.unwrap();
    let partitions = Arc::new(partitions);
    partitions.split(TABLE, &key(1, "m", "")).await.unwrap();
    let number = |rows: &Everything, key: &RowKey| {
        let row = rows.get(&key.as_bytes()[..]);
        row.map_or(0, |(_, value)| u64::from_le_bytes(value.as_slice().try_into().unwrap()))
    };
    let (first, second) = (key(1, "z", "first"), key(1, "a", "second"));
    let (written, mut is_written) = tokio::sync::oneshot::channel();
    let (writer, keys) = (partitions.clone(), [first.clone(), second.clone()]);
    let writing = async move {
        let mut rows = Everything::new();
        for number in 1..3000u64 {
            for key in &keys {
                let value = number.to_le_bytes().to_vec().into();
                put(&writer, &mut rows, key.clone(), Some(value)).await.unwrap();
            }
        }
        written.send(()).unwrap();
    };
    env.spawner.spawn("writer", Box::pin(writing));
    let mut pins = 0;
    while is_written.try_recv() == Err(TryRecvError::Empty) {
        let id = pin(&partitions).await.unwrap();
        tokio::task::yield_now().await;
        let rows = read(&partitions, id).await.unwrap();
        partitions.unpin_snapshot(&of(id));
        let (first, second) = (number(&rows, &first), number(&rows, &second));
        assert!(first == second || first == second + 1, "{first} {second}");
        pins += 1;
    }
    let last = read(&partitions, pin(&partitions).await.unwrap()).await.unwrap();
    assert_eq!(number(&last, &second), 2999, "the writer broke off");
    assert!(pins > 10, "{pins}");
}
