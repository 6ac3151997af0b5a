//! Folders in which every row was overwritten or deleted several times are damaged by the seed, and repaired:
//! the plan and the repair agree, the check calls the folder whole afterwards, and every row is the newest or
//! is listed.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use crate::rows::{
    ACCOUNT, Everything, TABLE, WriteBlobRow, key, open, put, put_blob_row, value, value_with_overflow,
};
use crate::seeds::chosen_seeds;
use base::codec::Decoder;
use base::overlay_disk::OverlayDisk;
use base::{BoxFuture, Environment};
use bytes::Bytes;
use partition::key::{parse_row_key, partition_prefix};
use partition::{
    Damage, FolderRepair, LossOutcome, LostKeys, ObjectTable, PartitionError, PartitionSettings, Partitions,
    Piece, RemoveLost, RowKey, RowLoss, RowVersion, check_folder, put_pieces, repair_folder, take_pieces,
};
use sim::World;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SEED_COUNT: u64 = 40;
const NAMES: u64 = 6;
const ROWS_IN_NAME: u64 = 6;
const ROUNDS: u64 = 4;

/// Each key that was ever written with its newest value and the bytes it names; `None`: it was deleted.
type Newest = BTreeMap<(ObjectTable, Vec<u8>), Option<(RowVersion, Vec<u8>, Option<Bytes>)>>;

fn all_keys() -> impl Iterator<Item = (u64, ObjectTable, RowKey)> {
    (0..NAMES * ROWS_IN_NAME).flat_map(|at| {
        let (partition, row) = (format!("p{}", at % NAMES), format!("r{}", at / NAMES));
        let blob = |container| (at, ObjectTable::Blob, key(container, &partition, &row));
        [(at, TABLE, key(1, &partition, &row)), blob(2), blob(3)]
    })
}

/// Rows of entities, of blobs with overflows (container 2) and of blobs with data (container 3).
async fn life(env: &Environment, ends_cleanly: bool) -> Newest {
    let (streams, partitions) = open(env, PartitionSettings::tiny()).await.unwrap();
    let mut expected = Everything::new();
    let mut data = BTreeMap::new();
    for round in 0..ROUNDS {
        for (at, table, key) in all_keys() {
            let tag = round * 1000 + at;
            let gone = (at + round).is_multiple_of(5);
            let bytes = key.as_bytes().to_vec();
            if table == TABLE {
                let size = 100 + env.random.next_u64() % 900;
                put(&partitions, &mut expected, key, (!gone).then(|| value(tag, size as usize)))
                    .await
                    .unwrap();
            } else if parse_row_key(key.as_bytes()).unwrap().container_id == 2 {
                let size = env.random.next_u64() % 3 * 900;
                let value = (!gone).then(|| value_with_overflow(tag, 30, size as usize));
                put_blob_row(&partitions, &mut expected, key, value).await.unwrap();
            } else if gone {
                put_blob_row(&partitions, &mut expected, key, None).await.unwrap();
                data.remove(&bytes);
            } else {
                let content = value(tag, 500 + (tag % 7 * 900) as usize);
                let (piece, _pin) = partitions.append_data(table, &key, content.clone()).await.unwrap();
                let mut row = Vec::new();
                put_pieces(&mut row, &[piece]);
                let (version, _) =
                    partitions.execute(WriteBlobRow { key, value: Some(row.clone().into()) }).await.unwrap();
                expected.insert(bytes.clone(), (version, row));
                data.insert(bytes, content);
            }
        }
        if round == 1 {
            assert!(partitions.split(TABLE, &key(1, "p3", "")).await.unwrap());
        }
        env.clock.sleep(Duration::from_secs(1)).await;
    }
    if ends_cleanly {
        partitions.close().await;
        streams.close().await;
    } else {
        env.clock.sleep(Duration::from_millis(100)).await;
    }
    let found = |(_, table, key): (u64, ObjectTable, RowKey)| {
        let bytes = key.as_bytes().to_vec();
        let row =
            expected.get(&bytes).map(|(version, value)| (*version, value.clone(), data.get(&bytes).cloned()));
        ((table, bytes), row)
    };
    all_keys().map(found).collect()
}

/// Damages a file, as the seed says.
fn damage(world: &World) -> String {
    let random = |bound: u64| world.random.below(bound.max(1));
    let files: Vec<(String, u64)> =
        world.disk.files().into_iter().filter(|(path, size)| *size > 0 && path != "LOCK").collect();
    let extents: Vec<_> = files.iter().filter(|(path, _)| path.starts_with("extents/")).collect();
    let (path, size) = match random(4) {
        0 => files[random(files.len() as u64) as usize].clone(),
        _ => extents[random(extents.len() as u64) as usize].clone(),
    };
    let at = random(size);
    match random(8) {
        0 => world.disk.flip_bit(&path, at * 8),
        1 => world.disk.cut(&path, Some(at)),
        2 => world.disk.cut(&path, None),
        _ => {
            let mut content = world.disk.contents()[&path].clone();
            let from = (at / 512 * 512) as usize;
            let end = (from + if random(3) == 0 { 4096 } else { 512 }).min(content.len());
            content[from..end].fill(0);
            world.disk.replace(&path, content);
        }
    }
    format!("{path} of {size} bytes at {at}")
}

