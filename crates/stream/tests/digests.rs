//! The digest of a whole extent: blocks that are valid by themselves, but not the ones that were appended,
//! are named by the scrub and by the offline check, and a replay over them fails; blocks through the journal
//! and straight to the extent, before and after a crash, alike.

use base::Environment;
use base::checksum::crc64;
use bytes::Bytes;
use sim::World;
use std::time::Duration;
use stream::{
    BLOCK_HEADER_SIZE, DamagedPart, Incarnation, Owner, StreamCheck, StreamError, StreamName, StreamSettings,
    Streams, check_streams,
};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

const PAYLOAD_SIZE: usize = 1000;
const BLOCK_SIZE: usize = BLOCK_HEADER_SIZE + PAYLOAD_SIZE;
/// More than goes through the journal at once.
const DIRECT_BLOCK_COUNT: u64 = 9;

fn name() -> StreamName {
    StreamName::new("test/digests")
}

/// Several extents full of blocks of one size, appended through the journal and straight to their extent; the
/// last one is open. The payloads depend on `tag`.
async fn fill(env: Environment, tag: u8) {
    let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
    streams.create(&[name()], OWNER).await.unwrap();
    for at in 0..20u64 {
        let count = if at % 4 == 3 { DIRECT_BLOCK_COUNT } else { 1 };
        let block = |index: u64| {
            let mut block = vec![tag; PAYLOAD_SIZE];
            block[..8].copy_from_slice(&(at * 100 + index).to_le_bytes());
            Bytes::from(block)
        };
        streams.append(&name(), OWNER, (0..count).map(block).collect()).await.unwrap();
    }
    streams.close().await;
}

fn world(tag: u8) -> World {
    let world = World::new(7);
    world.run(|env, _| fill(env, tag));
    // From now on nothing is in the journal that could repair an extent.
    for path in ["journal/0", "journal/1", "journal/2"] {
        let len = world.disk.contents()[path].len();
        world.disk.replace(path, vec![0; len]);
    }
    world.run(|env, _| async move {
        Streams::open(&env, StreamSettings::tiny()).await.unwrap().close().await;
    });
    world
}

/// Paths of the extents with blocks, and their bytes.
fn extents(world: &World) -> Vec<(String, Vec<u8>)> {
    let files = world.disk.contents().into_iter();
    files.filter(|(path, bytes)| path.starts_with("extents/") && bytes.len() > 3 * BLOCK_SIZE).collect()
}

fn check(world: &World) -> StreamCheck {
    world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await }).unwrap().unwrap()
}

fn scrubbing() -> StreamSettings {
    StreamSettings { scrub_bytes_per_second: 1 << 20, ..StreamSettings::tiny() }
}

/// The damage that a round of the scrub finds, and what a replay says; an error if the folder is refused.
fn serve(world: &World) -> Result<(u64, Result<u64, StreamError>), StreamError> {
    let life = |env: Environment| async move {
        let streams = Streams::open(&env, scrubbing()).await?;
        env.clock.sleep(Duration::from_secs(60)).await;
        let scrubbed = streams.scrub_statistics();
        assert_eq!(scrubbed.rounds, 1);
        let mut replay = streams.replay(&name(), None)?;
        let mut count = 0;
        let replayed = loop {
            match replay.next().await {
                Ok(Some(_)) => count += 1,
                Ok(None) => break Ok(count),
                Err(error) => break Err(error),
            }
        };
        Ok((scrubbed.damaged_extents, replayed))
    };
    world.run(|env, _| life(env)).unwrap()
}

fn payload(extent: &[u8], index: usize) -> Vec<u8> {
    extent[index * BLOCK_SIZE + BLOCK_HEADER_SIZE..][..PAYLOAD_SIZE].to_vec()
}

