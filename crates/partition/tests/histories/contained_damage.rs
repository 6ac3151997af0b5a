//! Damage stops what it touches and nothing else. Every row is overwritten or deleted several times, with
//! flushes and merges between, so that an older value of each lies somewhere; then one bit is flipped, or one
//! sector zeroed, in any extent. The start succeeds; each row is the newest or its read fails; a row that was
//! deleted does not come back; ranges none of whose streams lists the extent are as they were and take
//! writes; and nothing that is damaged is changed.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use crate::rows::{self, Everything, TABLE, key, open, put, put_blob_row, value, value_with_overflow};
use crate::seeds::chosen_seeds;
use base::Environment;
use partition::{KeyRange, ObjectTable, PartitionError, PartitionSettings, Partitions, RowKey, RowVersion};
use sim::World;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stream::{ExtentId, StreamName, Streams};

const SEED_COUNT: u64 = 240;
/// Damages of one folder, one after the other, each taken back.
const DAMAGES: u64 = 12;
const SECTOR_SIZE: usize = 512;
const NAMES: u64 = 6;
const ROWS_IN_NAME: u64 = 8;
const ROUNDS: u64 = 5;
const TABLES: [ObjectTable; 2] = [TABLE, ObjectTable::Blob];

/// Each key that was ever written, with its newest version and value; `None`: it was deleted.
type Newest = BTreeMap<ObjectTable, BTreeMap<RowKey, Option<(RowVersion, Vec<u8>)>>>;

fn all_keys() -> impl Iterator<Item = (ObjectTable, RowKey)> {
    let of = |at: u64| (format!("p{}", at % NAMES), format!("r{}", at / NAMES));
    (0..NAMES * ROWS_IN_NAME).flat_map(move |at| {
        let (partition, row) = of(at);
        [(TABLE, key(1, &partition, &row)), (ObjectTable::Blob, key(2, &partition, &row))]
    })
}

/// Overwrites every row in each of some rounds; in every round others are deleted. Ranges are split and
/// merged meanwhile.
async fn life_of_overwrites(env: &Environment, ends_cleanly: bool) -> Newest {
    let (streams, partitions) = open(env, PartitionSettings::tiny()).await.unwrap();
    let mut expected = Everything::new();
    for round in 0..ROUNDS {
        for (at, (table, key)) in all_keys().enumerate() {
            let tag = round * 1000 + at as u64;
            let gone = (at as u64 + round).is_multiple_of(4);
            if table == TABLE {
                let size = 100 + env.random.next_u64() % 900;
                let value = (!gone).then(|| value(tag, size as usize));
                put(&partitions, &mut expected, key, value).await.unwrap();
            } else {
                let size = env.random.next_u64() % 3 * 900;
                let value = (!gone).then(|| value_with_overflow(tag, 30, size as usize));
                put_blob_row(&partitions, &mut expected, key, value).await.unwrap();
            }
        }
        match round {
            0 | 1 => {
                assert!(partitions.split(TABLE, &key(1, &format!("p{}", 2 + 2 * round), "")).await.unwrap())
            }
            2 => assert!(partitions.split(ObjectTable::Blob, &key(2, "p3", "")).await.unwrap()),
            3 => assert!(partitions.merge(TABLE, &key(1, "p0", "")).await.unwrap()),
            _ => {}
        }
        env.clock.sleep(Duration::from_secs(1)).await;
    }
    if ends_cleanly {
        partitions.close().await;
        streams.close().await;
    }
    let mut newest = Newest::new();
    for (table, key) in all_keys() {
        let row = expected.get(&key.as_bytes()[..]).cloned();
        newest.entry(table).or_default().insert(key, row);
    }
    newest
}

/// What one look at a folder found.
#[derive(Debug, Default)]
struct Seen {
    /// Ranges of which something did not read, by table.
    failing: BTreeMap<ObjectTable, u64>,
    failed_reads: u64,
    damaged_ranges: u64,
}

/// The streams that list an extent, by the folder of their range: table and id.
fn listing(streams: &Streams, extent: &str) -> BTreeSet<String> {
    let lists = |name: &StreamName| {
        let stat = streams.stat(name).unwrap();
        stat.extents.iter().any(|(found, _)| found.to_string() == extent)
    };
    let all = streams.list("").into_iter().filter(lists);
    all.map(|name| name.as_str().split('/').take(2).collect::<Vec<_>>().join("/")).collect()
}

