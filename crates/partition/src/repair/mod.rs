//! The offline repair of a data folder: makes everything load and read again, and says what is lost for that.
//!
//! 1. The streams are opened, which mends what is kept twice; flipped bits are written as they were.
//! 2. The ranges are opened, which mends the partition map, and closed again.
//! 3. Each range that is damaged is made whole from what reads of it (`range`, `checkpoint`).
//! 4. The ranges are opened again. Rows with blob data that does not read are removed (`data`), and it is
//!    found out what is there in place of rows that were lost.
//!
//! The same code makes the plan, on a disk in memory over the folder, and carries it out: so the plan says
//! what will happen. What always holds: nothing is guessed in silence. Whatever may be lost, or older than
//! what was acknowledged, is listed. A repair that was cut off is begun again: each step leaves a folder that
//! loads at least as well as before.

mod checkpoint;
mod data;
mod losses;
mod own_root;
mod range;
mod settle;

pub use losses::{FolderRepair, LossOutcome, LostKeys, RowLoss};

use crate::error::PartitionError;
use crate::key::{RowKey, Span};
use crate::map::partition_map::{MapEntry, ReadMap};
use crate::operation::{ObjectTable, Row};
use crate::partition_server::FIRST_RANGE_ID;
use crate::range_partition::{RangePartition, RangeStreams};
use crate::settings::PartitionSettings;
use crate::{KeyRange, Partitions};
use base::{BoxFuture, Environment};
use data::{DamagedData, FindLost, LostName, keys_of_name, remove_name, rows_of};
use range::{Range, RangeRepair};
use std::sync::Arc;
use stream::{DamagedPart, StreamSettings, Streams, check_streams};

/// A service that knows how to remove of one name what can't be read any more, and to keep the rest.
pub trait RemoveLost: Send + Sync {
    /// `rows` are the keys of all rows of one name that name data which is gone. Returns the keys of those
    /// rows by which what was removed is called; `None`: the name is to go as a whole.
    fn remove<'a>(
        &'a self,
        partitions: &'a Arc<Partitions>,
        table: ObjectTable,
        rows: &'a [RowKey],
    ) -> BoxFuture<'a, Option<Vec<RowKey>>>;
}

/// Repairs the folder of `env`, which no program serves. `remove_lost` decides on names of which some data is
/// gone. `progress` gets the current step, in words. For a plan, hand in a disk over the folder
/// (`base::overlay_disk`).
pub fn repair_folder<'a>(
    env: &'a Environment,
    remove_lost: &'a dyn RemoveLost,
    progress: &'a mut (dyn FnMut(&str) + Send),
) -> BoxFuture<'a, Result<FolderRepair, PartitionError>> {
    Box::pin(async move {
        let mut done = FolderRepair::default();
        progress("reading all extents");
        let found = check_streams(env, &mut |_, _| {}).await?;
        if found.is_fresh {
            return Ok(done);
        }
        for damage in found.damages.iter().filter(|damage| damage.part == DamagedPart::Mended) {
            done.actions
                .push(format!("{}: it is written anew from where it is kept a second time", damage.place));
        }
        let settings = StreamSettings { scrub_bytes_per_second: 0, ..StreamSettings::default() };
        let streams = Streams::open(env, settings).await?;
        let outcome = repair_streams(env, &streams, remove_lost, progress, &mut done).await;
        streams.close().await;
        outcome.map(|()| done)
    })
}

