//! A full disk, or no file descriptor left: what the stream manager's log or the journal has no space for is
//! refused, nothing that was there suffers, and it goes on once there is space.

use base::Environment;
use bytes::Bytes;
use sim::{Faults, SimDisk, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{
    Incarnation, Owner, OwnerEpoch, StreamChange, StreamError, StreamName, StreamSettings, Streams,
};

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(epoch) }
}

const OWNER: Owner = Owner::first(Incarnation(1));

fn name(at: usize) -> StreamName {
    StreamName::new(&format!("test/{at:03}"))
}

fn fill_up(disk: &SimDisk) {
    let used: u64 = disk.files().iter().map(|(_, size)| size).sum();
    disk.set_faults(Faults { capacity_bytes: used, ..Faults::default() });
}

/// Fills the disk and creates streams until the log is full; then the disk gets space again.
async fn live(env: Environment, disk: Arc<SimDisk>) -> Vec<StreamName> {
    let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
    let first = name(0);
    streams.create(std::slice::from_ref(&first), OWNER).await.unwrap();
    streams.append(&first, OWNER, vec![Bytes::from_static(b"before")]).await.unwrap();
    fill_up(&disk);
    let mut count = 1;
    let refused = loop {
        match streams.create(&[name(count)], OWNER).await {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 100, "the log must fill up");
    };
    assert_eq!(refused, StreamError::DiskFull);
    assert!(count > 2, "the log had room for some");
    // Refused is refused, again and again, and changes nothing.
    for _ in 0..3 {
        assert_eq!(streams.create(&[name(count)], OWNER).await, Err(StreamError::DiskFull));
        assert_eq!(streams.delete(&first, OWNER).await, Err(StreamError::DiskFull));
        assert!(streams.exists(&first) && !streams.exists(&name(count)));
    }
    // What needs no space in the log goes on.
    assert_eq!(streams.check_writes(), Ok(()));
    let place = streams.append(&first, OWNER, vec![Bytes::from_static(b"meanwhile")]).await.unwrap()[0];
    assert_eq!(streams.read(place).await.unwrap(), "meanwhile");
    disk.set_faults(Faults::default());
    for _ in 0..20 {
        streams.create(&[name(count)], OWNER).await.unwrap();
        count += 1;
    }
    streams.list("test/")
}

#[test]
fn a_full_disk_refuses_what_the_managers_log_has_no_room_for_and_nothing_else() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let created = world.run(|env, _| live(env, disk)).unwrap();
        assert!(created.len() > 20, "seed {seed}");
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let mut replay = streams.replay(&name(0), None).unwrap();
            let mut blocks = Vec::new();
            while let Some((_, block)) = replay.next().await.unwrap() {
                blocks.push(block);
            }
            assert_eq!(blocks, ["before", "meanwhile"], "seed {seed}");
            streams.list("test/")
        });
        assert_eq!(found, Some(created), "seed {seed}");
    }
}

/// Three pages of a journal segment, which has sixteen.
const LARGE: usize = 11_000;

/// Appends blocks of `size` bytes until there is no space for another; returns those that were taken.
async fn append_until_full(streams: &Streams, stream: &StreamName, size: usize, tag: u8) -> Vec<Bytes> {
    let mut taken = Vec::new();
    loop {
        let block = Bytes::from(vec![tag; size]);
        match streams.append(stream, OWNER, vec![block.clone()]).await {
            Ok(_) => taken.push(block),
            Err(StreamError::DiskFull) => return taken,
            Err(other) => panic!("{other}"),
        }
        assert!(taken.len() < 100, "the journal must fill up");
    }
}