/// Every stream with its extents.
fn all_streams(streams: &Streams) -> BTreeMap<String, Vec<(ExtentId, u64)>> {
    let names = streams.list("").into_iter();
    names.map(|name| (name.as_str().to_owned(), streams.stat(&name).unwrap().extents)).collect()
}

/// Compares what reads with what must be there; what does not read is counted.
async fn look(partitions: &Partitions, newest: &Newest, what: &str) -> Seen {
    let mut seen = Seen { damaged_ranges: partitions.statistics().damaged_ranges, ..Seen::default() };
    for table in TABLES {
        let mut fails_scans = false;
        for range in partitions.ranges(table) {
            let mut fails = false;
            let mut note = |error: &PartitionError| {
                assert!(matches!(error, PartitionError::Storage(_)), "{what}: {error}");
                fails = true;
                seen.failed_reads += 1;
            };
            let own = |key: &RowKey| range.contains(key.as_bytes());
            for (key, expected) in newest[&table].iter().filter(|(key, _)| own(key)) {
                match partitions.get(table, key).await {
                    Ok(row) => {
                        let row = row.map(|row| (row.version, row.value.to_vec()));
                        assert!(row == *expected, "{what}: a get of {key:?} is wrong");
                    }
                    Err(error) => note(&error),
                }
            }
            match rows::scan_range(partitions, table, range.clone()).await {
                Ok(rows) => {
                    let there = newest[&table].iter().filter(|(key, _)| own(key));
                    let there: Everything = there
                        .filter_map(|(key, row)| Some((key.as_bytes().to_vec(), row.clone()?)))
                        .collect();
                    assert!(rows == there, "{what}: a scan of {range:?} is wrong");
                }
                Err(error) => {
                    fails_scans = true;
                    note(&error);
                }
            }
            *seen.failing.entry(table).or_default() += u64::from(fails);
        }
        // A scan that crosses what does not read fails there; it never goes past.
        let whole = rows::scan_range(partitions, table, KeyRange::all()).await;
        assert_eq!(whole.is_err(), fails_scans, "{what}: a scan of all of {table:?}");
    }
    seen
}

