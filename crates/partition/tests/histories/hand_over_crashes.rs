//! Splits and merges of ranges, cut off at each of their disk operations: whatever the moment, the next start
//! finds every row, ranges that cover every key, and streams that the offline check has nothing against.

use crate::rows::{Everything, TABLE, key, open, put, read_everything, value};
use partition::{PartitionSettings, Partitions, check_folder};
use sim::{Faults, World};

const NAMES: u64 = 6;

#[derive(Clone, Copy, Debug)]
enum Change {
    Split,
    Merge,
    /// A split of what was split and merged before: its checkpoints are shared already.
    SplitAgain,
}

/// The ranges as they are before the change, with rows in checkpoints and in memory.
async fn prepare(partitions: &Partitions, change: Change) -> Everything {
    let mut expected = Everything::new();
    for round in 0..3 {
        for at in 0..20u64 {
            let key = key(1, &format!("p{}", at % NAMES), &format!("r{at:02}"));
            let gone = round == 2 && at % 5 == 0;
            let value = (!gone).then(|| value(round * 100 + at, 900));
            put(partitions, &mut expected, key, value).await.unwrap();
        }
        let middle = key(1, "p3", "");
        match (change, round) {
            (Change::Merge, 0) | (Change::SplitAgain, 0) => {
                assert!(partitions.split(TABLE, &middle).await.unwrap());
            }
            (Change::SplitAgain, 1) => assert!(partitions.merge(TABLE, &key(1, "p0", "")).await.unwrap()),
            _ => {}
        }
    }
    expected
}

async fn run(partitions: &Partitions, change: Change) {
    // A crash ends it; whatever it says is checked by what is there afterwards.
    let _ = match change {
        Change::Split | Change::SplitAgain => partitions.split(TABLE, &key(1, "p3", "")).await,
        Change::Merge => partitions.merge(TABLE, &key(1, "p0", "")).await,
    };
}

/// Plays one history and stops it `crash_after` operations into the change (`None`: never). Returns the
/// operations before and after the change.
fn play(change: Change, crash_after: Option<u64>) -> (u64, u64) {
    let world = World::new(7);
    let disk = world.disk.clone();
    let expected = std::sync::Mutex::new(Everything::new());
    let (mut before, mut after) = (0, 0);
    let settings = PartitionSettings { compaction_count_min: 100, ..PartitionSettings::tiny() };
    world.run(|env, _| {
        let (disk, expected, settings) = (disk.clone(), &expected, settings.clone());
        let (before, after) = (&mut before, &mut after);
        async move {
            let (_streams, partitions) = open(&env, settings).await.unwrap();
            let rows = prepare(&partitions, change).await;
            *expected.lock().unwrap() = rows;
            // Flushes and marks that are under way come to their end.
            env.clock.sleep(std::time::Duration::from_secs(2)).await;
            *before = disk.operation_count();
            if let Some(crash_after) = crash_after {
                disk.set_faults(Faults { crash_at_operation: *before + crash_after, ..Faults::default() });
            }
            run(&partitions, change).await;
            // The parents' streams go behind the change.
            env.clock.sleep(std::time::Duration::from_secs(40)).await;
            *after = disk.operation_count();
        }
    });
    world.disk.set_faults(Faults::default());
    let checked =
        world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await }).unwrap().unwrap();
    assert_eq!(checked.damages, [], "{change:?} cut off after {crash_after:?}");
    let expected = expected.into_inner().unwrap();
    let settings = &settings;
    let found = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings.clone()).await.unwrap();
        let ranges = partitions.ranges(TABLE).len();
        let rows = read_everything(&partitions).await.unwrap();
        // It goes on from there: the same change can be made, or was.
        run(&partitions, change).await;
        let again = read_everything(&partitions).await.unwrap();
        assert!(rows == again, "{change:?} cut off after {crash_after:?}, then made");
        let ends = partitions.ranges(TABLE).len();
        partitions.close().await;
        // Nothing of cut-off heirs and former parents stays.
        let folders: std::collections::BTreeSet<String> = (streams.list("entity/").iter())
            .filter_map(|name| name.as_str().split('/').nth(1).map(str::to_owned))
            .collect();
        (ranges, rows, ends, folders.len())
    });
    let (ranges, rows, ends, folders) = found.unwrap();
    assert!(rows == expected, "{change:?} cut off after {crash_after:?}: rows differ");
    assert!((1..=2).contains(&ranges), "{ranges} ranges");
    assert_eq!(ends, if matches!(change, Change::Merge) { 1 } else { 2 });
    assert!(folders >= ends && folders <= 4, "{folders} ranges have streams");
    (before, after)
}

fn at_each_operation(change: Change) {
    let (before, after) = play(change, None);
    let count = after - before;
    println!("{change:?}: {count} disk operations");
    assert!(count > 20, "a change takes more than {count} operations");
    for crash_after in 1..=count {
        play(change, Some(crash_after));
    }
}

#[test]
fn a_split_survives_a_crash_at_each_of_its_operations() {
    at_each_operation(Change::Split);
}

#[test]
fn a_merge_survives_a_crash_at_each_of_its_operations() {
    at_each_operation(Change::Merge);
}

#[test]
fn a_second_split_survives_a_crash_at_each_of_its_operations() {
    at_each_operation(Change::SplitAgain);
}