/// A full disk had refused the journal its next segment after the drain had its ticket for the present one.
/// Small appends still went to that one, and no ticket covered them: two segments on they were taken for
/// synced, and the power loss took them.
#[test]
fn appends_after_a_refused_segment_outlive_the_segments_that_follow() {
    let settings = || StreamSettings {
        extent_size_bytes_max: 1 << 20,
        journaled_append_size_bytes_max: 16 << 10,
        ..StreamSettings::tiny()
    };
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let appended = world.run(|env, _| async move {
            let streams = Streams::open(&env, settings()).await.unwrap();
            let stream = name(0);
            streams.create(std::slice::from_ref(&stream), OWNER).await.unwrap();
            streams.append(&stream, OWNER, vec![Bytes::from_static(b"before")]).await.unwrap();
            let mut appended = vec![Bytes::from_static(b"before")];
            fill_up(&disk);
            appended.extend(append_until_full(&streams, &stream, LARGE, 1).await);
            // The drain syncs what its ticket covers.
            disk.set_faults(Faults::default());
            env.clock.sleep(Duration::from_millis(300)).await;
            // One page is left of the segment.
            let late = Bytes::from_static(b"late");
            streams.append(&stream, OWNER, vec![late.clone()]).await.unwrap();
            appended.push(late);
            fill_up(&disk);
            appended.extend(append_until_full(&streams, &stream, LARGE, 2).await);
            appended
        });
        let appended = appended.unwrap();
        assert!(appended.len() > 8, "seed {seed}: {} appends", appended.len());
        world.disk.set_faults(Faults::default());
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, settings()).await?;
            let mut replay = streams.replay(&name(0), None)?;
            let mut blocks = Vec::new();
            while let Some((_, block)) = replay.next().await? {
                blocks.push(block);
            }
            Ok::<_, StreamError>(blocks)
        });
        assert!(found.unwrap() == Ok(appended), "seed {seed}: what was acknowledged is not there");
    }
}

/// The stream manager's log gave up for good when no file could be opened for its successor.
#[test]
fn the_managers_log_goes_on_while_no_file_can_be_opened_for_its_successor() {
    let world = World::new(1);
    let disk = world.disk.clone();
    let log_size = {
        let disk = disk.clone();
        move || {
            disk.files().iter().find(|(path, _)| path == "stream_manager/log").map_or(0, |(_, size)| *size)
        }
    };
    let sizes = world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let stream = name(0);
        disk.set_faults(Faults { create_refused_one_in: 1, ..Faults::default() });
        // A record takes a page.
        for _ in 0..2100 {
            streams.create(std::slice::from_ref(&stream), OWNER).await.unwrap();
            streams.delete(&stream, OWNER).await.unwrap();
        }
        let grown = log_size();
        disk.set_faults(Faults::default());
        streams.create(std::slice::from_ref(&stream), OWNER).await.unwrap();
        (grown, log_size())
    });
    let (grown, replaced) = sizes.unwrap();
    assert!(grown > 16 << 20 && replaced < 1 << 20, "{grown} bytes, then {replaced}");
    let found = world.run(|env, _| async move {
        Streams::open(&env, StreamSettings::tiny()).await.unwrap().list("test/")
    });
    assert_eq!(found, Some(vec![name(0)]));
}

fn with_reserve() -> StreamSettings {
    StreamSettings { reserve_size_bytes: RESERVE, ..StreamSettings::tiny() }
}

const RESERVE: u64 = 128 << 10;
/// What of it only a start gives up.
const START_RESERVE: u64 = RESERVE / 8;
const VICTIM_COUNT: usize = 60;

fn reserve_size(disk: &SimDisk) -> u64 {
    disk.files().iter().find(|(path, _)| path == "reserve").map_or(0, |(_, size)| *size)
}

