//! Collections of blob data that go on by themselves: when idle, where what is kept back for a full disk
//! counts as dead, and what must not be copied for ever. On the simulated disk, in virtual time.
//!
//! What always holds: who writes comes first unless a collection is due, all that is named is there
//! afterwards, and there is an end of it.

#![allow(clippy::disallowed_methods)] // The simulation owns the time that these sleeps take.

use base::Environment;
use base::codec::Encode;
use futures_util::future::join_all;
use partition::{
    Decision, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, Piece, Read, RowChange,
    RowKey, RowStart, RowVersion, Rows,
};
use sim::{Faults, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{BLOCK_HEADER_SIZE, StreamName, StreamSettings, Streams};

const TABLE: ObjectTable = ObjectTable::Blob;
const EXTENT_SIZE_BYTES: u64 = 40_000;
const BLOB_SIZE_BYTES: usize = 4_000;
const BLOB_COUNT: u64 = 50;
/// One blob of this many is deleted: less than a tenth, which is left while others write.
const DELETED_ONE_IN: u64 = 17;

enum Change {
    Name(Piece),
    Delete,
    /// The row is written as it is, like a lease that is renewed.
    Renew,
    /// The row has all of its so many bytes in itself.
    Fill(usize),
}

struct ChangeRow {
    key: RowKey,
    change: Change,
}

impl Operation for ChangeRow {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        let key = self.key.clone();
        let change = match self.change {
            Change::Delete => RowChange::Delete { key },
            Change::Renew => RowChange::Put { key, value: rows.point(0).unwrap().value.clone() },
            Change::Name(piece) => naming(key, piece),
            Change::Fill(size_bytes) => {
                let mut value = Vec::new();
                RowStart { pieces: Vec::new(), overflow_size_bytes: 0 }.put(&mut value);
                value.resize(size_bytes, 1);
                RowChange::Put { key, value: value.into() }
            }
        };
        Decision { changes: vec![change], reply: () }
    }
}

fn naming(key: RowKey, piece: Piece) -> RowChange {
    let mut value = Vec::new();
    RowStart { pieces: vec![piece], overflow_size_bytes: 0 }.put(&mut value);
    value.put_u64_field(1);
    RowChange::Put { key, value: value.into() }
}

/// Makes rows name the same piece.
struct Share(Vec<RowKey>, Piece);

impl Operation for Share {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        self.0.iter().cloned().map(Read::Point).collect()
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let changes = self.0.iter().map(|key| naming(key.clone(), self.1)).collect();
        Decision { changes, reply: () }
    }
}

fn key(name: u64) -> RowKey {
    RowKey::new("acct", 1, &format!("blob{name:04}"), "b")
}

fn is_deleted(name: u64) -> bool {
    name % DELETED_ONE_IN == 1
}

struct Stage {
    env: Environment,
    streams: Arc<Streams>,
    partitions: Partitions,
}

impl Stage {
    async fn open(env: &Environment, reserve_size_bytes: u64) -> Self {
        let settings = StreamSettings {
            reserve_size_bytes,
            extent_size_bytes_max: EXTENT_SIZE_BYTES,
            ..StreamSettings::tiny()
        };
        let streams = Streams::open(env, settings).await.unwrap();
        // One range, whose blob data is looked at.
        let settings = PartitionSettings { range_size_bytes_max: 1 << 30, ..PartitionSettings::tiny() };
        let partitions = Partitions::open(env, streams.clone(), settings).await.unwrap();
        Stage { env: env.clone(), streams, partitions }
    }

    async fn put(&self, name: u64) {
        let bytes = vec![name as u8; BLOB_SIZE_BYTES].into();
        let (piece, _pin) = self.partitions.append_data(TABLE, &key(name), bytes).await.unwrap();
        self.change(name, Change::Name(piece)).await;
    }

    async fn change(&self, name: u64, change: Change) {
        self.partitions.execute(ChangeRow { key: key(name), change }).await.unwrap();
    }