/// Writes a row of each name anew. Ranges that are whole must take them.
async fn write(partitions: &Partitions, newest: &mut Newest, tag: u64) -> u64 {
    let mut refused = 0;
    for (at, (table, key)) in all_keys().enumerate().step_by(5) {
        let mut written = Everything::new();
        let outcome = match table {
            TABLE => put(partitions, &mut written, key.clone(), Some(value(tag + at as u64, 300))).await,
            _ => {
                let write =
                    rows::WriteBlobRow { key: key.clone(), value: Some(value_with_overflow(tag, 30, 600)) };
                let value = write.value.clone().unwrap().to_vec();
                partitions.execute(write).await.map(|(version, _)| {
                    written.insert(key.as_bytes().to_vec(), (version, value));
                })
            }
        };
        match outcome {
            Ok(()) => {
                let row = written.remove(&key.as_bytes()[..]);
                newest.get_mut(&table).unwrap().insert(key, row);
            }
            Err(PartitionError::Storage(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

#[test]
fn damage_of_an_extent_stops_only_what_lies_in_it() {
    let (mut harmless, mut in_rows, mut whole_ranges, mut refused_writes) = (0, 0, 0, 0);
    for seed in chosen_seeds(SEED_COUNT, DAMAGES) {
        let world = World::new(seed);
        let ends_cleanly = seed % 4 != 3;
        let newest = world.run(|env, _| async move { life_of_overwrites(&env, ends_cleanly).await }).unwrap();
        for damage in 0..DAMAGES {
            // A copy of the world for each: opening changes the folder.
            let world = world.copy(seed * 1000 + damage);
            let extents: Vec<_> = (world.disk.files().into_iter())
                .filter(|(path, size)| *size > 0 && path.starts_with("extents/"))
                .collect();
            let (path, size) = &extents[world.random.below(extents.len() as u64) as usize];
            let what = if damage % 3 == 2 {
                let sector = world.random.below(size.div_ceil(SECTOR_SIZE as u64)) as usize;
                let mut bytes = world.disk.contents()[path].clone();
                bytes.iter_mut().skip(sector * SECTOR_SIZE).take(SECTOR_SIZE).for_each(|byte| *byte = 0);
                world.disk.replace(path, bytes);
                format!("seed {seed}, damage {damage}: sector {sector} of {path} is zeroed")
            } else {
                let bit = world.random.below(size * 8);
                world.disk.garble(path, bit / 8);
                format!("seed {seed}, damage {damage}: bit {bit} of {path} is flipped")
            };
            let extent = path.trim_start_matches("extents/").to_owned();
            let (what, extent) = (&what, &extent);
            let mut newest = newest.clone();
            let (seen, refused, newest_now) = world
                .run(|env, _| async move {
                    let streams = Streams::open(&env, stream::StreamSettings::tiny()).await.unwrap();
                    let (listing, before) = (listing(&streams, extent), all_streams(&streams));
                    let opened = Partitions::open(&env, streams.clone(), PartitionSettings::tiny()).await;
                    let partitions = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let seen = look(&partitions, &newest, what).await;
                    for (table, failing) in &seen.failing {
                        let folder = format!("{}/", table.name());
                        let touched = listing.iter().filter(|name| name.starts_with(&folder)).count() as u64;
                        assert!(*failing <= touched, "{what}: {failing} ranges fail, {touched} are touched");
                    }
                    let refused = write(&partitions, &mut newest, 50_000 + damage).await;
                    assert!(refused == 0 || seen.failed_reads > 0, "{what}: whole ranges refuse writes");
                    env.clock.sleep(Duration::from_secs(120)).await;
                    partitions.balance_now().await.unwrap();
                    if seen.damaged_ranges > 0 {
                        // Of a range that does not load nothing has changed.
                        let after = all_streams(&streams);
                        let same = listing.iter().filter(|folder| {
                            let of = |(name, _): &(&String, _)| name.starts_with(&format!("{folder}/"));
                            before.iter().filter(of).eq(after.iter().filter(of))
                        });
                        assert!(same.count() as u64 >= seen.damaged_ranges, "{what}: {before:?}, {after:?}");
                    }
                    partitions.close().await;
                    streams.close().await;
                    (seen, refused, newest)
                })
                .unwrap();
            // What was written meanwhile is there after another start, and nothing else has failed.
            let again = world
                .run(|env, _| async move {
                    let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
                    look(&partitions, &newest_now, what).await
                })
                .unwrap();
            assert_eq!(again.damaged_ranges, seen.damaged_ranges, "{what}");
            match (seen.damaged_ranges, seen.failed_reads) {
                (0, 0) => harmless += 1,
                (0, _) => in_rows += 1,
                _ => whole_ranges += 1,
            }
            refused_writes += refused;
        }
    }
    println!(
        "{harmless} damages stopped nothing, {in_rows} some rows, {whole_ranges} a range; {refused_writes} writes refused"
    );
    assert!(harmless > 0 && in_rows > 0 && whole_ranges > 0 && refused_writes > 0, "all kinds must come");
}

/// The start was refused for all tables because one record of one range's log did not read.
#[test]
fn of_two_ranges_of_a_table_one_serves_while_the_log_of_the_other_is_damaged() {
    let world = World::new(21);
    let at = |name: &str| key(1, name, "r");
    let never = PartitionSettings { compaction_count_min: 100, ..PartitionSettings::tiny() };
    let settings = never.clone();
    let log = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, settings).await.unwrap();
        let mut rows = Everything::new();
        for name in ["a", "z"] {
            put(&partitions, &mut rows, at(name), Some(value(1, 100))).await.unwrap();
        }
        assert!(partitions.split(TABLE, &at("m")).await.unwrap());
        env.clock.sleep(Duration::from_secs(40)).await;
        // Rows of a container that is deleted, in the range that is damaged in a moment, in its log only.
        put(&partitions, &mut rows, key(0, "a", "dead"), Some(value(2, 100))).await.unwrap();
        put(&partitions, &mut rows, at("a"), Some(value(3, 100))).await.unwrap();
        put(&partitions, &mut rows, at("z"), Some(value(4, 100))).await.unwrap();
        partitions.retire_container(TABLE, rows::ACCOUNT, 0).await.unwrap();
        let log = streams.list("entity/").into_iter().find(|name| name.as_str().ends_with("/log")).unwrap();
        let extents = streams.stat(&log).unwrap().extents;
        partitions.close().await;
        streams.close().await;
        (log.as_str().to_owned(), extents)
    });
    let (log, extents) = log.unwrap();
    let (extent, size_bytes) = extents.last().unwrap();
    // A start brings what the journal still has to the extents, whatever is there.
    world.run(|env, _| async move {
        Streams::open(&env, stream::StreamSettings::tiny()).await.unwrap().close().await;
    });
    // In the payload of its last group.
    world.disk.garble(&format!("extents/{extent}"), size_bytes - 20);
    let (before, disk) = (world.disk.contents(), world.disk.clone());
    world
        .run(|env, _| async move {
            let (streams, partitions) = open(&env, never).await.unwrap();
            assert_eq!(partitions.statistics().damaged_ranges, 1);
            assert_eq!(partitions.ranges(TABLE).len(), 2, "a damaged range is a range");
            let streams_before = all_streams(&streams);
            let damaged = |outcome: Result<(), PartitionError>, what: &str| match outcome {
                Err(PartitionError::Storage(told)) => assert!(told.contains(&log), "{what}: {told}"),
                other => panic!("{what}: {other:?}"),
            };
            // Neither the older value nor no row, whether or not the part that reads holds the key.
            for name in ["a", "b"] {
                damaged(partitions.get(TABLE, &at(name)).await.map(drop), "get");
                damaged(partitions.get_head(TABLE, &at(name)).await.map(drop), "head");
                damaged(partitions.moment(TABLE, &at(name)).map(drop), "moment");
                damaged(partitions.now(TABLE, &at(name)).map(drop), "now");
                let mut none = Everything::new();
                damaged(put(&partitions, &mut none, at(name), Some(value(9, 9))).await, "put");
                damaged(put(&partitions, &mut none, at(name), None).await, "delete");
            }
            damaged(rows::scan_range(&partitions, TABLE, KeyRange::all()).await.map(drop), "scan");
            damaged(partitions.split(TABLE, &at("c")).await.map(drop), "split");
            damaged(partitions.merge(TABLE, &at("a")).await.map(drop), "merge of ranges");
            let mut rows =
                rows::scan_range(&partitions, TABLE, partitions.ranges(TABLE)[1].clone()).await.unwrap();
            assert_eq!(rows.values().map(|(_, value)| value.clone()).collect::<Vec<_>>(), [value(4, 100)]);
            // What nobody waits for goes past it, and tells.
            let mut passed_over = Vec::new();
            let note = |error: PartitionError| passed_over.push(error.to_string());
            let all = KeyRange::all();
            let (shown, _) =
                partitions.scan_past_damage(TABLE, all, rows::Collect::default(), note).await.unwrap();
            assert_eq!(shown.rows, rows);
            assert!(passed_over.len() == 1 && passed_over[0].contains(&log), "{passed_over:?}");
            let found = partitions.next_container(TABLE, None).await;
            assert_eq!(found, Ok(Some((rows::ACCOUNT.to_owned(), 1))));
            let behind = partitions.next_container(TABLE, Some((rows::ACCOUNT, 1))).await;
            assert_eq!(behind, Ok(None), "a range that lies before does not count");
            for round in 0..200 {
                put(&partitions, &mut rows, at("z"), Some(value(round, 1000))).await.unwrap();
            }
            assert!(partitions.split(TABLE, &at("x")).await.unwrap(), "others are split");
            // Long enough for a mark to go, if nothing keeps it.
            env.clock.sleep(Duration::from_secs(300)).await;
            assert_eq!(partitions.retired_container_count(), 1, "the mark of a container in a damaged range");
            assert!(partitions.merge(TABLE, &at("m")).await.unwrap(), "and merged");
            let now =
                rows::scan_range(&partitions, TABLE, partitions.ranges(TABLE)[1].clone()).await.unwrap();
            assert_eq!(now, rows);
            let folder = log.trim_end_matches("log").to_owned();
            let of = |all: BTreeMap<String, Vec<(ExtentId, u64)>>| -> Vec<_> {
                all.into_iter().filter(|(name, _)| name.starts_with(&folder)).collect()
            };
            let extents_of_damaged = of(streams_before);
            assert_eq!(extents_of_damaged, of(all_streams(&streams)));
            for (extent, _) in extents_of_damaged.iter().flat_map(|(_, extents)| extents) {
                let path = format!("extents/{extent}");
                assert!(before.get(&path) == disk.contents().get(&path), "{path} was changed");
            }
            partitions.close().await;
        })
        .unwrap();
}
