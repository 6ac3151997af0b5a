//! What a decision needs from checkpoints, fetched before the serial section; and how it is brought up to
//! date in it.
//!
//! What always holds: the newest change that any checkpoint of the tree knows is found, or the fetch fails.

use crate::bloom::key_set::KeySet;
use crate::checkpoint::{Aside, Caching, HashedKey, OverflowReads};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::memory::memory_table::Found;
use crate::operation::{Read, Row, RowPart, RowVersion};
use crate::range_partition::reader::{
    WALK_YIELD_ROW_COUNT, find_in_checkpoint, find_in_checkpoints, find_in_memory, to_row,
};
use crate::settings::PartitionSettings;
use crate::tree::Tree;
use crate::tree::merging_iterator::{MergingIterator, merge_over};
use bytes::Bytes;
use std::collections::BTreeMap;

const NEWEST: RowVersion = RowVersion(u64::MAX);

/// What checkpoints hold for one read.
pub(super) enum Fetched {
    /// A point: the newest change that a checkpoint knows.
    Point(Option<Found>),
    /// A range: its first rows by key, complete up to `end` (exclusive; `None`: all).
    Range { changes: BTreeMap<Bytes, Found>, end: Option<Bytes> },
}

/// Bytes of rows that may still be fetched for an operation.
struct Room {
    left: u64,
    size_bytes_max: u64,
}

impl Room {
    fn has(&self, size_bytes: usize) -> bool {
        size_bytes as u64 <= self.left
    }

    fn take_for(&mut self, key: HashedKey<'_>, found: Option<&Found>) -> Result<(), PartitionError> {
        let value = found.and_then(|found| found.value.as_ref());
        self.take(value.map_or(0, |value| key.bytes.len() + value.len()))
    }

    fn take(&mut self, size_bytes: usize) -> Result<(), PartitionError> {
        let size_bytes_max = self.size_bytes_max;
        let left = self.left.checked_sub(size_bytes as u64);
        self.left = left.ok_or(PartitionError::TooMuchToRead { size_bytes_max })?;
        Ok(())
    }
}

/// Asks the checkpoints for what the reads need and memory does not have.
pub(super) async fn fetch(
    tree: &Tree,
    reads: &[Read],
    spare: usize,
    settings: &PartitionSettings,
    aside: &mut Aside,
) -> Result<Vec<Fetched>, PartitionError> {
    let size_bytes_max = settings.operation_read_size_bytes_max;
    let mut room = Room { left: size_bytes_max, size_bytes_max };
    let mut fetched = Vec::with_capacity(reads.len());
    for some in reads.chunks(KeySet::COUNT_MAX) {
        let mut together = match some.len() >= settings.points_together_min {
            // In a box: else each request would have room for it.
            true => {
                Box::pin(look_up_together(tree, some, settings.points_together_min, &mut room, aside)).await?
            }
            false => None,
        };
        for (at, read) in some.iter().enumerate() {
            fetched.push(match read {
                Read::Point(key) | Read::Head(key) => {
                    let (key, part) = (HashedKey::new(key.as_bytes()), part_of(read));
                    Fetched::Point(match &mut together {
                        Some(found) => found[at].take(),
                        None if find_in_memory(tree, key, NEWEST).is_some() => None,
                        None => {
                            let found = find_in_checkpoints(tree, key, part, Some(aside)).await?;
                            room.take_for(key, found.as_ref())?;
                            found
                        }
                    })
                }
                // In a box: else each request would have room for it.
                Read::Range { range, limit } => {
                    Box::pin(fetch_range(tree, range, *limit, spare, &mut room)).await?
                }
            });
        }
    }
    Ok(fetched)
}

/// How much of a row a read of a point needs.
fn part_of(read: &Read) -> RowPart {
    if matches!(read, Read::Head(_)) { RowPart::Head } else { RowPart::Whole }
}

