//! Space of blobs that nobody can reach any more comes back: of deleted containers, also when the process
//! ends in between, and of deleted blobs whose time is over. On the simulated disk, in virtual time.

use base::Environment;
use blob::{
    BlobAt, BlobService, BlobSettingsUpdate, BlobType, Conditions, DeleteSnapshots, NewBlob, PublicAccess,
    Revision,
};
use bytes::Bytes;
use partition::{
    Decision, ObjectTable, Operation, PartitionSettings, Partitions, Read, RowChange, RowKey, RowVersion,
    Rows, put_pieces,
};
use service::ServicePropertiesUpdate;
use sim::{Faults, World};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use stream::{StreamName, StreamSettings, Streams};

const ACCOUNT: &str = "acct";
const SIZE_BYTES: usize = 20_000;
const HOUR: Duration = Duration::from_secs(3600);

struct Stage {
    streams: Arc<Streams>,
    partitions: Arc<Partitions>,
    service: Arc<BlobService>,
}

impl Stage {
    async fn open(env: &Environment) -> Option<Stage> {
        let streams = Streams::open(env, StreamSettings::tiny()).await.ok()?;
        // One range for all blobs: its stream tells what is stored.
        let settings = PartitionSettings { range_size_bytes_max: 1 << 30, ..PartitionSettings::tiny() };
        let partitions = Arc::new(Partitions::open(env, streams.clone(), settings).await.ok()?);
        let service = Arc::new(BlobService::new(partitions.clone(), env.clock.clone(), Default::default()));
        Some(Stage { streams, partitions, service })
    }

    async fn at(&self, container: &str, name: &str) -> BlobAt {
        let container = self.service.container(ACCOUNT, container).await.unwrap();
        self.service.blob(ACCOUNT, &container, name).unwrap()
    }

    async fn create(&self, container: &str) {
        let created = self
            .service
            .create_container(ACCOUNT, container, Vec::new(), PublicAccess::None, Default::default())
            .await;
        created.unwrap();
    }

    async fn put(&self, container: &str, name: &str) {
        let at = self.at(container, name).await;
        let mut upload = self.service.upload(&at, true, false);
        upload.write(Bytes::from(vec![7; SIZE_BYTES])).await.unwrap();
        let uploaded = upload.finish().await.unwrap();
        self.service
            .put_blob(&at, BlobType::Block, uploaded, NewBlob::default(), Default::default())
            .await
            .unwrap();
    }

    /// Whether a blob's bytes are all there.
    async fn reads(&self, container: &str, name: &str) -> bool {
        let at = self.at(container, name).await;
        let Ok((_, _, mut reader)) =
            self.service.read(&at, Revision::Current, &Conditions::default(), None).await
        else {
            return false;
        };
        let mut size = 0;
        while let Some(bytes) = reader.next().await.unwrap() {
            assert!(bytes.iter().all(|byte| *byte == 7));
            size += bytes.len();
        }
        size == SIZE_BYTES
    }

    /// Bytes of blob data after everything that can be reclaimed was.
    async fn stored_after_collecting(&self) -> usize {
        while self.partitions.collect_data_now(ObjectTable::Blob).await.unwrap().extents > 0 {}
        let stat = self.streams.stat(&StreamName::new("blob/1/data")).unwrap();
        stat.extents.iter().map(|(_, length)| *length as usize).sum()
    }

    async fn close(self) {
        self.partitions.close().await;
        self.streams.close().await;
    }
}

#[test]
fn blobs_of_a_deleted_container_give_back_their_space() {
    World::new(1).run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        for container in ["stays", "goes"] {
            stage.create(container).await;
            for name in 0..10 {
                stage.put(container, &name.to_string()).await;
            }
        }
        assert!(stage.stored_after_collecting().await > 20 * SIZE_BYTES);
        stage.service.delete_container(ACCOUNT, "goes", Conditions::default()).await.unwrap();
        assert!(stage.stored_after_collecting().await < 12 * SIZE_BYTES);
        stage.create("goes").await;
        stage.put("goes", "0").await;
        for (container, name) in [("stays", "9"), ("goes", "0")] {
            assert!(stage.reads(container, name).await, "{container}/{name}");
        }
        stage.close().await;
    });
}

