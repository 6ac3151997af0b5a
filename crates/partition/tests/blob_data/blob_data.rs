//! Random lives of blob data on a disk that lies: writers append bytes and make rows name them, readers read
//! them, collections give space back, ranges split and merge, the disk dies at a chosen operation. What holds
//! after every start: each acknowledged row's bytes read back as they were written; what was cut off is there
//! whole or not at all; a collection never takes bytes that a row names; and space comes back once writers
//! stop.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

#![allow(clippy::disallowed_methods)] // The simulation owns the time that these sleeps take.

use base::codec::{Decoder, Encode};
use base::random::splitmix64;
use base::{Environment, Random};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use parking_lot::Mutex;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, Piece, Read,
    RowChange, RowKey, RowStart, RowVersion, Rows, check_folder, take_pieces,
};
use sim::{Faults, SimClock, SimDisk, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::{StreamSettings, Streams};

const SEED_COUNT: u64 = 80;
const LIVES: u64 = 4;
const WRITERS: u64 = 3;
const NAMES: u64 = 4;
const TABLE: ObjectTable = ObjectTable::Blob;
/// What an extent has at most: one that is nearly full takes a last large piece.
const EXTENT_SIZE_BYTES: u64 = 80_000;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEED_COUNT)).collect(),
    }
}

/// Makes a row name pieces, or removes it.
struct Name {
    key: RowKey,
    content: Option<(Vec<Piece>, u64)>,
    /// Bytes that the row has besides.
    padding: usize,
}

impl Operation for Name {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let key = self.key.clone();
        let change = match &self.content {
            None => RowChange::Delete { key },
            Some((pieces, mark)) => {
                let mut value = Vec::new();
                let overflow = overflow_of(*mark);
                RowStart { pieces: pieces.clone(), overflow_size_bytes: overflow.len() }.put(&mut value);
                value.put_u64_field(*mark);
                value.resize(value.len() + self.padding, 0);
                value.extend_from_slice(&overflow);
                RowChange::Put { key, value: value.into() }
            }
        };
        Decision { changes: vec![change], reply: () }
    }
}

/// The bytes of piece `index` of a row that was written with `mark`.
fn bytes_of(mark: u64, index: u64) -> Bytes {
    let mut state = mark ^ index << 56;
    let len = 1 + splitmix64(&mut state) % if index == 0 { 60_000 } else { 400 };
    (0..len).map(|at| (mark.wrapping_mul(31).wrapping_add(at / 7 + index)) as u8).collect()
}

/// The overflow of a row that was written with `mark`: often none, sometimes one that is kept apart.
fn overflow_of(mark: u64) -> Bytes {
    let len = if mark.is_multiple_of(2) { 0 } else { mark / 2 % 3000 };
    (0..len).map(|at| (mark.wrapping_mul(7).wrapping_add(at / 9)) as u8).collect()
}

#[derive(Clone, Debug, Default)]
struct Expected {
    mark: Option<u64>,
    /// An operation that may or may not have happened.
    unknown: Option<Option<u64>>,
}

#[derive(Default)]
struct Model {
    blobs: Mutex<BTreeMap<(u64, u64), Expected>>,
    /// How often each writer's container was deleted and made anew.
    containers: Mutex<BTreeMap<u64, u64>>,
}

impl Model {
    fn lock(&self) -> parking_lot::MutexGuard<'_, BTreeMap<(u64, u64), Expected>> {
        self.blobs.lock()
    }

    /// The id of a writer's container: it never comes again.
    fn container(&self, writer: u64) -> u64 {
        container_id(writer, self.containers.lock().get(&writer).copied().unwrap_or(0))
    }

    fn key(&self, writer: u64, name: u64) -> RowKey {
        RowKey::new("acct", self.container(writer), &format!("blob{name}"), "b")
    }
}

fn container_id(writer: u64, turn: u64) -> u64 {
    1 + writer + turn * WRITERS
}

/// A key of the first container.
fn key(writer: u64, name: u64) -> RowKey {
    RowKey::new("acct", 1, &format!("blob{writer}{name}"), "b")
}

/// Deletes a writer's container and makes it anew, empty.
async fn delete_container(partitions: &Partitions, model: &Model, writer: u64) -> Result<(), PartitionError> {
    let old = model.container(writer);
    *model.containers.lock().entry(writer).or_default() += 1;
    model.lock().retain(|(of, _), _| *of != writer);
    match partitions.retire_container(TABLE, "acct", old).await {
        Err(PartitionError::DiskFull | PartitionError::Unavailable(_) | PartitionError::Busy) => Ok(()),
        other => other,
    }
}