/// Appends to a stream whose disk is full until the reserve is given up. Returns what was taken.
async fn append_until_scarce(streams: &Streams) -> Vec<Bytes> {
    let mut taken = Vec::new();
    for _ in 0..1000 {
        if streams.is_scarce() {
            return taken;
        }
        let block = Bytes::from(vec![taken.len() as u8; 5000]);
        match streams.append(&name(0), OWNER, vec![block.clone()]).await {
            Ok(_) => taken.push(block),
            // The drain is at it.
            Err(StreamError::DiskFull) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("a full disk must cost the reserve");
}

/// On a disk that was full to the last byte, with a journal that was full, nothing could be deleted.
#[test]
fn a_reserve_lets_deletions_go_on_where_the_disk_and_the_journal_are_full() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let appended = world.run(|env, _| async move {
            let streams = Streams::open(&env, with_reserve()).await.unwrap();
            for at in 0..=VICTIM_COUNT {
                streams.create(&[name(at)], OWNER).await.unwrap();
                for block in [9000, 9000] {
                    streams.append(&name(at), OWNER, vec![Bytes::from(vec![7; block])]).await.unwrap();
                }
            }
            env.clock.sleep(Duration::from_secs(10)).await;
            assert_eq!((reserve_size(&disk), streams.is_scarce()), (RESERVE, false), "seed {seed}");
            fill_up(&disk);
            let appended = append_until_scarce(&streams).await;
            // Space is scarce from the moment on at which the reserve begins to be given up.
            env.clock.sleep(Duration::from_millis(50)).await;
            assert_eq!(reserve_size(&disk), START_RESERVE, "seed {seed}");
            appended
        });
        let appended = appended.unwrap();
        // The next life begins on a full disk, still knows that space is scarce, and deletes.
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, with_reserve()).await.unwrap();
                assert!(streams.is_scarce() && !streams.has_room_for(1 << 20).await, "seed {seed}");
                for at in 1..=VICTIM_COUNT {
                    assert_eq!(streams.delete(&name(at), OWNER).await, Ok(()), "seed {seed}, {at}");
                }
                env.clock.sleep(Duration::from_secs(10)).await;
                assert_eq!((reserve_size(&disk), streams.is_scarce()), (RESERVE, false), "seed {seed}");
                streams.append(&name(0), OWNER, vec![Bytes::from_static(b"after")]).await.unwrap();
                assert_eq!(streams.list("test/"), [name(0)]);
            })
            .unwrap();
        // A power loss may bring names back that were removed.
        world.disk.set_free_bytes(None);
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, with_reserve()).await.unwrap();
                assert!(!streams.is_scarce());
                let mut replay = streams.replay(&name(0), None).unwrap();
                let mut blocks = Vec::new();
                while let Some((_, block)) = replay.next().await.unwrap() {
                    blocks.push(block);
                }
                let expected = appended.into_iter().chain([Bytes::from_static(b"after")]);
                assert!(blocks.into_iter().skip(2).eq(expected), "seed {seed}");
            })
            .unwrap();
    }
}

/// A disk that is filled, emptied and filled again must not cost the reserve each time.
#[test]
fn a_nearly_full_disk_keeps_its_reserve_and_takes_writes_as_soon_as_there_is_space() {
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = Streams::open(&env, with_reserve()).await.unwrap();
            streams.create(&[name(0)], OWNER).await.unwrap();
            env.clock.sleep(Duration::from_secs(10)).await;
            for round in 0..3 {
                disk.set_free_bytes(Some(RESERVE / 2 - 1));
                streams.became_scarce().await;
                env.clock.sleep(Duration::from_secs(10)).await;
                let state =
                    || (streams.is_scarce(), streams.has_given_up_reserve(), streams.is_below_floor());
                assert_eq!((state(), reserve_size(&disk)), ((true, false, false), RESERVE), "round {round}");
                assert_eq!(streams.missing_bytes(), RESERVE / 32 + 1);
                disk.set_free_bytes(Some(RESERVE / 2 + RESERVE / 32));
                env.clock.sleep(Duration::from_millis(100)).await;
                assert_eq!((state(), reserve_size(&disk)), ((false, false, false), RESERVE), "round {round}");
            }
            // Work that finds no space in what is left has the reserve.
            disk.set_free_bytes(Some(RESERVE / 2 - 1));
            streams.became_scarce().await;
            let claim = streams.claim(RESERVE, RESERVE).await;
            env.clock.sleep(Duration::from_secs(1)).await;
            // It does not take back what was just claimed.
            assert!(claim.is_some());
            assert!(streams.has_given_up_reserve() && reserve_size(&disk) == START_RESERVE);
            drop(claim);
            disk.set_free_bytes(Some(2 * RESERVE));
            env.clock.sleep(Duration::from_secs(10)).await;
            assert!(!streams.has_given_up_reserve() && !streams.is_scarce());
            // So have deletions before they have to wait.
            disk.set_free_bytes(Some(RESERVE / 5));
            env.clock.sleep(Duration::from_millis(500)).await;
            assert!(streams.has_given_up_reserve() && reserve_size(&disk) == START_RESERVE);
            assert!(!streams.is_below_floor());
        })
        .unwrap();
}

