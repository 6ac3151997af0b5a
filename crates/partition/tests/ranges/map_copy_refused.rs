//! The disk fills up at any step of a split: one that is refused leaves the ranges as they were, and one
//! whose change of the partition map is durable goes on, though the map's copy finds no room.

use crate::rows::{Everything, TABLE, key, open, put, scan_range, value};
use partition::{KeyRange, PartitionError, PartitionSettings};
use sim::{Faults, World};
use std::time::Duration;

/// Disk operations of a split, and pages of a journal segment, at least.
const OPERATIONS_MAX: u64 = 50;
const FILLED_PAGES_MAX: u64 = 16;
/// Longer than the tries before anything else is done about the copy.
const FULL_FOR: Duration = Duration::from_secs(20);

/// The map's change took the last page of the journal's segment, and its copy was refused until the tries
/// were over: nobody knew which ranges there were, and all keys of the parent were refused until the next
/// start.
#[test]
fn no_range_is_closed_because_the_maps_copy_finds_no_room() {
    let mut counts = [0; 3];
    let steps =
        (1..OPERATIONS_MAX).flat_map(|after| (0..FILLED_PAGES_MAX).map(move |filled| (after, filled)));
    // All would take a minute.
    for (after, filled) in steps.filter(|(after, filled)| (after + filled) % 2 == 0) {
        let what = format!("full after {after} operations, {filled} pages of the journal were filled");
        let world = World::new(1);
        let (disk, told) = (world.disk.clone(), what.clone());
        let lived = world.run(|env, _| async move {
            let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            let mut expected = Everything::new();
            let names = || (0..6).map(|name| (name, key(1, &format!("p{name}"), "r")));
            for (name, key) in names() {
                put(&partitions, &mut expected, key, Some(value(name, 100))).await.unwrap();
            }
            for page in 0..filled {
                let key = key(1, "p0", "page");
                put(&partitions, &mut expected, key, Some(value(page, 100))).await.unwrap();
            }
            let full_at_operation = disk.operation_count() + after;
            disk.set_faults(Faults { full_at_operation, ..Faults::default() });
            let at = key(1, "p3", "");
            let (split, ()) = futures_util::future::join(partitions.split(TABLE, &at), async {
                env.clock.sleep(FULL_FOR).await;
                disk.set_faults(Faults::default());
            })
            .await;
            let is_known = split.is_ok() || split == Err(PartitionError::DiskFull);
            assert!(is_known, "{told}: {split:?}");
            env.clock.sleep(FULL_FOR).await;
            for (name, key) in names() {
                put(&partitions, &mut expected, key, Some(value(name, 200)))
                    .await
                    .unwrap_or_else(|error| panic!("{told}: {split:?}, and then p{name}: {error}"));
            }
            partitions.close().await;
            streams.close().await;
            (split.is_ok(), expected)
        });
        let (is_split, expected) = lived.unwrap();
        counts[usize::from(is_split)] += 1;
        // The copy has followed: it is all there is now.
        for path in ["partition_map/1/metadata", "partition_map/1/log"] {
            counts[2] += remove(&world, path);
        }
        let found = world.run(|env, _| async move {
            let (_, partitions) = open(&env, PartitionSettings::tiny()).await?;
            scan_range(&partitions, TABLE, KeyRange::all()).await
        });
        assert!(found == Some(Ok::<_, PartitionError>(expected)), "{what}: other rows");
    }
    println!("{} splits were refused, {} done", counts[0], counts[1]);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// Zeroes what is stored of a stream; how many extents that were.
fn remove(world: &World, name: &'static str) -> usize {
    let extents = world.run(|env, _| async move {
        let streams = stream::Streams::open(&env, stream::StreamSettings::tiny()).await.unwrap();
        let extents = streams.stat(&stream::StreamName::new(name)).unwrap().extents;
        streams.close().await;
        extents
    });
    let stored = extents.unwrap().into_iter().filter(|(_, size)| *size > 0);
    stored
        .map(|(extent, size)| world.disk.replace(&format!("extents/{extent}"), vec![0; size as usize]))
        .count()
}