fn plan(world: &World) -> Result<FolderRepair, PartitionError> {
    let planned = world.run(|env, _| async move {
        let env = Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env };
        repair_folder(&env, &NobodyKnows, &mut |_| {}).await
    });
    planned.unwrap()
}

/// No service: names go as a whole.
struct NobodyKnows;

impl RemoveLost for NobodyKnows {
    fn remove<'a>(
        &'a self,
        _: &'a Arc<Partitions>,
        _: ObjectTable,
        _: &'a [RowKey],
    ) -> BoxFuture<'a, Option<Vec<RowKey>>> {
        Box::pin(async { None })
    }
}

/// What the plan says of a row.
fn outcome_of(repair: &FolderRepair, table: ObjectTable, key: &[u8]) -> Option<LossOutcome> {
    let losses = repair.losses.iter().filter(|loss| loss.table == table);
    let mut covering = losses.filter(|loss| match &loss.keys {
        LostKeys::Row(row) => row[..] == *key,
        LostKeys::PartitionName(row) => partition_prefix(row) == partition_prefix(key),
        LostKeys::Unknown(range) => range.contains(key),
    });
    covering.next().map(|loss| loss.outcome)
}

/// The bytes that a row names, wherever a repair has moved them.
async fn read_content(
    partitions: &Partitions,
    table: ObjectTable,
    key: &RowKey,
) -> Result<Option<Bytes>, PartitionError> {
    let Some((row, pin)) = partitions.get_with_data(table, key).await? else { return Ok(None) };
    let pieces = take_pieces(&mut Decoder::new(&row.value)).unwrap();
    let mut read = Vec::new();
    while (read.len() as u64) < pieces[0].size_bytes() {
        read.extend_from_slice(&pin.read(&pieces[0], read.len() as u64).await?);
    }
    Ok(Some(read.into()))
}

/// Reads everything; what is not the newest must be listed.
async fn judge(partitions: &Partitions, newest: &Newest, repair: &FolderRepair, what: &str) -> [u64; 2] {
    let mut counts = [0; 2];
    for ((table, bytes), expected) in newest {
        let key = RowKey::from_bytes(Bytes::copy_from_slice(bytes));
        let content = expected.as_ref().and_then(|(_, _, content)| content.as_ref());
        let is_right = match content {
            Some(content) => match read_content(partitions, *table, &key).await {
                Ok(found) => found.as_ref() == Some(content),
                Err(error) => panic!("{what}: {key:?}: {error}"),
            },
            None => match partitions.get(*table, &key).await {
                Ok(found) => {
                    let found = found.map(|row| (row.version, row.value.to_vec()));
                    found == expected.as_ref().map(|(version, value, _)| (*version, value.clone()))
                }
                Err(error) => panic!("{what}: {key:?}: {error}"),
            },
        };
        let listed = outcome_of(repair, *table, bytes);
        assert!(is_right || listed.is_some(), "{what}: {key:?} is wrong and not listed");
        counts[usize::from(!is_right)] += 1;
    }
    counts
}

#[test]
fn after_a_repair_the_folder_is_whole_and_what_is_lost_was_listed() {
    let mut counts = [0; 2];
    let mut repaired = 0;
    for seed in chosen_seeds(SEED_COUNT, 1) {
        let world = World::new(seed % 10);
        let newest = world.run(|env, _| async move { life(&env, seed % 2 == 0).await }).unwrap();
        let world = world.copy(seed);
        let what = format!("seed {seed}: {}", damage(&world));
        let before = world.disk.contents();
        let planned = plan(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(world.disk.contents() == before, "{what}: a plan has changed something");
        let applied = world.run(|env, _| async move { repair_folder(&env, &NobodyKnows, &mut |_| {}).await });
        let applied = applied.unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(applied.losses, planned.losses, "{what}");
        repaired += u64::from(!applied.is_empty());
        let checked = world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await });
        assert_eq!(checked.unwrap().unwrap().damages, [], "{what}: {applied:?}");
        let words = what.clone();
        let judged = world.run(|env, _| async move {
            let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            let counts = judge(&partitions, &newest, &applied, &words).await;
            // Everything takes writes again.
            let mut all = Everything::new();
            put(&partitions, &mut all, key(1, "p0", "new"), Some(value(1, 100))).await.unwrap();
            put(&partitions, &mut all, key(1, "p5", "new"), Some(value(1, 100))).await.unwrap();
            partitions.close().await;
            streams.close().await;
            counts
        });
        let judged = judged.unwrap();
        (0..2).for_each(|at| counts[at] += judged[at]);
        let again = plan(&world).unwrap();
        assert!(again.is_empty(), "{what}: once more {again:?}");
    }
    println!("{repaired} folders were repaired; {} rows are right, {} were listed", counts[0], counts[1]);
    assert!(repaired > 0 && counts[0] > 10 * counts[1]);
}

