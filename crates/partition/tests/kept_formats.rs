//! Kept data folders: what a former version of this program wrote is read by this one, row by row. A folder here is never
//! changed and never made anew; a format that changes gets another one beside it.
//!
//! ```text
//! fixture = LZ4 block with its size in front: entry*
//! entry   = varint n, n bytes path, varint m, m bytes content
//! ```
//!
//! The entry `expected` holds what must be found: for each row its key, version and value. `LARIMAR_WRITE_FIXTURE` with
//! the name of a file writes a new fixture there.

mod rows;

use base::codec::{Decoder, Encode};
use base::memory_disk::MemoryDisk;
use base::{Disk, OpenMode};
use bytes::Bytes;
use partition::{PartitionSettings, Partitions, RowVersion, check_folder};
use rows::{Everything, TABLE, open, read_everything, varied_life};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::{StreamSettings, Streams};

const FORMAT_1: &[u8] = include_bytes!("fixtures/format-1.lz4");
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
    let (files, mut expected) = unpack(FORMAT_1);
    assert!(expected.len() > 50 && files.contains_key("FORMAT"));
    let env = base::system::environment_on(disk_with(&files).await);
    let checked = check_folder(&env, &mut |_, _| {}).await.unwrap();
    assert_eq!(checked.damages, []);
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
    let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
    assert!(read_everything(&partitions).await.unwrap() == expected);
}

#[tokio::test]
async fn a_folder_of_a_newer_format_is_refused_and_stays_as_it_is() {
    let (mut files, _) = unpack(FORMAT_1);
    let newer = format!("larimar data folder, format {}\n", stream::FORMAT_VERSION + 1);
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
