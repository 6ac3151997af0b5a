//! The offline repair of a data folder: makes everything load and read again, and says what is lost for that.
//!
//! 1. The streams are opened, which mends what is kept twice; flipped bits are written as they were.
//! 2. The ranges are opened, which mends the partition map, and closed again.
//! 3. Each range that is damaged is made whole from what reads of it (`range`, `checkpoint`).
//! 4. The ranges are opened again. Names with blob data that does not read are removed (`data`), and it is found out what is
//!    there in place of rows that were lost.
//!
//! The same code makes the plan, on a disk in memory over the folder, and carries it out: so the plan says what will happen.
//! What always holds: nothing is guessed in silence. Whatever may be lost, or older than what was acknowledged, is listed.
//! A repair that was cut off is begun again: each step leaves a folder that loads at least as well as before.

mod checkpoint;
mod data;
mod losses;
mod range;
mod settle;

pub use losses::{FolderRepair, LossOutcome, LostKeys, RowLoss};

use crate::error::PartitionError;
use crate::key::Span;
use crate::operation::ObjectTable;
use crate::partition_map::{MapEntry, ReadMap};
use crate::partition_server::FIRST_RANGE_ID;
use crate::range_partition::RangeStreams;
use crate::settings::PartitionSettings;
use crate::{KeyRange, Partitions};
use base::{BoxFuture, Environment};
use data::{DamagedData, FindLost, remove_name};
use range::{Range, RangeRepair};
use std::sync::Arc;
use stream::{DamagedPart, StreamSettings, Streams, check_streams};

/// Repairs the folder of `env`, which nobody serves. `progress` is told what is being done, in words. For a plan, hand in a
/// disk over the folder (`base::overlay_disk`).
pub fn repair_folder<'a>(
    env: &'a Environment,
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
        let outcome = repair_streams(env, &streams, progress, &mut done).await;
        streams.close().await;
        outcome.map(|()| done)
    })
}

async fn repair_streams(
    env: &Environment,
    streams: &Arc<Streams>,
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
        let MapEntry { table, id, range: keys } = &entry;
        progress(&format!("range {id} of table {}", table.name()));
        let mut range_done = range::repair(&shared, &Range { table: *table, id: *id, keys }).await?;
        done.actions.append(&mut range_done.actions);
        done.needed_bytes += range_done.written_bytes;
        repaired.push((entry, range_done));
    }
    drop(shared);
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await?;
    let outcome = async {
        for (entry, range_done) in repaired {
            progress(&format!("range {} of table {}: what is lost", entry.id, entry.table.name()));
            settle::settle(&partitions, &entry, range_done, done).await?;
            if entry.table.has_data() {
                repair_data(&partitions, streams, &entry, done).await?;
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
    let mut entries = vec![MapEntry { table, id: FIRST_RANGE_ID, range: KeyRange::all() }];
    entries.extend(map.entries()?);
    Ok(entries)
}

/// Removes names of which blob data does not read, and the damaged extents.
async fn repair_data(
    partitions: &Partitions,
    streams: &Arc<Streams>,
    entry: &MapEntry,
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    let names = RangeStreams::new(entry.table, entry.id);
    let Some(stream) = names.data() else { return Ok(()) };
    let damaged = DamagedData::find(streams, stream).await?;
    if damaged.is_empty() {
        return Ok(());
    }
    let range = partitions.server.owner(entry.table, &entry.range.start)?;
    let mut find = FindLost::new(damaged.clone());
    range.scan(&[Span::Range(entry.range.clone())], &mut find).await?;
    if let Some(error) = find.error {
        return Err(error);
    }
    for lost in find.names {
        remove_name(partitions, &range, entry.table, &lost.key).await?;
        done.losses.push(RowLoss {
            table: entry.table,
            keys: LostKeys::PartitionName(lost.key),
            outcome: LossOutcome::Lost,
            reason: lost.reason,
        });
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