/// A process may end between the deletion of a container and the mark that lets its blobs go: at each of the
/// disk operations that a deletion takes, in turn.
#[test]
fn a_container_whose_deletion_was_cut_off_is_found_at_the_next_start() {
    let (mut found, mut cut_off) = (0, 0);
    for crash_after in 1..40 {
        let world = World::new(crash_after);
        let disk = world.disk.clone();
        let outcome = world.run(|env, _| async move {
            let stage = Stage::open(&env).await.unwrap();
            stage.create("goes").await;
            for name in 0..4 {
                stage.put("goes", &name.to_string()).await;
            }
            let crash_at_operation = disk.operation_count() + crash_after;
            disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            let deleted = stage.service.delete_container(ACCOUNT, "goes", Conditions::default()).await;
            deleted.unwrap();
            stage.close().await;
        });
        cut_off += u64::from(outcome.is_none());
        world.disk.set_faults(Faults::default());
        world
            .run(|env, _| async move {
                let stage = Stage::open(&env).await.unwrap();
                let is_there = stage.service.container(ACCOUNT, "goes").await.is_ok();
                let lost = stage.service.retire_lost_containers().await.unwrap();
                assert!(!is_there || lost == 0, "a container that is there must stay");
                let stored = stage.stored_after_collecting().await;
                match is_there {
                    true => assert!(stage.reads("goes", "3").await),
                    false => {
                        assert!(stored < SIZE_BYTES, "{stored} bytes stay after {crash_after} operations")
                    }
                }
                stage.close().await;
                lost
            })
            .into_iter()
            .for_each(|lost| found += lost);
    }
    println!("{cut_off} deletions cut off, {found} containers found");
    assert!(cut_off > 5 && found > 0, "{cut_off} deletions were cut off, {found} containers found");
}

/// Lets a future run until it has been asked so often, then drops it.
async fn dropped_after<F: Future>(future: F, poll_count: usize) {
    let mut future = pin!(future);
    let mut left = poll_count;
    poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Pending if left > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

/// A client that goes away takes its request with it: between a container's deletion and the mark that lets
/// its blobs go, these stayed until the next start.
#[test]
fn a_container_whose_deletion_was_dropped_is_found_by_and_by() {
    let mut lost = 0;
    for poll_count in 1..8 {
        World::new(6)
            .run(|env, _| async move {
                let stage = Stage::open(&env).await.unwrap();
                stage.service.start_retiring(&*env.spawner);
                env.clock.sleep(Duration::from_secs(60)).await;
                for container in ["goes", "stays"] {
                    stage.create(container).await;
                    stage.put(container, "1").await;
                }
                dropped_after(
                    stage.service.delete_container(ACCOUNT, "goes", Conditions::default()),
                    poll_count,
                )
                .await;
                env.clock.sleep(Duration::from_secs(60)).await;
                let is_deleted = stage.service.container(ACCOUNT, "goes").await.is_err();
                let is_lost = is_deleted && stage.partitions.retired_container_count() == 0;
                env.clock.sleep(service::RETIRE_LOST_EVERY).await;
                let stored = stage.stored_after_collecting().await;
                assert!(!is_deleted || stored < 2 * SIZE_BYTES, "{stored} bytes after {poll_count}");
                assert!(stage.reads("stays", "1").await);
                stage.close().await;
                is_lost
            })
            .into_iter()
            .for_each(|is_lost| lost += u64::from(is_lost));
    }
    assert!(lost > 0, "no deletion was dropped in between");
}

/// Deleted blobs and snapshots whose time is over once stayed for ever, though nobody could reach them.
#[test]
fn deleted_blobs_go_when_their_time_is_over_and_not_before() {
    World::new(3).run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        stage.service.start_sweeping(&*env.spawner);
        let own = BlobSettingsUpdate { retention: Some((Some(1), false)), website: None };
        stage.service.set_settings(ACCOUNT, ServicePropertiesUpdate::default(), own).await.unwrap();
        stage.create("box").await;
        for name in ["stays", "deleted", "comes-back", "overwritten", "overwritten"] {
            stage.put("box", name).await;
        }
        let deleted = stage.at("box", "deleted").await;
        stage.service.snapshot(&deleted, None, Conditions::default()).await.unwrap();
        for name in ["deleted", "comes-back"] {
            let at = stage.at("box", name).await;
            let done = stage
                .service
                .delete(
                    &at,
                    Revision::Current,
                    DeleteSnapshots::Include,
                    Default::default(),
                    Conditions::default(),
                )
                .await;
            assert_eq!(done, Ok(false), "it can come back");
        }
        env.clock.sleep(22 * HOUR).await;
        let at = stage.at("box", "comes-back").await;
        stage.service.undelete(&at).await.unwrap();
        assert!(stage.reads("box", "comes-back").await);
        assert!(stage.stored_after_collecting().await > 5 * SIZE_BYTES, "nothing is over yet");
        env.clock.sleep(4 * HOUR).await;
        let stored = stage.stored_after_collecting().await;
        assert!(stored < 4 * SIZE_BYTES, "{stored} bytes of three blobs");
        for name in ["stays", "comes-back", "overwritten"] {
            assert!(stage.reads("box", name).await, "{name}");
        }
        assert!(stage.service.undelete(&deleted).await.is_err());
        stage.close().await;
    });
}

