//! Random lives of the stream layer on a disk that lies and fills up: what was acknowledged is there after
//! every crash, of the power or of the process alone, in order and with the same bytes; what was not
//! acknowledged is there whole or not at all; what was refused for certain is not there.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one and prints it.

use base::{Environment, Random};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use sim::{Faults, SimDisk, World};
use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;
use std::time::Duration;
use stream::{
    Incarnation, Owner, OwnerEpoch, StreamCheck, StreamError, StreamName, StreamSettings, Streams,
    check_streams,
};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(epoch) }
}

const SEED_COUNT: u64 = 300;
const LIVES: u64 = 5;
const WRITERS: u64 = 4;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LARIMAR_SIM_SEEDS").unwrap_or(SEED_COUNT)).collect(),
    }
}

/// What one stream must hold: appends in order, each of several blocks, and whether it was acknowledged.
type Model = Arc<Mutex<BTreeMap<u64, Vec<(Vec<Bytes>, bool)>>>>;

fn name(writer: u64) -> StreamName {
    StreamName::new(&format!("test/{writer}"))
}

/// Checks each stream against the model; then what is there is what must be there from now on.
async fn verify(streams: &Streams, model: &Model, seed: u64) {
    let expected = model.lock().clone();
    let mut found_all = BTreeMap::new();
    for (writer, appends) in expected {
        if !streams.exists(&name(writer)) {
            assert!(appends.iter().all(|(_, acked)| !acked), "seed {seed}: stream {writer} is gone");
            continue;
        }
        let mut blocks = Vec::new();
        let mut replay = streams.replay(&name(writer), None).unwrap();
        while let Some((location, block)) =
            replay.next().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        {
            assert_eq!(streams.read(location).await.unwrap(), block, "seed {seed}");
            blocks.push(block);
        }
        let mut rest = blocks.as_slice();
        let mut kept = Vec::new();
        for (append, acked) in appends {
            match rest.strip_prefix(append.as_slice()) {
                Some(after) => {
                    rest = after;
                    kept.push((append, true));
                }
                None => {
                    assert!(!acked, "seed {seed}: an acknowledged append of stream {writer} is not there")
                }
            }
        }
        assert!(rest.is_empty(), "seed {seed}: stream {writer} holds {} blocks nobody appended", rest.len());
        found_all.insert(writer, kept);
    }
    *model.lock() = found_all;
}

/// Ends the extent that was a stream's last one a moment ago.
async fn seal(streams: &Streams, stream: &StreamName, owner: Owner) -> Result<(), StreamError> {
    let last = streams.stat(stream).ok().and_then(|stat| stat.extents.last().copied());
    match last {
        Some((extent, _)) => streams.seal(stream, owner, extent).await,
        None => Ok(()),
    }
}

/// Whether nothing of what was requested is there, for certain.
fn is_refusal(error: &StreamError) -> bool {
    matches!(error, StreamError::DiskFull | StreamError::OutOfFiles(_))
}

/// Fills the disk up but for some bytes, or gives it space again.
fn change_space(disk: &SimDisk, random: &dyn Random) {
    let full = random.next_u64().is_multiple_of(2);
    disk.set_free_bytes(full.then(|| random.next_u64() % 40_000));
}