/// What a service does after a start: containers with rows that are not in use any more are retired.
async fn retire_lost(partitions: &Partitions, model: &Model) -> Result<(), PartitionError> {
    let mut after = None;
    loop {
        let place = after.as_ref().map(|(account, id): &(String, u64)| (account.as_str(), *id));
        let Some((account, id)) = partitions.next_container(TABLE, place).await? else { return Ok(()) };
        if !(0..WRITERS).any(|writer| model.container(writer) == id) {
            partitions.retire_container(TABLE, &account, id).await?;
        }
        after = Some((account, id));
    }
}

/// Bytes in extents of blob data that take no more appends, and bytes that rows name.
async fn stored_and_named(streams: &Streams, partitions: &Partitions, model: &Model) -> (u64, u64) {
    let mut stored = BTreeMap::new();
    for stream in streams.list("blob/").into_iter().filter(|stream| stream.as_str().ends_with("/data")) {
        let extents = streams.stat(&stream).unwrap().extents;
        stored.extend(extents.iter().rev().skip(1).copied());
    }
    let mut named = 0;
    for writer in 0..WRITERS {
        for name in 0..NAMES {
            let Some(row) = partitions.get(TABLE, &model.key(writer, name)).await.unwrap() else { continue };
            let pieces = take_pieces(&mut Decoder::new(&row.value)).unwrap();
            named += pieces.iter().map(|piece| piece.size_bytes() + 32).sum::<u64>();
        }
    }
    (stored.values().sum(), named)
}

/// Reads a row whole and says which mark it was written with.
async fn read(partitions: &Partitions, key: &RowKey, seed: u64) -> Result<Option<u64>, PartitionError> {
    let Some((row, pin)) = partitions.get_with_data(TABLE, key).await? else { return Ok(None) };
    let mut decoder = Decoder::new(&row.value);
    let RowStart { pieces, overflow_size_bytes } = RowStart::take(&mut decoder).unwrap();
    let mark = decoder.u64("mark").unwrap();
    assert!(decoder.rest().ends_with(&overflow_of(mark)), "seed {seed}: the overflow of {key:?}");
    assert_eq!(overflow_size_bytes, overflow_of(mark).len(), "seed {seed}: {key:?}");
    for (index, piece) in pieces.iter().enumerate() {
        let expected = bytes_of(mark, index as u64);
        assert_eq!(piece.size_bytes(), expected.len() as u64, "seed {seed}");
        let mut at = 0;
        while at < piece.size_bytes() {
            // Others run, a collection perhaps, while this reader is under way.
            tokio::time::sleep(Duration::from_micros(mark % 900)).await;
            let part = pin.read(piece, at).await?;
            assert_eq!(part, expected.slice(at as usize..at as usize + part.len()), "seed {seed}: {key:?}");
            at += part.len() as u64;
        }
    }
    Ok(Some(mark))
}

async fn verify(partitions: &Partitions, model: &Model, seed: u64) {
    for writer in 0..WRITERS {
        for name in 0..NAMES {
            let found = read(partitions, &model.key(writer, name), seed).await.unwrap();
            let mut model = model.lock();
            let expected = model.entry((writer, name)).or_default();
            let unknown = expected.unknown.take();
            assert!(
                found == expected.mark || unknown == Some(found),
                "seed {seed}: blob{writer}{name} is {found:?}, expected {:?} or {unknown:?}",
                expected.mark
            );
            expected.mark = found;
        }
    }
}

async fn write(
    partitions: &Partitions,
    model: &Model,
    clock: &SimClock,
    random: &dyn Random,
    writer: u64,
    seed: u64,
    padding: usize,
) -> Result<(), PartitionError> {
    for _ in 0..random.next_u64() % 25 {
        let name = random.next_u64() % NAMES;
        if random.next_u64().is_multiple_of(24) {
            delete_container(partitions, model, writer).await?;
        }
        let key = model.key(writer, name);
        let mark = (!random.next_u64().is_multiple_of(4)).then(|| random.next_u64());
        let mut pins = Vec::new();
        let content = match mark {
            None => None,
            Some(mark) => {
                let mut pieces = Vec::new();
                for index in 0..random.next_u64() % 3 {
                    match partitions.append_data(TABLE, &key, bytes_of(mark, index)).await {
                        Ok((piece, pin)) => {
                            pieces.push(piece);
                            pins.push(pin);
                        }
                        Err(PartitionError::DiskFull) => return Ok(()),
                        Err(error) => return Err(error),
                    }
                }
                Some((pieces, mark))
            }
        };
        // A collection may come between the bytes and the row that names them.
        base::Clock::sleep(clock, Duration::from_millis(random.next_u64() % 6)).await;
        model.lock().entry((writer, name)).or_default().unknown = Some(mark);
        let outcome = partitions.execute(Name { key: key.clone(), content, padding }).await;
        {
            let mut model = model.lock();
            let expected = model.entry((writer, name)).or_default();
            match outcome {
                Ok(()) => *expected = Expected { mark, unknown: None },
                // Refused for certain. That the range was split between the append and the row is no reason.
                Err(PartitionError::DiskFull) => expected.unknown = None,
                Err(PartitionError::Unavailable(why)) => {
                    assert!(!why.contains("split or merged"), "seed {seed}: {why}");
                    expected.unknown = None;
                }
                Err(error) => return Err(error),
            }
        }
        drop(pins);
        let expected = model.lock().get(&(writer, name)).and_then(|expected| expected.mark);
        assert_eq!(read(partitions, &key, seed).await?, expected, "seed {seed}: blob{writer}{name}");
    }
    Ok(())
}