/// The stream manager's log had no space for the deletion that would have reclaimed some.
#[test]
fn a_reserve_makes_room_in_the_managers_log() {
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            // Each of its two files grows by so much.
            let settings = StreamSettings { manager_log_growth_bytes: 16 << 10, ..with_reserve() };
            let streams = Streams::open(&env, settings).await.unwrap();
            env.clock.sleep(Duration::from_secs(10)).await;
            fill_up(&disk);
            let mut count = 0;
            while !streams.is_scarce() {
                assert!(count < 100, "the log must fill up");
                assert_eq!(streams.create(&[name(count)], OWNER).await, Ok(()), "stream {count}");
                count += 1;
            }
            for at in 0..count {
                assert_eq!(streams.delete(&name(at), OWNER).await, Ok(()), "stream {at}");
            }
        })
        .unwrap();
}

/// Where there never was space for a reserve a full disk took no deletions, and a server that was full stayed
/// so.
#[test]
fn a_folder_without_room_for_a_reserve_gets_one_once_there_is_space() {
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = Streams::open(&env, with_reserve()).await.unwrap();
            streams.create(&[name(0)], OWNER).await.unwrap();
            disk.set_free_bytes(Some(RESERVE));
            env.clock.sleep(Duration::from_secs(10)).await;
            assert_eq!(reserve_size(&disk), 0);
            while streams.append(&name(0), OWNER, vec![Bytes::from(vec![7; 5000])]).await.is_ok() {}
            assert!(streams.is_scarce());
            // Reclaimed space is used for one, and until then only what reclaims some is accepted.
            disk.set_free_bytes(Some(2 * RESERVE));
            env.clock.sleep(Duration::from_secs(10)).await;
            assert_eq!((reserve_size(&disk), streams.is_scarce()), (RESERVE, false));
        })
        .unwrap();
}

/// A start takes no half reserve for one: not while it is made for the first time, and not while it is made
/// again.
#[test]
fn a_reserve_that_is_cut_off_while_it_is_made_is_told_from_one_that_was_given_up() {
    const SIZE: u64 = 3 << 20;
    let settings = || StreamSettings { reserve_size_bytes: SIZE, ..StreamSettings::tiny() };
    let mut cut_off = [0, 0];
    for step in 1..14 {
        for (again, cut_off) in [false, true].into_iter().zip(&mut cut_off) {
            let world = World::new(step);
            let disk = world.disk.clone();
            let whole = world.run(|env, _| async move {
                let streams = Streams::open(&env, settings()).await.unwrap();
                streams.create(&[name(0)], OWNER).await.unwrap();
                if again {
                    env.clock.sleep(Duration::from_secs(10)).await;
                    fill_up(&disk);
                    append_until_scarce(&streams).await;
                }
                let crash_at_operation = disk.operation_count() + step;
                disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
                env.clock.sleep(Duration::from_secs(10)).await;
            });
            *cut_off += u64::from(whole.is_none());
            world.disk.set_faults(Faults::default());
            let disk = world.disk.clone();
            world
                .run(|env, _| async move {
                    let left = reserve_size(&disk);
                    let streams = Streams::open(&env, settings()).await.unwrap();
                    assert_eq!(streams.is_scarce(), again && left < SIZE, "step {step}: {left} bytes");
                    env.clock.sleep(Duration::from_secs(10)).await;
                    assert_eq!((reserve_size(&disk), streams.is_scarce()), (SIZE, false), "step {step}");
                    assert!(!disk.files().iter().any(|(path, _)| path == "reserve.new"), "step {step}");
                })
                .unwrap();
        }
    }
    println!("cut off {cut_off:?} of 13 times each");
    assert!(cut_off.iter().all(|count| *count >= 5), "{cut_off:?}");
}

/// The beginning of a reserve kept its space when the disk filled up meanwhile.
#[test]
fn a_reserve_that_was_never_whole_gives_its_space_back_and_is_made_anew() {
    const SIZE: u64 = 3 << 20;
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let settings = StreamSettings { reserve_size_bytes: SIZE, ..StreamSettings::tiny() };
            let streams = Streams::open(&env, settings).await.unwrap();
            streams.create(&[name(0)], OWNER).await.unwrap();
            let begun = || {
                let files = disk.files();
                files.iter().find(|(path, _)| path == "reserve.new").map_or(0, |(_, size)| *size)
            };
            while begun() == 0 {
                env.clock.sleep(Duration::from_millis(1)).await;
            }
            disk.set_free_bytes(Some(0));
            let mut count = 0;
            while begun() > 0 {
                assert!(count < 200, "it keeps its space");
                let _ = streams.append(&name(0), OWNER, vec![Bytes::from(vec![7; 5000])]).await;
                env.clock.sleep(Duration::from_millis(10)).await;
                count += 1;
            }
            assert!(streams.is_scarce());
            disk.set_free_bytes(Some(2 * SIZE));
            env.clock.sleep(Duration::from_secs(10)).await;
            assert_eq!((reserve_size(&disk), streams.is_scarce()), (SIZE, false));
        })
        .unwrap();
}