/// Blocks that were staged and never committed once kept their bytes for ever.
#[test]
fn staged_blocks_go_after_an_idle_week() {
    World::new(4).run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        stage.service.start_sweeping(&*env.spawner);
        stage.create("box").await;
        stage.put("box", "whole").await;
        let at = stage.at("box", "staged").await;
        for id in [b"1", b"2"] {
            let mut upload = stage.service.upload(&at, false, false);
            upload.write(Bytes::from(vec![7; SIZE_BYTES])).await.unwrap();
            let uploaded = upload.finish().await.unwrap();
            stage
                .service
                .put_block(&at, Bytes::from_static(id), uploaded, None, Default::default(), false)
                .await
                .unwrap();
            env.clock.sleep(6 * 24 * HOUR).await;
        }
        let stored = stage.stored_after_collecting().await;
        assert!(stored > 3 * SIZE_BYTES, "{stored}: six days are no week");
        env.clock.sleep(26 * HOUR).await;
        let stored = stage.stored_after_collecting().await;
        assert!(stored < 2 * SIZE_BYTES, "{stored} bytes of one blob");
        assert!(stage.reads("box", "whole").await);
        stage.close().await;
    });
}

/// Replaces a stored row by one that can't be read.
struct Damage(RowKey);

impl Operation for Damage {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.0.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        assert!(rows.point(0).is_some(), "the row is there");
        // The layer below reads which pieces it names: none.
        let mut value = Vec::new();
        put_pieces(&mut value, &[]);
        value.push(0xff);
        let change = RowChange::Put { key: self.0.clone(), value: value.into() };
        Decision { changes: vec![change], reply: () }
    }
}

/// The sweep once began anew whenever it met a row that could not be read: what was deleted behind it stayed
/// for ever.
#[test]
fn a_row_that_can_t_be_read_keeps_no_sweep_from_what_is_behind_it() {
    World::new(5).run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        stage.service.start_sweeping(&*env.spawner);
        let own = BlobSettingsUpdate { retention: Some((Some(1), false)), website: None };
        stage.service.set_settings(ACCOUNT, ServicePropertiesUpdate::default(), own).await.unwrap();
        for container in ["box-a", "box-b"] {
            stage.create(container).await;
            for name in ["1", "2", "3"] {
                stage.put(container, name).await;
                let at = stage.at(container, name).await;
                let (snapshots, conditions) = (DeleteSnapshots::Include, Conditions::default());
                let deleted =
                    stage.service.delete(&at, Revision::Current, snapshots, Default::default(), conditions);
                deleted.await.unwrap();
            }
        }
        let id = stage.service.container(ACCOUNT, "box-a").await.unwrap().id;
        let key = |name: &str| RowKey::new(ACCOUNT, id, name, "2h");
        stage.partitions.execute(Damage(key("1"))).await.unwrap();
        env.clock.sleep(26 * HOUR).await;
        let is_there =
            async |key: &RowKey| stage.partitions.get(ObjectTable::Blob, key).await.unwrap().is_some();
        assert!(is_there(&key("1")).await, "nobody removes what can't be read");
        let last = stage.service.container(ACCOUNT, "box-b").await.unwrap().id;
        for key in [key("2"), key("3"), RowKey::new(ACCOUNT, last, "3", "2h")] {
            assert!(!is_there(&key).await, "{key:?}");
        }
        stage.close().await;
    });
}

