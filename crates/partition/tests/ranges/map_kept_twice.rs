//! The partition map is kept twice: damage of its range or of its copy, at rest and after a crash anywhere,
//! stops nothing; with both gone the ranges' own metadata give it, or the start is refused and says so.

use crate::rows::{ACCOUNT, Everything, TABLE, key, open, put, scan_range, value, varied_life};
use bytes::Bytes;
use partition::{KeyRange, ObjectTable, PartitionError, PartitionSettings, Partitions, check_folder};
use sim::{Faults, World};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stream::{Incarnation, Owner, StreamChange, StreamName, StreamSettings, Streams};

const MAP: &str = "partition_map/1/";
const COPY: &str = "partition_map/copy";
/// Lives are cut off at each operation of this many: each would take minutes.
const CRASH_STEP: usize = 3;

/// Zeroes whatever is stored of the streams whose names start with one of these. Returns how many extents
/// that were.
fn zero(world: &World, prefixes: &[&str]) -> usize {
    let extents = world.run(|env, _| async move {
        // What is only in the journal comes to its extents.
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let names = streams.list("").into_iter();
        let names = names.filter(|name| prefixes.iter().any(|prefix| name.as_str().starts_with(prefix)));
        let extents = names.flat_map(|name| streams.stat(&name).unwrap().extents);
        let extents: Vec<_> = extents.filter(|(_, size_bytes)| *size_bytes > 0).collect();
        streams.close().await;
        extents
    });
    let extents = extents.unwrap();
    for (extent, size_bytes) in &extents {
        world.disk.replace(&format!("extents/{extent}"), vec![0; *size_bytes as usize]);
    }
    extents.len()
}

/// Appends as much to a stream of no range as the journal holds: what was in it before is in the extents
/// alone, and no start writes it there again.
fn turn_over_journal(world: &World) {
    let filled = world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let (filler, owner) = (StreamName::new("filler/1"), Owner::first(Incarnation(7)));
        streams.create(std::slice::from_ref(&filler), owner).await.unwrap();
        for _ in 0..400 {
            streams.append(&filler, owner, vec![Bytes::from_static(&[1; 1000])]).await.unwrap();
        }
        streams.multi_modify(&[StreamChange::Delete(filler.owned_by(owner))]).await.unwrap();
        streams.close().await;
    });
    filled.unwrap();
}

fn read(world: &World) -> Result<Everything, PartitionError> {
    let read = |env: base::Environment| async move {
        let (streams, partitions) = open(&env, PartitionSettings::tiny()).await?;
        let mut rows = scan_range(&partitions, TABLE, KeyRange::all()).await?;
        rows.extend(scan_range(&partitions, ObjectTable::Blob, KeyRange::all()).await?);
        partitions.close().await;
        streams.close().await;
        Ok(rows)
    };
    world.run(|env, _| read(env)).unwrap()
}

fn damage_count(world: &World) -> usize {
    let checked = world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await }).unwrap();
    checked.unwrap().damages.len()
}

#[test]
fn the_map_is_mended_from_whatever_is_left_of_it() {
    for seed in 0..8 {
        let world = World::new(seed);
        let expected = world.run(|env, _| async move { varied_life(&env, 2000).await }).unwrap();
        for (lost, what) in [
            (vec![MAP], "the map"),
            (vec!["partition_map/1/metadata"], "the map's metadata"),
            (vec!["partition_map/1/log"], "the map's log"),
            (vec![COPY], "the copy"),
            (vec![MAP, COPY], "both"),
        ] {
            let world = world.copy(seed);
            let what = format!("seed {seed}: {what}");
            assert!(zero(&world, &lost) > 0, "{what}");
            assert!(damage_count(&world) > 0, "{what}: the check is content");
            assert!(read(&world).unwrap() == expected, "{what}: wrong rows");
            // It is mended for good: the other one may go now.
            assert_eq!(damage_count(&world), 0, "{what}: damage is left");
            let other = if lost == [COPY] { MAP } else { COPY };
            assert!(zero(&world, &[other]) > 0, "{what}");
            assert!(read(&world).unwrap() == expected, "{what}, then the other: wrong rows");
            assert_eq!(damage_count(&world), 0, "{what}, then the other: damage is left");
        }
    }
}