/// With a disk, its space changes now and then.
async fn life(
    env: Environment,
    model: Model,
    seed: u64,
    life: u64,
    filling: Option<Arc<SimDisk>>,
) -> Result<(), StreamError> {
    let streams = Streams::open(&env, StreamSettings::tiny()).await?;
    verify(&streams, &model, seed).await;
    let epoch = owner(life + 1);
    let writers = (0..WRITERS).map(|writer| {
        let (streams, model, random) = (streams.clone(), model.clone(), env.random.clone());
        let (clock, filling) = (env.clock.clone(), filling.clone());
        async move {
            if !streams.exists(&name(writer)) {
                model.lock().insert(writer, Vec::new());
                streams.create(&[name(writer)], epoch).await?;
            }
            streams.take_over(&name(writer), epoch).await?;
            if life > 0 {
                let zombie = vec![Bytes::from_static(b"zombie")];
                let refused = streams.append(&name(writer), owner(life), zombie).await;
                assert!(refused.is_err(), "seed {seed}: a former owner's append was taken");
            }
            for _ in 0..random.next_u64() % 30 {
                if random.next_u64().is_multiple_of(12) {
                    // The last extent of any stream, while its writer appends.
                    match seal(&streams, &name(random.next_u64() % WRITERS), epoch).await {
                        Err(error) if !is_refusal(&error) => return Err(error),
                        _ => {}
                    }
                }
                if let Some(disk) = &filling {
                    match random.next_u64() % 16 {
                        0 => change_space(disk, &*random),
                        1 => clock.sleep(Duration::from_millis(random.next_u64() % 400)).await,
                        _ => {}
                    }
                }
                let count = 1 + random.next_u64() % 3;
                let size = [10, 100, 1000, 9000][(random.next_u64() % 4) as usize];
                let blocks: Vec<Bytes> = (0..count)
                    .map(|_| {
                        let mut block = random.next_u64().to_le_bytes().to_vec();
                        block.resize(8 + (random.next_u64() % size) as usize, 7);
                        Bytes::from(block)
                    })
                    .collect();
                let at = {
                    let mut model = model.lock();
                    let appends = model.get_mut(&writer).unwrap();
                    appends.push((blocks.clone(), false));
                    appends.len() - 1
                };
                let locations = match streams.append(&name(writer), epoch, blocks.clone()).await {
                    Err(error) if is_refusal(&error) => {
                        model.lock().get_mut(&writer).unwrap().truncate(at);
                        continue;
                    }
                    appended => appended?,
                };
                model.lock().get_mut(&writer).unwrap()[at].1 = true;
                let pick = (random.next_u64() % count) as usize;
                assert_eq!(
                    streams.read(locations[pick]).await?,
                    blocks[pick],
                    "seed {seed}: read after append"
                );
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

/// One history; returns the digest of all requests to the disk.
fn history(seed: u64) -> u64 {
    let world = World::new(seed);
    let model = Model::default();
    for number in 0..LIVES {
        let random = &world.random;
        let faults = Faults {
            slow_one_in: 5,
            sync_fails_one_in: if random.one_in(4) { 60 } else { 0 },
            crash_at_operation: if random.one_in(4) {
                0
            } else {
                world.disk.operation_count() + 1 + random.below(150)
            },
            create_refused_one_in: if random.one_in(6) { 4 } else { 0 },
            ..Faults::default()
        };
        world.disk.set_faults(faults);
        let filling = random.one_in(3).then(|| world.disk.clone());
        let outcome = {
            let life = |env, _| life(env, model.clone(), seed, number, filling);
            if world.random.one_in(3) { world.run_until_killed(life) } else { world.run(life) }
        };
        match outcome {
            None | Some(Ok(()) | Err(StreamError::WritesStopped(_))) => {}
            Some(Err(error)) if is_refusal(&error) => {}
            Some(Err(error)) => panic!("seed {seed}: {error}"),
        }
    }
    world.disk.set_faults(Faults::default());
    let model = model.clone();
    world
        .run(|env, _| async move {
            let checked = check_streams(&env, &mut |_, _| {}).await.unwrap();
            let StreamCheck { damages, undigested_extent_count, .. } = checked;
            assert_eq!((damages, undigested_extent_count), (vec![], 0), "seed {seed}");
            let streams = Streams::open(&env, StreamSettings::tiny())
                .await
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&streams, &model, seed).await;
        })
        .unwrap();
    world.disk.trace()
}

#[test]
fn acknowledged_appends_survive_every_crash() {
    let seeds = seeds();
    println!("stream histories: seeds {} to {}", seeds[0], seeds[seeds.len() - 1]);
    for seed in seeds {
        let trace = history(seed);
        if seed % 50 == 0 {
            assert_eq!(history(seed), trace, "seed {seed}: the same seed must give the same run");
        }
    }
}

/// A process that ended before its sync of the journal returned: the next one believed what it read, removed
/// the files of extents that were deleted there, and wrote over the segment that the journal on the disk
/// still needed. The power loss that followed brought a journal back that missed them.
#[test]
fn a_start_acts_on_nothing_that_a_power_loss_may_take_back() {
    const VICTIMS: usize = 4;
    let block = |at: usize, size| Bytes::from(vec![at as u8; size]);
    for seed in 0..4 * seeds().len() as u64 {
        let world = World::new(seed);
        let crash_after = |count| {
            let crash_at_operation = world.disk.operation_count() + 1 + world.random.below(count);
            world.disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
        };
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
                for at in 0..=VICTIMS as u64 {
                    streams.create(&[name(at)], OWNER).await.unwrap();
                    streams.append(&name(at), OWNER, vec![block(0, 9000)]).await.unwrap();
                }
            })
            .unwrap();
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let acked = acknowledged.clone();
        // Deletions, or more than one segment of the journal.
        let (deletes, appends) = if world.random.one_in(2) { (VICTIMS, 0) } else { (0, 40) };
        crash_after(70 + 2 * appends as u64);
        world.run_until_killed(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            for at in 1..=deletes as u64 {
                streams.delete(&name(at), OWNER).await.unwrap();
            }
            for at in 0..appends {
                streams.append(&name(0), OWNER, vec![block(at, 3000)]).await.unwrap();
                acked.lock().push(block(at, 3000));
            }
        });
        for _ in 0..1 + seed % 2 {
            crash_after(40);
            let start = |env: Environment, _| async move {
                Streams::open(&env, StreamSettings::tiny()).await.map(|_| ())
            };
            let opened = if seed % 3 == 0 { world.run_until_killed(start) } else { world.run(start) };
            assert!(matches!(opened, None | Some(Ok(()))), "seed {seed}: {opened:?}");
        }
        world.disk.set_faults(Faults::default());
        world.run(|_, _| async {});
        world
            .run(|env, _| async move {
                let streams = Streams::open(&env, StreamSettings::tiny())
                    .await
                    .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let mut replay = streams.replay(&name(0), None).unwrap();
                assert_eq!(replay.next().await.unwrap().unwrap().1, block(0, 9000), "seed {seed}");
                let acknowledged = std::mem::take(&mut *acknowledged.lock());
                for expected in acknowledged {
                    assert_eq!(replay.next().await.unwrap().unwrap().1, expected, "seed {seed}");
                }
            })
            .unwrap();
    }
}

/// A start had begun the next segment and ended before it was synced. The next one took it for the newest,
/// and began another in a file that the journal needed as long as that one was not on the disk.
#[test]
fn a_segment_that_may_not_be_on_the_disk_is_not_relied_on() {
    let journal = |world: &World| -> Vec<Vec<u8>> {
        let files = world.disk.contents().into_iter();
        files.filter(|(path, _)| path.starts_with("journal/")).map(|(_, bytes)| bytes).collect()
    };
    let opened =
        |env: Environment, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) };
    let used = World::new(1);
    used.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        // More than one segment of the journal, whose headers are of several pages: one page may be written
        // whole.
        for stream in (0..150).map(name) {
            streams.create(slice::from_ref(&stream), OWNER).await.unwrap();
            streams.append(&stream, OWNER, vec![Bytes::from(vec![7; 100])]).await.unwrap();
        }
    })
    .unwrap();
    let killed_at = |world: &World, operation, seed| {
        let world = world.copy(seed);
        let crash_at_operation = world.disk.operation_count() + operation;
        world.disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
        world.run_until_killed(opened);
        world
    };
    // The operation of a start that writes the header of its segment.
    let begins = |world: &World| {
        let before = journal(world);
        (1..1000).find(|operation| journal(&killed_at(world, *operation, 1)) != before).expect("a segment")
    };
    let written = begins(&used);
    // Killed while it is written, and while it is synced; then without power, in the next one's first steps.
    for first in written..written + 2 {
        let next = begins(&killed_at(&used, first, 1));
        for (second, seed) in (next..next + 4).flat_map(|second| (1..40).map(move |seed| (second, seed))) {
            let world = killed_at(&used, first, seed);
            let crash_at_operation = world.disk.operation_count() + second;
            world.disk.set_faults(Faults { crash_at_operation, ..Faults::default() });
            world.run(opened);
            let found = world.run(opened);
            assert_eq!(found, Some(Ok(())), "seed {seed}, {first} and {second} operations");
        }
    }
}

