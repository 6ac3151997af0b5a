//! A full disk with a reserve: writes are refused, deletions go on and give space back, and then writes are taken again.

mod rows;

use base::Environment;
use bytes::Bytes;
use partition::{
    Decision, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, Read, RowChange, RowKey,
    RowVersion, Rows, put_pieces,
};
use rows::{Everything, key, put, read_everything, value};
use sim::{SimDisk, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

const BLOB_COUNT: u64 = 60;
const BLOB_SIZE: usize = 8000;
const RESERVE: u64 = 256 << 10;

/// Puts or deletes a row of blob data.
struct NameBlob {
    key: RowKey,
    value: Option<Bytes>,
}

impl Operation for NameBlob {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let key = self.key.clone();
        let change = match &self.value {
            Some(value) => RowChange::Put { key, value: value.clone() },
            None => RowChange::Delete { key },
        };
        Decision { changes: vec![change], reply: () }
    }
}

async fn put_blob(partitions: &Partitions, name: u64) -> Result<(), PartitionError> {
    let key = key(1, &format!("{name:02}"), "b");
    let (piece, _pin) = partitions.append_data(ObjectTable::Blob, &key, value(name, BLOB_SIZE)).await?;
    let mut named = Vec::new();
    put_pieces(&mut named, &[piece]);
    partitions.execute(NameBlob { key, value: Some(named.into()) }).await
}

async fn open(env: &Environment) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    let settings = StreamSettings { reserve_size_bytes: RESERVE, ..StreamSettings::tiny() };
    let streams = Streams::open(env, settings).await?;
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await?;
    Ok((streams, partitions))
}

/// Writes until the disk is so full that the reserve is given up.
async fn fill(streams: &Streams, partitions: &Partitions, disk: &SimDisk, all: &mut Everything) {
    disk.set_free_bytes(Some(10_000));
    for at in 0..200 {
        if streams.is_scarce() {
            return;
        }
        match put(partitions, all, key(1, "fill", &format!("{at:03}")), Some(value(at, 3000))).await {
            Ok(()) | Err(PartitionError::DiskFull) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("a full disk must cost the reserve");
}

/// On a full disk nothing could be deleted: a server that was full stayed so until somebody gave its disk space.
#[test]
fn what_is_deleted_on_a_full_disk_makes_room_for_writes() {
    for seed in 0..10 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let all = world.run(|env, _| async move {
            let (streams, partitions) = open(&env).await.unwrap();
            let mut all = Everything::new();
            put(&partitions, &mut all, key(1, "kept", "r"), Some(value(1, 100))).await.unwrap();
            for name in 0..BLOB_COUNT {
                put_blob(&partitions, name).await.unwrap();
                let row = key(1, "rows", &format!("{name:02}"));
                put(&partitions, &mut all, row, Some(value(name, 1000))).await.unwrap();
            }
            env.clock.sleep(Duration::from_secs(10)).await;
            fill(&streams, &partitions, &disk, &mut all).await;
            // Other writes are refused, whatever their size.
            for at in 0..5 {
                let refused = put(&partitions, &mut all, key(1, "p", "r"), Some(value(at, 1))).await;
                assert_eq!(refused, Err(PartitionError::DiskFull), "seed {seed}");
                let bytes = value(at, BLOB_SIZE);
                let uploaded = partitions.append_data(ObjectTable::Blob, &key(1, "99", "b"), bytes).await;
                assert_eq!(uploaded.map(|_| ()), Err(PartitionError::DiskFull), "seed {seed}");
            }
            for name in 0..BLOB_COUNT {
                let deleted = NameBlob { key: key(1, &format!("{name:02}"), "b"), value: None };
                assert_eq!(partitions.execute(deleted).await, Ok(()), "seed {seed}, blob {name}");
                let row = key(1, "rows", &format!("{name:02}"));
                assert_eq!(put(&partitions, &mut all, row, None).await, Ok(()), "seed {seed}, row {name}");
            }
            env.clock.sleep(Duration::from_secs(60)).await;
            assert!(!streams.is_scarce(), "seed {seed}: what was deleted is not given back");
            for at in 0..20 {
                put(&partitions, &mut all, key(1, "p", &format!("{at:02}")), Some(value(at, 1000)))
                    .await
                    .unwrap();
            }
            put_blob(&partitions, 99).await.unwrap();
            assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}");
            all
        });
        world.disk.set_free_bytes(None);
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env).await.unwrap();
            read_everything(&partitions).await.unwrap()
        });
        assert!(found == all, "seed {seed}: after a restart");
    }
}

/// Checkpoints that were due for a merge, which had no room, once kept the rows of a deleted table where they were: space
/// stayed scarce for ever.
#[test]
fn a_deleted_table_gives_its_space_back_where_merges_have_no_room() {
    for seed in 0..10 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = StreamSettings { reserve_size_bytes: RESERVE, ..StreamSettings::tiny() };
                let streams = Streams::open(&env, streams).await.unwrap();
                let whole = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
                let partitions = Partitions::open(&env, streams.clone(), whole).await.unwrap();
                let mut all = Everything::new();
                put(&partitions, &mut all, key(1, "kept", "r"), Some(value(1, 100))).await.unwrap();
                env.clock.sleep(Duration::from_secs(10)).await;
                disk.set_free_bytes(Some(800_000 + 50_000 * seed));
                let mut count = 0;
                while !streams.is_scarce() {
                    assert!(count < 2000, "a full disk must cost the reserve");
                    let row = key(2, "gone", &format!("{count:04}"));
                    let _ = put(&partitions, &mut Everything::new(), row, Some(value(count, 3000))).await;
                    count += 1;
                }
                partitions.retire_container(ObjectTable::Entity, rows::ACCOUNT, 2).await.unwrap();
                env.clock.sleep(Duration::from_secs(120)).await;
                assert!(!streams.is_scarce(), "seed {seed}: what was deleted is not given back");
                put(&partitions, &mut all, key(1, "p", "r"), Some(value(2, 1000))).await.unwrap();
                let found = read_everything(&partitions).await.unwrap();
                assert!(all.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}");
            })
            .unwrap();
    }
}