async fn repair_streams(
    env: &Environment,
    streams: &Arc<Streams>,
    remove_lost: &dyn RemoveLost,
    progress: &mut (dyn FnMut(&str) + Send),
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    for (extent, offset) in streams.mend_flipped_bits().await? {
        done.actions.push(format!("extent {extent}, block at {offset}: a flipped bit is written as it was"));
    }
    let entries = map_entries(env, streams).await?;
    let shared = crate::check::shared(env, streams.clone())?;
    let mut repaired: Vec<(MapEntry, RangeRepair)> = Vec::new();
    for entry in entries {
        let MapEntry { table, id, range: keys, owner: _ } = &entry;
        progress(&format!("range {id} of table {}", table.name()));
        let mut range_done = range::repair(&shared, &Range { table: *table, id: *id, keys }).await?;
        done.actions.append(&mut range_done.actions);
        done.needed_bytes += range_done.written_bytes;
        repaired.push((entry, range_done));
    }
    drop(shared);
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await?;
    let partitions = Arc::new(partitions);
    let outcome = async {
        for (entry, range_done) in repaired {
            progress(&format!("range {} of table {}: what is lost", entry.id, entry.table.name()));
            settle::settle(&partitions, &entry, range_done, done).await?;
            if entry.table.has_data() {
                repair_data(&partitions, streams, remove_lost, &entry, done).await?;
            }
        }
        Ok(())
    };
    let outcome = outcome.await;
    partitions.close().await;
    outcome
}

/// All ranges, the partition map's own first.
async fn map_entries(env: &Environment, streams: &Arc<Streams>) -> Result<Vec<MapEntry>, PartitionError> {
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await?;
    let mut map = ReadMap::default();
    let spans = vec![Span::Range(ReadMap::range())];
    let read = partitions.server.scan(ObjectTable::PartitionMap, spans, &mut map).await;
    partitions.close().await;
    read?;
    let table = ObjectTable::PartitionMap;
    let mut entries = vec![MapEntry { table, id: FIRST_RANGE_ID, range: KeyRange::all(), owner: None }];
    entries.extend(map.entries()?);
    Ok(entries)
}

/// Removes what needs blob data that does not read, and the damaged extents.
async fn repair_data(
    partitions: &Arc<Partitions>,
    streams: &Arc<Streams>,
    remove_lost: &dyn RemoveLost,
    entry: &MapEntry,
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    let names = RangeStreams::new(entry.table, entry.id);
    let Some(stream) = names.data() else { return Ok(()) };
    let damaged = Arc::new(DamagedData::find(streams, stream).await?);
    let range = partitions.server.owner(entry.table, &entry.range.start)?;
    for lost in FindLost::among(&range, &entry.range, &damaged).await? {
        remove_lost_name(partitions, &range, remove_lost, entry.table, &damaged, lost, done).await?;
    }
    let place = format!("range {} of table {}", entry.id, entry.table.name());
    // Nothing names what may have been behind them any more.
    if streams.accept_ends(stream).await? > 0 {
        done.actions.push(format!("{place}: its blob data ends where it does"));
    }
    let left = damaged.extents();
    if !left.is_empty() {
        done.actions.push(format!("{place}: {} damaged extents of blob data are left", left.len()));
        done.needed_bytes += range.empty_extents(left).await?;
    }
    Ok(())
}

/// Removes what of a name can't be read any more, or all of it.
async fn remove_lost_name(
    partitions: &Arc<Partitions>,
    range: &RangePartition,
    remove_lost: &dyn RemoveLost,
    table: ObjectTable,
    damaged: &Arc<DamagedData>,
    LostName { rows, reason }: LostName,
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    let Some(first) = rows.first() else { return Ok(()) };
    let keys = keys_of_name(first)?;
    let before = rows_of(range, &keys).await?;
    let removed = remove_lost.remove(partitions, table, &rows).await;
    // Whoever was asked may have left what only a sweep would remove.
    let is_readable = FindLost::among(range, &keys, damaged).await?.is_empty();
    let outcome = LossOutcome::Lost;
    match removed.filter(|_| is_readable) {
        Some(removed) => {
            let keys = removed.into_iter().map(|key| LostKeys::Row(key.as_bytes().clone()));
            done.losses.extend(keys.map(|keys| RowLoss { table, keys, outcome, reason: reason.clone() }));
        }
        None => {
            remove_name(partitions, range, table, &keys).await?;
            let keys = LostKeys::PartitionName(first.as_bytes().clone());
            done.losses.push(RowLoss { table, keys, outcome, reason });
        }
    }
    let after = rows_of(range, &keys).await?;
    let is_replaced = |row: &Row| after.get(&row.key).is_none_or(|now| now.value != row.value);
    let replaced = before.into_values().filter(is_replaced);
    done.replaced_rows.extend(replaced.map(|row| (table, row)));
    Ok(())
}
