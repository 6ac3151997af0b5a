//! A data folder becomes a stamp: all of it, in the same places, or nothing of it; the folder stays as it is.
//! The process that migrates is killed wherever it may be, and another goes on.

use crate::host::{Gate, HostClock, HostSpawner};
use crate::network::Weather;
use crate::world::World;
use base::memory_disk::MemoryDisk;
use base::{Disk, Environment, Metrics, OpenMode};
use bytes::Bytes;
use parking_lot::Mutex;
use sim::SimRandom;
use stamp::PartPath;
use stamp_streams::{
    Life, MIGRATING, Migrated, MigrationError, MigrationPhase, OwnedRange, RangeWatch, StampLayer,
    Surroundings, Taken, abandon_migration, migrate_into_stamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::{FolderSource, Location, Owner, StreamChange, StreamName, StreamSettings, Streams};

/// How long a step of a migration is, about: a request takes 1 to 12 ms.
pub(crate) const STEP: Duration = Duration::from_millis(8);

pub(crate) fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

pub(crate) fn environment(disk: &Arc<MemoryDisk>, gate: &Arc<Gate>) -> Environment {
    Environment {
        clock: Arc::new(HostClock::new(0)),
        random: Arc::new(SimRandom::new(5)),
        disk: disk.clone(),
        spawner: Arc::new(HostSpawner(gate.clone())),
        metrics: Metrics::default(),
    }
}

pub(crate) fn name(of: u64) -> StreamName {
    StreamName::new(&format!("entity/{}/purpose-{of}", of % 3))
}

/// A folder whose process was killed: some bytes are in its journal alone.
pub(crate) async fn folder() -> Arc<MemoryDisk> {
    let (disk, gate, random) = (Arc::new(MemoryDisk::new()), Arc::new(Gate::default()), SimRandom::new(9));
    let env = environment(&disk, &gate);
    let streams = Streams::open(&env, StreamSettings::tiny()).await.expect("a folder");
    let owner = Owner::first(streams.join(&*env.random));
    let names: Vec<StreamName> = (0..6).map(name).collect();
    streams.create(&names, owner).await.expect("created");
    let block = |size: u64| Bytes::from((0..size).map(|at| (at * size) as u8).collect::<Vec<u8>>());
    for round in 0..60 {
        let sizes = [random.below(200), random.below(3000), 12_000];
        let blocks = vec![block(sizes[round % 3]), block(random.below(50))];
        streams.append(&names[random.below(4) as usize], owner, blocks).await.expect("appended");
    }
    // Two parts, and one that fills its part alone.
    streams.append(&names[4], owner, vec![block(5 << 20); 3]).await.expect("appended");
    let share = |from: usize, to: usize| StreamChange::Share {
        from: names[from].owned_by(owner),
        to: names[to].owned_by(owner),
    };
    streams.multi_modify(&[share(0, 5), share(1, 5)]).await.expect("shared");
    streams.append(&names[5], owner, vec![block(100)]).await.expect("appended");
    streams.append(&names[0], owner, vec![block(300)]).await.expect("appended");
    gate.kill();
    disk
}

pub(crate) async fn files(disk: &MemoryDisk) -> BTreeMap<String, Bytes> {
    let mut files = BTreeMap::new();
    for folder in ["", "journal/", "extents/", "stream_manager/"] {
        for name in disk.list(folder.trim_end_matches('/')).await.unwrap_or_default() {
            let path = format!("{folder}{name}");
            if let Ok(file) = disk.open(&path, OpenMode::Read).await {
                let size = file.size().await.expect("a size");
                files.insert(path, file.read_at(0, size as usize).await.expect("read"));
            }
        }
    }
    files
}

pub(crate) type Blocks = BTreeMap<StreamName, Vec<(Location, Bytes)>>;

pub(crate) async fn blocks(streams: &Streams) -> Blocks {
    let mut all = Blocks::new();
    for name in streams.list("") {
        let mut replay = streams.replay(&name, None).expect("a replay");
        let listed = all.entry(name).or_default();
        while let Some(block) = replay.next().await.expect("a block") {
            listed.push(block);
        }
    }
    all
}

/// What the folder has, by a start of its own on a copy.
pub(crate) async fn blocks_of(files: &BTreeMap<String, Bytes>) -> Blocks {
    let (disk, gate) = (Arc::new(MemoryDisk::new()), Arc::new(Gate::default()));
    for folder in ["journal", "extents", "stream_manager"] {
        disk.create_folder(folder).await.expect("a folder");
    }
    for (path, content) in files {
        let file = disk.open(path, OpenMode::CreateNew).await.expect("a file");
        file.write_at(0, content.clone()).await.expect("written");
    }
    let streams = Streams::open(&environment(&disk, &gate), StreamSettings::tiny()).await.expect("streams");
    let found = blocks(&streams).await;
    gate.kill();
    found
}

/// Opens the folder and migrates it, as one process.
pub(crate) async fn migrate(
    gate: &Arc<Gate>,
    surroundings: &Surroundings,
    disk: &Arc<MemoryDisk>,
) -> Result<Migrated, MigrationError> {
    let source = FolderSource::open(&environment(disk, gate)).await?;
    migrate_into_stamp(surroundings, &source, &|_, _, _| {}, std::future::pending()).await
}

/// Takes the stamp's range, however long that takes.
pub(crate) async fn take(surroundings: &Surroundings) -> (Arc<Life>, Arc<OwnedRange>) {
    let life = Life::join(surroundings).await.expect("joined");
    let watch = RangeWatch::new(&life);
    loop {
        let ranges = watch.look().await.expect("ranges");
        let range = *ranges.keys().next().expect("a range");
        match watch.take(range).await.expect("an answer") {
            Taken::Range(range) => return (life, range),
            _ => surroundings.clock.sleep(Duration::from_millis(300)).await,
        }
    }
}

/// Whether the stamp has what the folder has, read in every way.
async fn check_stamp(world: &Arc<World>, expected: &Blocks) {
    let (life, range) = take(&world.operator()).await;
    let streams = Streams::of_stamp(StampLayer::open(range.clone()).await.expect("a layer"));
    assert!(blocks(&streams).await == *expected, "the stamp has other blocks");
    for (location, payload) in expected.values().flatten() {
        assert_eq!(streams.read(*location).await.as_ref(), Ok(payload));
    }
    // It takes appends.
    let owner = range.owner();
    let places = streams.append(&name(0), owner, vec![Bytes::from_static(b"new")]).await.expect("appended");
    assert_eq!(streams.read(places[0]).await.unwrap(), "new");
    range.release().await.expect("released");
    life.leave().await;
}

#[test]
fn a_folder_becomes_a_stamp_and_stays_as_it_is() {
    run(async {
        let (world, disk) = (World::empty(1, None, false), folder().await);
        let before = files(&disk).await;
        let expected = blocks_of(&before).await;
        let (gate, surroundings) = world.new_process();
        let migrated = migrate(&gate, &surroundings, &disk).await.expect("migrated");
        assert_eq!(migrated.streams, 6);
        assert!(migrated.bytes > 15 << 20 && migrated.extents > 10, "{migrated:?}");
        assert_eq!((migrated.copied_bytes, migrated.verified_bytes), (migrated.bytes, migrated.bytes));
        assert!(files(&disk).await == before, "the folder was changed");
        let parts = world.objects.names();
        let large = parts.iter().filter_map(|name| PartPath::parse(name, crate::world::STAMP));
        assert!(large.filter(|path| path.offset > 5 << 20).count() >= 3, "parts end where blocks do");
        // All is there: nothing is done again.
        let again = migrate(&gate, &surroundings, &disk).await.expect("all is there");
        assert_eq!((again.copied_bytes, again.verified_bytes), (0, 0));
        check_stamp(&world, &expected).await;
        // It has been served since.
        let refused = migrate(&gate, &surroundings, &disk).await.expect_err("it is in use");
        assert!(refused.to_string().contains("has 6 streams already"), "{refused}");
    });
}

/// Runs a process that migrates, and kills it so long after it took the range; its outcome, if it came to its
/// end before.
async fn migrate_for(
    world: &Arc<World>,
    disk: &Arc<MemoryDisk>,
    lives_for: Duration,
) -> Option<Result<Migrated, MigrationError>> {
    let (gate, surroundings) = world.new_process();
    let outcome = Arc::new(Mutex::new(None));
    let owner = || world.keys.documents().first().and_then(|document| document.own.owner);
    let before = owner();
    let (of_task, of_gate, disk) = (outcome.clone(), gate.clone(), disk.clone());
    gate.spawn(async move {
        let migrated = migrate(&of_gate, &surroundings, &disk).await;
        *of_task.lock() = Some(migrated);
    });
    while owner() == before && outcome.lock().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(lives_for).await;
    gate.kill();
    outcome.lock().take()
}

#[test]
fn whenever_it_is_killed_it_goes_on_and_nothing_is_served_before() {
    run(async {
        let (world, disk) = (World::empty(2, None, false), folder().await);
        let before = files(&disk).await;
        let expected = blocks_of(&before).await;
        let mut kills = 0;
        let migrated = loop {
            if let Some(outcome) = migrate_for(&world, &disk, STEP * kills).await {
                break outcome.expect("migrated");
            }
            kills += 1;
            assert!(kills < 200, "it makes no progress");
            // Its last change may have been made, and not reported.
            let is_done = world.keys.documents().iter().any(|document| {
                document.streams.values().any(|stream| stream.purpose.starts_with("entity/"))
            });
            if !is_done && kills % 10 == 0 && world.keys.documents()[0].streams.len() > 1 {
                let (life, range) = take(&world.operator()).await;
                let refused = StampLayer::open(range.clone()).await.err().expect("it is not finished");
                assert!(refused.to_string().contains("run larimar migrate again"), "{refused}");
                range.give_up().await.expect("given up");
                life.leave().await;
            }
        };
        assert!(kills > 10, "killed {kills} times");
        assert!(migrated.copied_bytes < migrated.bytes, "{migrated:?}");
        assert!(files(&disk).await == before, "the folder was changed");
        check_stamp(&world, &expected).await;
    });
}

#[test]
fn bad_weather_does_not_change_what_is_copied() {
    for seed in 0..6 {
        run(async move {
            let (world, disk) = (World::empty(100 + seed, None, false), folder().await);
            let expected = blocks_of(&files(&disk).await).await;
            *world.weather.lock() =
                Weather { slow_one_in: 9, late_one_in: 40, lost_one_in: 30, answer_lost_one_in: 30 };
            loop {
                let (gate, surroundings) = world.new_process();
                match migrate(&gate, &surroundings, &disk).await {
                    Ok(_) => break,
                    Err(MigrationError::Away(_)) => gate.kill(),
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
            *world.weather.lock() = Weather::CALM;
            check_stamp(&world, &expected).await;
        });
    }
}

#[test]
fn another_folder_is_refused_until_what_was_copied_is_given_up() {
    run(async {
        let (world, disk) = (World::empty(3, None, false), folder().await);
        let mut steps = 0;
        while world.keys.documents().first().is_none_or(|document| document.extents().len() < 3) {
            steps += 1;
            assert_eq!(migrate_for(&world, &disk, STEP * steps).await, None, "it came to its end");
        }
        // The folder was served meanwhile.
        let gate = Arc::new(Gate::default());
        let streams =
            Streams::open(&environment(&disk, &gate), StreamSettings::tiny()).await.expect("streams");
        let owner = streams.owner(&name(3)).expect("an owner");
        let owner = Owner { epoch: stamp::next_epoch(owner.epoch), ..owner };
        streams.append(&name(3), owner, vec![Bytes::from_static(b"changed")]).await.expect("appended");
        gate.kill();
        let expected = blocks_of(&files(&disk).await).await;
        let (gate, surroundings) = world.new_process();
        let refused = migrate(&gate, &surroundings, &disk).await.expect_err("it has changed");
        assert!(refused.to_string().contains("changed since"), "{refused}");
        assert!(abandon_migration(&surroundings).await.expect("given up") >= 3);
        let refused = abandon_migration(&surroundings).await.expect_err("nothing to give up");
        assert!(refused.to_string().contains("no unfinished migration"), "{refused}");
        migrate(&gate, &surroundings, &disk).await.expect("migrated");
        check_stamp(&world, &expected).await;
    });
}

#[test]
fn a_folder_that_is_damaged_or_empty_and_a_stamp_that_is_held_are_refused() {
    run(async {
        let (world, disk) = (World::empty(4, None, false), folder().await);
        let (gate, surroundings) = world.new_process();
        let empty = migrate(&gate, &surroundings, &Arc::new(MemoryDisk::new())).await.expect_err("empty");
        assert!(empty.to_string().contains("nothing was ever stored"), "{empty}");
        let files = files(&disk).await;
        let (extent, content) = files
            .iter()
            .find(|(path, content)| path.starts_with("extents/") && content.len() > 2000)
            .unwrap();
        let file = disk.open(extent, OpenMode::Write).await.expect("a file");
        file.write_at(500, Bytes::from(vec![0x55; 900])).await.expect("damaged");
        let damaged = migrate(&gate, &surroundings, &disk).await.expect_err("damaged");
        assert!(damaged.to_string().contains("larimar check"), "{damaged}");
        file.write_at(0, content.clone()).await.expect("mended");
        let (_life, range) = take(&world.operator()).await;
        let held = migrate(&gate, &surroundings, &disk).await.expect_err("it is held");
        assert!(held.to_string().contains("holds the stamp"), "{held}");
        assert!(range.admits_reads(), "and stays so");
    });
}

#[test]
fn what_is_damaged_in_the_store_is_found_before_anybody_serves_it() {
    run(async {
        let (world, disk) = (World::empty(7, None, false), folder().await);
        let (gate, surroundings) = world.new_process();
        let source = FolderSource::open(&environment(&disk, &gate)).await.expect("a source");
        let (objects, is_damaged) = (world.objects.clone(), AtomicBool::new(false));
        let show = move |phase, _, _| {
            if phase == MigrationPhase::Comparing && !is_damaged.swap(true, Ordering::Relaxed) {
                for name in objects.names().iter().filter(|name| name.contains("/x/")) {
                    let mut content = objects.read(name).expect("an answer").expect("an object").to_vec();
                    *content.last_mut().expect("bytes") ^= 1;
                    objects.replace(name, content.into());
                }
            }
        };
        let outcome = migrate_into_stamp(&surroundings, &source, &show, std::future::pending()).await;
        let error = outcome.expect_err("it is damaged").to_string();
        assert!(error.contains("checksum"), "{error}");
        let document = world.keys.documents().pop().expect("a document");
        assert!(document.streams.values().all(|stream| stream.purpose.starts_with(MIGRATING)));
    });
}