#[test]
fn a_start_that_mends_may_be_cut_off_anywhere() {
    let (damaged, expected, _) = life(Change::Split, None);
    for lost in [vec![MAP], vec![COPY], vec![MAP, COPY]] {
        let world = damaged.copy(1);
        zero(&world, &lost);
        let whole = world.copy(1);
        let before = whole.disk.operation_count();
        assert!(read(&whole).unwrap() == expected);
        let count = whole.disk.operation_count() - before;
        println!("{lost:?}: {count} disk operations");
        for crash_after in (1..=count).step_by(CRASH_STEP) {
            let world = world.copy(1);
            let crash_at_operation = world.disk.operation_count() + crash_after;
            world.disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            world.run(|env, _| async move {
                let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.ok()?;
                scan_range(&partitions, TABLE, KeyRange::all()).await.ok()
            });
            world.disk.set_faults(Faults::default());
            assert!(read(&world).unwrap() == expected, "{lost:?}, cut off after {crash_after}");
            assert_eq!(damage_count(&world), 0, "{lost:?}, cut off after {crash_after}");
        }
    }
}

/// With the map's range and its copy gone, and one range that does not say which keys are its own, nobody may
/// guess.
#[test]
fn without_map_copy_and_a_range_s_metadata_the_start_is_refused() {
    let world = World::new(3);
    world.run(|env, _| async move { varied_life(&env, 2000).await }).unwrap();
    let (metadata, listed) = world
        .run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let names = streams.list("");
            let extents = names.iter().flat_map(|name| streams.stat(name).unwrap().extents);
            let listed: BTreeSet<String> = extents.map(|(extent, _)| format!("extents/{extent}")).collect();
            let mut names = names.iter().map(|name| name.as_str().to_owned());
            (names.find(|name| name.starts_with("entity/") && name.ends_with("/metadata")).unwrap(), listed)
        })
        .unwrap();
    turn_over_journal(&world);
    zero(&world, &[MAP, COPY, &metadata]);
    let before = world.disk.contents();
    let error = read(&world).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, PartitionError::Storage(_)), "{told}");
    assert!(told.contains("larimar repair") && told.contains(&metadata), "{told}");
    // Any start may remove what a creation left behind that the end of the process broke off.
    let extents = |contents: &BTreeMap<String, Vec<u8>>| {
        let extents = contents.iter().filter(|(path, _)| listed.contains(*path));
        extents.map(|(path, bytes)| (path.clone(), bytes.clone())).collect::<Vec<_>>()
    };
    assert!(!listed.is_empty() && extents(&before).len() == listed.len());
    assert!(extents(&before) == extents(&world.disk.contents()), "a refused folder was changed");
}

/// The container that is deleted.
const MARKED: u64 = 9;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Split,
    Merge,
    Mark,
}

async fn run(partitions: &Partitions, change: Change) {
    // A crash ends it.
    let _ = match change {
        Change::Split => partitions.split(TABLE, &key(1, "p3", "")).await.map(drop),
        Change::Merge => partitions.merge(TABLE, &key(1, "p0", "")).await.map(drop),
        Change::Mark => partitions.retire_container(TABLE, ACCOUNT, MARKED).await,
    };
}

/// A life that changes the map, cut off after so many operations of the change, beside writers that go on
/// after it.
fn life(change: Change, crash_after: Option<u64>) -> (World, Everything, u64) {
    let world = World::new(7);
    let disk = world.disk.clone();
    let acknowledged = std::sync::Mutex::new(Everything::new());
    let mut operations = 0;
    let settings = PartitionSettings { compaction_count_min: 100, ..PartitionSettings::tiny() };
    world.run(|env, _| {
        let (disk, acknowledged, operations) = (disk.clone(), &acknowledged, &mut operations);
        async move {
            let (_streams, partitions) = open(&env, settings).await.unwrap();
            let mut expected = Everything::new();
            for at in 0..60u64 {
                let key = key(1, &format!("p{}", at % 6), &format!("r{:02}", at % 20));
                put(&partitions, &mut expected, key, Some(value(at, 900))).await.unwrap();
            }
            if change == Change::Merge {
                assert!(partitions.split(TABLE, &key(1, "p3", "")).await.unwrap());
            }
            *acknowledged.lock().unwrap() = expected.clone();
            if change == Change::Mark {
                // One without rows gets no mark. Its row is not expected to stay.
                let row = key(MARKED, "p", "r");
                put(&partitions, &mut Everything::new(), row, Some(value(1, 100))).await.unwrap();
            }
            env.clock.sleep(Duration::from_secs(2)).await;
            let before = disk.operation_count();
            if let Some(crash_after) = crash_after {
                let crash_at_operation = before + crash_after;
                disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            }
            run(&partitions, change).await;
            // Whoever owns the keys now takes a write of each: a state of before would lack it.
            for at in 0..6u64 {
                let key = key(1, &format!("p{at}"), &format!("r{at:02}"));
                if put(&partitions, &mut expected, key, Some(value(500 + at, 300))).await.is_err() {
                    break;
                }
                *acknowledged.lock().unwrap() = expected.clone();
            }
            env.clock.sleep(Duration::from_secs(40)).await;
            *operations = disk.operation_count() - before;
        }
    });
    world.disk.set_faults(Faults::default());
    (world, acknowledged.into_inner().unwrap(), operations)
}

