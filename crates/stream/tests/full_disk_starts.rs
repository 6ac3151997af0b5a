//! Starts with 0 bytes free, again and again, because another program fills the disk whenever there is space:
//! each succeeds and shows all that was acknowledged, none takes anything that the next one needs, and once
//! there is space all goes on.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use base::{Environment, Random};
use bytes::Bytes;
use futures_util::future;
use parking_lot::Mutex;
use sim::{Faults, SimDisk, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stream::{
    Incarnation, Owner, OwnerEpoch, StreamError, StreamName, StreamSettings, Streams, check_streams,
};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(epoch) }
}

const SEED_COUNT: u64 = 300;
const LIVES: u64 = 12;
const STREAMS: u64 = 8;
const RESERVE: u64 = 128 << 10;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEED_COUNT)).collect(),
    }
}

fn name(at: u64) -> StreamName {
    StreamName::new(&format!("test/{at:03}"))
}

/// What a stream must hold.
#[derive(Clone, Default)]
struct Expected {
    /// Each append, and whether it was acknowledged.
    appends: Vec<(Bytes, bool)>,
    /// It may be gone: its creation was not acknowledged, or its deletion was begun.
    may_be_gone: bool,
}

type Model = Arc<Mutex<BTreeMap<u64, Expected>>>;

/// Checks each stream against the model; then what is there is what must be there from now on.
async fn verify(streams: &Streams, model: &Model, seed: u64) {
    let expected = model.lock().clone();
    let mut found = BTreeMap::new();
    for (at, Expected { appends, may_be_gone }) in expected {
        if !streams.exists(&name(at)) {
            assert!(may_be_gone, "seed {seed}: stream {at} is gone");
            continue;
        }
        let mut replay = streams.replay(&name(at), None).unwrap();
        let mut blocks = Vec::new();
        while let Some((location, block)) =
            replay.next().await.unwrap_or_else(|error| panic!("seed {seed}: stream {at}: {error}"))
        {
            assert_eq!(streams.read(location).await.unwrap(), block, "seed {seed}");
            blocks.push(block);
        }
        let mut rest = blocks.into_iter().peekable();
        let mut kept = Vec::new();
        for (block, acked) in appends {
            if rest.next_if_eq(&block).is_some() {
                kept.push((block, true));
            } else {
                assert!(!acked, "seed {seed}: an acknowledged append of stream {at} is not there");
            }
        }
        assert!(rest.next().is_none(), "seed {seed}: stream {at} holds what nobody appended");
        found.insert(at, Expected { appends: kept, may_be_gone: false });
    }
    *model.lock() = found;
}