/// The newest change that a checkpoint knows of each point among `reads` that memory does not have; `None` if
/// these are fewer than `count_min`.
///
/// They lie close together: in each checkpoint the part that has them, and its filter, is found once for all.
/// What is found is not looked for in older checkpoints.
async fn look_up_together(
    tree: &Tree,
    reads: &[Read],
    count_min: usize,
    room: &mut Room,
    aside: &mut Aside,
) -> Result<Option<Vec<Option<Found>>>, PartitionError> {
    let mut keys = Vec::with_capacity(reads.len());
    let mut left = KeySet::default();
    for (at, read) in reads.iter().enumerate() {
        let (Read::Point(key) | Read::Head(key)) = read else {
            keys.push(HashedKey::new(&[]));
            continue;
        };
        let key = HashedKey::new(key.as_bytes());
        if find_in_memory(tree, key, NEWEST).is_none() {
            left.insert(at);
        }
        keys.push(key);
    }
    if left.len() < count_min {
        return Ok(None);
    }
    let mut found: Vec<Option<Found>> = Vec::new();
    found.resize_with(reads.len(), || None);
    let checkpoints = &tree.checkpoints;
    for unit in 0..checkpoints.filter_count() {
        let in_unit = checkpoints.keys_in_unit(unit, &keys, left);
        for checkpoint in checkpoints.members_of_unit(unit) {
            let asked_for = in_unit.intersection(left);
            if asked_for.is_empty() {
                break;
            }
            for at in checkpoint.keys_in(&keys, asked_for).await?.iter() {
                let row = find_in_checkpoint(checkpoint, keys[at], part_of(&reads[at]), Some(aside)).await?;
                if row.is_some() {
                    room.take_for(keys[at], row.as_ref())?;
                    found[at] = row;
                    left.remove(at);
                }
            }
        }
    }
    Ok(Some(found))
}

/// The first `limit` rows, and up to `spare` more as far as there is room.
async fn fetch_range(
    tree: &Tree,
    range: &KeyRange,
    limit: usize,
    spare: usize,
    room: &mut Room,
) -> Result<Fetched, PartitionError> {
    let heads = &OverflowReads::None;
    let mut cursor =
        MergingIterator::over_checkpoints(&tree.checkpoints, range, Caching::Keep, heads).await?;
    let mut changes = BTreeMap::new();
    let mut walked: u64 = 0;
    let mut scratch = Vec::new();
    while let Some(row) = cursor.row() {
        walked += 1;
        if walked.is_multiple_of(WALK_YIELD_ROW_COUNT) {
            tokio::task::yield_now().await;
        }
        // A deletion is as good as nothing, and of other rows memory may say what became of them: so deleted
        // rows, however many and wherever, cost no further fetch.
        if row.value.is_some() && find_in_memory(tree, HashedKey::new(row.key), NEWEST).is_none() {
            let key = Bytes::copy_from_slice(row.key);
            if changes.len() == limit + spare {
                return Ok(Fetched::Range { changes, end: Some(key) });
            }
            // Only now, as its overflow may have to be read.
            let Some(row) = cursor.whole_row(&mut scratch).await? else { break };
            let value = row.value.unwrap_or_default();
            let size_bytes = key.len() + value.len();
            if changes.len() >= limit && !room.has(size_bytes) {
                return Ok(Fetched::Range { changes, end: Some(key) });
            }
            room.take(size_bytes)?;
            // A copy: what is shared with a block keeps all of that in memory.
            let value = Some(Bytes::copy_from_slice(value));
            changes.insert(key, Found { version: row.version, value });
        }
        cursor.step().await?;
    }
    Ok(Fetched::Range { changes, end: None })
}

/// What a read finds now: memory, not yet durable changes included, over what was fetched. `None`: not enough
/// was.
pub(super) fn refresh(tree: &Tree, read: &Read, fetched: Fetched) -> Option<Vec<Row>> {
    match (read, fetched) {
        (Read::Point(key) | Read::Head(key), Fetched::Point(fetched)) => {
            let found = find_in_memory(tree, HashedKey::new(key.as_bytes()), NEWEST).or(fetched);
            Some(found.and_then(|found| to_row(key, found)).into_iter().collect())
        }
        (Read::Range { range, limit }, Fetched::Range { changes, end }) => {
            let cut = end.is_some();
            let complete = KeyRange { start: range.start.clone(), end: end.or_else(|| range.end.clone()) };
            let rows = merge_over(tree.memory_tables(), &complete, changes, *limit);
            (rows.len() == *limit || !cut).then_some(rows)
        }
        _ => None,
    }
}
