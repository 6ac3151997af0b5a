//! Finds out what is there in place of rows that were lost, once their range loads again.
//!
//! Rows of deleted containers are no loss: they are never read. And they go in the background while this
//! looks, so that a plan which listed them would be another one each time.

use super::checkpoint::{LostRowKeys, LostRows};
use super::losses::{FolderRepair, LossOutcome, LostKeys, RowLoss};
use super::range::{LostChanges, RangeRepair};
use crate::Partitions;
use crate::error::PartitionError;
use crate::key::{KeyRange, RowKey, Span};
use crate::map::dead_filter::AliveRows;
use crate::map::partition_map::MapEntry;
use crate::operation::{ObjectTable, RowRef, RowVersion, Scan, ScanEnd, Visit};
use crate::range_partition::RangePartition;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Lists what the repair of this range has lost.
pub(super) async fn settle(
    partitions: &Partitions,
    entry: &MapEntry,
    repaired: RangeRepair,
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    let table = entry.table;
    if table == ObjectTable::PartitionMap {
        // Its rows have no owner: ranges that it lacks have no keys, which the open would have said.
        return Ok(());
    }
    let range = partitions.server.owner(table, &entry.range.start)?;
    for LostRows { keys, version, reason } in repaired.lost_rows {
        match keys {
            LostRowKeys::Row(key) => {
                let mut dead = range.dead_filter();
                dead.read_on(&key).await?;
                if dead.drops(&key) {
                    continue;
                }
                let row = partitions.get_any(table, &key).await?;
                let outcome = match row {
                    Some(found) if found >= version => continue,
                    Some(_) => LossOutcome::Older,
                    None => LossOutcome::Lost,
                };
                done.losses.push(RowLoss { table, keys: LostKeys::Row(key), outcome, reason });
            }
            LostRowKeys::Between(keys) => {
                let keys = keys.intersect(&entry.range);
                if keys.is_empty() {
                    continue;
                }
                list(partitions, &range, &keys, Doubt::Before(version), &reason, done).await?;
                let outcome = LossOutcome::Lost;
                done.losses.push(RowLoss { table, keys: LostKeys::Unknown(keys), outcome, reason });
            }
        }
    }
    if let Some(LostChanges { certain, reason }) = repaired.lost_changes {
        list(partitions, &range, &entry.range, Doubt::AllBut(certain), &reason, done).await?;
        let keys = LostKeys::Unknown(entry.range.clone());
        done.losses.push(RowLoss { table, keys, outcome: LossOutcome::Lost, reason });
    }
    if let Some(reason) = repaired.is_uncertain {
        list(partitions, &range, &entry.range, Doubt::AllBut(BTreeSet::new()), &reason, done).await?;
    }
    Ok(())
}

/// Which rows may be older than what was acknowledged.
enum Doubt {
    /// Those with a lower version.
    Before(RowVersion),
    /// All but these.
    AllBut(BTreeSet<Bytes>),
}

impl Doubt {
    fn covers(&self, row: RowRef<'_>) -> bool {
        match self {
            Doubt::Before(version) => row.version < *version,
            Doubt::AllBut(certain) => !certain.contains(row.key),
        }
    }
}

/// Collects the keys of rows in doubt.
struct TakeDoubted {
    doubt: Doubt,
    keys: Vec<Bytes>,
}

impl Scan for TakeDoubted {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.doubt.covers(row) {
            self.keys.push(Bytes::copy_from_slice(row.key));
        }
        Visit::Continue
    }
}

async fn list(
    partitions: &Partitions,
    range: &RangePartition,
    keys: &KeyRange,
    doubt: Doubt,
    reason: &str,
    done: &mut FolderRepair,
) -> Result<(), PartitionError> {
    let table = range.table();
    let taken = TakeDoubted { doubt, keys: Vec::new() };
    let mut alive = AliveRows::new(range.dead_filter(), keys.clone(), taken);
    while let Some(mut rest) = alive.next_part().await? {
        while let ScanEnd::More(next) =
            partitions.server.scan(table, vec![Span::Range(rest.clone())], &mut alive).await?
        {
            rest.start = next;
        }
    }
    let taken = alive.into_scan();
    let outcome = LossOutcome::Uncertain;
    let loss = |key| RowLoss { table, keys: LostKeys::Row(key), outcome, reason: reason.to_owned() };
    done.losses.extend(taken.keys.into_iter().map(loss));
    Ok(())
}

impl Partitions {
    /// The version of the row at `key`, without its overflow.
    async fn get_any(&self, table: ObjectTable, key: &Bytes) -> Result<Option<RowVersion>, PartitionError> {
        let row = self.get(table, &RowKey::from_bytes(key.clone())).await?;
        Ok(row.map(|row| row.version))
    }
}
