//! Damage at rest: one bit is flipped somewhere in the data folder. Whatever happens then, no row is wrong or
//! missing without an error: either a read fails, or everything is as it was, because the bit was unused or
//! what it belonged to was in the journal, too; the folder is refused only for a bit outside its extents. And
//! the offline check names whatever fails. What goes on beside damage is looked at in `contained_damage.rs`.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use crate::rows::{self, Everything, open, read_everything, varied_life};
use crate::seeds::chosen_seeds;
use partition::{Damage, FolderCheck, PartitionError, PartitionSettings, check_folder};
use sim::{Faults, World};

const SEED_COUNT: u64 = 300;
/// Flips in one folder, one after the other, each taken back.
const FLIPS: u64 = 6;

fn folder(seed: u64) -> (World, Everything) {
    let world = World::new(seed);
    world.disk.set_faults(Faults { slow_one_in: 5, ..Faults::default() });
    let expected = world.run(|env, _| async move { varied_life(&env, 2000).await }).unwrap();
    world.disk.set_faults(Faults::default());
    (world, expected)
}

fn check(world: &World) -> Result<FolderCheck, PartitionError> {
    world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await }).unwrap()
}

fn read(world: &World) -> Result<Everything, PartitionError> {
    let read = |env: base::Environment| async move {
        let (_, partitions) = open(&env, PartitionSettings::tiny()).await?;
        read_everything(&partitions).await
    };
    world.run(|env, _| read(env)).unwrap()
}

#[test]
fn a_flipped_bit_is_never_a_wrong_answer_and_the_check_names_it() {
    let (mut refused, mut harmless, mut only_named) = (0, 0, 0);
    let mut named_places = std::collections::BTreeMap::new();
    for seed in chosen_seeds(SEED_COUNT, FLIPS) {
        let (world, expected) = folder(seed);
        for flip in 0..FLIPS {
            // A copy of the world for each flip: opening changes the folder.
            let world = world.copy(seed * 1000 + flip);
            let files: Vec<_> = world.disk.files().into_iter().filter(|(_, size)| *size > 0).collect();
            let (path, size) = &files[world.random.below(files.len() as u64) as usize];
            let bit = world.random.below(size * 8);
            // One flipped bit is undone, two are not.
            match flip % 3 {
                0 => world.disk.flip_bit(path, bit),
                _ => world.disk.garble(path, bit / 8),
            }
            let what = format!("seed {seed}, flip {flip}: bit {bit} of {path}");
            let checked = check(&world);
            if path.starts_with("extents/") {
                // Of what lies in extents nothing is so shared that the others could not be served.
                let opened = world
                    .copy(0)
                    .run(|env, _| async move { open(&env, PartitionSettings::tiny()).await.map(drop) });
                assert_eq!(opened, Some(Ok(())), "{what}: the start is refused");
            }
            let found = read(&world);
            match &found {
                Ok(rows) => assert!(*rows == expected, "{what}: wrong rows"),
                Err(PartitionError::Storage(_)) => {}
                Err(other) => panic!("{what}: {other}"),
            }
            let named = checked.as_ref().map_or(true, |checked| !checked.damages.is_empty());
            assert!(found.is_ok() || named, "{what}: {found:?}, but the check is content");
            match (found.is_ok(), named) {
                (false, _) => refused += 1,
                (true, true) => only_named += 1,
                (true, false) => harmless += 1,
            }
            for damage in checked.map(|checked| checked.damages).unwrap_or_default() {
                assert!(!damage.problem.is_empty() && !damage.meaning.is_empty(), "{what}: {damage:?}");
                let kind = damage.place.split(['/', ' ']).next().unwrap_or_default().to_owned();
                *named_places.entry(kind).or_insert(0) += 1;
            }
        }
    }
    println!(
        "{refused} flips refused, {only_named} in what nobody needs but named, {harmless} in unused bytes"
    );
    println!("named: {named_places:?}");
    assert!(refused > 0 && only_named + harmless > 0, "the flips must hit both");
}

