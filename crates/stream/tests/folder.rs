//! A folder at rest: what a clean stop leaves is guarded to its last byte, and a used folder is never taken
//! for a new one.

use bytes::Bytes;
use sim::World;
use stream::{
    DamagedPart, Incarnation, Owner, StreamError, StreamName, StreamSettings, Streams, check_streams,
};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

const LAST: &[u8] = b"the last append before the stop";

/// A folder with two appends, closed the moment they were acknowledged.
fn used_folder(seed: u64) -> World {
    let world = World::new(seed);
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let name = StreamName::new("test/0");
        streams.create(std::slice::from_ref(&name), OWNER).await.unwrap();
        for block in [b"the first append", LAST] {
            streams.append(&name, OWNER, vec![Bytes::from_static(block)]).await.unwrap();
        }
        streams.close().await;
    });
    world
}

/// The journal's last group had no successor after a clean stop: damage to it was taken for a torn write, and
/// what it held was cut off the extents.
#[test]
fn after_a_clean_stop_no_byte_of_the_journal_is_needed() {
    for seed in 0..20 {
        let world = used_folder(seed);
        let find = |(path, bytes): (String, Vec<u8>)| {
            let at = bytes.windows(LAST.len()).position(|window| window == LAST)?;
            path.starts_with("journal/").then_some((path, at as u64))
        };
        let (path, at) = world.disk.contents().into_iter().find_map(find).unwrap();
        match seed % 4 {
            0 => world.disk.flip_bit(&path, at * 8),
            1 => world.disk.cut(&path, None),
            2 => world.disk.cut(&path, Some(at)),
            _ => ["journal/0", "journal/1", "journal/2"].iter().for_each(|path| world.disk.cut(path, None)),
        }
        assert_eq!(
            read_back(&world),
            Some(Ok(vec![Bytes::from_static(b"the first append"), Bytes::from_static(LAST)]))
        );
    }
}

/// Opens the folder and reads its stream.
fn read_back(world: &World) -> Option<Result<Vec<Bytes>, StreamError>> {
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await?;
        let mut replay = streams.replay(&StreamName::new("test/0"), None)?;
        let mut blocks = Vec::new();
        while let Some((_, block)) = replay.next().await? {
            blocks.push(block);
        }
        streams.close().await;
        Ok(blocks)
    })
}

/// What all streams share is kept twice: any of these files may be lost, cut, or have 64 KiB zeroed.
#[test]
fn whatever_all_share_may_be_lost_once() {
    const SHARED: [&str; 6] = [
        "FORMAT",
        "FORMAT.second",
        "stream_manager/log",
        "stream_manager/log.second",
        "journal/table",
        "journal/table.second",
    ];
    let original = used_folder(1);
    let whole = read_back(&original.copy(1)).unwrap().unwrap();
    assert_eq!(whole.len(), 2);
    for path in SHARED {
        let content = original.disk.contents()[path].clone();
        for damage in 0..4 {
            let world = original.copy(1);
            match damage {
                0 => world.disk.cut(path, None),
                1 => world.disk.cut(path, Some(0)),
                2 => world.disk.cut(path, Some(content.len() as u64 / 2)),
                _ => world.disk.replace(path, vec![0; content.len()]),
            }
            let checked = world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await });
            let damages = checked.unwrap().unwrap().damages;
            let is_told = damages.iter().all(|one| (&*one.place, one.part) == (path, DamagedPart::Mended));
            assert!(is_told && (damages.len() == 1 || damage == 2), "{path} {damage}: {damages:?}");
            assert_eq!(read_back(&world), Some(Ok(whole.clone())), "{path}, damage {damage}");
            // It is mended: now the other one may be lost.
            let other = match path.strip_suffix(".second") {
                Some(other) => other.to_owned(),
                None => format!("{path}.second"),
            };
            world.disk.cut(&other, None);
            assert_eq!(read_back(&world), Some(Ok(whole.clone())), "{other} after {path}, damage {damage}");
        }
    }
}

/// A folder that had lost its FORMAT file was taken for one whose making was cut off, and everything in it
/// was removed.
#[test]
fn a_used_folder_without_its_format_files_is_refused_as_it_is() {
    let world = used_folder(1);
    world.disk.cut("FORMAT", None);
    world.disk.cut("FORMAT.second", None);
    let before = world.disk.contents();
    let checked = world.run(|env, _| async move { Streams::check_folder(&env).await });
    let read = world.run(|env, _| async move { check_streams(&env, &mut |_, _| {}).await.map(|_| ()) });
    let opened =
        world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
    for outcome in [checked, read, opened] {
        let Some(Err(StreamError::Folder(why))) = outcome else { panic!("{outcome:?}") };
        assert!(why.contains("FORMAT"), "{why}");
    }
    assert!(world.disk.contents() == before, "a refused folder was changed");
}

