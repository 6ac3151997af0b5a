//! A system that starts no more threads is reported in an error, at the start as later, and damages nothing.
//! It was a panic in the middle of what had been started.

use crate::rows::{Everything, TABLE, key, open, put, read_everything, value};
use partition::{PartitionError, PartitionSettings};
use sim::World;
use std::collections::BTreeSet;

/// A folder with some rows in it.
fn world() -> (World, Everything) {
    let world = World::new(7);
    let all = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let mut all = Everything::new();
        for at in 0..50 {
            put(&partitions, &mut all, key(1, "p", &format!("r{at}")), Some(value(at, 3000))).await.unwrap();
        }
        partitions.close().await;
        streams.close().await;
        all
    });
    (world, all.unwrap())
}

/// The rows after a start that nothing refuses.
fn rows_of(world: &World) -> Everything {
    world.set_threads_max(None);
    let rows = world.run(|env, _| async move {
        let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        read_everything(&partitions).await.unwrap()
    });
    rows.unwrap()
}

#[test]
fn a_start_without_threads_is_refused_and_changes_nothing() {
    let (world, all) = world();
    let mut refused = BTreeSet::new();
    let threads_needed = (0..100).find(|threads| {
        world.set_threads_max(Some(*threads));
        let opened = world.run(|env, _| async move { open(&env, PartitionSettings::tiny()).await.err() });
        match opened.unwrap() {
            None => return true,
            Some(PartitionError::OutOfThreads(text)) => refused.insert(text),
            Some(other) => panic!("{threads} threads: {other}"),
        };
        assert_eq!(rows_of(&world), all, "{threads} threads");
        false
    });
    let names = [
        "extent-drain",
        "journal",
        "stream-manager",
        "roll",
        "row-data",
        "blob-data",
        "flush",
        "merge",
        "collect",
    ];
    let texts: BTreeSet<String> = names
        .iter()
        .map(|name| format!("the system starts no more threads ({name}): no more threads"))
        .collect();
    assert_eq!(refused, texts);
    assert_eq!(threads_needed, Some(names.len() + 1), "two threads write blob data");
}

#[test]
fn ranges_that_find_no_thread_stay_as_they_are() {
    let (world, mut all) = world();
    world.set_threads_max(Some(10));
    let all = world.run(|env, _| async move {
        let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let split = partitions.split(TABLE, &key(1, "q", "")).await;
        assert!(matches!(split, Err(PartitionError::OutOfThreads(_))), "{split:?}");
        put(&partitions, &mut all, key(1, "q", "r"), Some(value(1, 100))).await.unwrap();
        assert_eq!(read_everything(&partitions).await.unwrap(), all);
        all
    });
    assert_eq!(rows_of(&world), all.unwrap());
}
