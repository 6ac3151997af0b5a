//! Seeded damage to any file of a folder: the layer opens, every block reads as it was or fails, the end of a
//! stream is never taken for its end where blocks may be missing, and what is salvaged is whole.

use base::random::splitmix64;
use bytes::Bytes;
use sim::World;
use std::sync::Arc;
use stream::{
    Incarnation, Location, Owner, Salvaged, StreamError, StreamName, StreamSettings, Streams, check_streams,
};

const STREAM_COUNT: u64 = 4;
const OWNER: Owner = Owner::first(Incarnation(1));

fn name(stream: u64) -> StreamName {
    StreamName::new(&format!("test/{stream}"))
}

/// What each stream has, in order.
type Model = Vec<Vec<(Location, Bytes)>>;

/// Streams of small and large appends. `is_clean`: the layer is closed; else it ends as a killed process
/// does.
fn filled(seed: u64, is_clean: bool) -> (World, Model) {
    let world = World::new(seed);
    let filled = world.run(move |env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let mut model = vec![Vec::new(); STREAM_COUNT as usize];
        let names: Vec<StreamName> = (0..STREAM_COUNT).map(name).collect();
        streams.create(&names, OWNER).await.unwrap();
        let mut state = seed;
        for _ in 0..60 {
            let stream = (splitmix64(&mut state) % STREAM_COUNT) as usize;
            let len =
                if splitmix64(&mut state).is_multiple_of(8) { 10_000 } else { splitmix64(&mut state) % 3000 };
            let block = Bytes::from(vec![splitmix64(&mut state) as u8; len as usize]);
            let at = streams.append(&names[stream], OWNER, vec![block.clone()]).await.unwrap()[0];
            model[stream].push((at, block));
        }
        // Long enough for the journal's mark, too short for its bytes to be in their extents.
        env.clock.sleep(std::time::Duration::from_millis(100)).await;
        if is_clean {
            streams.close().await;
        }
        model
    });
    (world, filled.unwrap())
}

/// Damages one file, as the seed says; what was done, in words.
fn damage(world: &World, seed: u64) -> String {
    let mut state = seed ^ 0x5eed;
    let mut random = |bound: u64| splitmix64(&mut state) % bound.max(1);
    let files: Vec<(String, u64)> =
        world.disk.files().into_iter().filter(|(path, size)| *size > 0 && path != "LOCK").collect();
    let (path, size) = files[random(files.len() as u64) as usize].clone();
    let at = if random(2) == 0 { random(size) } else { random(size.min(20_000)) };
    match random(6) {
        0 | 1 => world.disk.flip_bit(&path, at * 8 + random(8)),
        2 => {
            let mut content = world.disk.contents()[&path].clone();
            let from = (at / 512 * 512) as usize;
            let len = if random(2) == 0 { 512 } else { 4096 };
            let end = (from + len).min(content.len());
            content[from..end].fill(0);
            world.disk.replace(&path, content);
        }
        3 => world.disk.cut(&path, Some(at)),
        4 => world.disk.cut(&path, None),
        _ => {
            let folder = path.split('/').next().unwrap();
            let mut others = files.iter().filter(|(other, _)| other.starts_with(folder) && *other != path);
            if let Some((other, _)) = others.next_back() {
                let contents = world.disk.contents();
                world.disk.replace(&path, contents[other].clone());
                world.disk.replace(other, contents[&path].clone());
                return format!("{path} exchanged for {other}");
            }
        }
    }
    format!("{path} of {size} bytes, at {at}")
}