/// A process that ended between giving FORMAT its name and syncing the folder: the next one saw the name,
/// went on, and a power loss took it. The folder was refused from then on.
#[test]
fn a_format_that_a_former_process_did_not_sync_is_synced_by_the_next() {
    let has_format = |world: &World| world.disk.files().iter().any(|(path, _)| path == "FORMAT");
    for seed in 0..40 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        world.run(|env, _| async move {
            // The first process ends as soon as the name is there.
            let opening = Streams::open(&env, StreamSettings::tiny());
            let named =
                std::future::poll_fn(|context| match disk.files().iter().any(|file| file.0 == "FORMAT") {
                    true => std::task::Poll::Ready(()),
                    false => {
                        context.waker().wake_by_ref();
                        std::task::Poll::Pending
                    }
                });
            tokio::select! {
                biased;
                () = named => {}
                opened = opening => panic!("{:?}", opened.map(|_| ())),
            }
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let name = StreamName::new("test/0");
            streams.create(std::slice::from_ref(&name), OWNER).await.unwrap();
            streams.append(&name, OWNER, vec![Bytes::from_static(LAST)]).await.unwrap();
        });
        assert!(has_format(&world), "seed {seed}: the power loss took FORMAT");
        let opened =
            world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
        assert_eq!(opened, Some(Ok(())), "seed {seed}");
    }
}

/// A folder of format 1 whose log and journal contradict each other was raised to format 2, and only then
/// refused: the program that had written it could not open it any more.
#[test]
fn a_folder_that_contradicts_itself_is_refused_before_its_format_is_raised() {
    const LOG: &str = "stream_manager/log";
    let world = World::new(1);
    let disk = world.disk.clone();
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let name = StreamName::new("test/0");
        streams.create(std::slice::from_ref(&name), OWNER).await.unwrap();
        streams.append(&name, OWNER, vec![Bytes::from_static(LAST)]).await.unwrap();
        let before = disk.contents().remove(LOG).unwrap();
        streams.delete(&name, OWNER).await.unwrap();
        streams.close().await;
        // A log that was brought back from a backup.
        disk.replace(LOG, before);
        disk.replace("FORMAT", b"larimar data folder, format 1\n".to_vec());
        for path in ["FORMAT.second", "stream_manager/log.second", "journal/table", "journal/table.second"] {
            disk.cut(path, None);
        }
    });
    let before = world.disk.contents();
    let opened =
        world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
    let Some(Err(StreamError::Corrupt(why))) = opened else { panic!("{opened:?}") };
    assert!(why.contains("does not know it"), "{why}");
    assert!(world.disk.contents() == before, "a refused folder was changed");
}

#[test]
fn a_folder_that_a_migration_has_not_finished_is_none_whatever_else_is_there() {
    let world = World::new(3);
    world.run(|env, _| async move {
        Streams::open(&env, StreamSettings::tiny()).await.expect("a new folder").close().await;
    });
    let put = |world: &World, path: &'static str| {
        world.run(move |env, _| async move {
            let file = env.disk.open(path, base::OpenMode::CreateNew).await.unwrap();
            file.write_at(0, Bytes::from_static(b"larimar migration of 0000000000000001\n")).await.unwrap();
            file.sync_data().await.unwrap();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            env.disk.sync_folder(folder).await.unwrap();
        });
    };
    // Cut off between the two FORMAT files, with an extent there.
    let unfinished = world.copy(3);
    put(&unfinished, "MIGRATION");
    put(&unfinished, "extents/0000000000000001");
    unfinished.disk.cut("FORMAT", None);
    let opened =
        unfinished.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(drop) });
    let error = opened.expect("it ends").expect_err("it is not finished").to_string();
    assert!(error.contains("a migration into the data folder is not finished"), "{error}");
    // Cut off behind the end: a start forgets it.
    let finished = world.copy(3);
    put(&finished, "MIGRATION");
    for _ in 0..2 {
        let opened = finished.run(|env, _| async move {
            let opened = Streams::open(&env, StreamSettings::tiny()).await;
            if let Ok(streams) = &opened {
                streams.close().await;
            }
            opened.map(drop)
        });
        assert!(opened.expect("it ends").is_ok());
    }
    assert!(!finished.disk.contents().contains_key("MIGRATION"));
}
