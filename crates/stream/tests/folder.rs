//! A folder at rest: what a clean stop leaves is guarded to its last byte, and a used folder is never taken for a new one.

use bytes::Bytes;
use sim::World;
use stream::{OwnerEpoch, StreamError, StreamName, StreamSettings, Streams, check_streams};

const LAST: &[u8] = b"the last append before the stop";

/// A folder with two appends, closed the moment they were acknowledged.
fn used_folder(seed: u64) -> World {
    let world = World::new(seed);
    world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let name = StreamName::new("test/0");
        streams.create(std::slice::from_ref(&name)).await.unwrap();
        for block in [b"the first append", LAST] {
            streams.append(&name, OwnerEpoch(1), vec![Bytes::from_static(block)]).await.unwrap();
        }
        streams.close().await;
    });
    world
}

/// The journal's last group had no successor after a clean stop: damage to it was taken for a torn write, and what it held
/// was cut off the extents.
#[test]
fn damage_to_the_last_group_before_a_clean_stop_is_an_error() {
    for seed in 0..20 {
        let world = used_folder(seed);
        let find = |(path, bytes): (String, Vec<u8>)| {
            let at = bytes.windows(LAST.len()).position(|window| window == LAST)?;
            path.starts_with("journal/").then_some((path, at as u64))
        };
        let (path, at) = world.disk.contents().into_iter().find_map(find).unwrap();
        world.disk.flip_bit(&path, at * 8);
        let before = world.disk.contents();
        let opened =
            world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
        assert!(matches!(opened, Some(Err(StreamError::Corrupt(_)))), "seed {seed}: {opened:?}");
        assert!(world.disk.contents() == before, "seed {seed}: a refused folder was changed");
    }
}

/// A folder that had lost its FORMAT file was taken for one whose making was cut off, and everything in it was removed.
#[test]
fn a_used_folder_without_its_format_file_is_refused_as_it_is() {
    let world = used_folder(1);
    world.disk.cut("FORMAT", None);
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