fn used_bytes(disk: &SimDisk) -> u64 {
    disk.files().iter().map(|(_, size)| size).sum()
}

fn log_size(disk: &SimDisk) -> u64 {
    disk.files().iter().find(|(path, _)| path == "stream_manager/log").map_or(0, |(_, size)| *size)
}

/// What a large append had written before it found no space stayed, and kept the last free bytes from all
/// others.
#[test]
fn a_refused_large_append_gives_back_what_it_has_written() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
                streams.create(&[name(0)], OWNER).await.unwrap();
                // The drain owes the last one.
                let mut expected = Vec::new();
                for size in [9000, 100] {
                    expected.push(Bytes::from(vec![7; size]));
                    streams.append(&name(0), OWNER, expected[expected.len() - 1..].to_vec()).await.unwrap();
                }
                let owed = 100 + stream::BLOCK_HEADER_SIZE as u64;
                let before = used_bytes(&disk);
                disk.set_free_bytes(Some(20_000));
                for _ in 0..10 {
                    let refused = streams
                        .append(&name(0), OWNER, vec![Bytes::from(vec![8; 50_000])])
                        .await
                        .unwrap_err();
                    assert_eq!(refused, StreamError::DiskFull);
                    let left = used_bytes(&disk) - before;
                    assert!(left <= owed, "seed {seed}: {left} bytes are left");
                }
                expected.push(Bytes::from(vec![9; 9000]));
                streams.append(&name(0), OWNER, expected[2..].to_vec()).await.unwrap();
                let mut replay = streams.replay(&name(0), None).unwrap();
                for block in expected {
                    assert_eq!(replay.next().await.unwrap().unwrap().1, block, "seed {seed}");
                }
            })
            .unwrap();
    }
}

/// A log that was due to be replaced wrote as much of the next one as there was space for, again with each
/// list of commands, and left it there.
#[test]
fn a_log_without_space_for_its_successor_leaves_the_space_to_others() {
    for seed in 0..4 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let settings = StreamSettings { manager_log_growth_bytes: 3 << 19, ..StreamSettings::tiny() };
                let streams = Streams::open(&env, settings).await.unwrap();
                // A record takes a page. From here on the log is due half a MiB before it must grow again.
                while log_size(&disk) < 9 << 20 {
                    streams.create(&[name(0)], OWNER).await.unwrap();
                    streams.delete(&name(0), OWNER).await.unwrap();
                }
                disk.set_free_bytes(Some(600_000));
                let (before, mut tried) = (used_bytes(&disk), 0);
                let mut operations = disk.operation_count();
                let refused = loop {
                    let outcome = streams.create(&[name(tried)], OWNER).await;
                    assert_eq!(used_bytes(&disk), before, "seed {seed}, {tried}: something is left");
                    let Ok(()) = outcome else { break outcome };
                    tried += 1;
                    if tried > 200 {
                        let count = disk.operation_count() - operations;
                        assert!(count <= 4, "seed {seed}: {count} operations for one list");
                    }
                    operations = disk.operation_count();
                    assert!(tried < 1000, "the log must fill up");
                };
                assert_eq!(refused, Err(StreamError::DiskFull));
                disk.set_free_bytes(None);
                streams.create(&[name(tried)], OWNER).await.unwrap();
                assert!(log_size(&disk) < 2 << 20, "seed {seed}: the log is replaced once there is space");
            })
            .unwrap();
    }
}

fn extent_file_count(disk: &SimDisk) -> usize {
    disk.files().iter().filter(|(path, _)| path.starts_with("extents/")).count()
}