/// Reads everything by its place and in order. Nothing may be wrong or silently missing; returns how many
/// blocks failed.
async fn judge(streams: &Streams, model: &Model, what: &str) -> u64 {
    let mut failed = 0;
    for (stream, blocks) in model.iter().enumerate() {
        for (location, block) in blocks {
            match streams.read(*location).await {
                Ok(read) => assert_eq!(read, block, "{what}: {location:?}"),
                Err(_) => failed += 1,
            }
        }
        let mut replayed = Vec::new();
        let mut replay = match streams.replay(&name(stream as u64), None) {
            Ok(replay) => replay,
            Err(error) => panic!("{what}: {error}"),
        };
        let end = loop {
            match replay.next().await {
                Ok(Some(block)) => replayed.push(block),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(replayed[..], blocks[..replayed.len()], "{what}: stream {stream}");
        assert!(end.is_err() || replayed.len() == blocks.len(), "{what}: stream {stream} ends too early");
        let mut salvaged = Vec::new();
        let mut is_whole = true;
        let mut visit = |found| match found {
            Salvaged::Block(location, block) => salvaged.push((location, block)),
            Salvaged::Missing { .. } => is_whole = false,
        };
        streams.salvage(&name(stream as u64), &mut visit).await.unwrap();
        assert!(salvaged.iter().all(|block| blocks.contains(block)), "{what}: stream {stream}");
        assert!(!is_whole || salvaged == *blocks, "{what}: stream {stream} is not whole");
    }
    failed
}

#[test]
fn whatever_is_damaged_the_rest_is_served_and_nothing_is_wrong() {
    let count = std::env::var("LARIMAR_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    let mut told = [0u64; 2];
    for seed in 0..count {
        let is_clean = seed % 2 == 0;
        let (world, model) = filled(seed % 16, is_clean);
        let what = format!("seed {seed}, {}", damage(&world, seed));
        let checked = world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await });
        let checked = checked.unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
        let (words, names) = (what.clone(), model.clone());
        let failed = world.run(|env, _| async move {
            let opened = Streams::open(&env, StreamSettings::tiny()).await;
            let streams = opened.unwrap_or_else(|error| panic!("{words}: {error}"));
            let failed = judge(&streams, &names, &words).await;
            // Streams that are not damaged take appends.
            for stream in 0..STREAM_COUNT {
                if streams.is_whole(&name(stream)).await.unwrap() {
                    let block = vec![Bytes::from_static(b"and then")];
                    let appended = streams.append(&name(stream), OWNER, block).await;
                    assert!(appended.is_ok(), "{words}: stream {stream}: {appended:?}");
                }
            }
            assert_eq!(streams.check_writes(), Ok(()), "{words}");
            streams.close().await;
            failed
        });
        let failed = failed.unwrap();
        let is_told = !checked.damages.is_empty() || checked.torn.is_some();
        assert!(failed == 0 || is_told, "{what}: the check has nothing to say of {failed} lost blocks");
        told[usize::from(failed > 0)] += 1;
    }
    println!("{} folders lost nothing, {} some blocks", told[0], told[1]);
    let count = told[0] + told[1];
    assert!(count < 100 || told.iter().all(|count| *count > 10), "{told:?}");
}

#[test]
fn a_repair_writes_flipped_bits_anew_and_takes_ends_as_they_are() {
    let (world, model) = filled(3, false);
    let extent = world
        .disk
        .files()
        .into_iter()
        .find(|(path, size)| path.starts_with("extents/") && *size > 5000)
        .unwrap()
        .0;
    // No segment is left: every open extent is in doubt.
    ["journal/0", "journal/1", "journal/2"].iter().for_each(|path| world.disk.cut(path, None));
    world.disk.flip_bit(&extent, 8 * 40 + 3);
    let before = world.copy(3);
    let names = model.clone();
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        assert_eq!(streams.mend_flipped_bits().await.unwrap().len(), 1);
        assert_eq!(streams.mend_flipped_bits().await.unwrap(), []);
        judge(&streams, &names, "in doubt").await;
        for stream in 0..STREAM_COUNT {
            streams.accept_ends(&name(stream)).await.unwrap();
        }
        streams.close().await;
    });
    let ends = |streams: Arc<Streams>| async move {
        let mut in_doubt = 0;
        for stream in 0..STREAM_COUNT {
            let mut look = |found| {
                in_doubt += u64::from(
                    matches!(found, Salvaged::Missing { problem, .. } if problem.contains("appended last")),
                );
            };
            streams.salvage(&name(stream), &mut look).await?;
        }
        Ok::<_, StreamError>(in_doubt)
    };
    let count = |world: &World| {
        world.run(|env, _| async move { ends(Streams::open(&env, StreamSettings::tiny()).await?).await })
    };
    assert_eq!(count(&world), Some(Ok(0)));
    assert!(matches!(count(&before), Some(Ok(1..))));
}