/// At rest, every bit of the folder is either unused or watched over: a flip is an error or changes nothing.
#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    for seed in 0..seeds().len() as u64 {
        let world = World::new(seed);
        let model = Model::default();
        world.disk.set_faults(Faults { slow_one_in: 5, ..Faults::default() });
        world
            .run(|env, clock| {
                let model = model.clone();
                async move {
                    life(env, model, seed, 0, None).await.unwrap();
                    // Long enough for the journal's mark.
                    base::Clock::sleep(&*clock, std::time::Duration::from_secs(1)).await;
                }
            })
            .unwrap();
        let files: Vec<_> = world.disk.files().into_iter().filter(|(_, size)| *size > 0).collect();
        let (path, size) = &files[world.random.below(files.len() as u64) as usize];
        let bit = world.random.below(size * 8);
        world.disk.flip_bit(path, bit);
        let found = world.run(|env, _| {
            let model = model.clone();
            async move {
                let streams = Streams::open(&env, StreamSettings::tiny()).await?;
                for writer in 0..WRITERS {
                    let Ok(mut replay) = streams.replay(&name(writer), None) else {
                        continue;
                    };
                    while replay.next().await?.is_some() {}
                }
                verify(&streams, &model, seed).await;
                Ok::<(), StreamError>(())
            }
        });
        match found.unwrap() {
            Ok(()) | Err(StreamError::Corrupt(_) | StreamError::Folder(_)) => {}
            Err(other) => panic!("seed {seed}: flipping bit {bit} of {path} gave {other}"),
        }
    }
}

/// A segment that groups had filled to its last page but one, and the idle mark to its end, made the space
/// for the next group underflow: the journal's task ended and with it all writing.
#[test]
fn a_segment_that_its_mark_has_filled_is_followed_by_the_next() {
    let pages = StreamSettings::tiny().journal_segment_size_bytes / 4096;
    for count in 0..=pages {
        let world = World::new(count);
        let appended = world.run(|env, clock| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            let stream = name(0);
            streams.create(std::slice::from_ref(&stream), OWNER).await?;
            for _ in 0..count {
                streams.append(&stream, OWNER, vec![Bytes::from_static(b"one page")]).await?;
            }
            // Long enough for the journal's mark.
            base::Clock::sleep(&*clock, std::time::Duration::from_secs(1)).await;
            streams.append(&stream, OWNER, vec![Bytes::from_static(b"the next")]).await
        });
        assert!(matches!(appended, Some(Ok(_))), "after {count} appends and a mark: {appended:?}");
    }
}