/// Gives the block at `index` another payload and a checksum that fits.
fn put(extent: &mut [u8], index: usize, payload: &[u8]) {
    let block = &mut extent[index * BLOCK_SIZE..][..BLOCK_SIZE];
    block[BLOCK_HEADER_SIZE..].copy_from_slice(payload);
    let checksum = crc64(&[&block[..24], &block[BLOCK_HEADER_SIZE..]]);
    block[24..BLOCK_HEADER_SIZE].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn whole_extents_pass() {
    let world = world(1);
    let checked = check(&world);
    assert_eq!((checked.damages, checked.undigested_extent_count), (vec![], 0));
    assert_eq!(checked.block_count, 15 + 5 * DIRECT_BLOCK_COUNT);
    assert_eq!(serve(&world).unwrap(), (0, Ok(checked.block_count)));
    assert!(extents(&world).len() == 3, "two sealed, one open: {:?}", world.disk.files());
}

/// Each block verified by itself, so that nothing noticed it if it was not the one that had been appended
/// there.
#[test]
fn a_valid_block_in_the_place_of_another_is_named() {
    let original = world(1);
    let others = extents(&world(2));
    let sealed = extents(&original);
    let (first, second) = (&sealed[0], &sealed[1]);
    type Tampering<'a> = (&'a str, Vec<(&'a str, Vec<u8>)>);
    let mut tamperings: Vec<Tampering<'_>> = Vec::new();
    for index in [0, 2] {
        let (mut one, mut two) = (first.1.clone(), second.1.clone());
        put(&mut one, index, &payload(&second.1, index));
        put(&mut two, index, &payload(&first.1, index));
        tamperings.push(("two extents exchange a block", vec![(&first.0, one), (&second.0, two)]));
    }
    let mut turned = first.1.clone();
    put(&mut turned, 0, &payload(&first.1, 1));
    put(&mut turned, 1, &payload(&first.1, 0));
    tamperings.push(("two blocks of an extent exchange places", vec![(&first.0, turned)]));
    let mut twice = first.1.clone();
    put(&mut twice, 1, &payload(&first.1, 0));
    tamperings.push(("a block twice", vec![(&first.0, twice)]));
    assert_eq!((&others[0].0, others[0].1.len()), (&first.0, first.1.len()));
    tamperings.push(("the extent of the same id from another folder", vec![(&first.0, others[0].1.clone())]));

    for (what, files) in tamperings {
        let world = original.copy(1);
        let count = files.len();
        for (path, bytes) in &files {
            assert_ne!(*bytes, original.disk.contents()[*path], "{what}");
            world.disk.replace(path, bytes.clone());
        }
        let damages = check(&world).damages;
        assert_eq!(damages.len(), count, "{what}: {damages:?}");
        for (damage, (path, _)) in damages.iter().zip(&files) {
            assert_eq!((&damage.place[..], damage.part), (*path, DamagedPart::Exchanged), "{what}");
            assert!(damage.problem.contains("not the ones that were appended"), "{what}: {}", damage.problem);
            assert_eq!(damage.streams, [name()], "{what}");
        }
        let (scrubbed, replayed) = serve(&world).unwrap();
        assert_eq!(scrubbed, count as u64, "{what}");
        assert!(matches!(replayed, Err(StreamError::Corrupt(_))), "{what}: {replayed:?}");
    }
}

#[test]
fn an_extent_cut_at_a_blocks_border_is_named() {
    let world = world(1);
    let (path, bytes) = extents(&world).swap_remove(1);
    let len = (bytes.len() - BLOCK_SIZE) as u64;
    let running = world.copy(1);
    let (disk, cut_path) = (running.disk.clone(), path.clone());
    let scrubbed = running.run(|env, _| async move {
        let streams = Streams::open(&env, scrubbing()).await.unwrap();
        env.clock.sleep(Duration::from_secs(60)).await;
        let before = streams.scrub_statistics();
        disk.cut(&cut_path, Some(len));
        env.clock.sleep(Duration::from_secs(3700)).await;
        let after = streams.scrub_statistics();
        [(before.rounds, before.damaged_extents), (after.rounds, after.damaged_extents)]
    });
    assert_eq!(scrubbed, Some([(1, 0), (2, 1)]));

    world.disk.cut(&path, Some(len));
    let damages = check(&world).damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!((&damages[0].place, damages[0].part), (&path, DamagedPart::File));
    assert!(damages[0].problem.contains("it should hold"), "{damages:?}");
    let (_, replayed) = serve(&world).unwrap();
    assert!(replayed.is_err(), "{replayed:?}");
}

/// The manager and the node each keep what was sealed: a journal or a log from another folder is no match.
#[test]
fn a_seal_that_the_journal_contradicts_is_named_and_its_extent_fails() {
    let (world, other) = (world(1), world(2));
    for path in ["journal/0", "journal/1", "journal/2", "journal/table", "journal/table.second"] {
        world.disk.replace(path, other.disk.contents()[path].clone());
    }
    for (path, bytes) in extents(&other) {
        world.disk.replace(&path, bytes);
    }
    let damages = check(&world).damages;
    assert!(!damages.is_empty());
    let is_named = |damage: &&stream::StreamDamage| {
        damage.problem.contains("it was sealed at") && damage.problem.contains("with digest")
    };
    // The last one is open.
    assert_eq!(damages.iter().filter(is_named).count(), extents(&world).len() - 1, "{damages:?}");
    let (_, replayed) = serve(&world).unwrap();
    assert!(matches!(replayed, Err(StreamError::Corrupt(_))), "{replayed:?}");
}