#[test]
fn a_healthy_folder_passes_however_its_last_process_ended() {
    for seed in 0..30 {
        let world = World::new(seed);
        let expected = world.run(|env, _| async move { varied_life(&env, 2000).await }).unwrap();
        let checked = check(&world).unwrap();
        assert_eq!(checked.damages, [], "seed {seed}");
        assert!(checked.row_count > 0 && checked.range_count >= 4 && checked.block_count > 0, "{checked:?}");
        // The check has changed nothing.
        assert_eq!(read(&world).unwrap(), expected, "seed {seed}");
        // A process that dies in the middle of its writes leaves torn overflows, which are not damage.
        let dies_at = world.disk.operation_count() + 1 + world.random.below(400);
        world.disk.set_faults(Faults { crash_at_operation: dies_at, slow_one_in: 4, ..Faults::default() });
        world.run(|env, _| async move { varied_life(&env, 2000).await });
        world.disk.set_faults(Faults::default());
        let checked = check(&world).unwrap();
        assert_eq!(checked.damages, [], "seed {seed} after a crash");
    }
}

#[test]
fn each_kind_of_file_is_named_when_it_is_damaged() {
    let (world, _) = folder(1);
    let mut kinds = std::collections::BTreeSet::new();
    for (path, size) in world.disk.files().into_iter().filter(|(_, size)| *size > 0) {
        // Some bits of each file: at least one of them must matter to the check, unless the file is a journal
        // segment that no recovery needs.
        let named = (0..40).any(|at| {
            let world = world.copy(at);
            world.disk.flip_bit(&path, at * 7919 % (size * 8));
            match check(&world) {
                Err(_) => path == "FORMAT",
                Ok(checked) => checked
                    .damages
                    .iter()
                    .any(|damage| path.starts_with(&damage.place) || damage.place.starts_with("range")),
            }
        });
        // A file that may as well be empty is left over from something that was cut off.
        let left_over = {
            let world = world.copy(1);
            world.disk.cut(&path, Some(0));
            check(&world).is_ok_and(|checked| checked.damages.is_empty())
        };
        let kind = path.split('/').next().unwrap_or_default().to_owned();
        assert!(named || left_over || kind == "journal", "{path}: the check is content");
        if named {
            kinds.insert(kind);
        }
    }
    let expected: Vec<&str> = vec!["FORMAT", "FORMAT.second", "extents", "journal", "stream_manager"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_and_a_short_extent_are_named_with_what_they_hold() {
    let (world, _) = folder(2);
    let mut missing = 0;
    let extents: Vec<_> = world
        .disk
        .files()
        .into_iter()
        .filter(|(path, size)| path.starts_with("extents/") && *size > 0)
        .collect();
    for (path, size) in extents {
        for cut in [None, Some(size / 2)] {
            let world = world.copy(1);
            world.disk.cut(&path, cut);
            let checked = check(&world).unwrap();
            let repaired = read(&world).is_ok();
            // Where an extent that is not sealed has to end is known to whoever refers to it.
            let extent = path.trim_start_matches("extents/");
            let names = |damage: &Damage| damage.place == path || damage.problem.contains(extent);
            let named = checked.damages.iter().any(names);
            assert!(named || repaired, "{path} cut to {cut:?}: {:?}", checked.damages);
            missing += u64::from(cut.is_none() && named);
        }
    }
    assert!(missing > 5, "only {missing} missing files were named");
}

/// The extent node once wrote to extents and recycled the journal before the stream manager's log was even
/// read.
#[test]
fn a_manager_log_that_is_damaged_twice_is_refused_before_any_file_changes() {
    let (world, _) = folder(3);
    for path in ["stream_manager/log", "stream_manager/log.second"] {
        world.disk.garble(path, 41);
    }
    let before = world.disk.contents();
    assert!(read(&world).is_err());
    assert!(world.disk.contents() == before, "a refused folder was changed");
}

/// A merge that met damage was tried twice a second for ever, and wrote much anew each time.
#[test]
fn a_merge_that_fails_for_good_is_tried_less_and_less_and_leaves_nothing_behind() {
    use partition::PartitionSettings as Settings;
    use std::time::Duration;
    let world = World::new(3);
    let never = Settings { compaction_count_min: 100, ..Settings::tiny() };
    let twelve = Settings { compaction_count_min: 12, ..Settings::tiny() };
    let expected = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, never).await.unwrap();
        let mut expected = Everything::new();
        for at in 0..150u64 {
            let key = rows::key(1, "p", &format!("r{at:04}"));
            rows::put(&partitions, &mut expected, key, Some(rows::value(at, 2000))).await.unwrap();
        }
        partitions.close().await;
        streams.close().await;
        expected
    });
    // Row blocks of the checkpoints lie in extents with as much as a memory table; what the log still needs
    // is less.
    let large =
        world.disk.files().into_iter().filter(|(path, size)| path.starts_with("extents/") && *size > 18_000);
    let damaged: Vec<String> = large.map(|(path, _)| path).collect();
    for path in &damaged {
        world.disk.garble(path, 3000);
    }
    let disk = world.disk.clone();
    let (tries, streams_before, streams_after) = world
        .run(|env, _| async move {
            let (streams, partitions) = open(&env, twelve).await.unwrap();
            env.clock.sleep(Duration::from_secs(1)).await;
            let (before, listed) = (disk.operation_count(), streams.list("entity/").len());
            env.clock.sleep(Duration::from_secs(1200)).await;
            let after = disk.operation_count();
            // A new key is written all the same.
            let mut more = Everything::new();
            rows::put(&partitions, &mut more, rows::key(1, "q", "r"), Some(rows::value(1, 10)))
                .await
                .unwrap();
            (after - before, listed, streams.list("entity/").len())
        })
        .unwrap();
    println!("{tries} disk operations in 20 minutes, {} damaged extents", damaged.len());
    assert!(expected.is_some_and(|rows| rows.len() == 150));
    assert!(tries > 20, "merges must be tried");
    assert!(tries < 1500, "{tries} disk operations: a merge that fails must not be tried all the time");
    assert!(streams_after <= streams_before + 1, "{streams_before} streams became {streams_after}");
}

