//! Many more deleted containers than marks fit in memory: their space is freed, and nothing else goes; on the
//! simulated disk, in virtual time, with a crash in the middle.
//!
//! There was a bound on marks once: beyond it containers kept their space for hours, and empty ones counted.

use crate::rows::{ACCOUNT, Everything, TABLE, Write, key, open, put, scan_range, value};
use base::Environment;
use partition::{KeyRange, PartitionError, PartitionSettings, Partitions, PlantedFault};
use sim::{Faults, World};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;
use stream::Streams;

const CONTAINER_COUNT: u64 = 400;
/// Two of three containers are deleted.
const KEPT_OF: u64 = 3;

fn is_kept(container: u64) -> bool {
    container.is_multiple_of(KEPT_OF)
}

/// Ranges are split, and hold many containers each; marks are read few at a time.
fn settings(planted_fault: Option<PlantedFault>) -> PartitionSettings {
    PartitionSettings { range_size_bytes_max: 200 << 10, planted_fault, ..PartitionSettings::tiny() }
}

fn stored_bytes(streams: &Streams) -> u64 {
    let names = streams.list(&format!("{}/", TABLE.name()));
    let checkpoints = names.iter().filter(|name| name.as_str().contains("/row_data/"));
    let sizes = checkpoints.flat_map(|name| streams.stat(name).unwrap().extents);
    sizes.map(|(_, size_bytes)| size_bytes).sum()
}

async fn sleep(env: &Environment, seconds: u64) {
    env.clock.sleep(Duration::from_secs(seconds)).await;
}

/// Fills all containers. Returns what is to stay.
async fn fill(env: &Environment, partitions: &Partitions) -> Everything {
    let mut kept = Everything::new();
    for container in 0..CONTAINER_COUNT {
        for at in 0..1 + env.random.next_u64() % 5 {
            let (row, size) = (key(container, "p", &format!("r{at}")), 100 + env.random.next_u64() % 900);
            let value = Some(value(container * 10 + at, size as usize));
            match is_kept(container) {
                true => put(partitions, &mut kept, row, value).await.unwrap(),
                false => drop(partitions.execute(Write { changes: vec![(row, value)] }).await.unwrap()),
            }
        }
    }
    kept
}

/// What a service does at its start: containers that have rows and are not kept are retired.
async fn retire_lost(partitions: &Partitions) -> Result<u64, PartitionError> {
    let (mut after, mut retired) = (None, 0);
    while let Some((account, id)) = partitions.next_container(TABLE, after).await? {
        if !is_kept(id) {
            partitions.retire_container(TABLE, &account, id).await?;
            retired += 1;
        }
        after = Some((ACCOUNT, id));
    }
    Ok(retired)
}