async fn disturb(
    partitions: &Partitions,
    model: &Model,
    clock: &SimClock,
    random: &dyn Random,
    collected: &Mutex<u64>,
) {
    for _ in 0..random.next_u64() % 30 {
        base::Clock::sleep(clock, Duration::from_millis(random.next_u64() % 8)).await;
        let key = model.key(random.next_u64() % WRITERS, random.next_u64() % NAMES);
        // A failure leaves things as they are, which is what the rest checks.
        match random.next_u64() % 4 {
            0 => drop(partitions.split(TABLE, &key).await),
            1 => drop(partitions.merge(TABLE, &key).await),
            _ => {
                if let Ok(done) = partitions.collect_data_now(TABLE).await {
                    *collected.lock() += done.extents;
                }
            }
        }
    }
}

async fn open(env: &Environment) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    let streams = Streams::open(env, StreamSettings::tiny()).await?;
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await?;
    Ok((streams, partitions))
}

#[test]
fn blob_data_survives_crashes_splits_and_collections() {
    let collected = Mutex::new(0);
    let mut crashes = 0;
    for seed in seeds() {
        let world = World::new(seed);
        let model = Model::default();
        for life in 0..LIVES {
            let crash_after = if life + 1 == LIVES { 0 } else { 1 + world.random.next_u64() % 600 };
            let crash_at_operation = match crash_after {
                0 => 0,
                after => world.disk.operation_count() + after,
            };
            world.disk.set_faults(Faults { slow_one_in: 20, crash_at_operation, ..Faults::default() });
            let outcome = world.run(|env, clock| {
                let (model, collected, kept_clock) = (&model, &collected, clock);
                async move {
                    let (random, clock) = (env.random.clone(), &*kept_clock);
                    let Ok((streams, partitions)) = open(&env).await else { return };
                    verify(&partitions, model, seed).await;
                    retire_lost(&partitions, model).await.unwrap();
                    let (partitions, random) = (&partitions, &*random);
                    let writers =
                        (0..WRITERS).map(|writer| write(partitions, model, clock, random, writer, seed, 0));
                    let ((), outcomes) = futures_util::future::join(
                        disturb(partitions, model, clock, random, collected),
                        futures_util::future::join_all(writers),
                    )
                    .await;
                    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
                    verify(partitions, model, seed).await;
                    // Until ranges that were handed over have gone with their streams.
                    base::Clock::sleep(clock, Duration::from_secs(60)).await;
                    while partitions.collect_data_now(TABLE).await.unwrap().extents > 0 {}
                    let (stored, named) = stored_and_named(&streams, partitions, model).await;
                    // A tenth may be dead in each of two ranges' eyes, and one extent besides.
                    let most = named / 10 * 15 + EXTENT_SIZE_BYTES;
                    assert!(stored <= most, "seed {seed}: {stored} bytes are stored, {named} named");
                    verify(partitions, model, seed).await;
                    partitions.close().await;
                }
            });
            crashes += u64::from(outcome.is_none());
        }
    }
    let collected = *collected.lock();
    println!("{crashes} crashes, {collected} extents collected");
    assert!(crashes > 0 || seeds().len() < 20, "no disk ever died");
    assert!(collected > 0 || seeds().len() < 20, "nothing was ever collected");
}

/// So much later the naming comes from step to step.
const STEP_MS: u64 = 5;
/// A collection copies several names at once: its steps are closer.
const NAMED_STEP_MS: u64 = 3;