/// Checkpoints of which one did not read were merged no more, not even among those that came after it: with
/// every memory table that was flushed there was one more to ask.
#[test]
fn checkpoints_behind_a_damaged_one_are_merged_all_the_same() {
    use std::time::Duration;
    let world = World::new(4);
    let never = PartitionSettings { compaction_count_min: 100, ..PartitionSettings::tiny() };
    let expected = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, never).await.unwrap();
        let mut expected = Everything::new();
        for at in 0..150u64 {
            let key = rows::key(1, "p", &format!("r{at:04}"));
            rows::put(&partitions, &mut expected, key, Some(rows::value(at, 2000))).await.unwrap();
        }
        partitions.close().await;
        streams.close().await;
        expected
    });
    let expected = expected.unwrap();
    let mut large =
        world.disk.files().into_iter().filter(|(path, size)| path.starts_with("extents/") && *size > 18_000);
    let (damaged, _) = large.next_back().unwrap();
    world.disk.garble(&damaged, 3000);
    let few = PartitionSettings {
        compaction_count_min: 4,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    };
    let (counts, failed, merges) = world
        .run(|env, _| async move {
            let (_streams, partitions) = open(&env, few).await.unwrap();
            let mut newest = Everything::new();
            let mut counts = Vec::new();
            for round in 0..30u64 {
                for at in 0..30u64 {
                    let key = rows::key(1, "q", &format!("r{round:02}{at:04}"));
                    let value = Some(rows::value(round * 100 + at, 1000));
                    rows::put(&partitions, &mut newest, key, value).await.unwrap();
                }
                env.clock.sleep(Duration::from_secs(30)).await;
                counts.push(partitions.range_statistics(rows::TABLE)[0].checkpoints);
            }
            let mut failed = 0;
            for (key, (_, value)) in expected.iter().chain(&newest) {
                let key = partition::RowKey::from_bytes(bytes::Bytes::copy_from_slice(key));
                match partitions.get(rows::TABLE, &key).await {
                    Ok(row) => assert!(row.is_some_and(|row| row.value == *value), "{key:?}"),
                    Err(PartitionError::Storage(_)) => failed += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            (counts, failed, partitions.statistics().compactions)
        })
        .unwrap();
    println!("checkpoints {counts:?}, {merges} merges, {failed} rows can't be read");
    let before = counts[0];
    assert!(merges > 3, "{merges} merges");
    assert!(counts.iter().all(|count| *count < before + 12), "{counts:?}");
    assert!((1..30).contains(&failed), "{failed} rows can't be read");
}