/// A block of blobs' rows that could not be read ended the walk over its container at each round: what was
/// deleted before it stayed as well as what was deleted behind it.
#[test]
fn rows_that_can_t_be_read_keep_only_what_is_near_them() {
    const COUNT: usize = 150;
    let name = |index: usize| format!("{index:03}{}", "x".repeat(300));
    let world = World::new(6);
    let disk = world.disk.clone();
    let damaged = world.run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        let own = BlobSettingsUpdate { retention: Some((Some(1), false)), website: None };
        stage.service.set_settings(ACCOUNT, ServicePropertiesUpdate::default(), own).await.unwrap();
        stage.create("box").await;
        for index in 0..COUNT {
            stage.put("box", &name(index)).await;
            let at = stage.at("box", &name(index)).await;
            let (snapshots, conditions) = (DeleteSnapshots::Include, Conditions::default());
            let deleted =
                stage.service.delete(&at, Revision::Current, snapshots, Default::default(), conditions);
            deleted.await.unwrap();
        }
        env.clock.sleep(Duration::from_secs(10)).await;
        // In the largest checkpoint, where the names around share their first digit.
        let checkpoints = stage.streams.list("blob/1/row_data/");
        let extents = checkpoints.iter().flat_map(|name| stage.streams.stat(name).unwrap().extents);
        let (extent, length) = extents.max_by_key(|(_, length)| *length).unwrap();
        stage.close().await;
        (format!("extents/{extent}"), length / 4)
    });
    let (path, at) = damaged.unwrap();
    disk.garble(&path, at);
    // Else the journal would restore it.
    ["journal/0", "journal/1", "journal/2"].iter().for_each(|path| disk.cut(path, None));
    world.run(|env, _| async move {
        let stage = Stage::open(&env).await.unwrap();
        let id = stage.service.container(ACCOUNT, "box").await.unwrap().id;
        let key = |index: usize| RowKey::new(ACCOUNT, id, &name(index), "2h");
        let mut unreadable = Vec::new();
        for index in 0..COUNT {
            if stage.partitions.get(ObjectTable::Blob, &key(index)).await.is_err() {
                unreadable.push(index);
            }
        }
        assert!((1..COUNT / 2).contains(&unreadable.len()), "{unreadable:?}");
        stage.service.start_sweeping(&*env.spawner);
        env.clock.sleep(26 * HOUR).await;
        let mut kept = Vec::new();
        for index in 0..COUNT {
            match stage.partitions.get(ObjectTable::Blob, &key(index)).await {
                Ok(None) => {}
                Ok(Some(_)) => kept.push(index),
                Err(_) => assert!(unreadable.contains(&index)),
            }
        }
        let still = unreadable.iter().filter(|index| !kept.contains(index)).count();
        assert_eq!(still, unreadable.len(), "nobody takes what can't be read for gone");
        // Names share their first two digits by tens; from one hundred to the next there is no name to begin
        // at between.
        let (first, last) = (unreadable[0], unreadable[unreadable.len() - 1]);
        assert!(last < 90, "{unreadable:?}");
        assert!(kept.iter().all(|index| (first..=last + 10).contains(index)), "{kept:?} near {unreadable:?}");
        assert!(kept.len() < 20, "{kept:?} near {unreadable:?}");
    });
}