/// The second look at the rows, at the end of a collection, once could be left out and no test noticed: bytes
/// that nobody named when it began were named while pieces of other extents were being copied, and left with
/// their extent. Here the naming comes at every instant of a collection in turn.
#[test]
fn bytes_that_are_named_during_a_collection_stay() {
    let mut named_meanwhile = 0;
    for step in 0..60 {
        let world = World::new(step);
        world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        let took_for = world.run(|env, clock| async move {
            let (streams, partitions) = open(&env).await.unwrap();
            let append = |name: u64, len: usize| {
                let (partitions, key) = (&partitions, key(0, name));
                async move { partitions.append_data(TABLE, &key, vec![name as u8; len].into()).await.unwrap() }
            };
            let name = |name: u64, piece: Piece| {
                partitions.execute(Name { key: key(0, name), content: Some((vec![piece], name)), padding: 0 })
            };
            // One extent that will be copied: half of it is dead. It takes long, because there are several
            // pieces.
            let mut pins = Vec::new();
            for index in 0..8 {
                let (piece, pin) = append(index, 1000).await;
                name(index, piece).await.unwrap();
                pins.push(pin);
            }
            pins.push(append(90, 20_000).await.1);
            // The next one holds what is named in time.
            let (late, late_pin) = append(50, 20_000).await;
            // The last one takes appends.
            pins.push(append(91, 100).await.1);
            let stat = streams.stat(&stream::StreamName::new("blob/1/data")).unwrap();
            assert_eq!(stat.extents.len(), 3, "{stat:?}");
            drop(pins);
            let names_late = async {
                base::Clock::sleep(&*clock, Duration::from_millis(step * NAMED_STEP_MS)).await;
                name(50, late).await.unwrap();
                drop(late_pin);
                base::Clock::monotonic(&*clock)
            };
            let began_at = base::Clock::monotonic(&*clock);
            let collects = async {
                let collected = partitions.collect_data_now(TABLE).await.unwrap();
                assert!(collected.copied_bytes >= 8000, "{collected:?}");
                base::Clock::monotonic(&*clock)
            };
            let (named_at, collected_at) = futures_util::future::join(names_late, collects).await;
            let (row, pin) = partitions.get_with_data(TABLE, &key(0, 50)).await.unwrap().unwrap();
            let piece = take_pieces(&mut Decoder::new(&row.value)).unwrap()[0];
            assert_eq!(pin.read(&piece, 0).await.unwrap(), vec![50; 20_000], "step {step}");
            drop(pin);
            partitions.close().await;
            (named_at - began_at, collected_at - began_at)
        });
        let (named_after, collected_after) = took_for.unwrap();
        named_meanwhile += u64::from(named_after < collected_after);
    }
    println!("named {named_meanwhile} times while a collection was under way");
    assert!((20..60).contains(&named_meanwhile), "{named_meanwhile} of 60 steps were inside the collection");
}

/// What was appended before a range was handed over once was let go by the heirs' first collection, and what
/// was appended while it was handed over went to nobody: the whole upload was in vain.
#[test]
fn an_upload_goes_on_through_splits_merges_and_collections() {
    World::new(13).run(|env, clock| async move {
        let (streams, partitions) = open(&env).await.unwrap();
        let key = |name: &str| RowKey::new("acct", 1, name, "b");
        let (mut pieces, mut pins) = (Vec::new(), Vec::new());
        for round in 0..6 {
            // Larger than an extent, so that those before it are not the last of their stream.
            for _ in 0..3 {
                let (piece, pin) =
                    partitions.append_data(TABLE, &key("50"), vec![round; 9000].into()).await.unwrap();
                pieces.push(piece);
                pins.push(pin);
            }
            let changed = match round % 3 {
                0 => partitions.split(TABLE, &key("30")).await,
                1 => partitions.split(TABLE, &key("60")).await,
                _ => partitions.merge(TABLE, &key("10")).await,
            };
            changed.unwrap();
            for _ in 0..3 {
                partitions.collect_data_now(TABLE).await.unwrap();
            }
        }
        let name = |content| partitions.execute(Name { key: key("50"), content, padding: 0 });
        name(Some((pieces.clone(), 1))).await.unwrap();
        drop(pins);
        while partitions.collect_data_now(TABLE).await.unwrap().extents > 0 {}
        let (row, pin) = partitions.get_with_data(TABLE, &key("50")).await.unwrap().unwrap();
        let named = take_pieces(&mut Decoder::new(&row.value)).unwrap();
        for (index, piece) in named.iter().enumerate() {
            assert_eq!(pin.read(piece, 0).await.unwrap(), vec![(index / 3) as u8; 9000]);
        }
        assert_eq!(named.len(), 18);
        // Pins of long ago keep nothing: an upload that was given up goes with the next collection.
        drop(pin);
        name(None).await.unwrap();
        for _ in 0..3 {
            partitions.collect_data_now(TABLE).await.unwrap();
        }
        // The parents' streams go in the background.
        base::Clock::sleep(&*clock, Duration::from_secs(60)).await;
        let stats = streams.list("blob/").into_iter().filter(|stream| stream.as_str().ends_with("/data"));
        let extents: BTreeMap<_, _> =
            stats.flat_map(|stream| streams.stat(&stream).unwrap().extents).collect();
        let stored: u64 = extents.values().sum();
        assert!(stored < 20_000, "of 162,000 bytes that nobody names {stored} stay");
        partitions.close().await;
    });
}