/// Every block reads, so the check had nothing to say of a row whose bytes lie behind the end of their
/// extent, and a repair left it: only a reader was told.
#[test]
fn a_row_whose_data_lies_behind_the_end_of_its_extent_is_named_and_goes() {
    for ends_cleanly in [true, false] {
        let world = World::new(1);
        let (whole, cut_off) = (key(3, "whole", "r"), key(3, "cut off", "r"));
        let rows = [whole.clone(), cut_off.clone()];
        world.run(|env, _| async move {
            let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            for key in rows {
                let content = value(1, 5000);
                let (piece, _pin) = partitions.append_data(ObjectTable::Blob, &key, content).await.unwrap();
                let mut row = Vec::new();
                put_pieces(&mut row, &[piece]);
                if key == cut_off {
                    let mut fields = Decoder::new(&row);
                    let [_, extent, offset] = [(); 3].map(|()| fields.varint("field").unwrap());
                    row.clear();
                    put_pieces(&mut row, &[Piece::for_tests(extent, offset + 1, 5000)]);
                }
                partitions.execute(WriteBlobRow { key, value: Some(row.into()) }).await.unwrap();
            }
            if ends_cleanly {
                partitions.close().await;
                streams.close().await;
            } else {
                env.clock.sleep(Duration::from_millis(100)).await;
            }
        });
        let check = || world.run(|env, _| async move { check_folder(&env, &mut |_, _| {}).await });
        let found = check().unwrap().unwrap().damages;
        let [Damage { problem, rows: Some((ObjectTable::Blob, keys)), .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(problem.contains("which ends at byte"), "{problem}");
        let key = key(3, "cut off", "r");
        assert!(keys.contains(key.as_bytes()) && !keys.contains(whole.as_bytes()));
        let planned = plan(&world).unwrap();
        let applied = world.run(|env, _| async move { repair_folder(&env, &NobodyKnows, &mut |_| {}).await });
        let applied = applied.unwrap().unwrap();
        assert_eq!((&applied.losses, applied.losses.len()), (&planned.losses, 1));
        assert_eq!(outcome_of(&applied, ObjectTable::Blob, key.as_bytes()), Some(LossOutcome::Lost));
        assert_eq!(applied.replaced_rows.len(), 1);
        assert_eq!(applied.replaced_rows[0].1.key, key);
        assert_eq!(check().unwrap().unwrap().damages, []);
        let whole = whole.clone();
        let read = world.run(|env, _| async move {
            let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            read_content(&partitions, ObjectTable::Blob, &whole).await
        });
        assert_eq!(read, Some(Ok(Some(value(1, 5000)))));
    }
}

/// A plan listed the rows of a deleted container, which went in the background before the repair came to
/// them: it had lost more than was planned, or less.
#[test]
fn rows_of_deleted_containers_are_no_loss() {
    let world = World::new(1);
    let row = |container, at: u64| key(container, "p", &format!("r{at:03}"));
    let extents = world.run(|env, _| async move {
        let (streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let mut all = Everything::new();
        for at in 0..200 {
            put(&partitions, &mut all, row(if at % 100 == 0 { 4 } else { 1 }, at), Some(value(at, 300)))
                .await
                .unwrap();
        }
        // Now the rows are in checkpoints, and the next one is in the log.
        env.clock.sleep(Duration::from_secs(1)).await;
        partitions.retire_container(TABLE, ACCOUNT, 4).await.unwrap();
        put(&partitions, &mut all, row(1, 0), Some(value(0, 300))).await.unwrap();
        let of_table = streams.list(&format!("{}/", TABLE.name()));
        assert!(!of_table.is_empty());
        let listed = of_table.iter().flat_map(|stream| streams.stat(stream).unwrap().extents);
        let extents: Vec<_> = listed.map(|(extent, _)| format!("extents/{extent}")).collect();
        partitions.close().await;
        streams.close().await;
        extents
    });
    let mut listed_count = 0;
    for path in extents.unwrap() {
        let world = world.copy(2);
        let Some(content) = world.disk.contents().get(&path).cloned() else { continue };
        world.disk.replace(&path, vec![0; content.len()]);
        let planned = plan(&world).unwrap();
        let container_of = |loss: &RowLoss| match &loss.keys {
            LostKeys::Row(key) => parse_row_key(key).map(|key| key.container_id),
            LostKeys::PartitionName(_) | LostKeys::Unknown(_) => None,
        };
        let listed: Vec<u64> = planned.losses.iter().filter_map(container_of).collect();
        assert!(!listed.contains(&4), "{path}: {:?}", planned.losses);
        listed_count += listed.len();
    }
    assert!(listed_count > 0, "no damage put a row in doubt");
}