    /// Five extents and a little, of which each has some dead bytes.
    async fn put_and_delete(&self) {
        for name in 0..BLOB_COUNT {
            self.put(name).await;
        }
        for name in (0..BLOB_COUNT).filter(|name| is_deleted(*name)) {
            self.change(name, Change::Delete).await;
        }
    }

    fn stored_bytes(&self) -> u64 {
        let stat = self.streams.stat(&StreamName::new("blob/1/data")).unwrap();
        stat.extents.iter().map(|(_, length)| length).sum()
    }

    /// Of the blobs that were not deleted, and so many more.
    fn named_bytes(&self, more: usize) -> u64 {
        let count = more + (0..BLOB_COUNT).filter(|name| !is_deleted(*name)).count();
        (count * (BLOB_SIZE_BYTES + BLOCK_HEADER_SIZE)) as u64
    }

    /// Whether less is dead than a collection when idle is worth, and what an extent that takes appends may
    /// have besides.
    fn is_clean(&self, more: usize) -> bool {
        self.stored_bytes() < self.named_bytes(more) / 31 * 32 + EXTENT_SIZE_BYTES / 16
    }

    async fn sleep(&self, seconds: u64) {
        self.env.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// All that was not deleted is there.
    async fn check(&self) {
        for name in (0..BLOB_COUNT).filter(|name| !is_deleted(*name)) {
            let (row, pin) = self.partitions.get_with_data(TABLE, &key(name)).await.unwrap().unwrap();
            let mut decoder = base::codec::Decoder::new(&row.value);
            let piece = RowStart::take(&mut decoder).unwrap().pieces[0];
            let mut at = 0;
            while at < piece.size_bytes() {
                let part = pin.read(&piece, at).await.unwrap();
                assert!(part.iter().all(|byte| *byte == name as u8), "blob {name}");
                at += part.len() as u64;
            }
        }
    }
}

/// A store that is small beside the reserve stayed with an eighth of dead bytes, and the reserve besides:
/// more than a fifth of what was alive, for ever.
#[test]
fn when_nobody_writes_a_small_store_is_cleaned_further() {
    for (reserve_size_bytes, becomes_clean) in [(0, false), (64 << 10, true)] {
        let world = World::new(1);
        let disk = world.disk.clone();
        let finished = world.run(|env, _| async move {
            let stage = Stage::open(&env, reserve_size_bytes).await;
            // Until the reserve is there.
            stage.sleep(60).await;
            stage.put_and_delete().await;
            let stored_bytes = stage.stored_bytes();
            assert!(!stage.is_clean(0) && stored_bytes < stage.named_bytes(0) / 9 * 10, "{stored_bytes}");
            // What a collection leaves while others may write is too much when idle, even if nothing has
            // changed since.
            stage.partitions.collect_data_now(TABLE).await.unwrap();
            assert_eq!(stage.stored_bytes(), stored_bytes);
            stage.sleep(60).await;
            assert_eq!(stage.is_clean(0), becomes_clean, "{} of {stored_bytes}", stage.stored_bytes());
            stage.check().await;
            // And then there is an end of it.
            let before = (stage.stored_bytes(), disk.operation_count());
            stage.sleep(300).await;
            assert_eq!((stage.stored_bytes(), disk.operation_count()), before);
            stage.partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

#[test]
fn it_is_not_quiet_while_others_write_blob_data() {
    for names in [true, false] {
        let finished = World::new(2).run(|env, _| async move {
            let stage = Stage::open(&env, 64 << 10).await;
            stage.sleep(60).await;
            stage.put_and_delete().await;
            let stored_bytes = stage.stored_bytes();
            for second in 0..60 {
                stage.sleep(1).await;
                if second % 8 == 0 && names {
                    // As large as before, so that no more of it is dead than was.
                    stage.change(1000, Change::Delete).await;
                    stage.put(1000).await;
                } else if second % 8 == 0 {
                    // An upload whose end is far away.
                    stage.partitions.append_data(TABLE, &key(1000), vec![0; 10].into()).await.unwrap();
                }
            }
            assert!(stage.stored_bytes() > stored_bytes, "nothing was copied, nothing left");
            for _ in 0..60 {
                stage.sleep(1).await;
                stage.change(0, Change::Renew).await;
            }
            assert!(stage.is_clean(usize::from(names)), "{} of {stored_bytes}", stage.stored_bytes());
            stage.check().await;
            stage.partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// Small blobs lie in their rows: who writes many of them writes no blob data, and had the disk for himself
/// with copies of others' all the same.
#[test]
fn it_is_not_quiet_while_others_write_many_rows() {
    let finished = World::new(8).run(|env, _| async move {
        let stage = Stage::open(&env, 64 << 10).await;
        stage.sleep(60).await;
        stage.put_and_delete().await;
        let stored_bytes = stage.stored_bytes();
        for _ in 0..120 {
            env.clock.sleep(Duration::from_millis(500)).await;
            stage.change(1000, Change::Fill(4000)).await;
        }
        assert_eq!(stage.stored_bytes(), stored_bytes, "nothing was copied, nothing left");
        stage.sleep(60).await;
        assert!(stage.is_clean(0), "{} of {stored_bytes}", stage.stored_bytes());
        stage.check().await;
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// What was decided but not durable when a count began was in what had grown, and not in what the count saw:
/// bytes of deleted rows were named for ever.
#[test]
fn what_is_deleted_while_a_count_begins_comes_back() {
    for step in 0..60 {
        let world = World::new(step);
        let disk = world.disk.clone();
        let finished = world.run(|env, _| async move {
            let stage = Stage::open(&env, 0).await;
            for name in 0..BLOB_COUNT {
                stage.put(name).await;
            }
            stage.sleep(60).await;
            let stored_bytes = stage.stored_bytes();
            disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
            let deleted = (0..BLOB_COUNT).filter(|name| name % 4 == 1);
            let deletions = join_all(deleted.map(|name| stage.change(name, Change::Delete)));
            let collection = async {
                env.clock.sleep(Duration::from_millis(step)).await;
                stage.partitions.collect_data_now(TABLE).await
            };
            tokio::join!(deletions, collection).1.unwrap();
            stage.sleep(120).await;
            assert!(stage.stored_bytes() < stored_bytes / 10 * 9, "step {step}: {}", stage.stored_bytes());
            stage.partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// A group that a full disk refused stayed in what has grown: what had been uploaded for it was garbage that
/// seemed named.
#[test]
fn what_was_uploaded_for_a_refused_change_comes_back() {
    let world = World::new(7);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let stage = Stage::open(&env, 0).await;
        stage.put_and_delete().await;
        stage.sleep(60).await;
        let stored_bytes = stage.stored_bytes();
        // Too large for the journal: the log's extent must grow.
        let mut changes = vec![ChangeRow { key: key(1000), change: Change::Fill(12_000) }];
        let mut pins = Vec::new();
        for name in 100..100 + BLOB_COUNT / 2 {
            let bytes = vec![0; BLOB_SIZE_BYTES].into();
            let (piece, pin) = stage.partitions.append_data(TABLE, &key(name), bytes).await.unwrap();
            changes.push(ChangeRow { key: key(name), change: Change::Name(piece) });
            pins.push(pin);
        }
        let used: u64 = disk.files().iter().map(|(_, size)| size).sum();
        disk.set_faults(Faults { capacity_bytes: used, ..Faults::default() });
        let outcomes = join_all(changes.into_iter().map(|change| stage.partitions.execute(change))).await;
        assert_eq!(outcomes, vec![Err(PartitionError::DiskFull); outcomes.len()]);
        disk.set_faults(Faults::default());
        drop(pins);
        stage.sleep(120).await;
        let left = stage.stored_bytes();
        assert!(left < stored_bytes / 8 * 9, "{left} of {stored_bytes}");
        stage.check().await;
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

#[test]
fn a_collection_in_quiet_makes_way_for_who_writes() {
    let world = World::new(3);
    world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
    let finished = world.run(|env, _| async move {
        let stage = Stage::open(&env, 64 << 10).await;
        stage.sleep(60).await;
        stage.put_and_delete().await;
        let stored_bytes = stage.stored_bytes();
        let begins_before = env.clock.monotonic() + Duration::from_secs(60);
        while stage.stored_bytes() <= stored_bytes {
            assert!(env.clock.monotonic() < begins_before, "no collection began");
            env.clock.sleep(Duration::from_millis(1)).await;
        }
        let began_at = env.clock.monotonic();
        stage.put(1000).await;
        stage.sleep(5).await;
        assert!(!stage.is_clean(1), "it went on");
        // Else it would have been through by then.
        stage.sleep(60).await;
        assert!(stage.is_clean(1), "{} of {stored_bytes}, begun {began_at:?}", stage.stored_bytes());
        stage.check().await;
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// What is due without quiet was given up for one upload, if it happened to begin when idle.
#[test]
fn what_is_due_goes_on_whoever_writes() {
    let world = World::new(6);
    world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
    let finished = world.run(|env, _| async move {
        let stage = Stage::open(&env, 64 << 10).await;
        for name in 0..BLOB_COUNT {
            stage.put(name).await;
        }
        for name in (0..BLOB_COUNT).filter(|name| !name.is_multiple_of(3)) {
            stage.change(name, Change::Delete).await;
        }
        stage.partitions.close().await;
        stage.streams.close().await;
        // Nothing was written since this start: it is quiet at the first look.
        let stage = Stage::open(&env, 64 << 10).await;
        let stored_bytes = stage.stored_bytes();
        let begins_before = env.clock.monotonic() + Duration::from_secs(60);
        while stage.stored_bytes() <= stored_bytes {
            assert!(env.clock.monotonic() < begins_before, "no collection began");
            env.clock.sleep(Duration::from_millis(1)).await;
        }
        stage.put(1000).await;
        stage.sleep(5).await;
        assert!(stage.stored_bytes() < stored_bytes / 2, "{} of {stored_bytes}", stage.stored_bytes());
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Each piece has a header in its extent. Those counted as dead once: small pieces looked worth a collection,
/// which copied all of them, which made them look worth the next one, for ever.
#[test]
fn small_pieces_are_not_copied_for_their_headers() {
    let finished = World::new(4).run(|env, _| async move {
        let stage = Stage::open(&env, 64 << 10).await;
        stage.sleep(60).await;
        for name in 0..400 {
            let bytes = vec![name as u8; 40].into();
            let (piece, _pin) = stage.partitions.append_data(TABLE, &key(name), bytes).await.unwrap();
            stage.change(name, Change::Name(piece)).await;
        }
        let stored_bytes = stage.stored_bytes();
        assert!(stored_bytes > 400 * 50, "{stored_bytes}: what headers take is what this is about");
        assert_eq!(stage.partitions.collect_data_now(TABLE).await.unwrap().copied_bytes, 0);
        stage.sleep(60).await;
        assert_eq!(stage.stored_bytes(), stored_bytes, "they were copied");
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Rows of one name, like a blob and its snapshots, share bytes. A collection that made way between two of
/// them copied those bytes once more for the rest, and they were stored twice from then on.
#[test]
fn rows_that_share_bytes_share_them_after_a_collection_that_made_way() {
    const ROWS: u64 = 12;
    let shared_key = |row: u64| RowKey::new("acct", 1, "blob0002", &format!("row{row:02}"));
    for step in 0..40 {
        let world = World::new(step);
        world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        let finished = world.run(|env, _| async move {
            let stage = Stage::open(&env, 64 << 10).await;
            stage.sleep(60).await;
            let bytes = vec![7; BLOB_SIZE_BYTES].into();
            let (piece, pin) = stage.partitions.append_data(TABLE, &shared_key(0), bytes).await.unwrap();
            stage.partitions.execute(Share((0..ROWS).map(shared_key).collect(), piece)).await.unwrap();
            drop(pin);
            stage.put_and_delete().await;
            let pieces = async || {
                let mut pieces = Vec::new();
                for row in 0..ROWS {
                    let row = stage.partitions.get(TABLE, &shared_key(row)).await.unwrap().unwrap();
                    pieces
                        .push(RowStart::take(&mut base::codec::Decoder::new(&row.value)).unwrap().pieces[0]);
                }
                pieces.dedup();
                pieces
            };
            let begins_before = env.clock.monotonic() + Duration::from_secs(60);
            let before = stage.stored_bytes();
            while stage.stored_bytes() <= before {
                assert!(env.clock.monotonic() < begins_before, "no collection began");
                env.clock.sleep(Duration::from_millis(1)).await;
            }
            env.clock.sleep(Duration::from_millis(step * 10)).await;
            stage.put(1000).await;
            stage.sleep(120).await;
            let pieces = pieces().await;
            assert!(pieces.len() == 1 && pieces[0] != piece, "step {step}: {pieces:?}, moved from {piece:?}");
            stage.partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// Who had found a container wrote into it after it was deleted, and after a count that left its rows out.
/// They went, and what they had named was garbage that seemed named until the next start.
#[test]
fn what_was_written_into_a_deleted_container_comes_back() {
    for is_counted_meanwhile in [false, true] {
        let finished = World::new(8).run(|env, _| async move {
            let stage = Stage::open(&env, 0).await;
            stage.put_and_delete().await;
            stage.partitions.retire_container(TABLE, "acct", 2).await.unwrap();
            stage.sleep(60).await;
            let stored_bytes = stage.stored_bytes();
            for name in 0..BLOB_COUNT / 2 {
                let key = RowKey::new("acct", 2, &format!("blob{name:04}"), "b");
                let bytes = vec![0; BLOB_SIZE_BYTES].into();
                let (piece, _pin) = stage.partitions.append_data(TABLE, &key, bytes).await.unwrap();
                stage.partitions.execute(ChangeRow { key, change: Change::Name(piece) }).await.unwrap();
            }
            if is_counted_meanwhile {
                stage.partitions.collect_data_now(TABLE).await.unwrap();
            }
            // Enough for their rows to leave memory.
            for row in 0..40 {
                stage.change(2000 + row, Change::Fill(1000)).await;
            }
            stage.sleep(600).await;
            assert_eq!(stage.partitions.retired_container_count(), 0, "its rows have gone");
            let left = stage.stored_bytes();
            assert!(left < stored_bytes / 8 * 9, "{left} of {stored_bytes}");
            stage.check().await;
            stage.partitions.close().await;
        });
        assert!(finished.is_some(), "the disk crashed unasked");
    }
}

/// A collection that can't read a piece fails. The next one began with the same extent, copied what it could
/// of it once more, and failed, for ever.
#[test]
fn an_extent_that_cannot_be_read_is_not_copied_again_and_again() {
    let world = World::new(5);
    world.run(|env, _| async move {
        let stage = Stage::open(&env, 0).await;
        stage.put_and_delete().await;
        stage.sleep(60).await;
        stage.partitions.close().await;
        stage.streams.close().await;
    });
    // Of the last blob of the first extent, so that others are copied before it.
    let sought = [9; 600];
    for (path, content) in world.disk.contents() {
        for at in memchr::memmem::find_iter(&content, &sought) {
            world.disk.garble(&path, at as u64);
        }
    }
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let stage = Stage::open(&env, 64 << 10).await;
        let (_, pin) = stage.partitions.get_with_data(TABLE, &key(9)).await.unwrap().unwrap();
        drop(pin);
        stage.sleep(300).await;
        assert!(!stage.is_clean(0), "what can't be read stays");
        let before = (stage.stored_bytes(), disk.operation_count());
        stage.sleep(300).await;
        assert_eq!((stage.stored_bytes(), disk.operation_count()), before);
        stage.partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}