/// One seed's history. Returns how many marks were there after the crash, and what was left of the bytes.
fn history(seed: u64, planted_fault: Option<PlantedFault>) -> (u64, u64, u64) {
    let world = World::new(seed);
    let filled = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings(planted_fault)).await.unwrap();
        let kept = fill(&env, &partitions).await;
        sleep(&env, 40).await;
        let full_bytes = stored_bytes(&streams);
        partitions.close().await;
        streams.close().await;
        (kept, full_bytes)
    });
    let (kept, full_bytes) = filled.unwrap();
    // Deletions in any order, until the disk crashes.
    let retired = Mutex::new(BTreeSet::new());
    let disk = world.disk.clone();
    let finished = world.run(|env, _| {
        let (retired, kept) = (&retired, &kept);
        async move {
            let (_streams, partitions) = open(&env, settings(planted_fault)).await.unwrap();
            let crash_at_operation = disk.operation_count() + 100 + env.random.next_u64() % 8000;
            disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            for at in 0..CONTAINER_COUNT {
                let container = (at * 157 + seed) % CONTAINER_COUNT;
                if !is_kept(container) {
                    partitions.retire_container(TABLE, ACCOUNT, container).await.unwrap();
                    retired.lock().unwrap().insert(container);
                }
                if at.is_multiple_of(16) {
                    sleep(&env, 1).await;
                }
            }
            sleep(&env, 600).await;
            let found = scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap();
            assert!(kept.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}: a row is lost");
        }
    });
    world.disk.set_faults(Faults::default());
    let marked = retired.into_inner().unwrap().len() as u64;
    println!("seed {seed}: {marked} containers retired, ended by a crash: {}", finished.is_none());
    let outcome = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings(planted_fault)).await.unwrap();
        let mark_count = partitions.retired_container_count() as u64;
        let found = scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap();
        assert!(kept.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}: a row is lost");
        // Rows that are only in memory when their containers are retired, until they are flushed for that.
        for container in (0..CONTAINER_COUNT).filter(|container| !is_kept(*container)).step_by(20) {
            let changes = vec![(key(container, "p", "late"), Some(value(container, 100)))];
            partitions.execute(Write { changes }).await.unwrap();
        }
        retire_lost(&partitions).await.unwrap();
        sleep(&env, 180).await;
        let found = scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap();
        assert!(kept.iter().all(|(key, row)| found.get(key) == Some(row)), "seed {seed}: a row is lost");
        assert!(
            found == kept,
            "seed {seed}: {} of {} rows are of deleted containers",
            found.len() - kept.len(),
            found.len()
        );
        sleep(&env, 60).await;
        assert_eq!(partitions.retired_container_count(), 0, "seed {seed}: marks stay");
        let left_bytes = stored_bytes(&streams);
        partitions.close().await;
        streams.close().await;
        let (streams, partitions) = open(&env, settings(planted_fault)).await.unwrap();
        assert_eq!(partitions.retired_container_count(), 0, "seed {seed}: marks come back");
        assert!(
            scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap() == kept,
            "seed {seed}: other rows after a restart"
        );
        partitions.close().await;
        streams.close().await;
        (mark_count, left_bytes)
    });
    let (mark_count, left_bytes) = outcome.unwrap();
    println!(
        "seed {seed}: {mark_count} marks after it, {full_bytes} bytes of rows before, {left_bytes} after it"
    );
    (mark_count, full_bytes, left_bytes)
}

#[test]
fn the_space_of_any_number_of_deleted_containers_is_freed_and_no_other_row_goes() {
    let mut most_marks = 0;
    for seed in 0..6 {
        let (mark_count, full_bytes, left_bytes) = history(seed, None);
        most_marks = most_marks.max(mark_count);
        // A third of them is kept.
        assert!(left_bytes < full_bytes / 2, "seed {seed}: {left_bytes} of {full_bytes} bytes stay");
    }
    assert!(most_marks > 100, "{most_marks} marks at most: too few to be many");
}

/// The test above notices marks that go while their containers have rows.
#[test]
#[should_panic(expected = "are of deleted containers")]
fn marks_that_go_too_early_are_noticed() {
    for seed in 0..6 {
        history(seed, Some(PlantedFault::HastyMarks));
    }
}

/// Containers that were empty when they were deleted took marks from those that were not, and each cost a
/// write.
#[test]
fn deleting_empty_containers_writes_nothing() {
    let world = World::new(1);
    let disk = world.disk.clone();
    let finished = world.run(|env, _| async move {
        let (_streams, partitions) = open(&env, settings(None)).await.unwrap();
        let kept = fill(&env, &partitions).await;
        sleep(&env, 60).await;
        let before = disk.operation_count();
        for id in 0..20_000 {
            partitions.retire_container(TABLE, ACCOUNT, CONTAINER_COUNT + id).await.unwrap();
        }
        let written = disk.operation_count() - before;
        assert!(written < 100, "{written} operations on the disk");
        assert_eq!(partitions.retired_container_count(), 0);
        sleep(&env, 300).await;
        assert_eq!(partitions.retired_container_count(), 0);
        let found = scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap();
        assert!(kept.iter().all(|(key, row)| found.get(key) == Some(row)));
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// A request that found a container before it was deleted, empty, wrote into it: its rows stayed until they
/// were searched for.
#[test]
fn rows_that_come_after_an_empty_container_was_deleted_go_too() {
    let finished = World::new(2).run(|env, _| async move {
        let (_streams, partitions) = open(&env, settings(None)).await.unwrap();
        partitions.retire_container(TABLE, ACCOUNT, 7).await.unwrap();
        sleep(&env, 30).await;
        put(&partitions, &mut Everything::new(), key(7, "p", "r"), Some(value(1, 100))).await.unwrap();
        sleep(&env, 110).await;
        assert_eq!(partitions.retired_container_count(), 1);
        sleep(&env, 160).await;
        assert_eq!(partitions.retired_container_count(), 0);
        assert_eq!(scan_range(&partitions, TABLE, KeyRange::all()).await.unwrap(), Everything::new());
        partitions.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}
