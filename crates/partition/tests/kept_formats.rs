//! Kept data folders: what a former version of this program wrote is read by this one, row by row. A folder
//! here is never changed and never made anew; a format that changes gets another one beside it.
//!
//! ```text
//! fixture = LZ4 block with its size in front: entry*
//! entry   = varint n, n bytes path, varint m, m bytes content
//! ```
//!
//! The entry `expected` holds what must be found: for each row its key, version and value.
//! `LARIMAR_WRITE_FIXTURE` with the name of a file writes a new fixture there.

mod rows;

use base::checksum::crc64;
use base::codec::{Decoder, Encode};
use base::memory_disk::MemoryDisk;
use base::{Disk, OpenMode};
use bytes::Bytes;
use partition::{FolderCheck, PartitionSettings, Partitions, RowVersion, check_folder};
use rows::{Everything, TABLE, open, read_everything, varied_life};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::{StreamSettings, Streams};

const FORMAT_1: &[u8] = include_bytes!("fixtures/format-1.lz4");
/// The first with digests of whole extents.
const FORMAT_2: &[u8] = include_bytes!("fixtures/format-2.lz4");
/// The first with messages that have the number of their receipt, which this layer takes for bytes like
/// others.
const FORMAT_3: &[u8] = include_bytes!("fixtures/format-3.lz4");
/// The first with overflows that are kept apart.
const FORMAT_4: &[u8] = include_bytes!("fixtures/format-4.lz4");
/// The first with regions of pages that keep in mind what was cleared, which this layer takes for bytes like
/// others.
const FORMAT_5: &[u8] = include_bytes!("fixtures/format-5.lz4");
/// The first with what all streams share kept twice.
const FORMAT_6: &[u8] = include_bytes!("fixtures/format-6.lz4");
const EXPECTED: &str = "expected";

fn unpack(fixture: &[u8]) -> (BTreeMap<String, Bytes>, Everything) {
    let entries = lz4_flex::block::decompress_size_prepended(fixture).expect("a fixture");
    let mut decoder = Decoder::new(&entries);
    let mut files = BTreeMap::new();
    while !decoder.is_empty() {
        let path = decoder.text("path").unwrap().to_owned();
        files.insert(path, Bytes::copy_from_slice(decoder.bytes("content").unwrap()));
    }
    let rows = files.remove(EXPECTED).expect("expected rows");
    let mut decoder = Decoder::new(&rows);
    let mut expected = Everything::new();
    while !decoder.is_empty() {
        let key = decoder.bytes("key").unwrap().to_vec();
        let version = RowVersion(decoder.u64("version").unwrap());
        expected.insert(key, (version, decoder.bytes("value").unwrap().to_vec()));
    }
    (files, expected)
}

fn pack(files: BTreeMap<String, Vec<u8>>, expected: &Everything) -> Vec<u8> {
    let mut rows = Vec::new();
    for (key, (version, value)) in expected {
        rows.put_bytes_field(key);
        rows.put_u64_field(version.0);
        rows.put_bytes_field(value);
    }
    let mut entries = Vec::new();
    for (path, content) in files.into_iter().chain([(EXPECTED.to_owned(), rows)]) {
        entries.put_bytes_field(path.as_bytes());
        entries.put_bytes_field(&content);
    }
    lz4_flex::block::compress_prepend_size(&entries)
}

async fn disk_with(files: &BTreeMap<String, Bytes>) -> Arc<MemoryDisk> {
    let disk = Arc::new(MemoryDisk::new());
    for (path, content) in files {
        if let Some((folder, _)) = path.rsplit_once('/') {
            disk.create_folder(folder).await.unwrap();
        }
        let file = disk.open(path, OpenMode::CreateNew).await.unwrap();
        file.write_at(0, content.clone()).await.unwrap();
    }
    disk
}

#[tokio::test]
async fn a_folder_of_format_1_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_1, "larimar data folder, format 1\n").await;
    assert_eq!(checked.undigested_extent_count, checked.extent_count, "it knows no digests");
}

