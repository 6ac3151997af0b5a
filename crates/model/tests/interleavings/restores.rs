//! The metadata store is lost, and restored from a backup.

use crate::stage::{LIFE, N, Stage, W, log, range};
use model::metadata_store::MetadataStore;
use stamp::{
    Backup, BackupScope, Change, Generation, Incarnation, Key, LEASE_MARGIN, LEASE_TTL, Mark, OwnEntry,
    PutAnswer, RangeDocument, RestoreStart, Restored, TransactionAnswer, Value, choose_backup,
    choose_restore, choose_restore_start,
};
use std::sync::Arc;
use std::time::Duration;

fn back_up(stage: &mut Stage) {
    stage.backups.store(Backup {
        life: LIFE,
        restores: 0,
        revision: stage.metadata.revision(),
        scope: BackupScope::Complete,
        documents: stage.metadata.documents().cloned().collect(),
    });
}

fn restored(stage: &Stage) -> Restored {
    let backup = choose_backup(stage.backups.all()).expect("a complete backup");
    choose_restore(&backup, &stage.store.first_objects(), Generation(2), Incarnation(50)).unwrap()
}

fn extents(document: &RangeDocument) -> Vec<u64> {
    document.streams[&log()].extents.iter().map(|entry| entry.name.0.counter).collect()
}

/// Backup; N adds e1 and acknowledges in it; etcd is lost; the restored document lacks e1: lost.
#[test]
fn a_restore_rolls_forward() {
    let mut stage = Stage::new();
    let (_, mut window) = stage.writer(W);
    let first = window.push(10, 1).unwrap();
    stage.put(first);
    back_up(&mut stage);
    stage.expire(W);
    let (_, mut window) = stage.writer(N);
    let second = window.push(10, 2).unwrap();
    let answer = stage.put(second);
    window.answered(0, answer, None, true);
    assert_eq!(window.acknowledge(true), [second]);

    // The rule: ordinals are in headers, and what is newer is appended in order.
    let restored = restored(&stage);
    let document = &restored.documents[0];
    let counters = [first.place.extent.0.counter, second.place.extent.0.counter];
    assert_eq!(extents(document), counters);
    assert!(document.own.epoch.0 > second.writer.epoch.0 && document.own.owner.is_none());
}

/// A backup names e0; it is dropped and swept; the restored document names what is not there: lost.
#[test]
fn an_extent_that_the_newest_backup_names_is_not_deleted() {
    use stamp::{DroppedExtent, Listing, NamedExtents, SweepAction, SweepView, TOMBSTONE_AGE, choose_sweep};
    let mut stage = Stage::new();
    let (_, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    stage.put(part);
    back_up(&mut stage);
    stage.expire(W);
    let mut successor = stage.take(N);
    stage.trim(&mut successor, 1);
    let sweep = |stage: &Stage| {
        let dropped = stage.metadata.dropped().map(|(extent, length, dropped_at)| {
            (extent, DroppedExtent { length, dropped_at, age: TOMBSTONE_AGE })
        });
        let read_at = stage.metadata.revision();
        choose_sweep(&SweepView {
            listing: Listing { paths: stage.store.list(), ended_at: read_at, ..Listing::default() },
            named: NamedExtents { read_at, ..NamedExtents::default() },
            dropped: dropped.collect(),
            backup: stage.backups.all().iter().map(|backup| backup.revision).max(),
            is_collection_on: true,
        })
    };

    // The rule: nothing goes before a complete backup is younger than its drop.
    assert_eq!(sweep(&stage), Ok(Vec::new()));
    back_up(&mut stage);
    assert!(matches!(sweep(&stage).unwrap()[..], [SweepAction::Delete(_)]));
    assert_eq!(extents(&restored(&stage).documents[0]), [0u64; 0]);
}

/// A zombie's transaction under way matches the restored revision and epoch: it writes an old document over a
/// newer one, and an extent that was acknowledged into is lost.
#[test]
fn a_restore_has_a_new_generation() {
    let mut stage = Stage::new();
    let (mut held, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    stage.put(part);
    back_up(&mut stage);
    let purpose = "data".to_owned();
    let create = Change::CreateStream { stream: stamp::StreamId::new(W, 77), purpose };
    let late = held.begin(&[create], Mark::new(W, 900)).unwrap().transaction.clone();
    let restored = restored(&stage);

    // With the same generation, revision and own entry the late transaction would commit.
    let revision = held.revision();
    let restore = |generation, own: OwnEntry| {
        let mut metadata = MetadataStore::new(generation, restored.restores);
        metadata.put_as_of(Key::Own(range()), Value::Own(own), revision);
        let document = RangeDocument { own, ..restored.documents[0].clone() };
        metadata.put_as_of(Key::Document(range()), Value::Document(Arc::new(document)), revision);
        metadata
    };
    stage.metadata = restore(LIFE.generation, OwnEntry::of(held.owner()));
    assert!(matches!(stage.commit(&late), TransactionAnswer::Committed(_)));

    // The rules: a new generation, and a higher epoch; either is enough.
    assert_ne!(restored.life.generation, LIFE.generation);
    stage.metadata = restore(restored.life.generation, OwnEntry::of(held.owner()));
    assert_eq!(stage.commit(&late), TransactionAnswer::CompareFailed);
    stage.metadata = restore(LIFE.generation, restored.documents[0].own);
    assert_eq!(stage.commit(&late), TransactionAnswer::CompareFailed);
}

/// The restorer lists the store; W, which still lives, writes the first part of a named extent: lost.
#[test]
fn a_restore_waits_until_every_lease_has_ended() {
    let mut stage = Stage::new();
    back_up(&mut stage);
    let (_, mut window) = stage.writer(W);
    let listed_early = restored(&stage);
    let part = window.push(10, 1).unwrap();
    let answer = stage.put(part);
    assert_eq!(answer, PutAnswer::Created);
    assert_eq!(extents(&listed_early.documents[0]), [0u64; 0], "the extent is not known");

    // The rule: not before a lease time and its margin after the lost store's last answer. By then W's
    // deadline has passed, and it acknowledges nothing.
    let start = |seconds| choose_restore_start(false, Duration::from_secs(seconds), LEASE_TTL, LEASE_MARGIN);
    assert_eq!(start(10), RestoreStart::Wait(Duration::from_secs(1)));
    assert_eq!(start(11), RestoreStart::Go);
    window.answered(0, answer, None, false);
    assert_eq!(window.acknowledge(false), []);
    let listed_late = restored(&stage);
    assert_eq!(extents(&listed_late.documents[0]), [part.place.extent.0.counter]);
}

/// N seals two empty tails side by side; the seal of the later one arrives, and etcd is lost: the restore
/// finds ordinal 1 and no ordinal 0, and fails for ever.
#[test]
fn a_restore_ends_at_a_gap_of_empty_seals() {
    let mut stage = Stage::new();
    back_up(&mut stage);
    let mut held = stage.take(W);
    let named = [stage.name_extent(&mut held), stage.name_extent(&mut held)];
    stage.expire(W);
    let mut taking = stage.begin_take(N);
    let later = taking.walks().position(|walk| walk.place().extent == named[1]).unwrap();
    assert_eq!(stage.seal(taking.walk_mut(later).unwrap()), 0);
    let first_objects = stage.store.first_objects();
    assert_eq!(first_objects.iter().map(|header| header.place.ordinal).collect::<Vec<_>>(), [1]);

    // The rule: behind a gap there is at most an empty seal, because a part waits for the seal before it.
    let document = &restored(&stage).documents[0];
    assert_eq!(extents(document), [0u64; 0]);
}