/// Bytes of an upload that was given up while a writer had them stayed for ever, if nobody else had appended
/// to their extent: its range did not know it.
#[test]
fn bytes_of_an_upload_that_was_given_up_go() {
    World::new(17).run(|env, clock| async move {
        let (streams, partitions) = open(&env).await.unwrap();
        let key = key(0, 0);
        // So large that a thread of its own writes them.
        let upload = |byte| partitions.append_data(TABLE, &key, vec![byte; 600_000].into());
        {
            let mut given_up = Box::pin(upload(1));
            assert!((&mut given_up).now_or_never().is_none());
        }
        base::Clock::sleep(&*clock, Duration::from_secs(1)).await;
        let data = stream::StreamName::new("blob/1/data");
        let stored = || streams.stat(&data).unwrap().extents.iter().map(|(_, length)| length).sum::<u64>();
        assert!(stored() > 600_000, "the writer has them");
        let collected = partitions.collect_data_now(TABLE).await.unwrap();
        assert_eq!((collected.extents, stored()), (1, 0));
        // And there is another extent for the next one.
        let (piece, pin) = upload(2).await.unwrap();
        assert_eq!(pin.read(&piece, 0).await.unwrap()[..100], [2; 100]);
        partitions.close().await;
    });
}

/// An append at every instant of a split in turn.
#[test]
fn bytes_that_are_appended_during_a_split_can_be_named() {
    let mut appended_meanwhile = 0;
    for step in 0..80 {
        let world = World::new(step);
        world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        let meanwhile = world.run(|env, clock| async move {
            let (_streams, partitions) = open(&env).await.unwrap();
            for name in 0..8 {
                partitions
                    .execute(Name { key: key(name, 0), content: Some((vec![], name)), padding: 0 })
                    .await
                    .unwrap();
            }
            let append = async {
                base::Clock::sleep(&*clock, Duration::from_millis(step * STEP_MS)).await;
                let began_at = base::Clock::monotonic(&*clock);
                let appended = partitions.append_data(TABLE, &key(5, 1), vec![5; 5000].into()).await.unwrap();
                (appended, began_at, base::Clock::monotonic(&*clock))
            };
            let split = async {
                assert!(partitions.split(TABLE, &key(4, 0)).await.unwrap());
                base::Clock::monotonic(&*clock)
            };
            let (((piece, pin), began_at, appended_at), split_at) =
                futures_util::future::join(append, split).await;
            for _ in 0..3 {
                partitions.collect_data_now(TABLE).await.unwrap();
            }
            partitions
                .execute(Name { key: key(5, 1), content: Some((vec![piece], 1)), padding: 0 })
                .await
                .unwrap();
            drop(pin);
            partitions.collect_data_now(TABLE).await.unwrap();
            let (_, pin) = partitions.get_with_data(TABLE, &key(5, 1)).await.unwrap().unwrap();
            assert_eq!(pin.read(&piece, 0).await.unwrap(), vec![5; 5000], "step {step}");
            partitions.close().await;
            began_at < split_at && appended_at > Duration::ZERO
        });
        appended_meanwhile += u64::from(meanwhile.unwrap());
    }
    println!("appended {appended_meanwhile} times while a split was under way");
    assert!((20..80).contains(&appended_meanwhile), "{appended_meanwhile} of 80 steps were inside the split");
}

