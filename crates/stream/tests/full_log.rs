//! A stream manager's log that is full, on a disk that is full, on the simulated disk.

use sim::{Faults, SimDisk, World};
use std::time::Duration;
use stream::{Incarnation, Owner, StreamError, StreamName, StreamSettings, Streams};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

fn name(at: usize) -> StreamName {
    StreamName::new(&format!("test/{at:03}"))
}

fn fill_up(disk: &SimDisk) {
    let used: u64 = disk.files().iter().map(|(_, size)| size).sum();
    disk.set_faults(Faults { capacity_bytes: used, ..Faults::default() });
}

/// A log that was full on a full disk refused deletions as well, and so no byte ever became free. It begins
/// anew in its place now, which may be cut off at any of its operations.
#[test]
fn a_full_log_that_begins_anew_for_a_deletion_survives_a_crash_at_each_of_its_operations() {
    let mut crash_count = 0;
    for crash_after in 1..200 {
        let world = World::new(crash_after);
        let disk = world.disk.clone();
        let crashes = disk.clone();
        let outcome = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            fill_up(&disk);
            let mut count = 0;
            while streams.create(&[name(count)], OWNER).await.is_ok() {
                count += 1;
            }
            let capacity_bytes = disk.files().iter().map(|(_, size)| size).sum();
            let crash_at_operation = disk.operation_count() + crash_after;
            crashes.set_faults(Faults { capacity_bytes, crash_at_operation, ..Faults::default() });
            let mut refused = 0;
            while let Err(error) = streams.delete(&name(1), OWNER).await {
                assert_eq!(error, StreamError::DiskFull);
                refused += 1;
                assert!(refused < 30, "it is refused for good");
                env.clock.sleep(Duration::from_millis(100)).await;
            }
            count
        });
        world.disk.set_faults(Faults::default());
        crash_count += u64::from(outcome.is_none());
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            streams.create(&[name(99)], OWNER).await.unwrap();
            (0..99).filter(|at| streams.exists(&name(*at))).collect::<Vec<_>>()
        });
        let found = found.expect("nothing crashes now");
        let all = found.last().map_or(0, |last| last + 1);
        assert!(all > 2, "after {crash_after}: {found:?}");
        let deleted: Vec<_> = (0..all).filter(|at| *at != 1).collect();
        let is_whole = found == deleted || (outcome.is_none() && found.len() == all);
        assert!(is_whole, "after {crash_after}: {found:?}");
        if let Some(count) = outcome {
            assert_eq!(all, count, "after {crash_after}");
        }
    }
    assert!((10..199).contains(&crash_count), "{crash_count} of them were cut off");
}