#[tokio::test]
async fn a_folder_of_format_2_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_2, "larimar data folder, format 2\n").await;
    assert_eq!(checked.undigested_extent_count, 0);
}

#[tokio::test]
async fn a_folder_of_format_3_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_3, "larimar data folder, format 3\n").await;
    assert_eq!(checked.undigested_extent_count, 0);
}

#[tokio::test]
async fn a_folder_of_format_4_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_4, "larimar data folder, format 4\n").await;
    assert_eq!(checked.undigested_extent_count, 0);
    let (_, expected) = unpack(FORMAT_4);
    assert!(expected.values().any(|(_, value)| value.len() > 1200 && rows::head_of(value).len() < 40));
}

#[tokio::test]
async fn a_folder_of_format_5_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_5, "larimar data folder, format 5\n").await;
    assert_eq!(checked.undigested_extent_count, 0);
}

#[tokio::test]
async fn a_folder_of_format_6_is_read_row_by_row() {
    let checked = read_row_by_row(FORMAT_6, &format_text(6)).await;
    assert_eq!(checked.undigested_extent_count, 0);
    let (files, _) = unpack(FORMAT_6);
    assert!(files.contains_key("journal/table.second") && files.contains_key("stream_manager/log.second"));
}

/// Returns what the check said before anything was written.
async fn read_row_by_row(fixture: &[u8], format: &str) -> FolderCheck {
    let (files, mut expected) = unpack(fixture);
    assert!(expected.len() > 50 && files["FORMAT"] == format);
    let disk = disk_with(&files).await;
    let env = base::system::environment_on(disk.clone());
    let before = check_folder(&env, &mut |_, _| {}).await.unwrap();
    let checked = &before;
    assert_eq!(checked.damages, []);
    assert_eq!(content(&disk, "FORMAT").await, format, "a check writes nothing");
    assert!(
        checked.row_count > 0 && checked.log_change_count > 0,
        "rows in checkpoints and logs: {checked:?}"
    );
    // With the settings that the server has today, not those of the test that wrote it.
    let streams = Streams::open(&env, StreamSettings::default()).await.unwrap();
    let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
    assert!(read_everything(&partitions).await.unwrap() == expected);
    assert!(partitions.ranges(TABLE).len() > 1 && partitions.retired_container_count() == 1);
    // It takes writes, and holds them and all else after a restart.
    let key = rows::key(1, "new", "row");
    rows::put(&partitions, &mut expected, key, Some(rows::value(1, 10))).await.unwrap();
    partitions.close().await;
    streams.close().await;
    let present = format_text(stream::FORMAT_VERSION);
    assert_eq!(content(&disk, "FORMAT").await, present, "older programs refuse it from now on");
    assert_eq!(content(&disk, "FORMAT.second").await, present);
    assert_eq!(check_folder(&env, &mut |_, _| {}).await.unwrap().damages, []);
    let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
    assert!(read_everything(&partitions).await.unwrap() == expected);
    partitions.close().await;
    streams.close().await;
    before
}

/// What `FORMAT` says from format 6 on.
fn format_text(version: u32) -> String {
    let line = format!("larimar data folder, format {version}");
    format!("{line}\nchecksum {:016x}\n", crc64(&[line.as_bytes()]))
}

async fn content(disk: &MemoryDisk, path: &str) -> Bytes {
    let file = disk.open(path, OpenMode::Read).await.unwrap();
    file.read_at(0, file.size().await.unwrap() as usize).await.unwrap()
}