/// Blobs of a deleted container once kept their bytes for ever.
#[test]
fn bytes_of_deleted_containers_come_back() {
    World::new(11).run(|env, _| async move {
        let (streams, partitions) = open(&env).await.unwrap();
        let stored = || {
            let stat = streams.stat(&stream::StreamName::new("blob/1/data")).unwrap();
            stat.extents.iter().map(|(_, length)| length).sum::<u64>()
        };
        let put = |container: u64, name: u64| {
            let (partitions, key) = (&partitions, RowKey::new("acct", container, &name.to_string(), "b"));
            async move {
                let bytes = Bytes::from(vec![container as u8; 4000]);
                let (piece, _pin) = partitions.append_data(TABLE, &key, bytes).await.unwrap();
                partitions
                    .execute(Name { key, content: Some((vec![piece], name)), padding: 0 })
                    .await
                    .unwrap();
            }
        };
        for name in 0..60 {
            put(1, name).await;
            put(2, name).await;
        }
        let both = stored();
        while partitions.collect_data_now(TABLE).await.unwrap().extents > 0 {}
        assert_eq!(stored(), both, "everything is named");
        partitions.retire_container(TABLE, "acct", 1).await.unwrap();
        while partitions.collect_data_now(TABLE).await.unwrap().extents > 0 {}
        assert!(stored() < both / 100 * 60, "{} of {both} bytes stay, half of them live", stored());
        for name in 0..60 {
            let key = RowKey::new("acct", 2, &name.to_string(), "b");
            let (row, pin) = partitions.get_with_data(TABLE, &key).await.unwrap().unwrap();
            let piece = take_pieces(&mut Decoder::new(&row.value)).unwrap()[0];
            assert_eq!(pin.read(&piece, 0).await.unwrap(), vec![2; 4000]);
        }
        partitions.close().await;
    });
}

/// Each heir of a split names a part of every extent. Once the other part looked dead to it, and all bytes
/// were copied.
#[test]
fn a_split_copies_no_bytes() {
    World::new(12).run(|env, _| async move {
        let (_streams, partitions) = open(&env).await.unwrap();
        let key = |name: u64| RowKey::new("acct", 1, &format!("{:02}", name * 37 % 60), "b");
        for name in 0..60 {
            let bytes = Bytes::from(vec![name as u8; 4000]);
            let (piece, _pin) = partitions.append_data(TABLE, &key(name), bytes).await.unwrap();
            partitions
                .execute(Name { key: key(name), content: Some((vec![piece], name)), padding: 0 })
                .await
                .unwrap();
        }
        assert!(partitions.split(TABLE, &RowKey::new("acct", 1, "30", "b")).await.unwrap());
        let collected = partitions.collect_data_now(TABLE).await.unwrap();
        assert_eq!((collected.copied_bytes, collected.extents), (0, 0));
        // What is deleted comes back from both nevertheless.
        for name in (0..60).filter(|name| name % 10 > 0) {
            partitions.execute(Name { key: key(name), content: None, padding: 0 }).await.unwrap();
        }
        let mut collected = 0;
        for _ in 0..4 {
            collected += partitions.collect_data_now(TABLE).await.unwrap().extents;
        }
        assert!(collected > 10, "{collected} extents");
        for name in (0..60).step_by(10) {
            let (row, pin) = partitions.get_with_data(TABLE, &key(name)).await.unwrap().unwrap();
            let piece = take_pieces(&mut Decoder::new(&row.value)).unwrap()[0];
            assert_eq!(pin.read(&piece, 0).await.unwrap(), vec![name as u8; 4000]);
        }
        partitions.close().await;
    });
}

#[test]
fn space_of_overwritten_and_deleted_bytes_comes_back_while_readers_go_on() {
    World::new(7).run(|env, _| async move {
        let (streams, partitions) = open(&env).await.unwrap();
        let stored = || {
            let stat = streams.stat(&stream::StreamName::new("blob/1/data")).unwrap();
            stat.extents.iter().map(|(_, length)| length).sum::<u64>()
        };
        let chunk = |mark: u64| Bytes::from(vec![mark as u8; 4000]);
        let put = |key: RowKey, mark: u64| {
            let partitions = &partitions;
            async move {
                let (piece, _pin) = partitions.append_data(TABLE, &key, chunk(mark)).await.unwrap();
                partitions
                    .execute(Name { key, content: Some((vec![piece], mark)), padding: 0 })
                    .await
                    .unwrap();
            }
        };
        // One reader begins before everything is overwritten.
        put(key(0, 9), 77).await;
        let (row, pin) = partitions.get_with_data(TABLE, &key(0, 9)).await.unwrap().unwrap();
        let piece = take_pieces(&mut Decoder::new(&row.value)).unwrap()[0];
        for round in 0..10 {
            for name in 0..50 {
                put(key(name % 3, name), round).await;
            }
        }
        for name in 3..50 {
            partitions.execute(Name { key: key(name % 3, name), content: None, padding: 0 }).await.unwrap();
        }
        let before = stored();
        let first = partitions.collect_data_now(TABLE).await.unwrap();
        assert!(first.extents > 0);
        assert_eq!(pin.read(&piece, 0).await.unwrap(), chunk(77), "a reader keeps what it reads");
        drop(pin);
        partitions.collect_data_now(TABLE).await.unwrap();
        let after = stored();
        assert!(after < before / 10, "of {before} bytes {after} stay, four thousand times three live");
        for name in 0..3 {
            let (row, pin) = partitions.get_with_data(TABLE, &key(name % 3, name)).await.unwrap().unwrap();
            let piece = take_pieces(&mut Decoder::new(&row.value)).unwrap()[0];
            assert_eq!(pin.read(&piece, 0).await.unwrap(), chunk(9));
        }
        let whole = partitions.ranges(TABLE);
        assert_eq!(whole, [KeyRange::all()]);
        partitions.close().await;
    });
}

