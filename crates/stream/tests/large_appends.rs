//! Large appends of several writers to one stream, which are under way together: what was acknowledged is
//! there once and whole after every crash, what was refused for certain is not there, and they don't wait for
//! one another's syncs.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use base::{Clock, Environment};
use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use parking_lot::Mutex;
use sim::{Faults, World};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, OwnerEpoch, StreamError, StreamName, StreamSettings, Streams};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(epoch) }
}

const SEED_COUNT: u64 = 300;
const LIVES: u64 = 4;
const WRITERS: u64 = 5;
/// Past the journal, under [`StreamSettings::tiny`].
const LARGE: usize = 9000;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEED_COUNT)).collect(),
    }
}

fn stream() -> StreamName {
    StreamName::new("test/0")
}

/// Whether the stream holds an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Yes,
    Maybe,
    No,
}

/// Appends by their number, which all their blocks begin with.
type Model = Arc<Mutex<BTreeMap<u64, (Vec<Bytes>, Kept)>>>;

fn blocks_of(number: u64, sizes: &[usize]) -> Vec<Bytes> {
    let block = |(index, size): (usize, &usize)| {
        let mut block = number.to_le_bytes().to_vec();
        block.push(index as u8);
        block.resize(9 + size, number as u8);
        Bytes::from(block)
    };
    sizes.iter().enumerate().map(block).collect()
}

/// Finds each append once and whole, or not at all, as the model has it. From then on what is there must
/// stay.
async fn verify(streams: &Streams, model: &Model, seed: u64) {
    let mut found: BTreeMap<u64, Vec<Bytes>> = BTreeMap::new();
    let (mut replay, mut last) = (streams.replay(&stream(), None).unwrap(), None);
    while let Some((_, block)) = replay.next().await.unwrap_or_else(|error| panic!("seed {seed}: {error}")) {
        let number = u64::from_le_bytes(block[..8].try_into().unwrap());
        assert!(block[8] != 0 || !found.contains_key(&number), "seed {seed}: append {number} is there twice");
        assert!(block[8] == 0 || last == Some(number), "seed {seed}: append {number} is not in one piece");
        found.entry(number).or_default().push(block);
        last = Some(number);
    }
    let mut model = model.lock();
    for (number, (blocks, known)) in &mut *model {
        match (found.remove(number), *known) {
            (Some(found), Kept::Yes | Kept::Maybe) => {
                assert!(found == *blocks, "seed {seed}: append {number} is not there whole");
                *known = Kept::Yes;
            }
            (None, Kept::No | Kept::Maybe) => *known = Kept::No,
            (found, known) => panic!("seed {seed}: append {number} {known:?}, found {}", found.is_some()),
        }
    }
    assert!(found.is_empty(), "seed {seed}: {} appends nobody made", found.len());
}

/// Several writers; some leave in the middle of an append, and with `fills` the disk is full now and then.
async fn life(
    env: Environment,
    world: &World,
    model: Model,
    seed: u64,
    epoch: u64,
    fills: bool,
) -> Result<(), StreamError> {
    let streams = Streams::open(&env, StreamSettings::tiny()).await?;
    if streams.exists(&stream()) {
        verify(&streams, &model, seed).await;
    } else {
        streams.create(&[stream()], OWNER).await?;
    }
    let owner = owner(epoch);
    streams.take_over(&stream(), owner).await?;
    let writers = (0..WRITERS).map(|writer| {
        let (streams, model, env) = (streams.clone(), model.clone(), env.clone());
        async move {
            for turn in 0..env.random.next_u64() % 12 {
                let below = |bound: u64| env.random.next_u64() % bound;
                if fills && below(6) == 0 {
                    world.disk.set_free_bytes((below(2) == 0).then(|| below(60_000)));
                }
                let sizes = [vec![LARGE], vec![LARGE + 77, 40], vec![5000, 6000], vec![30]];
                let number = (epoch << 32) | (writer << 16) | turn;
                let blocks = blocks_of(number, &sizes[below(4) as usize]);
                model.lock().insert(number, (blocks.clone(), Kept::Maybe));
                let (stream, leave_after) = (stream(), Duration::from_millis(below(30)));
                let appending = pin!(streams.append(&stream, owner, blocks.clone()));
                let appended = if below(8) == 0 {
                    match select(appending, env.clock.sleep(leave_after)).await {
                        Either::Left((appended, _)) => appended,
                        Either::Right(_) => continue,
                    }
                } else {
                    appending.await
                };
                let known = match appended {
                    Ok(places) => {
                        assert_eq!(streams.read(places[0]).await?, blocks[0], "seed {seed}");
                        Kept::Yes
                    }
                    Err(StreamError::DiskFull) => Kept::No,
                    Err(error) => return Err(error),
                };
                if let Some(append) = model.lock().get_mut(&number) {
                    append.1 = known;
                }
            }
            Ok::<(), StreamError>(())
        }
    });
    join_all(writers).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    if env.random.next_u64().is_multiple_of(2) {
        streams.close().await;
    }
    Ok(())
}

#[test]
fn what_was_acknowledged_is_there_once_after_every_crash() {
    for seed in seeds() {
        let world = World::new(seed);
        let model = Model::default();
        for number in 1..=LIVES {
            let random = &world.random;
            let crash_at = world.disk.operation_count() + 1 + random.below(150);
            world.disk.set_faults(Faults {
                slow_one_in: 2,
                sync_fails_one_in: if random.one_in(4) { 60 } else { 0 },
                crash_at_operation: if random.one_in(3) { 0 } else { crash_at },
                ..Faults::default()
            });
            let fills = random.one_in(3);
            let run = |env, _| life(env, &world, model.clone(), seed, number, fills);
            let outcome = if random.one_in(3) { world.run_until_killed(run) } else { world.run(run) };
            match outcome {
                None | Some(Ok(()) | Err(StreamError::WritesStopped(_) | StreamError::DiskFull)) => {}
                Some(Err(error)) => panic!("seed {seed}: {error}"),
            }
            world.disk.set_free_bytes(None);
        }
        world.disk.set_faults(Faults::default());
        let model = model.clone();
        let ended = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            if streams.exists(&stream()) {
                verify(&streams, &model, seed).await;
            }
        });
        assert!(ended.is_some(), "seed {seed}");
    }
}

/// Each waited for the write, the sync and the journal record of the one before it.
#[test]
fn large_appends_are_under_way_together() {
    let took = |at_once: bool| {
        let world = World::new(7);
        world.disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        let took = world.run(|env, clock| async move {
            let streams = Streams::open(&env, StreamSettings::default()).await.unwrap();
            streams.create(&[stream()], OWNER).await.unwrap();
            let size = (1 << 20) + 1;
            let append = |number| {
                let streams = streams.clone();
                async move {
                    streams.append(&stream(), OWNER, blocks_of(number, &[size])).await.unwrap();
                }
            };
            append(0).await;
            let began = clock.monotonic();
            if at_once {
                join_all((1..=8).map(append)).await;
            } else {
                for number in 1..=8 {
                    append(number).await;
                }
            }
            clock.monotonic() - began
        });
        took.unwrap()
    };
    let (alone, together) = (took(false), took(true));
    assert!(4 * together < 3 * alone, "{together:?} together, {alone:?} one after the other");
}