/// Fills the disk, and then the journal by appends to the first stream. The smallest ones too: until it has
/// no space for an entry.
async fn fill_journal(disk: &SimDisk, streams: &Streams) {
    fill_up(disk);
    for size in [7000, 3000, 10] {
        append_until_full(streams, &name(0), size, 1).await;
    }
}

/// What a large append had written stayed if the journal then had no space for its length.
#[test]
fn a_large_append_that_the_full_journal_refuses_gives_back_what_it_has_written() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = open_with_three_extents(&env, 1 << 20).await;
                fill_journal(&disk, &streams).await;
                // The drain has not looked again yet.
                disk.set_free_bytes(Some(60_000));
                let before = used_bytes(&disk);
                let large = vec![Bytes::from(vec![8; 50_000])];
                let refused = streams.append(&name(1), OWNER, large.clone()).await;
                assert_eq!(refused, Err(StreamError::DiskFull), "seed {seed}");
                assert_eq!(used_bytes(&disk), before, "seed {seed}");
                disk.set_free_bytes(None);
                env.clock.sleep(Duration::from_secs(1)).await;
                streams.append(&name(1), OWNER, large).await.unwrap();
                let mut replay = streams.replay(&name(1), None).unwrap();
                for (tag, size) in [(7, 9000), (8, 50_000)] {
                    assert_eq!(replay.next().await.unwrap().unwrap().1, vec![tag; size], "seed {seed}");
                }
            })
            .unwrap();
    }
}

/// Each append to a stream without a tail made the file of an extent, which the full journal then had no
/// space for, and left it there.
#[test]
fn refused_extents_leave_no_files() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let settings = StreamSettings { manager_log_growth_bytes: 1 << 20, ..StreamSettings::tiny() };
                let streams = Streams::open(&env, settings).await.unwrap();
                streams.create(&[name(0), name(1)], OWNER).await.unwrap();
                streams.append(&name(0), OWNER, vec![Bytes::from_static(b"before")]).await.unwrap();
                fill_journal(&disk, &streams).await;
                let before = extent_file_count(&disk);
                for _ in 0..100 {
                    let refused = streams.append(&name(1), OWNER, vec![Bytes::from_static(b"first")]).await;
                    assert_eq!(refused, Err(StreamError::DiskFull), "seed {seed}");
                    let left = extent_file_count(&disk) - before;
                    assert_eq!(left, 0, "seed {seed}: {left} files");
                }
                disk.set_free_bytes(None);
                env.clock.sleep(Duration::from_secs(1)).await;
                streams.append(&name(1), OWNER, vec![Bytes::from_static(b"first")]).await.unwrap();
            })
            .unwrap();
    }
}

/// An extent that the stream manager's log had no space for stayed until the next start if the journal then
/// had no space for its deletion either; and one of a former owner stayed in any case.
#[test]
fn an_extent_that_no_stream_lists_does_not_stay() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
                streams.create(&[name(0), name(1)], OWNER).await.unwrap();
                streams.take_over(&name(1), owner(5)).await.unwrap();
                for _ in 0..10 {
                    let block = vec![Bytes::from_static(b"former owner")];
                    let refused = streams.append(&name(1), OWNER, block).await;
                    assert!(matches!(refused, Err(StreamError::NotOwner { .. })), "seed {seed}: {refused:?}");
                    assert_eq!(extent_file_count(&disk), 0, "seed {seed}");
                }
                streams.append(&name(0), OWNER, vec![Bytes::from_static(b"before")]).await.unwrap();
                fill_up(&disk);
                let mut count = 2;
                while streams.create(&[name(count)], OWNER).await.is_ok() {
                    count += 1;
                }
                // Each takes two pages of the journal, until there is no space for either.
                for _ in 0..100 {
                    let block = vec![Bytes::from_static(b"first")];
                    let refused = streams.append(&name(1), owner(5), block).await;
                    assert_eq!(refused, Err(StreamError::DiskFull), "seed {seed}");
                    let left = extent_file_count(&disk) - 1;
                    assert!(left <= 1, "seed {seed}: {left} files");
                }
                disk.set_free_bytes(None);
                env.clock.sleep(Duration::from_secs(1)).await;
                let block = vec![Bytes::from_static(b"first")];
                streams.append(&name(1), owner(5), block).await.unwrap();
                assert_eq!(extent_file_count(&disk), 2, "seed {seed}");
            })
            .unwrap();
    }
}