/// Rows are so large that a hand-over copies them in several rounds, while writers go on.
const PADDING: usize = 40_000;

fn with_large_rows() -> PartitionSettings {
    PartitionSettings {
        memory_table_size_bytes: 4 << 20,
        memory_tables_size_bytes_max: 16 << 20,
        range_size_bytes_max: 1 << 30,
        ..PartitionSettings::tiny()
    }
}

async fn open_large(env: &Environment) -> (Arc<Streams>, Partitions) {
    let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
    let partitions = Partitions::open(env, streams.clone(), with_large_rows()).await.unwrap();
    (streams, partitions)
}

/// After everything had its time: no bytes that nobody names, no extent and no range that nobody knows.
async fn find_no_leaks(
    (streams, partitions): (&Streams, &Partitions),
    model: &Model,
    clock: &SimClock,
    disk: &SimDisk,
    seed: u64,
) {
    base::Clock::sleep(clock, Duration::from_secs(60)).await;
    while partitions.collect_data_now(TABLE).await.unwrap().extents > 0 {}
    let (stored, named) = stored_and_named(streams, partitions, model).await;
    let most = named / 10 * 15 + EXTENT_SIZE_BYTES;
    assert!(stored <= most, "seed {seed}: {stored} bytes are stored, {named} named");
    let extents = streams.list("").into_iter().flat_map(|name| streams.stat(&name).unwrap().extents);
    let listed: BTreeSet<String> = extents.map(|(extent, _)| format!("extents/{extent}")).collect();
    let files = disk.files().into_iter().map(|(path, _)| path);
    let unlisted: Vec<String> =
        files.filter(|path| path.starts_with("extents/") && !listed.contains(path)).collect();
    assert!(unlisted.is_empty(), "seed {seed}: nobody lists {unlisted:?}");
    let names = streams.list("blob/");
    let folders: BTreeSet<&str> = names.iter().filter_map(|name| name.as_str().split('/').nth(1)).collect();
    assert_eq!(folders.len(), partitions.ranges(TABLE).len(), "seed {seed}: ranges with streams");
}