async fn append(streams: &Streams, model: &Model, random: &dyn Random, at: u64) -> Result<(), StreamError> {
    let size = [10, 100, 1000, 5000, 12_000][(random.next_u64() % 5) as usize];
    let mut block = random.next_u64().to_le_bytes().to_vec();
    block.resize(8 + (random.next_u64() % size) as usize, 7);
    let block = Bytes::from(block);
    let index = {
        let mut model = model.lock();
        let appends = &mut model.get_mut(&at).unwrap().appends;
        appends.push((block.clone(), false));
        appends.len() - 1
    };
    let by = streams.owner(&name(at))?;
    let appended = streams.append(&name(at), by, vec![block]).await;
    let mut model = model.lock();
    let appends = &mut model.get_mut(&at).unwrap().appends;
    match appended {
        Ok(_) => appends[index].1 = true,
        Err(StreamError::DiskFull) => appends.truncate(index),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Small appends while others, large ones too, are on their way: one record of the journal has them all.
async fn append_together(
    streams: &Streams,
    model: &Model,
    random: &dyn Random,
    at: u64,
) -> Result<(), StreamError> {
    let there: Vec<u64> = model.lock().keys().copied().filter(|other| *other != at).collect();
    let others = there.into_iter().map(|other| append(streams, model, random, other));
    let own = async {
        for _ in 0..4 {
            append(streams, model, random, at).await?;
        }
        Ok(())
    };
    let (own, others) = future::join(own, future::join_all(others)).await;
    others.into_iter().fold(own, Result::and)
}

async fn create(streams: &Streams, model: &Model, at: u64) -> Result<(), StreamError> {
    model.lock().insert(at, Expected { may_be_gone: true, ..Expected::default() });
    match streams.create(&[name(at)], OWNER).await {
        Ok(()) => model.lock().get_mut(&at).unwrap().may_be_gone = false,
        Err(StreamError::DiskFull) => drop(model.lock().remove(&at)),
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn delete(streams: &Streams, model: &Model, at: u64) -> Result<(), StreamError> {
    model.lock().get_mut(&at).unwrap().may_be_gone = true;
    match streams.delete(&name(at), streams.owner(&name(at))?).await {
        // It may be refused after the stream is gone, when its extents can't be removed.
        Ok(()) | Err(StreamError::DiskFull) => {
            let mut model = model.lock();
            match streams.exists(&name(at)) {
                true => model.get_mut(&at).unwrap().may_be_gone = false,
                false => drop(model.remove(&at)),
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whatever can be done with streams, and another program that takes all space.
async fn do_anything(
    env: &Environment,
    disk: &SimDisk,
    streams: &Streams,
    model: &Model,
) -> Result<(), StreamError> {
    let random = &*env.random;
    let at = random.next_u64() % STREAMS;
    let is_there = model.lock().contains_key(&at);
    match random.next_u64() % 16 {
        0..3 => disk.set_free_bytes(Some(0)),
        3 => disk.set_free_bytes(Some(random.next_u64() % 30_000)),
        4 => env.clock.sleep(Duration::from_millis(random.next_u64() % 1500)).await,
        5 if is_there => delete(streams, model, at).await?,
        6 if is_there => {
            let next = owner(streams.owner(&name(at))?.epoch.0 + 1);
            match streams.take_over(&name(at), next).await {
                Ok(()) | Err(StreamError::DiskFull) => {}
                Err(error) => return Err(error),
            }
        }
        7..10 if is_there => append_together(streams, model, random, at).await?,
        _ if is_there => append(streams, model, random, at).await?,
        _ => create(streams, model, at).await?,
    }
    Ok(())
}

fn settings(has_reserve: bool) -> StreamSettings {
    let reserve_size_bytes = if has_reserve { RESERVE } else { 0 };
    StreamSettings { reserve_size_bytes, ..StreamSettings::tiny() }
}

/// One history.
fn history(seed: u64) {
    let world = World::new(seed);
    let model = Model::default();
    let has_reserve = world.random.one_in(2);
    let fails = world.random.one_in(4);
    let laid_out = |env, _| async move { Streams::open(&env, settings(has_reserve)).await.map(|_| ()) };
    assert_eq!(world.run(laid_out), Some(Ok(())));
    for life in 0..LIVES {
        let random = &world.random;
        let crashes = random.one_in(2);
        world.disk.set_faults(Faults {
            slow_one_in: 5,
            sync_fails_one_in: if fails { 40 } else { 0 },
            crash_at_operation: if crashes {
                world.disk.operation_count() + 1 + random.below(120)
            } else {
                0
            },
            ..Faults::default()
        });
        if life > 0 {
            world.disk.set_free_bytes(Some(if random.one_in(4) { random.below(20_000) } else { 0 }));
        }
        let disk = world.disk.clone();
        let live = |env: Environment, _| {
            let model = model.clone();
            async move {
                let streams = Streams::open(&env, settings(has_reserve)).await?;
                verify(&streams, &model, seed).await;
                if life == 0 {
                    // With time for a reserve.
                    env.clock.sleep(Duration::from_secs(6)).await;
                }
                for _ in 0..env.random.next_u64() % 30 {
                    do_anything(&env, &disk, &streams, &model).await?;
                }
                if env.random.next_u64().is_multiple_of(4) {
                    streams.close().await;
                }
                Ok::<_, StreamError>(())
            }
        };
        let outcome = if world.random.one_in(2) { world.run_until_killed(live) } else { world.run(live) };
        match outcome {
            None | Some(Ok(())) => {}
            Some(Err(StreamError::WritesStopped(_))) if fails => {}
            Some(Err(error)) => panic!("seed {seed}, life {life}: {error}"),
        }
    }
    world.disk.set_faults(Faults::default());
    world.disk.set_free_bytes(Some(0));
    let (disk, lived) = (world.disk.clone(), model.clone());
    world
        .run(|env, _| async move {
            let streams = Streams::open(&env, settings(has_reserve)).await;
            let streams = streams.unwrap_or_else(|error| panic!("seed {seed}: the last start: {error}"));
            verify(&streams, &lived, seed).await;
            disk.set_free_bytes(None);
            env.clock.sleep(Duration::from_secs(10)).await;
            for at in 0..STREAMS {
                if !lived.lock().contains_key(&at) {
                    create(&streams, &lived, at).await.unwrap();
                }
                let before = lived.lock()[&at].appends.len();
                append(&streams, &lived, &*env.random, at).await.unwrap();
                assert_eq!(lived.lock()[&at].appends.len(), before + 1, "seed {seed}: there is space again");
            }
        })
        .unwrap();
    world
        .run(|env, _| async move {
            let checked = check_streams(&env, &mut |_, _| {}).await.unwrap();
            assert_eq!(checked.damages, [], "seed {seed}");
            let streams = Streams::open(&env, settings(has_reserve)).await.unwrap();
            verify(&streams, &model, seed).await;
        })
        .unwrap();
}

/// A start on a full disk wrote what was journaled, a log and a segment: with nothing left of the reserve it
/// was refused.
#[test]
fn each_start_on_a_full_disk_succeeds_and_has_all_that_was_acknowledged() {
    for seed in seeds() {
        history(seed);
    }
}

/// What a record that a power loss tore says of a large append is taken from the extent, and the table of
/// extents then says more than the journal: each start was refused.
#[test]
fn a_torn_record_of_a_large_append_refuses_no_start() {
    let mut taken_count = 0;
    let block = |size| vec![Bytes::from(vec![7; size])];
    for (seed, operation) in (0..12).flat_map(|seed| (0..24).map(move |operation| (seed, operation))) {
        let world = World::new(seed);
        world.run_until_killed(|env, _| async move {
            let streams = Streams::open(&env, settings(false)).await.unwrap();
            streams.create(&[name(0), name(1)], OWNER).await.unwrap();
            for _ in 0..10 {
                streams.append(&name(0), OWNER, block(900)).await.unwrap();
            }
            env.clock.sleep(Duration::from_millis(100)).await;
        });
        let disk = world.disk.clone();
        world.run(|env, _| async move {
            let streams = Streams::open(&env, settings(false)).await.unwrap();
            for _ in 0..6 {
                streams.append(&name(0), OWNER, block(900)).await.unwrap();
            }
            env.clock.sleep(Duration::from_millis(100)).await;
            let crash_at_operation = disk.operation_count() + 1 + operation;
            disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            let (large, small) = (name(1), name(0));
            let small = async {
                for _ in 0..12 {
                    let two = (0..2).map(|_| streams.append(&small, OWNER, block(900)));
                    future::join_all(two).await;
                }
            };
            let large = streams.append(&large, OWNER, block(9000));
            // The crash ends it.
            let _ = future::join(large, small).await;
            env.clock.sleep(Duration::from_millis(100)).await;
        });
        world.disk.set_faults(Faults::default());
        let mut found = None;
        for start in 0..4 {
            world.disk.set_free_bytes(Some(0));
            // One of them is cut off as well.
            if start == 1 {
                let crash_at_operation = world.disk.operation_count() + 1 + seed % 12;
                world.disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            }
            let lengths = world.run(|env, _| async move {
                let streams = Streams::open(&env, settings(false)).await;
                let streams = streams.unwrap_or_else(|error| {
                    panic!("seed {seed}, operation {operation}, start {start}: {error}")
                });
                [0, 1].map(|at| streams.stat(&name(at)).unwrap().extents)
            });
            world.disk.set_faults(Faults::default());
            let Some(lengths) = lengths else { continue };
            assert_eq!(*found.get_or_insert(lengths.clone()), lengths, "seed {seed}, operation {operation}");
            taken_count += u64::from(start == 3 && lengths[1].iter().any(|(_, length)| *length > 0));
        }
        world.disk.set_free_bytes(None);
        let after = world.run(|env, _| async move {
            let streams = Streams::open(&env, settings(false)).await.unwrap();
            let lengths = [0, 1].map(|at| streams.stat(&name(at)).unwrap().extents);
            streams.append(&name(1), OWNER, block(9000)).await.unwrap();
            lengths
        });
        assert_eq!(after, found, "seed {seed}, operation {operation}");
        let checked = world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.unwrap() });
        assert_eq!(checked.unwrap().damages, []);
    }
    assert!(taken_count > 20, "{taken_count} times the large append was there");
}

/// Each start took some bytes, so that the last of them was refused.
#[test]
fn starts_take_nothing_that_the_next_one_needs() {
    for seed in 0..20 {
        let world = World::new(seed);
        let model = Model::default();
        let (disk, lived) = (world.disk.clone(), model.clone());
        world.run_until_killed(|env, _| async move {
            let streams = Streams::open(&env, settings(seed % 2 == 0)).await.unwrap();
            env.clock.sleep(Duration::from_secs(6)).await;
            for at in 0..STREAMS {
                create(&streams, &lived, at).await.unwrap();
            }
            // More than one segment of the journal, and then as much as it takes with no space for anything.
            for round in 0..60 {
                if round == 20 {
                    disk.set_free_bytes(Some(0));
                }
                append(&streams, &lived, &*env.random, round % STREAMS).await.unwrap();
            }
        });
        let mut sizes = None;
        for life in 0..50 {
            world.disk.set_free_bytes(Some(0));
            let lived = model.clone();
            let start = |env: Environment, _| async move {
                let streams = Streams::open(&env, settings(seed % 2 == 0)).await;
                let streams = streams.unwrap_or_else(|error| panic!("seed {seed}, start {life}: {error}"));
                verify(&streams, &lived, seed).await;
                env.clock.sleep(Duration::from_millis(500)).await;
            };
            let ended = if seed % 3 == 0 { world.run(start) } else { world.run_until_killed(start) };
            assert_eq!(ended, Some(()), "seed {seed}, start {life}");
            // A power loss may bring back the name of a file that found no space.
            let mut found = world.disk.files();
            found.retain(|(path, _)| !path.ends_with(".new"));
            // The first may use what the reserve has for it.
            if life > 0 {
                assert_eq!(*sizes.get_or_insert(found.clone()), found, "seed {seed}, start {life}");
            }
        }
        let (disk, lived) = (world.disk.clone(), model.clone());
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, settings(seed % 2 == 0)).await.unwrap();
                for at in 1..STREAMS {
                    delete(&streams, &lived, at).await.unwrap();
                    assert!(!streams.exists(&name(at)), "seed {seed}: deletions are taken");
                }
                disk.set_free_bytes(None);
                env.clock.sleep(Duration::from_secs(10)).await;
                append(&streams, &lived, &*env.random, 0).await.unwrap();
                assert_eq!(lived.lock()[&0].appends.last().map(|(_, acked)| *acked), Some(true));
            })
            .unwrap();
    }
}

/// A file that is kept twice was damaged, and there was no space to mend it: the start was refused.
#[test]
fn what_there_is_no_space_to_mend_is_mended_once_there_is_some() {
    for path in ["FORMAT", "FORMAT.second", "journal/table", "journal/table.second", "journal/synced"] {
        for (is_clean, cut_to) in [(false, None), (false, Some(0)), (true, None), (true, Some(0))] {
            let world = World::new(1);
            let model = Model::default();
            let lived = model.clone();
            world.run(|env, _| async move {
                let streams = Streams::open(&env, settings(false)).await.unwrap();
                for at in 0..STREAMS {
                    create(&streams, &lived, at).await.unwrap();
                    append(&streams, &lived, &*env.random, at).await.unwrap();
                }
                if is_clean {
                    streams.close().await;
                }
            });
            world.disk.cut(path, cut_to);
            for start in 0..3 {
                world.disk.set_free_bytes(Some(0));
                let lived = model.clone();
                world.run(|env, _| async move {
                    let streams = Streams::open(&env, settings(false)).await;
                    let streams = streams.unwrap_or_else(|error| panic!("{path}, start {start}: {error}"));
                    verify(&streams, &lived, 1).await;
                    append(&streams, &lived, &*env.random, start).await.unwrap();
                });
            }
            world.disk.set_free_bytes(None);
            world.run(|env, _| async move { drop(Streams::open(&env, settings(false)).await.unwrap()) });
            world.run(|env, _| async move {
                let checked = check_streams(&env, &mut |_, _| {}).await.unwrap();
                assert_eq!(checked.damages, [], "{path}");
                verify(&Streams::open(&env, settings(false)).await.unwrap(), &model, 1).await;
            });
        }
    }
}

/// The stream manager's log is begun again in its two files one after the other. A former start had ended
/// before its sync of the one that the next one kept.
#[test]
fn a_log_that_is_begun_again_in_its_place_is_cut_off_anywhere() {
    let log = |world: &World| -> Vec<Vec<u8>> {
        let files = world.disk.contents().into_iter();
        let of_log = |path: &str| path.ends_with("/log") || path.ends_with("/log.second");
        files.filter(|(path, _)| of_log(path)).map(|(_, bytes)| bytes).collect()
    };
    let names = || (0..150).map(name).collect::<Vec<_>>();
    let used = World::new(1);
    used.run(|env, _| async move {
        let streams = Streams::open(&env, settings(false)).await.unwrap();
        // The snapshot is of several pages.
        for stream in names() {
            streams.create(&[stream], OWNER).await.unwrap();
        }
    })
    .unwrap();
    let start = |env: Environment, _| async move { Streams::open(&env, settings(false)).await.map(|_| ()) };
    let on_full_disk = |world: &World, seed, operation| {
        let world = world.copy(seed);
        world.disk.set_free_bytes(Some(0));
        if operation > 0 {
            let capacity_bytes = world.disk.files().iter().map(|(_, size)| size).sum();
            let crash_at_operation = world.disk.operation_count() + operation;
            world.disk.set_faults(Faults { capacity_bytes, crash_at_operation, ..Faults::default() });
        }
        world
    };
    let killed_at = |world: &World, operation, seed| {
        let world = on_full_disk(world, seed, operation);
        assert_eq!(world.run_until_killed(start), None);
        world
    };
    // The operation of a start that writes the first of the log's bytes anew, or the same again.
    let begins = |world: &World| {
        let before = log(world);
        (1..1000).find(|operation| log(&killed_at(world, *operation, 1)) != before).expect("a log") - 2
    };
    let mut torn_count = 0;
    let first = begins(&used);
    for first in first..first + 6 {
        let killed = killed_at(&used, first, 1);
        let next = begins(&killed);
        for (second, seed) in (next..next + 6).flat_map(|second| (1..5).map(move |seed| (second, seed))) {
            // The disk has what the first had not synced only as far as it happens to.
            let world = killed_at(&used, first, seed);
            let capacity_bytes = world.disk.files().iter().map(|(_, size)| size).sum();
            let crash_at_operation = world.disk.operation_count() + second;
            world.disk.set_faults(Faults { capacity_bytes, crash_at_operation, ..Faults::default() });
            assert_eq!(world.run(start), None);
            let before = log(&world);
            torn_count += u64::from(before[0] != before[1]);
            let checked =
                world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.unwrap() });
            assert_eq!(checked.unwrap().damages, [], "seed {seed}, {first} and {second} operations");
            let found = world.run(|env, _| async move {
                Streams::open(&env, settings(false)).await.map(|streams| streams.list("test/"))
            });
            assert_eq!(found, Some(Ok(names())), "seed {seed}, {first} and {second} operations");
        }
    }
    assert!(torn_count > 20, "{torn_count} times the two files were not alike");
}

/// A range goes on with the highest epoch of its streams where a full disk has let only some of them be taken
/// over: none of the others could be sealed any more.
#[test]
fn what_was_appended_with_a_later_epoch_than_the_manager_knows_is_sealed() {
    let block = || vec![Bytes::from(vec![7; 900])];
    World::new(1)
        .run(|env, _| async move {
            let streams = Streams::open(&env, settings(false)).await.unwrap();
            streams.create(&[name(0)], OWNER).await.unwrap();
            streams.take_over(&name(0), owner(2)).await.unwrap();
            streams.append(&name(0), owner(2), block()).await.unwrap();
            let placed = streams.append(&name(0), owner(3), block()).await.unwrap();
            streams.seal(&name(0), owner(3), placed[0].extent).await.unwrap();
            let next = streams.append(&name(0), owner(3), block()).await.unwrap();
            assert_ne!(next[0].extent, placed[0].extent);
            let share =
                stream::StreamChange::Share { from: name(0).owned_by(owner(3)), to: name(1).owned_by(OWNER) };
            streams.create(&[name(1)], OWNER).await.unwrap();
            streams.multi_modify(&[share]).await.unwrap();
            assert_eq!(streams.stat(&name(1)).unwrap(), streams.stat(&name(0)).unwrap());
            // A seal shuts out no less than before.
            streams.append(&name(0), owner(3), block()).await.unwrap();
            let old = streams.append(&name(0), owner(2), block()).await;
            assert!(matches!(old, Err(StreamError::NotOwner { .. })), "{old:?}");
        })
        .unwrap();
}