/// Three streams with an extent each, besides the first one.
async fn open_with_three_extents(env: &Environment, manager_log_growth_bytes: u64) -> Arc<Streams> {
    let settings = StreamSettings { manager_log_growth_bytes, ..StreamSettings::tiny() };
    let streams = Streams::open(env, settings).await.unwrap();
    for at in 0..=3 {
        streams.create(&[name(at)], OWNER).await.unwrap();
        streams.append(&name(at), OWNER, vec![Bytes::from(vec![7; 9000])]).await.unwrap();
    }
    streams
}

fn deletions() -> Vec<StreamChange> {
    (1..=3).map(|at| StreamChange::Delete(name(at).owned_by(OWNER))).collect()
}

/// Extents of deleted streams stayed, until some other extent was to go or the next start, if the journal had
/// no space for their removal.
#[test]
fn extents_whose_removal_was_refused_go_once_there_is_space() {
    for seed in 0..20 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world
            .run(|env, _| async move {
                let streams = open_with_three_extents(&env, 1 << 20).await;
                fill_journal(&disk, &streams).await;
                let before = extent_file_count(&disk);
                let refused = streams.multi_modify(&deletions()).await;
                assert_eq!(refused, Err(StreamError::DiskFull), "seed {seed}");
                assert_eq!(streams.list("test/"), [name(0)], "seed {seed}");
                assert_eq!(streams.collect_left().await, Err(StreamError::DiskFull), "seed {seed}");
                assert_eq!(extent_file_count(&disk), before, "seed {seed}");
                disk.set_free_bytes(Some(100_000));
                env.clock.sleep(Duration::from_secs(1)).await;
                assert_eq!(streams.collect_left().await, Ok(()), "seed {seed}");
                assert_eq!(extent_file_count(&disk), before - 3, "seed {seed}");
                // There is nothing left to do.
                let operations = disk.operation_count();
                assert_eq!(streams.collect_left().await, Ok(()), "seed {seed}");
                assert_eq!(disk.operation_count(), operations, "seed {seed}");
            })
            .unwrap();
    }
}

/// The first extent that the stream manager's full log could not forget kept the others from being removed.
#[test]
fn an_extent_that_cant_be_forgotten_keeps_no_other_from_going() {
    const PAGE: u64 = 4096;
    const GROWTH: u64 = 8 * PAGE;
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = open_with_three_extents(&env, GROWTH).await;
            let (before, grown_from) = (extent_file_count(&disk), log_size(&disk));
            let mut count = 4;
            while log_size(&disk) == grown_from {
                streams.create(&[name(count)], OWNER).await.unwrap();
                count += 1;
            }
            // A record takes a page, and one stays free: there is space for the deletion and nothing else.
            fill_up(&disk);
            for at in count..count + (GROWTH / PAGE) as usize - 2 {
                streams.create(&[name(at)], OWNER).await.unwrap();
            }
            assert_eq!(streams.multi_modify(&deletions()).await, Err(StreamError::DiskFull));
            assert!(!streams.exists(&name(1)));
            assert_eq!(extent_file_count(&disk), before - 3);
            disk.set_free_bytes(None);
            assert_eq!(streams.collect_left().await, Ok(()));
            streams.create(&[name(1)], OWNER).await.unwrap();
        })
        .unwrap();
}

/// A reserve whose making failed kept what it had until the next start.
#[test]
fn a_reserve_whose_making_fails_gives_its_space_back() {
    const SIZE: u64 = 3 << 20;
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let settings = StreamSettings { reserve_size_bytes: SIZE, ..StreamSettings::tiny() };
            let streams = Streams::open(&env, settings).await.unwrap();
            let before = used_bytes(&disk);
            while used_bytes(&disk) == before {
                env.clock.sleep(Duration::from_millis(1)).await;
            }
            disk.set_faults(Faults { sync_fails_one_in: 1, ..Faults::default() });
            env.clock.sleep(Duration::from_secs(10)).await;
            disk.set_faults(Faults::default());
            assert_eq!((used_bytes(&disk), streams.is_scarce()), (before, false));
            streams.create(&[name(0)], OWNER).await.unwrap();
            streams.append(&name(0), OWNER, vec![Bytes::from_static(b"after")]).await.unwrap();
        })
        .unwrap();
}