/// An unanswered write of the crash may be there or not: of the rows that were acknowledged, all are, as they
/// were last.
fn holds(found: &Everything, acknowledged: &Everything) -> bool {
    let marked = KeyRange::container(ACCOUNT, MARKED);
    let found: Everything = found
        .iter()
        .filter(|(key, _)| !marked.contains(key))
        .map(|(key, row)| (key.clone(), row.clone()))
        .collect();
    let differing = acknowledged.iter().filter(|(key, row)| found.get(*key) != Some(row));
    let newer = |(key, row): (&Vec<u8>, &(partition::RowVersion, Vec<u8>))| {
        found.get(key).is_some_and(|found| found.0 > row.0)
    };
    let differing: Vec<_> = differing.collect();
    found.len() == acknowledged.len() && differing.len() <= 1 && differing.into_iter().all(newer)
}

/// A copy that lags behind the map, or a map that lags behind its copy, would serve rows as they were before
/// a split.
#[test]
fn either_of_map_and_copy_alone_is_right_after_a_crash_anywhere() {
    for change in [Change::Split, Change::Merge, Change::Mark] {
        let (_, _, count) = life(change, None);
        println!("{change:?}: {count} disk operations");
        for crash_after in (1..=count).step_by(CRASH_STEP).chain([u64::MAX >> 1]) {
            let (world, acknowledged, _) = life(change, Some(crash_after));
            for lost in [MAP, COPY] {
                let world = world.copy(1);
                zero(&world, &[lost]);
                let what = format!("{change:?}, cut off after {crash_after}, without {lost}");
                let found = read(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(holds(&found, &acknowledged), "{what}: rows differ");
            }
        }
    }
}

/// The copy is bounded, however often the map changes.
#[test]
fn the_copy_of_the_map_stays_small() {
    let world = World::new(5);
    let (size_bytes, extents) = world
        .run(|env, _| async move {
            let (streams, partitions) = open(&env, with_large_copy()).await.unwrap();
            for id in 0..4000 {
                // One without rows gets no mark.
                let row = key(1000 + id, "p", "r");
                put(&partitions, &mut Everything::new(), row, Some(value(id, 10))).await.unwrap();
                partitions.retire_container(TABLE, ACCOUNT, 1000 + id).await.unwrap();
            }
            let stat = streams.stat(&stream::StreamName::new(COPY)).unwrap();
            (stat.extents.iter().map(|(_, size_bytes)| size_bytes).sum::<u64>(), stat.extents.len())
        })
        .unwrap();
    println!("{size_bytes} bytes in {extents} extents");
    // 4,000 marks take some 300 KB once.
    assert!(size_bytes < 1 << 20, "{size_bytes} bytes");
    assert!(extents < 64, "{extents} extents");
    run_once_more(&world);
}

/// One that takes so many marks.
fn with_large_copy() -> PartitionSettings {
    PartitionSettings { marks_at_hand_max: 10_000, ..PartitionSettings::tiny() }
}

fn run_once_more(world: &World) {
    zero(world, &[MAP]);
    let marks = world.run(|env, _| async move {
        let (_streams, partitions) = open(&env, with_large_copy()).await.unwrap();
        partitions.retired_container_count()
    });
    assert_eq!(marks, Some(4000), "marks come from the copy as well");
}
