//! Pinned snapshots: a scan that names one reads its moment, whatever becomes of the rows and ranges, and
//! where that can't be, it is an error.

use crate::rows::backward::read_backward;
use crate::rows::{ACCOUNT, Collect, Everything, TABLE, key, open, put, value};
use base::Environment;
use base::memory_disk::MemoryDisk;
use partition::{
    KeyRange, ObjectTable, PINNED_SNAPSHOT_AGE_MAX, PINNED_SNAPSHOT_IDLE_MAX, PINNED_SNAPSHOTS_MAX,
    PINNED_SNAPSHOTS_OF_ACCOUNT_MAX, PartitionError, PartitionSettings, Partitions, RowKey, ScanEnd,
    SnapshotId, Span,
};
use sim::World;
use std::sync::Arc;
use std::time::Duration;

/// Pins end for memory late enough to be tested for something else.
fn roomy() -> PartitionSettings {
    PartitionSettings { memory_tables_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() }
}

fn container() -> KeyRange {
    KeyRange::container(ACCOUNT, 1)
}

async fn read(partitions: &Partitions, id: SnapshotId) -> Result<Everything, PartitionError> {
    let spans = vec![Span::Range(container())];
    let (scan, end) = partitions.scan_pinned(id, TABLE, spans, Collect::default()).await?;
    assert_eq!(end, ScanEnd::Complete);
    Ok(scan.rows)
}

fn pin(partitions: &Partitions) -> Result<SnapshotId, PartitionError> {
    partitions.pin_snapshot(TABLE, container())
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
                pinned.push((pin(&partitions).unwrap(), now.clone()));
            }
            5 if !pinned.is_empty() => {
                let (id, _) = pinned.swap_remove(random(pinned.len() as u64) as usize);
                partitions.unpin_snapshot(id);
                assert_eq!(read(&partitions, id).await, Err(PartitionError::SnapshotExpired));
            }
            6 if !pinned.is_empty() => {
                let (id, expected) = &pinned[random(pinned.len() as u64) as usize];
                assert!(read(&partitions, *id).await.unwrap() == *expected, "step {step}");
                let (spans, count_max) = ([Span::Range(container())], 1 + random(200) as usize);
                let found = read_backward(&partitions, TABLE, &spans, Some(*id), count_max).await.unwrap();
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
    pinned.iter().for_each(|(id, _)| partitions.unpin_snapshot(*id));
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
        let unused = pin(&partitions).unwrap();
        let used = pin(&partitions).unwrap();
        // Rows of another table, and of another account.
        for (account, container) in [(ACCOUNT, 2), ("other", 1)] {
            let spans = vec![Span::Range(KeyRange::container(account, container))];
            let found = partitions.scan_pinned(used, TABLE, spans, Collect::default()).await;
            assert_eq!(found.map(|_| ()), expired.clone().map(|_: Everything| ()), "{account} {container}");
        }
        let spans = vec![Span::Range(container())];
        let found = partitions.scan_pinned(used, ObjectTable::Message, spans, Collect::default()).await;
        assert!(found.is_err(), "another object table");
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
        let left = pin(&partitions).unwrap();
        partitions.close().await;
        streams.close().await;
        drop((partitions, streams));
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        assert_eq!(read(&partitions, left).await, expired, "another life of the process");
        let first = pin(&partitions).unwrap();
        assert_ne!(first, left);
    });
    assert!(finished.is_some());
}

#[test]
fn there_are_so_many_and_no_more() {
    let finished = World::new(8).run(|env, _| async move {
        let (_, partitions) = open(&env, roomy()).await.unwrap();
        let pin_of = |account: usize| {
            partitions.pin_snapshot(TABLE, KeyRange::container(&format!("acct{account}"), 1))
        };
        let accounts = PINNED_SNAPSHOTS_MAX / PINNED_SNAPSHOTS_OF_ACCOUNT_MAX;
        let mut pins = Vec::new();
        for account in 0..accounts {
            pins.extend((0..PINNED_SNAPSHOTS_OF_ACCOUNT_MAX).map(|_| pin_of(account).unwrap()));
            assert_eq!(pin_of(account), Err(PartitionError::TooManySnapshots), "of one account");
        }
        assert_eq!(pin_of(accounts), Err(PartitionError::TooManySnapshots), "of all");
        partitions.unpin_snapshot(pins[0]);
        assert!(pin_of(accounts).is_ok());
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
            pins.push((pin(&partitions).unwrap(), now.clone()));
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
    let writer = {
        let (partitions, first, second) = (partitions.clone(), first.clone(), second.clone());
        tokio::spawn(async move {
            let mut rows = Everything::new();
            for number in 1..3000u64 {
                for key in [&first, &second] {
                    let value = number.to_le_bytes().to_vec().into();
                    put(&partitions, &mut rows, key.clone(), Some(value)).await.unwrap();
                }
            }
        })
    };
    let mut pins = 0;
    while !writer.is_finished() {
        let id = pin(&partitions).unwrap();
        tokio::task::yield_now().await;
        let rows = read(&partitions, id).await.unwrap();
        partitions.unpin_snapshot(id);
        let (first, second) = (number(&rows, &first), number(&rows, &second));
        assert!(first == second || first == second + 1, "{first} {second}");
        pins += 1;
    }
    writer.await.unwrap();
    assert!(pins > 10, "{pins}");
}
