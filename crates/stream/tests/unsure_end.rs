//! Records of the journal that are damaged, where what is left shows what was in them. The last one after a
//! power loss, which looks like one that was never finished: what was acknowledged by it is there
//! where its bytes are, and what was refused is not. One of a deletion: what was deleted is not missed.

use bytes::Bytes;
use sim::{Faults, SimDisk, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stream::{
    Incarnation, Owner, OwnerEpoch, StreamError, StreamName, StreamSettings, Streams, check_streams,
};

fn owner(epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(1), epoch: OwnerEpoch(epoch) }
}

const OWNER: Owner = Owner::first(Incarnation(1));
/// Too large for the journal.
const LARGE: usize = 10_000;
const PAGE: usize = 4096;

fn name() -> StreamName {
    StreamName::new("test/0")
}

fn large(tag: u8) -> Bytes {
    Bytes::from(vec![tag; LARGE])
}

/// Where the newest record of the journal lies: its file and page.
fn newest_record(disk: &SimDisk) -> (String, usize) {
    let files = disk.contents();
    let record = |page: &[u8]| {
        let number = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
        (page[..4] == *b"LRC2").then(|| (number(8), number(16)))
    };
    let segments = files.iter().filter(|(path, _)| path.starts_with("journal/") && path.len() == 9);
    let pages = segments.flat_map(|(path, content)| {
        let pages = content.chunks_exact(PAGE).enumerate();
        pages.filter_map(move |(index, page)| Some((record(page)?, path.clone(), index)))
    });
    let (_, path, index) = pages.max().unwrap();
    (path, index)
}

/// Damages a record beyond what its checksums undo.
fn damage(disk: &SimDisk, (path, index): (String, usize)) {
    let mut content = disk.contents()[&path].clone();
    content[index * PAGE + 40..][..16].fill(0xee);
    disk.replace(&path, content);
}

/// Damages the newest record, and takes the note away that it was synced, as a power loss may: it is not
/// synced itself.
fn damage_last_record(world: &World) {
    damage(&world.disk, newest_record(&world.disk));
    world.disk.cut("journal/synced", None);
}

async fn read_all(streams: &Streams) -> Result<Vec<Bytes>, StreamError> {
    let mut replay = streams.replay(&name(), None)?;
    let mut blocks = Vec::new();
    while let Some((_, block)) = replay.next().await? {
        blocks.push(block);
    }
    Ok(blocks)
}

/// What was in its extent, synced and acknowledged, was cut off it.
#[test]
fn a_large_append_is_there_though_the_record_of_its_length_is_not() {
    let world = World::new(1);
    let (disk, acknowledged) = (world.disk.clone(), [large(1), large(2)]);
    let [first, second] = acknowledged.clone();
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        streams.create(&[name()], OWNER).await.unwrap();
        streams.append(&name(), OWNER, vec![first]).await.unwrap();
        env.clock.sleep(std::time::Duration::from_millis(100)).await;
        streams.append(&name(), OWNER, vec![second]).await.unwrap();
        disk.crash();
        std::future::pending::<()>().await;
    });
    damage_last_record(&world);
    let torn = world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.unwrap().torn });
    let torn = torn.flatten().unwrap();
    assert!(torn.contains("the next start takes the 10032 bytes behind the end of extents/"), "{torn}");
    for _ in 0..2 {
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            let found = read_all(&streams).await;
            streams.close().await;
            found
        });
        assert!(found == Some(Ok(acknowledged.to_vec())), "an acknowledged append is not there");
    }
    let checked =
        world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.unwrap().damages });
    assert_eq!(checked, Some(vec![]));
}

/// Another owner came between: the bytes of the former one's append were there, synced, and cutting them off
/// was not.
#[test]
fn a_refused_append_is_not_there_though_its_bytes_were_synced() {
    let mut refused_count = 0;
    for seed in 0..200 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        disk.set_faults(Faults { slow_one_in: 3, ..Faults::default() });
        let refused = Arc::new(AtomicBool::new(false));
        let told = refused.clone();
        world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            streams.create(&[name()], OWNER).await.unwrap();
            streams.reserve(&name(), OWNER).await.unwrap();
            let stream = name();
            let append = streams.append(&stream, OWNER, vec![large(1)]);
            let (appended, taken) =
                futures_util::future::join(append, streams.take_over(&stream, owner(2))).await;
            taken.unwrap();
            told.store(matches!(appended, Err(StreamError::OldEpoch { .. })), Ordering::Relaxed);
            disk.crash();
            std::future::pending::<()>().await;
        });
        if !refused.load(Ordering::Relaxed) {
            continue;
        }
        refused_count += 1;
        world.disk.set_faults(Faults::default());
        damage_last_record(&world);
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            read_all(&streams).await
        });
        assert!(found == Some(Ok(Vec::new())), "seed {seed}: a refused append is there");
    }
    assert!(refused_count > 10, "{refused_count} were refused");
}

/// The file was missed for ever: a check called the folder damaged, and no repair could mend it.
#[test]
fn an_extent_whose_deletion_is_lost_is_not_missed() {
    let world = World::new(1);
    let disk = world.disk.clone();
    let deletion = world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let other = StreamName::new("test/1");
        streams.create(&[name(), other.clone()], OWNER).await.unwrap();
        streams.append(&name(), OWNER, vec![large(1)]).await.unwrap();
        streams.append(&other, OWNER, vec![large(2)]).await.unwrap();
        streams.delete(&other, OWNER).await.unwrap();
        let deletion = newest_record(&disk);
        streams.append(&name(), OWNER, vec![Bytes::from_static(b"behind")]).await.unwrap();
        env.clock.sleep(std::time::Duration::from_millis(100)).await;
        deletion
    });
    damage(&world.disk, deletion.unwrap());
    for _ in 0..2 {
        let damages =
            world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.unwrap().damages });
        let missed = damages.unwrap().into_iter().filter(|damage| damage.place.starts_with("extents/"));
        assert_eq!(missed.map(|damage| damage.problem).collect::<Vec<_>>(), [] as [&str; 0]);
        let found = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            let found = read_all(&streams).await;
            streams.close().await;
            found
        });
        assert!(found == Some(Ok(vec![large(1), Bytes::from_static(b"behind")])));
    }
}
