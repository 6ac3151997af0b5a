//! Journaled bytes come to their extents' files late: not at all if the extent is deleted before, and in time
//! if it is not.

use base::Environment;
use bytes::Bytes;
use sim::{SimDisk, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, StreamName, StreamSettings, Streams};

const OWNER: Owner = Owner::first(Incarnation(1));
/// With its header and the record's it takes 64 KiB of the journal.
const BLOCK_SIZE_BYTES: usize = 60 << 10;
const RECORD_SIZE_BYTES: usize = 64 << 10;
const SEGMENT_SIZE_BYTES: usize = 8 << 20;

fn settings() -> StreamSettings {
    StreamSettings {
        extent_size_bytes_max: 1 << 30,
        journal_segment_size_bytes: SEGMENT_SIZE_BYTES as u64,
        journaled_append_size_bytes_max: RECORD_SIZE_BYTES as u64,
        ..StreamSettings::tiny()
    }
}

fn name(stream: &str) -> StreamName {
    StreamName::new(stream)
}

async fn open(env: &Environment, names: &[&str]) -> Arc<Streams> {
    let streams = Streams::open(env, settings()).await.unwrap();
    let names: Vec<StreamName> = names.iter().map(|stream| name(stream)).collect();
    streams.create(&names, OWNER).await.unwrap();
    streams
}

/// Appends so many blocks, each a record of the journal.
async fn append(streams: &Streams, stream: &str, count: usize) {
    for at in 0..count {
        let block = Bytes::from(vec![at as u8; BLOCK_SIZE_BYTES]);
        streams.append(&name(stream), OWNER, vec![block]).await.unwrap();
    }
}

/// Bytes of the file of the stream's last extent, if there is one.
fn file_size(disk: &SimDisk, streams: &Streams, stream: &str) -> Option<u64> {
    let (extent, _) = *streams.stat(&name(stream)).unwrap().extents.last()?;
    let path = format!("extents/{extent}");
    disk.files().into_iter().find(|(file, _)| *file == path).map(|(_, size)| size)
}

#[test]
fn what_is_deleted_soon_is_never_written_to_its_extent() {
    let world = World::new(1);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = open(&env, &["short", "long"]).await;
            // Deleted, a whole segment later, each time: the journal's files are used again and again.
            for _ in 0..8 {
                append(&streams, "short", SEGMENT_SIZE_BYTES / RECORD_SIZE_BYTES / 2).await;
                assert_eq!(file_size(&disk, &streams, "short"), Some(0));
                streams.delete(&name("short"), OWNER).await.unwrap();
                streams.create(&[name("short")], OWNER).await.unwrap();
            }
            append(&streams, "long", 3).await;
            assert_eq!(file_size(&disk, &streams, "long"), Some(0));
            append(&streams, "short", SEGMENT_SIZE_BYTES / RECORD_SIZE_BYTES).await;
            assert_eq!(file_size(&disk, &streams, "long"), Some(streams_length(&streams, "long")));
            let rest = file_size(&disk, &streams, "short").unwrap();
            assert!(rest < streams_length(&streams, "short"), "what came last is not due yet");
        })
        .unwrap();
}

fn streams_length(streams: &Streams, stream: &str) -> u64 {
    streams.stat(&name(stream)).unwrap().extents.iter().map(|(_, length)| length).sum()
}

#[test]
fn all_is_written_once_nothing_follows() {
    let world = World::new(2);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = open(&env, &["one", "other"]).await;
            for round in 1..=3 {
                append(&streams, "one", 2).await;
                append(&streams, "other", 1).await;
                assert!(file_size(&disk, &streams, "one") < Some(streams_length(&streams, "one")), "{round}");
                env.clock.sleep(Duration::from_secs(3)).await;
                for stream in ["one", "other"] {
                    let length = streams_length(&streams, stream);
                    assert_eq!(file_size(&disk, &streams, stream), Some(length), "{stream}, round {round}");
                }
            }
        })
        .unwrap();
}

#[test]
fn a_clean_stop_leaves_nothing_to_be_written() {
    let world = World::new(3);
    let disk = world.disk.clone();
    world
        .run(|env, _| async move {
            let streams = open(&env, &["one"]).await;
            append(&streams, "one", 20).await;
            assert_eq!(file_size(&disk, &streams, "one"), Some(0));
            streams.close().await;
            assert_eq!(file_size(&disk, &streams, "one"), Some(streams_length(&streams, "one")));
        })
        .unwrap();
}