/// Whatever the moment of a crash: as long as the folder calls itself one of format 1, its journal and log
/// are what a program of that format wrote; and the next start finds every row.
#[test]
fn a_folder_is_raised_to_the_present_format_in_one_step() {
    let (files, expected) = unpack(FORMAT_1);
    let original = sim::World::new(1);
    original.run(|env, _| async move {
        for (path, content) in unpack(FORMAT_1).0 {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            env.disk.create_folder(folder).await.unwrap();
            let file = env.disk.open(&path, OpenMode::CreateNew).await.unwrap();
            file.write_at(0, content).await.unwrap();
            file.sync_data().await.unwrap();
            env.disk.sync_folder(folder).await.unwrap();
            env.disk.sync_folder("").await.unwrap();
        }
    });
    let (mut kept, mut raised) = (0, 0);
    for crash_at in 1.. {
        let world = original.copy(crash_at);
        world.disk.set_faults(sim::Faults { crash_at_operation: crash_at, ..Default::default() });
        let opened =
            world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
        world.disk.set_faults(sim::Faults::default());
        let left = world.disk.contents();
        if left["FORMAT"] == files["FORMAT"] {
            for path in ["journal/0", "journal/1", "journal/2", "stream_manager/log"] {
                assert!(left[path] == files[path], "crash at {crash_at}: {path} was changed");
            }
            kept += 1;
        } else {
            raised += 1;
        }
        let read = |env: base::Environment| async move {
            let (_, partitions) = open(&env, PartitionSettings::tiny()).await?;
            read_everything(&partitions).await
        };
        let found = world.run(|env, _| read(env)).unwrap();
        assert!(found.as_ref() == Ok(&expected), "crash at {crash_at}: {:?}", found.map(|rows| rows.len()));
        if let Some(opened) = opened {
            assert_eq!(opened, Ok(()));
            break;
        }
    }
    println!("crashed {kept} times before the raise and {raised} times after it");
    assert!(kept > 10 && raised > 5);
    // Without room for the new FORMAT, or for what comes behind it, the start is refused, and another one
    // succeeds.
    for free in [0, 10, 40, 4000] {
        let world = original.copy(free);
        world.disk.set_free_bytes(Some(free));
        let refused =
            world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
        assert_eq!(refused, Some(Err(stream::StreamError::DiskFull)), "{free} bytes free");
        world.disk.set_free_bytes(None);
        let opened =
            world.run(|env, _| async move { Streams::open(&env, StreamSettings::tiny()).await.map(|_| ()) });
        assert_eq!(opened, Some(Ok(())), "after {free} bytes were free");
    }
}

#[tokio::test]
async fn a_folder_of_a_newer_format_is_refused_and_stays_as_it_is() {
    let (mut files, _) = unpack(FORMAT_1);
    let newer = format_text(stream::FORMAT_VERSION + 1) + "and what it says besides\n";
    files.insert("FORMAT".to_owned(), newer.into());
    let disk = disk_with(&files).await;
    let env = base::system::environment_on(disk.clone());
    let refused = open(&env, PartitionSettings::tiny()).await.err().expect("a newer folder").to_string();
    assert!(refused.contains("run a newer Larimar"), "{refused}");
    let refused = check_folder(&env, &mut |_, _| {}).await.unwrap_err().to_string();
    assert!(refused.contains("run a newer Larimar"), "{refused}");
    for (path, content) in &files {
        let file = disk.open(path, OpenMode::Read).await.unwrap();
        assert_eq!(file.size().await.unwrap(), content.len() as u64, "{path}");
        assert_eq!(file.read_at(0, content.len()).await.unwrap(), content, "{path}");
    }
}

#[test]
fn a_fixture_can_be_written() {
    // A life that is not closed, so that its log holds rows that no checkpoint has.
    let made = (0..20).find_map(|seed| {
        let world = sim::World::new(seed);
        let expected = world.run(|env, _| async move { varied_life(&env, 500).await })?;
        let checked = world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await })?.ok()?;
        (checked.log_change_count > 3).then(|| pack(world.disk.contents(), &expected))
    });
    let made = made.expect("a folder with rows in its logs");
    let (files, expected) = unpack(&made);
    assert!(files.contains_key("stream_manager/log") && expected.len() > 50);
    if let Ok(path) = std::env::var("LARIMAR_WRITE_FIXTURE") {
        #[allow(clippy::disallowed_methods)] // A fixture goes into the checkout, not into a data folder.
        std::fs::write(path, &made).unwrap();
    }
}