/// Changes ranges under writers and a collector, and stops `crash_after` operations into the change (`None`:
/// never). Returns how many operations the change took, and after how many of them a log of an heir was seen
/// to grow.
fn change_under_writers(is_merge: bool, seed: u64, crash_after: Option<u64>) -> (u64, Vec<u64>) {
    let world = World::new(seed);
    let model = Model::default();
    let took = Mutex::new((0, Vec::new()));
    let middle = key_of(1);
    world.run(|env, clock| {
        let (model, took, disk, clock, middle) = (&model, &took, world.disk.clone(), clock, middle.clone());
        async move {
            let (streams, partitions) = open_large(&env).await;
            let (streams, partitions, clock, random) = (&streams, &partitions, &*clock, &*env.random);
            if is_merge {
                assert_eq!(partitions.split(TABLE, &middle).await, Ok(true));
            }
            for (writer, name) in (0..WRITERS).flat_map(|writer| (0..NAMES).map(move |name| (writer, name))) {
                let (key, mark) = (model.key(writer, name), random.next_u64());
                let (piece, _pin) = partitions.append_data(TABLE, &key, bytes_of(mark, 0)).await.unwrap();
                let content = Some((vec![piece], mark));
                partitions.execute(Name { key, content, padding: PADDING }).await.unwrap();
                model.lock().insert((writer, name), Expected { mark: Some(mark), unknown: None });
            }
            base::Clock::sleep(clock, Duration::from_secs(2)).await;
            let before = disk.operation_count();
            let crash_at_operation = crash_after.map_or(0, |after| before + after);
            disk.set_faults(Faults { slow_one_in: 3, crash_at_operation, ..Faults::default() });
            let done = AtomicBool::new(false);
            let change = async {
                let changed = match is_merge {
                    true => partitions.merge(TABLE, &model.key(0, 0)).await,
                    false => partitions.split(TABLE, &middle).await,
                };
                assert_eq!(changed, Ok(true), "seed {seed}");
                done.store(true, Ordering::Relaxed);
                disk.operation_count() - before
            };
            let writers =
                (0..WRITERS).map(|writer| write(partitions, model, clock, random, writer, seed, PADDING));
            let mut steps = Vec::new();
            let before_change = streams.list("blob/");
            let watch = async {
                let mut sizes = BTreeMap::new();
                while !done.load(Ordering::Relaxed) {
                    for log in
                        streams.list("blob/").into_iter().filter(|name| name.as_str().ends_with("/log"))
                    {
                        let Ok(stat) = streams.stat(&log) else { continue };
                        let size: u64 = stat.extents.iter().map(|(_, length)| length).sum();
                        if !before_change.contains(&log) && size > 0 && sizes.insert(log, size) != Some(size)
                        {
                            steps.push(disk.operation_count() - before);
                        }
                    }
                    base::Clock::sleep(clock, Duration::from_millis(1)).await;
                }
            };
            let collects = async {
                while !done.load(Ordering::Relaxed) {
                    drop(partitions.collect_data_now(TABLE).await);
                    base::Clock::sleep(clock, Duration::from_millis(3)).await;
                }
            };
            let (operations, written, (), ()) =
                futures_util::future::join4(change, join_all(writers), watch, collects).await;
            written.into_iter().for_each(|written| written.unwrap());
            *took.lock() = (operations, steps);
            verify(partitions, model, seed).await;
            find_no_leaks((streams, partitions), model, clock, &disk, seed).await;
            verify(partitions, model, seed).await;
        }
    });
    world.disk.set_faults(Faults::default());
    world
        .run(|env, clock| {
            let (model, disk) = (&model, world.disk.clone());
            async move {
                let checked = check_folder(&env, &mut |_, _| {}).await.unwrap();
                assert_eq!(checked.damages, [], "seed {seed}, cut off after {crash_after:?}");
                let (streams, partitions) = open_large(&env).await;
                verify(&partitions, model, seed).await;
                retire_lost(&partitions, model).await.unwrap();
                find_no_leaks((&streams, &partitions), model, &clock, &disk, seed).await;
                verify(&partitions, model, seed).await;
                partitions.close().await;
            }
        })
        .unwrap();
    took.into_inner()
}

/// The first key of a writer's container.
fn key_of(writer: u64) -> RowKey {
    RowKey::new("acct", container_id(writer, 0), "blob0", "b")
}

/// Times that the logs of heirs grow, at least: each of two heirs in two rounds, or one in as many.
const STEP_COUNT_MIN: usize = 4;
/// Moments of a hand-over at which it is cut off, besides those at which its copies grow.
const CUT_COUNT: u64 = 24;

/// A hand-over that is cut off in any of its rounds of copies: what rows name stays, what nobody names goes.
/// With `LARIMAR_SIM_SEEDS` at so many of its operations; a large number is each of them.
fn blob_data_outlives_a_hand_over_that_is_cut_off(is_merge: bool) {
    let several_rounds = |seed| {
        let (operations, steps) = change_under_writers(is_merge, seed, None);
        (steps.len() >= STEP_COUNT_MIN).then_some((seed, operations, steps))
    };
    let found = (0..20).find_map(several_rounds);
    let (seed, operations, steps) = found.expect("a hand-over with several rounds of copies");
    println!("seed {seed}: {operations} disk operations; the heirs' logs had grown after {steps:?}");
    let number = |text: String| text.parse::<u64>().ok();
    let count = std::env::var("LARIMAR_SIM_SEEDS").ok().and_then(number).unwrap_or(CUT_COUNT).max(1);
    let mut cuts: BTreeSet<u64> = (1..=operations).step_by((operations / count).max(1) as usize).collect();
    cuts.extend(steps.iter().flat_map(|step| [step.saturating_sub(3), step.saturating_sub(1), *step]));
    cuts.remove(&0);
    for cut in cuts {
        change_under_writers(is_merge, seed, Some(cut));
    }
}

#[test]
fn blob_data_outlives_a_split_that_is_cut_off() {
    blob_data_outlives_a_hand_over_that_is_cut_off(false);
}

#[test]
fn blob_data_outlives_a_merge_that_is_cut_off() {
    blob_data_outlives_a_hand_over_that_is_cut_off(true);
}
